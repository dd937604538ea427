// From recipes to classes: every distinct instance of a module becomes one graph::Class.
//
// A recipe is a module and its arguments. Its Instance evaluates what the members depend on: conditions, sizes, the
// recipes of children. Instances of a definition whose members and mentioned values agree share one class, so that a
// layer's position in its stack makes no class of its own, and its functions are built once (function_builder.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/graph/graph.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/module_def.h"
#include "frontend/sema/signature.h"
#include "frontend/sema/value.h"

namespace modelc::sema {

class FunctionBuilder;
class Instances;
struct ClassInfo;

// What a member of an instance came to.
struct Slot {
  enum class State : std::uint8_t { open, working, done };
  State state = State::open;
  bool failed = false;                       // reported: uses are silent
  bool present = true;
  std::string absent_reason;                 // "its condition `has_bias` is false"
  Value value;                               // of a let
  std::uint32_t index = 0;                   // in the class's weights, consts, states, children
  TypePattern type;                          // of a param or a const
  std::vector<ClassInfo*> elements;          // of a child: one, or those of the list; null: failed
  bool list = false;
};

// One recipe: the scope in which its module's texts are evaluated.
class Instance final : public NameSource {
 public:
  Instance(Instances& owner, const ModuleDef& definition, Recipe made_from)
      : def(definition), recipe(std::move(made_from)), owner_(owner) {}

  const ModuleDef& def;
  const Recipe recipe;
  std::vector<Slot> slots;                   // by ModuleDef::members
  graph::Class made;                         // members as they are found, until the class gets them

  // The text of a level sees its parameters and file, and the members of the whole.
  Environment environment(std::size_t level) const { return parameters_[level].with(*this); }
  const Environment& parameters(std::size_t level) const { return parameters_[level]; }

  std::optional<Value> lookup(std::string_view name, source::Span use) const override;
  std::optional<Value> peek(std::string_view name) const override;
  std::optional<source::Span> declared(std::string_view name) const override;
  void names(std::vector<std::string>& into) const override;

  // A let's value, worked out on first use.
  Value let(std::size_t member);
  // "the module `Linear`"
  std::string title() const { return "the module `" + def.name() + "`"; }

 private:
  friend class Instances;
  Value function(const MemberDef& member) const;

  Instances& owner_;
  std::vector<Environment> parameters_;      // by level: file and parameters
  std::vector<std::size_t> open_;            // lets being worked out, outermost first
};

// How a weight is used by all functions that reach it.
struct WeightUse {
  bool product = false;                      // a matrix of a product: of linear, matmul, moe, attend_latent
  bool rows = false;                         // the first operand of take
  bool other = false;
};
struct StateUse {
  bool read = false;
  bool unbounded = false;                    // by an attend without a window
  std::int64_t widest = 0;
};

// A state that a call moves on by its tokens: a cache that is appended to, a ring, a recurrent state.
struct StateMove {
  source::Span place;                        // where, in the text of the function at hand
  source::Span write;                        // the append or the operation itself, perhaps in a child's text
  source::Span declared;
  bool cache = false;
};
// By the state's path from the class: "cache", "layers.3.self_attn.cache"; of a loop's element ".self_attn.cache".
using StateMoves = std::map<std::string, StateMove>;

// A function of a class, made for one meaning of `...`.
struct MethodVariant {
  const MemberDef* method = nullptr;
  Ellipsis ellipsis;
  std::string callee;                        // name in the class
  std::vector<graph::Type> results;
  bool ok = false;                           // false: failed or being made
  StateMoves moves;
};

struct ClassInfo {
  graph::ClassId id;
  Instance* instance = nullptr;              // the first: its texts and values stand in messages
  bool leaf = false;
  bool ok = true;
  std::uint64_t instances = 1;               // itself and all below; saturates
  int depth = 1;
  std::vector<WeightUse> weight_uses;
  std::vector<StateUse> state_uses;
  std::vector<std::unique_ptr<MethodVariant>> variants;
  std::unordered_map<const MemberDef*, std::optional<SignaturePattern>> signatures;
};

class Instances final : public InterfaceChecker {
 public:
  static constexpr int max_depth = 64;
  static constexpr std::uint64_t max_instances = 200'000;
  // Modules that differ in more than position: bounds what modules that make ever new ones of themselves can cost.
  static constexpr std::size_t max_classes = 20'000;

  // `selected`: names that stand behind a dot in some text, so that a let of that name may be read from outside.
  Instances(Evaluator& evaluator, ModuleDefs& defs, graph::Module& module, const std::set<std::string, std::less<>>& selected);
  ~Instances() override;

  Evaluator& evaluator() { return evaluator_; }
  graph::Module& module() { return module_; }
  diag::Sink& sink() { return evaluator_.sink(); }
  const source::SourceManager& sources() const { return evaluator_.sources(); }

