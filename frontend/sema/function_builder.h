// Builds one graph::Function from the text of a forward, an entry or a const: the TensorContext that the evaluator
// calls while it runs the text.
//
//   function_builder.cpp  functions, values, operations, errors     builder_members.cpp  members, fields, batches
//   builder_experts.cpp   route, moe and the fn between its products     builder_custom.cpp  operations of the file
//   builder_calls.cpp     calls of children, leaves, folds          builder_ops.cpp      operations by name
//   builder_views.cpp     operators, casts, slices             builder_results.cpp  results, what nothing uses
//
// A call of a leaf module is expanded: its text is run in a frame of its own, whose members are reached through the
// child's name ("q_proj.weight"), and the value that it gives carries the child's path as its stage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/graph/graph.h"
#include "frontend/graph/ops.h"
#include "frontend/sema/instances.h"
#include "frontend/sema/signature.h"
#include "frontend/sema/tensor_context.h"

namespace modelc::sema {

// ---- members as values ----------------------------------------------------------------------------------------------

// How a member is reached from the class whose function is built: "q_proj", "layers.3", ".encoder_attn" of a loop's
// element, "" and `element` for the element itself; `stage` says the same in paths of the checkpoint.
struct MemberPath {
  std::string member;
  std::string stage;
  bool element = false;
  int loop = 0;                                      // of an element: how many loops stand around it, its own included

  MemberPath then(const std::string& name, const std::string& path) const;
  bool of_element() const { return element || member.starts_with('.'); }
};

struct ChildMember final : Member {
  ClassInfo* info = nullptr;                         // null: the child failed
  MemberPath path;
  std::string name;                                  // for messages: "q_proj"
  source::Span declared;
  std::string describe() const override { return "the child `" + name + "`"; }
};

struct ListMember final : Member {
  std::vector<ClassInfo*> elements;
  MemberPath path;
  std::string name;
  source::Span declared;
  std::string describe() const override { return "the list of children `" + name + "`"; }
};

// A function of the module whose text is being run.
struct MethodMember final : Member {
  const MemberDef* method = nullptr;
  std::string describe() const override { return "the module's own `" + method->name + "`"; }
};

struct StateMember final : Member {
  ClassInfo* info = nullptr;                         // the class that declares it
  std::uint32_t index = 0;
  std::string member;                                // "cache"
  source::Span declared;
  std::string describe() const override { return "the state `" + member + "`"; }
};

// What an operation needs besides operands and attributes.
struct EmitOptions {
  std::string member;                                // of state operations
  const graph::StateDecl* state = nullptr;
  const graph::Type* wanted = nullptr;               // reshape, expand, cast to an index
  const std::vector<AxisText>* texts = nullptr;      // the axes of the only result as written
};

// ---- the builder ----------------------------------------------------------------------------------------------------

class FunctionBuilder final : public TensorContext {
 public:
  // forward or an entry, `...` standing for `ellipsis`. Nothing when it failed (reported).
  static std::optional<graph::Function> method(Instances& instances, ClassInfo& info, const MemberDef& method,
                                               const SignaturePattern& signature, const Ellipsis& ellipsis, const std::string& name,
                                               StateMoves& moves);
  // The function that computes a const: `member` is an index in the definition.
  static std::optional<graph::Function> init(Instances& instances, ClassInfo& info, std::size_t member);

  // Whether a text of this instance is being run, so that its members can be reached.
  bool is_inside(const Instance& instance) const { return frames_.back().info->instance == &instance; }
  // A param, const, state, child of the innermost frame's instance.
  Value member(std::size_t index, source::Span use);

  // TensorContext
  Value unary(ast::UnaryOp op, const Value& x, source::Span span) override;
  Value binary(ast::BinaryOp op, const Value& a, const Value& b, source::Span span) override;
  Value call_op(std::string_view name, std::span<const Argument> arguments, source::Span span) override;
  Value call_custom(const Symbol& op, std::span<const Argument> arguments, source::Span span) override;
  Value call_member(const Value& member, std::string_view name, std::span<const Argument> arguments, source::Span span) override;
  Value field(const Value& object, const ast::Name& name) override;
  Value cast(const Value& x, const CastTarget& target, source::Span span) override;
  Value slice(const Value& x, std::span<const SliceValue> slices, source::Span span) override;
  std::optional<std::vector<Value>> elements(const Value& member) override;
  std::optional<std::vector<Value>> fold(const Value& list, const ast::ForStatement& statement, std::span<const Carried> carried,
                                         const FoldBody& body) override;
  void named(const Value& value, const ast::Name& name) override;
  void enter_function(const Closure& function, source::Span call) override;
  void leave_function() override;

