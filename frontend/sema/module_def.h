// Modules as definitions: one name space for parameters and members, inheritance resolved.
//
// `module A(c: C) extends B(c)` has B's members, each replaced by what A overrides, without what A removes, and A's
// own. A text of a base goes on seeing the base's parameters and file; members are looked up in the whole, so that a base's
// forward calls what the derived module puts in its place.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/sema/symbols.h"
#include "frontend/syntax/ast.h"

namespace modelc::sema {

enum class MemberKind : std::uint8_t { let, function, param, constant, state, child, method };
// "let", "fn", "param", "const", "state", "child", "forward or entry": for messages.
std::string_view word(MemberKind kind);

struct MemberDef {
  MemberKind kind = MemberKind::let;
  std::string name;
  const ast::Item* item = nullptr;
  std::size_t level = 0;               // index in ModuleDef::levels: whose parameters and file the text sees
  source::Span span;                   // of the name
  bool doubtful = false;               // an `override` of nothing: reported, so nothing more is said of it
};

template <class T> struct Leveled {                       // an item of a module that has no name
  const T* item = nullptr;
  std::size_t level = 0;
};

// The blocks of one format, the most derived first; a block that says `override` ends the list.
struct CheckpointDef {
  std::string format;                  // "safetensors"
  std::vector<Leveled<ast::CheckpointMember>> blocks;
};

struct ModuleDef {
  const Symbol* symbol = nullptr;
  struct Level {
    const Symbol* symbol = nullptr;
    const ast::ModuleDecl* decl = nullptr;
  };
  std::vector<Level> levels;           // the module itself, its base, the base's base, …
  std::vector<MemberDef> members;      // the base's first; an override stands where the overridden stood
  std::vector<Leveled<ast::RequireItem>> requires_;
  std::optional<Leveled<ast::ContextMember>> context;
  std::vector<CheckpointDef> checkpoints;
  // policy, shard, quantize, place: one of each kind at most, the most derived.
  std::vector<Leveled<ast::Item>> sections;
  // Names that functions and consts mention, through fns too: what a function depends on, besides members' types.
  std::set<std::string, std::less<>> mentioned;

  const std::string& name() const { return symbol->name; }
  const MemberDef* find(std::string_view member) const;
  std::optional<std::size_t> index_of(std::string_view member) const;
  bool has_method() const;             // forward or an entry
  // Of the parameters of all levels.
  const ast::Param* parameter(std::string_view parameter, std::size_t* level = nullptr) const;

 private:
  friend class ModuleDefs;
  std::unordered_map<std::string, std::size_t> by_name_;
};

// Definitions, each made and checked once. Null where the inheritance itself is wrong (reported once).
class ModuleDefs {
 public:
  explicit ModuleDefs(diag::Sink& sink) : sink_(sink) {}
  const ModuleDef* get(const Symbol& symbol);

 private:
  std::unique_ptr<ModuleDef> make(const Symbol& symbol);
  void add_level(ModuleDef& def, std::size_t level);
  void add_member(ModuleDef& def, std::vector<MemberDef>& own, MemberDef member, bool overrides);
  void remove(ModuleDef& def, const ast::RemoveItem& item, std::size_t level);
  void check_name(const ModuleDef& def, const MemberDef& member);
  void finish(ModuleDef& def);

  diag::Sink& sink_;
  std::map<const Symbol*, std::unique_ptr<ModuleDef>> defs_;   // null: failed, or being made
};

// The names that a text uses, heads of paths included; what it defines itself is not taken out.
void mentioned_names(const ast::Expr& expr, std::set<std::string, std::less<>>& into);
void mentioned_names(const ast::Block& block, std::set<std::string, std::less<>>& into);
void mentioned_names(const ast::Signature& signature, std::set<std::string, std::less<>>& into);

}  // namespace modelc::sema