  // The scope of a recipe; null when its definition or its base's arguments are wrong (reported).
  Instance* instance(const Recipe& recipe);
  // The class of a recipe, made where it is new. Null when nothing can be made of it (reported).
  ClassInfo* make(const Recipe& recipe, bool root = false);
  // Fills in roles and windows, when all functions are there.
  void finish();

  // Every instance made so far, in no order.
  template <class Visit> void each_instance(const Visit& visit) const {
    for (const auto& [key, instance] : instances_)
      if (instance) visit(*instance);
  }

  graph::Class& class_of(const ClassInfo& info) { return module_.classes[info.id.index]; }
  ClassInfo* info(graph::ClassId id) { return classes_[id.index].get(); }

  // A function's types in a class; null when they are wrong (reported once).
  const SignaturePattern* signature(ClassInfo& info, const MemberDef& method);
  // The function of the class for this `...`, made where it is new; null when it cannot be.
  const MethodVariant* variant(ClassInfo& info, const MemberDef& method, const Ellipsis& ellipsis);

  // Functions of several classes under one name that all of them have, for a loop over their instances: "forward", or
  // copies named "forward_2".
  std::string common_name(const std::vector<std::pair<graph::ClassId, std::string>>& functions);

  // InterfaceChecker
  bool fits(const Recipe& recipe, const Symbol& interface, std::span<const std::pair<std::string, Value>> arguments,
            source::Span use) override;

  // Under a `policy` a cast to f32 of what is f32 anyhow says that the value is not rounded: it stays in the graph.
  bool keep_casts = false;
  FunctionBuilder* builder = nullptr;        // of the function being made; null where values are static
  // Operations that the file declares: those called, and what is to be said of their kernels, each once.
  std::unordered_set<const Symbol*> custom_ops;
  std::vector<std::string> kernel_notes;
  std::vector<std::string> shader_paths;         // of shaders and host code, that were read
  std::vector<std::string> extensions;           // folders whose C++ may be used

  graph::Where where(source::Span span) const;
  std::string source_text(source::Span span) const { return collapsed(sources().text(span)); }
  // The place of a text's first occurrence within a span, without its first character: of `.append`, the name.
  source::Span part_of(source::Span span, std::string_view text) const {
    const std::size_t at = sources().text(span).find(text);
    if (at == std::string_view::npos) return span;
    const auto begin = static_cast<std::uint32_t>(span.begin + at + 1);
    return {span.file, begin, static_cast<std::uint32_t>(begin + text.size() - 1)};
  }

 private:
  friend class Instance;
  bool bind_levels(Instance& instance);
  bool realize(Instance& instance);
  bool realize_member(Instance& instance, std::size_t index);
  bool realize_param(Instance& instance, const MemberDef& member, Slot& slot);
  bool realize_const(Instance& instance, const MemberDef& member, Slot& slot);
  bool realize_state(Instance& instance, const MemberDef& member, Slot& slot);
  bool realize_child(Instance& instance, const MemberDef& member, Slot& slot);
  bool present(Instance& instance, const ast::ExprPtr& condition, const MemberDef& member, Slot& slot);
  bool check_requires(Instance& instance);
  ClassInfo* child_class(const Value& value, source::Span span, const MemberDef& member);
  std::string content_key(Instance& instance, bool root);
  std::string unique_name(const std::string& definition);
  std::optional<std::string> path_of(const std::optional<ast::At>& at, const std::string& name, bool child);
  void build_functions(ClassInfo& info);

  Evaluator& evaluator_;
  ModuleDefs& defs_;
  graph::Module& module_;
  const std::set<std::string, std::less<>>& selected_;
  std::unordered_map<std::string, std::unique_ptr<Instance>> instances_;   // by canonical recipe; null: failed
  struct Made {
    ClassInfo* info = nullptr;
    bool working = false;
  };
  std::unordered_map<std::string, Made> by_recipe_;
  std::unordered_map<std::string, ClassInfo*> by_content_;
  std::vector<std::unique_ptr<ClassInfo>> classes_;          // by ClassId
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> last_number_;         // given to a class of this definition
  std::vector<const Recipe*> path_;                          // being made, outermost first
  std::unordered_map<std::string, bool> fits_;               // by recipe and interface
};

// What is evaluated inside is static: no function is being built.
class StaticScope {
 public:
  explicit StaticScope(Instances& instances)
      : instances_(instances), builder_(instances.builder), tensors_(instances.evaluator().set_tensors(nullptr)) {
    instances_.builder = nullptr;
  }
  ~StaticScope() {
    instances_.builder = builder_;
    instances_.evaluator().set_tensors(tensors_);
  }
  StaticScope(const StaticScope&) = delete;
  StaticScope& operator=(const StaticScope&) = delete;

 private:
  Instances& instances_;
  FunctionBuilder* builder_;
  TensorContext* tensors_;
};

// What makes a recipe another one: its arguments, and the formulas of its sizes, which are told in messages.
std::string recipe_key(const Recipe& recipe);

}  // namespace modelc::sema