 private:
  // An operand as it is emitted, with the place of its text.
  struct Operand {
    std::optional<graph::ValueId> id;                // none: an optional that is left out
    source::Span span;
    Operand() = default;
    Operand(graph::ValueId value, source::Span place) : id(value), span(place) {}
  };
  using Attrs = std::map<std::string, graph::AttrValue>;
  struct OpCall;                                     // arguments of an operation, by name and place (builder_ops.cpp)

  // What is known of a value besides its type.
  struct ValueInfo {
    std::vector<FormulaPtr> axes;                    // by axis; null where nothing is known
    ClassInfo* owner = nullptr;                      // of a weight: who declares it
    std::uint32_t weight = 0;
    source::Span declared;                           // of an input or a weight
  };
  struct BlockState {
    graph::Block block;
    std::map<std::string, graph::ValueId> known;     // weights, consts, batch fields read in it
    bool loop = false;
  };
  // A text that is being run: the function's own, and those that are being expanded: of leaves, and of other functions
  // of the same module.
  struct Frame {
    ClassInfo* info = nullptr;
    MemberPath path;
    Ellipsis ellipsis;
    source::Span call;                               // of a text that is expanded, and what it is called
    std::string name;
    const MemberDef* method = nullptr;
  };

  FunctionBuilder(Instances& instances, ClassInfo& info) : in_(instances), ev_(instances.evaluator()), info_(info) {}
  int loops_open() const;
  // Whether a path is one that a graph can name here: of a loop's element, only inside that loop's own body.
  bool reachable(const MemberPath& path, source::Span use);
  bool run_method(const MemberDef& method, const SignaturePattern& signature, const Ellipsis& ellipsis);
  bool run_init(std::size_t member);
  void finish_body();

  // Values
  graph::ValueId new_value(graph::Type type);
  const graph::Type& type(graph::ValueId id) const { return fn_.values[id.index].type; }
  Value tensor(graph::ValueId id) const { return Value::tensor({id, type(id)}); }
  std::vector<AxisText> axes_of(graph::ValueId id) const;
  // "[tokens, heads * d] = [tokens, 4 * 16] = [tokens, 64]", the element type before it where it is not f32. Beside what a
  // text declares: always, if the two differ in it; `wanted` is the declared type in the same words.
  std::string shown(graph::ValueId id, const TypePattern* beside = nullptr) const;
  std::string wanted(const TypePattern& declared, graph::ValueId beside) const;
  graph::DimTable& dims() { return in_.module().dims; }

  // Operations. `results` of a failed one is empty.
  void place_op(graph::Op& op, source::Span span);
  graph::Op& add_op(graph::OpKind kind, source::Span span);
  std::optional<std::vector<graph::ValueId>> emit(graph::OpKind kind, std::vector<Operand> operands, Attrs attrs, source::Span span,
                                                  const EmitOptions& options = {});
  std::optional<graph::ValueId> emit_one(graph::OpKind kind, std::vector<Operand> operands, Attrs attrs, source::Span span,
                                         const EmitOptions& options = {});
  void note_uses(graph::OpKind kind, const std::vector<Operand>& operands);
  void note_formulas(const std::vector<Operand>& operands, const std::vector<graph::ValueId>& results, const EmitOptions& options);
  graph::ValueId literal(double value, source::Span span);
  graph::ValueId weight(ClassInfo& owner, std::uint32_t index, const MemberPath& path, source::Span use);
  graph::ValueId constant(ClassInfo& owner, std::uint32_t index, const MemberPath& path, source::Span use);
  std::optional<graph::ValueId> known(const std::string& key) const;
  // A number as a literal, of the other operand's kind where it is an integer tensor; lists of numbers as tensors.
  std::optional<graph::ValueId> promote(const Value& value, source::Span span, const graph::Type* beside = nullptr);
  std::optional<Operand> operand(const Value& value, source::Span span, std::string_view what);
  std::optional<graph::ValueId> rebound(graph::ValueId id, const graph::Type& wanted, source::Span span);
  std::optional<graph::ValueId> kept_f32(graph::ValueId id, const TypePattern& declared, source::Span span);

  // Errors
  diag::Builder fail(const diag::Code& code, source::Span span, std::string message);
  void fail_shape(const graph::ShapeError& error, graph::OpKind kind, const std::vector<Operand>& operands, source::Span span);
  // The way out where a value's element type is not the declared one: "convert it: `x as f16`"; else empty.
  std::string advice_on_type(const TypePattern& declared, graph::ValueId found, source::Span text) const;
  Value not_carried_out(source::Span span, const std::string& what);

  // Members
  Value member_of(ClassInfo& owner, std::size_t index, const MemberPath& path, source::Span use, bool own);

