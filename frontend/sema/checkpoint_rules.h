// Checkpoint blocks of all modules of a program, joined into rules with whole names (language.md section 5).
//
// Names are relative to the module in which a block stands; rules of outer modules stand first and win. What a rule
// names is checked against the weights and modules that there are, and a rule with transforms against their shapes. The
// elements of a list that share a class share their rules: "model.layers.{1}.mlp", bounded by `only`, so that the rules of a
// model do not grow with its layers.
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
  std::vector<std::string> consts;
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
    std::string path;                    // of the instance, or of several ({1})
    std::string file_path;               // what the file calls it
    std::string only;                    // bounds of {1}, {2}, …
    const CheckpointDef& def;
    std::size_t level = 0;               // of the block being read
    int set = -1, alternative = 0;       // within a one_of
  };
  void read(const std::string& format, ClassInfo& root);
  void walk(ClassInfo& info, const std::string& path, const std::string& only, int depth);
  // Instances below, those of a list that share a class as one; `f` is given the class, the path and its bounds.
  template <class F> void children(ClassInfo& info, const std::string& path, const std::string& only, int depth, F f);
  void each_of_type(ClassInfo& info, const Symbol& type, Block& block, const std::string& path, const std::string& only, int depth,
                    const std::vector<ast::RulePtr>& rules);
  bool has_blocks(ClassInfo& info);
  void read_block(Block& block);
  void read_rules(Block& block, const std::vector<ast::RulePtr>& rules);
  void read_alias(Block& block, const ast::AliasRule& rule);
  void read_map(Block& block, const ast::MapRule& rule);
  // `file = const`: a tensor that a writer makes, and that no reader needs. False where the rule names no const.
  bool read_const(Block& block, const ast::MapRule& rule);
  void read_via(Block& block, const ast::ViaRule& rule);
  void read_ignore(Block& block, const ast::IgnoreRule& rule);
  void read_encode(Block& block, const ast::EncodeRule& rule);
  void read_one_of(Block& block, const ast::OneOfRule& rule);
  void read_for(Block& block, const ast::ForRule& rule);
  void check_config(Block& block, const ast::ConfigRule& rule);
  // The transforms with their arguments worked out, as text; nothing when they are wrong (reported).
  std::optional<std::string> via_text(Block& block, const std::vector<ast::Call>& via);
  // Whether they make the weights that the patterns name, of any tensors at all.
  bool check_shapes(Block& block, const std::vector<const ast::Tensor*>& model, const std::string& via, source::Span span);
  bool encoding_of(Block& block, const Recipe& recipe, source::Span span, graph::CheckpointRules::Encode& to);
  void add(Block& block, graph::CheckpointRules::Map map, source::Span span);

  // What a `when` comes to: the bounds of the indices of which it speaks ("" for none); nothing when it is false or wrong.
  std::optional<std::string> when(Block& block, const ast::ExprPtr& condition, const std::vector<const ast::Tensor*>& names);
  std::optional<bool> when_static(Block& block, const ast::ExprPtr& condition);
  Match find(const NamesBelow& names, const ast::Tensor& pattern);
  Match target(Block& block, const ast::Tensor& pattern);
  bool check_target(Block& block, const ast::Tensor& pattern);
  void refuse(source::Span span, const std::string& what);
  const NamesBelow& names(ClassInfo& info);
  std::string file_name(const std::string& path) const;
  std::string place(source::Span span) const;

  Instances& in_;
  graph::CheckpointRules rules_;
  std::unordered_map<ClassInfo*, NamesBelow> names_;
  std::unordered_map<ClassInfo*, bool> has_blocks_;
  bool take(const std::string& key);
  // What the more derived blocks, and the one at hand, have rules for: a base's rule for the same gives way.
  std::vector<std::string> taken_, own_;
};

// "layers.{i}.weight" as written, without quotes.
std::string pattern_text(const ast::Tensor& tensor);

}  // namespace modelc::sema
