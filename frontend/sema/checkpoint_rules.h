// Checkpoint blocks of all modules of a program, joined into rules with whole names (language.md section 5).
//
// Names are relative to the module in which a block stands; rules of outer modules stand first and win. What a rule
// names is checked against the weights and modules that there are. Rules that are not carried out are refused by name,
// but in gguf blocks, which only a .gguf file makes active: there the names and conditions are checked and no more.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/sema/instances.h"

namespace modelc::sema {

// Names below a class, relative to it.
struct NamesBelow {
  struct Weight {
    std::string name;
    const graph::WeightDecl* decl = nullptr;
  };
  std::vector<Weight> weights;
  std::vector<std::string> modules;
  std::vector<std::string> absent;       // paths of members that this instance does not have
};

class CheckpointRulesReader {
 public:
  explicit CheckpointRulesReader(Instances& instances) : in_(instances) {}
  // The rules of the program whose root this is, into Module::checkpoints.
  void read(ClassInfo& root);

 private:
  enum class Match { none, absent, present };
  struct Block {
    ClassInfo& info;
    std::string path;                    // of the instance
    std::string file_path;               // what the file calls it
    const CheckpointDef& def;
    std::size_t level = 0;               // of the block being read
  };
  void walk(ClassInfo& info, const std::string& path);
  bool has_blocks(ClassInfo& info);
  void read_block(Block& block);
  void read_rules(Block& block, const std::vector<ast::RulePtr>& rules);
  void read_alias(Block& block, const ast::AliasRule& rule);
  void read_map(Block& block, const ast::MapRule& rule);
  void read_ignore(Block& block, const ast::IgnoreRule& rule);
  void read_encode(Block& block, const ast::EncodeRule& rule);
  // gguf
  void check_rules(Block& block, const std::vector<ast::RulePtr>& rules);
  void check_via(const std::vector<ast::Call>& via);
  void check_config(const ast::ConfigRule& rule);

  // True, false, or nothing: wrong, or (`indices`) about an index, which is known only for a file's names.
  std::optional<bool> when(Block& block, const ast::ExprPtr& condition, const std::vector<const ast::Tensor*>& names,
                           bool& indices);
  Match find(const NamesBelow& names, const ast::Tensor& pattern);
  Match target(Block& block, const ast::Tensor& pattern);
  bool check_target(Block& block, const ast::Tensor& pattern);
  void refuse(source::Span span, const std::string& what);
  const NamesBelow& names(ClassInfo& info);
  std::string file_name(const std::string& path) const;

  Instances& in_;
  graph::CheckpointRules rules_;
  std::unordered_map<ClassInfo*, NamesBelow> names_;
  std::unordered_map<ClassInfo*, bool> has_blocks_;
  std::set<std::pair<const ClassInfo*, const CheckpointDef*>> checked_;
  bool take(const std::string& key);
  // What the more derived blocks, and the one at hand, have rules for: a base's rule for the same gives way.
  std::vector<std::string> taken_, own_;
};

// "layers.{i}.weight" as written, without quotes.
std::string pattern_text(const ast::Tensor& tensor);

}  // namespace modelc::sema