  // Calls
  struct Bound {
    std::vector<std::optional<graph::ValueId>> values;
    std::vector<source::Span> spans;
    Ellipsis ellipsis;
  };
  Value call_child(const ChildMember& child, const std::string& method, std::span<const Argument> arguments, source::Span span);
  Value call_state(const StateMember& state, std::string_view name, std::span<const Argument> arguments, source::Span span);
  // Notes that a state is moved on; refuses a second time in one call.
  bool moves(const std::string& path, const StateMove& move);
  bool child_moves(const ChildMember& child, const MethodVariant& variant, source::Span span);
  Value call_own(const MemberDef& method, std::span<const Argument> arguments, source::Span span);
  std::optional<Bound> bind_inputs(const std::string& callee, const SignaturePattern& signature, std::span<const Argument> arguments,
                                   source::Span span);
  // The text of a function of `frame.info`, in a frame of its own; its operations become the caller's.
  std::optional<std::vector<graph::ValueId>> expand(Frame frame, const SignaturePattern& signature, Bound bound, source::Span span);
  Value expand_leaf(const ChildMember& child, const MemberDef& method, const SignaturePattern& signature, Bound bound, source::Span span);
  // The values that a text returned, as its signature wants them.
  std::optional<std::vector<graph::ValueId>> results_of(const Value& returned, const SignaturePattern& signature, const MemberDef& method,
                                                        const Instance& instance, Ellipsis& ellipsis);
  Value as_value(const std::vector<graph::ValueId>& results) const;
  void mark_stage(const std::vector<graph::ValueId>& results, const MemberPath& path, std::size_t first_value);

  // Operations by name (builder_ops.cpp)
  Value simple_op(graph::OpKind kind, OpCall& call);
  Value attend(OpCall& call);
  Value state_op(const graph::OpInfo& row, OpCall& call);
  Value einsum(OpCall& call);
  Value activate(OpCall& call);
  Value softcap(OpCall& call);
  Value clamp(OpCall& call);
  Value extreme(OpCall& call, bool largest);
  Value reshaped(OpCall& call);
  Value expanded(OpCall& call);
  Value tensor_of(OpCall& call);
  Value joined(graph::OpKind kind, OpCall& call);
  Value measure(OpCall& call);
  Value route(OpCall& call);                         // builder_experts.cpp
  Value moe(OpCall& call);
  bool gated(const Argument& argument, const graph::Type& row, OpCall& call);
  bool check_kernels(const Symbol& op, const Environment& env, const std::vector<graph::ValueId>& inputs,
                     graph::Custom& to);                             // builder_custom.cpp
  std::filesystem::path allowed_folder(const Symbol& op, const std::string& file) const;
  std::optional<int> host_code(const Symbol& op, const ast::Kernel& kernel, const std::filesystem::path& folder);
  void host_types(int host, const std::vector<graph::ValueId>& inputs, const std::vector<graph::ValueId>& results);
  std::optional<std::uint32_t> shader(const Symbol& op, const ast::Kernel& kernel);
  // An operation of the table; `given` follows its operands, then its attributes.
  std::optional<std::vector<graph::ValueId>> from_table(graph::OpKind kind, std::span<const Argument* const> given, const OpCall& call);
  // Where each attribute of the operation at hand is written.
  std::map<std::string, source::Span, std::less<>> attribute_spans_;
  std::optional<graph::AttrValue> attribute(const graph::AttrSpec& spec, const Argument& argument, std::string_view op);
  std::optional<graph::ValueId> activation(std::string_view name, graph::ValueId x, source::Span name_span, source::Span span);

  // Views (builder_views.cpp)
  std::optional<graph::ValueId> reshape(graph::ValueId x, const std::vector<AxisText>& axes, source::Span x_span, source::Span span);
  std::optional<std::vector<AxisText>> sizes_of(const std::vector<ShapeAxis>& shape);

  Instances& in_;
  Evaluator& ev_;
  ClassInfo& info_;
  graph::Function fn_;
  std::vector<ValueInfo> infos_;                     // by value
  std::vector<BlockState> blocks_;                   // the function's, then the loops'; the innermost last
  std::vector<Frame> frames_;                        // the innermost last
  struct Entered {
    std::string name;
    source::Span call;
    std::size_t frame;                               // frames_.size() at that time
  };
  std::vector<Entered> entered_;                     // fns being expanded
  StateMoves moved_;                                 // what the text so far moves on
  std::optional<std::size_t> init_const_;            // of an init: the const's index
  bool calls_leaves_ = false;                        // of a loop's element: its leaves' texts differ
};

}  // namespace modelc::sema
