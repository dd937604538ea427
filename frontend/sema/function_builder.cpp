#include "frontend/sema/function_builder.h"

#include <algorithm>
#include <cassert>

#include "frontend/graph/types.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;
using graph::ValueId;

// ---- functions ------------------------------------------------------------------------------------------------------

namespace {

// The builder that the instances and the evaluator talk to, for the time of one function.
class Active {
 public:
  Active(Instances& instances, FunctionBuilder& builder)
      : instances_(instances), builder_(instances.builder), tensors_(instances.evaluator().set_tensors(&builder)) {
    instances_.builder = &builder;
  }
  ~Active() {
    instances_.builder = builder_;
    instances_.evaluator().set_tensors(tensors_);
  }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  Instances& instances_;
  FunctionBuilder* builder_;
  TensorContext* tensors_;
};

}  // namespace

std::optional<graph::Function> FunctionBuilder::method(Instances& instances, ClassInfo& info, const MemberDef& method,
                                                       const SignaturePattern& signature, const Ellipsis& ellipsis, const std::string& name,
                                                       StateMoves& moves) {
  FunctionBuilder builder(instances, info);
  const auto& decl = ast::as<ast::MethodMember>(*method.item);
  builder.fn_.name = name;
  builder.fn_.kind = decl.signature.is_forward ? graph::FunctionKind::forward : graph::FunctionKind::entry;
  builder.fn_.signature = instances.source_text(decl.signature.span);
  builder.fn_.where = instances.where(decl.signature.span);
  const Active active(instances, builder);
  const bool made = builder.run_method(method, signature, ellipsis);
  moves = std::move(builder.moved_);
  if (!made) return std::nullopt;
  return std::move(builder.fn_);
}

std::optional<graph::Function> FunctionBuilder::init(Instances& instances, ClassInfo& info, std::size_t member) {
  FunctionBuilder builder(instances, info);
  const MemberDef& def = info.instance->def.members[member];
  builder.fn_.name = def.name;
  builder.fn_.kind = graph::FunctionKind::init;
  builder.fn_.signature = instances.source_text(def.item->span);
  builder.fn_.where = instances.where(def.span);
  const Active active(instances, builder);
  if (!builder.run_init(member)) return std::nullopt;
  return std::move(builder.fn_);
}

bool FunctionBuilder::run_method(const MemberDef& method, const SignaturePattern& signature, const Ellipsis& ellipsis) {
  Instance& instance = *info_.instance;
  frames_.push_back({&info_, {}, ellipsis, {}, "", &method});
  blocks_.emplace_back();
  Environment env = instance.environment(method.level);
  for (const SignaturePattern::Input& input : signature.inputs) {
    if (const auto before = env.declared(input.name)) {
      fail(code::duplicate_name, input.span, "`" + input.name + "` is already a name of `" + instance.def.name() + "`")
          .label(*before, "this one")
          .help("parameters, members and locals of a module share one name space: choose another name");
    }
    const ValueId id = new_value(concrete(input.type, ellipsis));
    fn_.values[id.index].name = input.name;
    ValueInfo& known = infos_[id.index];
    known.declared = input.span;
    for (const AxisPattern& axis : input.type.axes) {
      if (axis.ellipsis) {
        if (ellipsis) known.axes.resize(known.axes.size() + ellipsis->size());
      } else {
        known.axes.push_back(axis.formula);
      }
    }
    fn_.inputs.push_back({id, input.name, input.default_value});
    const auto seen = kept_f32(id, input.type, input.span);
    if (!seen) return false;
    const GraphValue value{*seen, type(*seen)};
    env.define(input.name, input.type.kind == graph::TypeKind::tensor ? Value::tensor(value) : Value::batch(value), input.span);
  }
  const Value returned = ev_.run(ast::as<ast::MethodMember>(*method.item).body, env);
  if (returned.is_error()) return false;
  Ellipsis bound = ellipsis;
  auto results = results_of(returned, signature, method, instance, bound);
  if (!results) return false;
  fn_.body = std::move(blocks_.back().block);
  fn_.body.results = std::move(*results);
  for (std::size_t i = 0; i < fn_.body.results.size(); ++i) {
    fn_.result_names.push_back(signature.results ? (*signature.results)[i].name : "");
  }
  finish_body();
  return true;
}

bool FunctionBuilder::run_init(std::size_t member) {
  Instance& instance = *info_.instance;
  const MemberDef& def = instance.def.members[member];
  const Slot& slot = instance.slots[member];
  frames_.push_back({&info_, {}, std::nullopt, {}, "", nullptr});
  blocks_.emplace_back();
  init_const_ = slot.index;
  const ast::Expr& expr = *ast::as<ast::ConstMember>(*def.item).value;
  const Value value = ev_.eval(expr, instance.environment(def.level));
  if (value.is_error()) return false;
  const graph::Type declared = concrete(slot.type, std::nullopt);
  auto id = promote(value, expr.span);
  if (!id) return false;
  if (type(*id).shape != declared.shape && type(*id).shape.empty()) {
    id = emit_one(OpKind::expand, {{*id, expr.span}}, {}, expr.span, {{}, nullptr, &declared, nullptr});
    if (!id) return false;
  }
  Ellipsis none;
  if (const auto problem = mismatch(slot.type, type(*id), dims(), none)) {
    fail(code::signature_mismatch, expr.span, "the const `" + def.name + "` is not what it is declared as: " + *problem)
        .mark("this is " + shown(*id, &slot.type))
        .label(slot.type.span, "declared as " + wanted(slot.type, *id))
        .help(advice_on_type(slot.type, *id, expr.span));
    return false;
  }
  fn_.body = std::move(blocks_.back().block);
  fn_.body.results = {*id};
  fn_.result_names = {""};
  finish_body();
  return true;
}

// ---- values ---------------------------------------------------------------------------------------------------------

ValueId FunctionBuilder::new_value(graph::Type type) {
  const ValueId id{static_cast<std::uint32_t>(fn_.values.size())};
  fn_.values.push_back({std::move(type), "", ""});
  infos_.emplace_back();
  return id;
}

std::vector<AxisText> FunctionBuilder::axes_of(ValueId id) const {
  std::vector<AxisText> out;
  const ValueInfo& known = infos_[id.index];
  const auto& shape = type(id).shape;
  for (std::size_t i = 0; i < shape.size(); ++i) { out.push_back({shape[i], i < known.axes.size() ? known.axes[i] : nullptr, false}); }
  return out;
}

namespace {

// Whether elements of the two are of one kind: an index is none of a number, whatever its bound.
bool same_elements(const TypePattern& declared, const graph::Type& type) {
  if (declared.kind != graph::TypeKind::tensor || type.kind != graph::TypeKind::tensor) return true;
  return declared.is_index == type.index_bound.has_value() && (declared.is_index || declared.dtype == type.dtype);
}

std::string element(const std::optional<graph::DimId>& bound, bool is_index, DType dtype, bool always, const graph::DimTable& dims) {
  if (is_index) return bound ? "index(" + dims.text(*bound) + ")" : "index";
  return dtype == DType::f32 && !always ? "" : std::string(name(dtype));
}

}  // namespace

std::string FunctionBuilder::shown(ValueId id, const TypePattern* beside) const {
  const graph::Type& t = type(id);
  const graph::DimTable& dims = in_.module().dims;
  if (t.kind != graph::TypeKind::tensor) return graph::text(t, dims);
  const bool always = beside != nullptr && !same_elements(*beside, t);
  return element(t.index_bound, t.index_bound.has_value(), t.dtype, always, dims) + shape_with_values(axes_of(id), dims);
}

std::string FunctionBuilder::wanted(const TypePattern& declared, ValueId beside) const {
  const graph::DimTable& dims = in_.module().dims;
  if (declared.kind != graph::TypeKind::tensor) return declared.kind == graph::TypeKind::batch ? "a Batch" : "a Sequences";
  const bool always = !same_elements(declared, type(beside));
  return element(declared.bound, declared.is_index, declared.dtype, always, dims) + shape_with_values(axis_texts(declared), dims);
}

std::string FunctionBuilder::advice_on_type(const TypePattern& declared, ValueId found, source::Span text) const {
  if (same_elements(declared, type(found)) || type(found).kind != graph::TypeKind::tensor) return {};
  if (declared.is_index && (graph::is_integer(type(found).dtype)))
    return declared.bound ? "positions are bounded by `context n` in the model; an input by its type, index(n)[…]" : "";
  // A text of several lines, or one that would need brackets, is not repeated.
  std::string written = in_.source_text(text);
  const bool short_enough = written.size() <= 30 && written.find_first_of(" \n") == std::string::npos;
  return "convert it: `" + (short_enough ? written : "…") + " as " +
         (declared.is_index ? "index(" + (declared.bound ? in_.module().dims.text(*declared.bound) : "n") + ")"
                            : std::string(name(declared.dtype))) +
         "`";
}

void FunctionBuilder::named(const Value& value, const ast::Name& name) {
  // Names of fns and leaves are not the function's own.
  if (frames_.size() != 1 || !entered_.empty()) return;
  if (!value.is(ValueKind::tensor)) return;
  std::string& shown = fn_.values[value.as_graph().id.index].name;
  if (shown.empty()) shown = name.text;
}

void FunctionBuilder::enter_function(const Closure& function, source::Span call) {
  entered_.push_back({function.name.empty() ? "fn" : function.name, call, frames_.size()});
}

void FunctionBuilder::leave_function() { entered_.pop_back(); }

// ---- operations -----------------------------------------------------------------------------------------------------

// Where an operation stands: its own text, and the outermost call of those that brought that text here.
void FunctionBuilder::place_op(graph::Op& op, source::Span span) {
  op.source = in_.source_text(span);
  op.where = in_.where(span);
  op.call = {};
  if (!entered_.empty() && entered_.front().frame <= 1) op.call = in_.where(entered_.front().call);
  else if (frames_.size() > 1) op.call = in_.where(frames_[1].call);
}

graph::Op& FunctionBuilder::add_op(OpKind kind, source::Span span) {
  graph::Op& op = blocks_.back().block.ops.emplace_back();
  op.kind = kind;
  place_op(op, span);
  return op;
}

std::optional<std::vector<ValueId>> FunctionBuilder::emit(OpKind kind, std::vector<Operand> operands, Attrs attrs, source::Span span,
                                                          const EmitOptions& options) {
  graph::Op op;
  op.kind = kind;
  op.attrs = std::move(attrs);
  op.member = options.member;
  std::vector<std::optional<graph::Type>> types;
  for (const Operand& operand : operands) {
    op.operands.push_back(operand.id);
    types.push_back(operand.id ? std::optional(type(*operand.id)) : std::nullopt);
  }
  graph::ShapeResult result = graph::infer({op, types, dims(), options.state, options.wanted});
  if (const auto* error = std::get_if<graph::ShapeError>(&result)) {
    fail_shape(*error, kind, operands, span);
    return std::nullopt;
  }
  note_uses(kind, operands);
  for (graph::Type& t : std::get<std::vector<graph::Type>>(result)) op.results.push_back(new_value(std::move(t)));
  note_formulas(operands, op.results, options);
  place_op(op, span);
  std::vector<ValueId> ids = op.results;
  if (kind == OpKind::linear && infos_[operands[1].id->index].axes.size() == 2) {
    infos_[ids[0].index].axes.back() = infos_[operands[1].id->index].axes[0];
  }
  blocks_.back().block.ops.push_back(std::move(op));
  return ids;
}

std::optional<ValueId> FunctionBuilder::emit_one(OpKind kind, std::vector<Operand> operands, Attrs attrs, source::Span span,
                                                 const EmitOptions& options) {
  const auto ids = emit(kind, std::move(operands), std::move(attrs), span, options);
  if (!ids) return std::nullopt;
  assert(ids->size() == 1);
  return ids->front();
}

// What weights are used for decides how they are laid out.
void FunctionBuilder::note_uses(OpKind kind, const std::vector<Operand>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].id) continue;
    const ValueInfo& known = infos_[operands[i].id->index];
    if (known.owner == nullptr) continue;
    WeightUse& use = known.owner->weight_uses[known.weight];
    const bool product = kind == OpKind::moe             ? i >= 3 && i <= 5
                         : kind == OpKind::attend_latent ? i == 3
                                                         : (kind == OpKind::linear || kind == OpKind::matmul) && i == 1;
    if (product) use.product = true;
    else if (kind == OpKind::take && i == 0) use.rows = true;
    else use.other = true;
  }
}

// A result's axis has the formula of the operand's axis that it is, as far as sizes tell.
void FunctionBuilder::note_formulas(const std::vector<Operand>& operands, const std::vector<ValueId>& results, const EmitOptions& options) {
  if (options.texts != nullptr && results.size() == 1) {
    ValueInfo& known = infos_[results[0].index];
    for (const AxisText& axis : *options.texts) known.axes.push_back(axis.formula);
    return;
  }
  for (const ValueId result : results) {
    const auto shape = type(result).shape;
    std::vector<FormulaPtr> axes(shape.size());
    for (std::size_t back = 1; back <= shape.size(); ++back) {
      FormulaPtr& found = axes[shape.size() - back];
      const graph::DimId dim = shape[shape.size() - back];
      const auto look = [&](bool same_place) {
        for (const Operand& operand : operands) {
          if (!operand.id || found) continue;
          const auto& from = type(*operand.id).shape;
          const auto& formulas = infos_[operand.id->index].axes;
          for (std::size_t at = 1; at <= from.size() && !found; ++at) {
            if (same_place && at != back) continue;
            const std::size_t i = from.size() - at;
            if (from[i] == dim && i < formulas.size()) found = formulas[i];
          }
        }
      };
      look(true);
      if (!found) look(false);
    }
    infos_[result.index].axes = std::move(axes);
  }
}

ValueId FunctionBuilder::literal(double value, source::Span span) {
  const ValueId id = new_value(graph::tensor(DType::f32, {}));
  graph::Op& op = add_op(OpKind::literal, span);
  op.attrs["value"] = value;
  op.results = {id};
  return id;
}

std::optional<ValueId> FunctionBuilder::known(const std::string& key) const {
  for (const BlockState& block : blocks_) {
    const auto it = block.known.find(key);
    if (it != block.known.end()) return it->second;
  }
  return std::nullopt;
}

int FunctionBuilder::loops_open() const {
  return static_cast<int>(std::count_if(blocks_.begin(), blocks_.end(), [](const BlockState& b) { return b.loop; }));
}

bool FunctionBuilder::reachable(const MemberPath& path, source::Span use) {
  if (!path.of_element() || path.loop == loops_open()) return true;
  fail(code::bad_fold, use, "this is of an element of the loop around this one: inside a loop only its own element is at hand")
      .help("make a module of the inner loop, or call the outer element before it");
  return false;
}

namespace {

// What a block remembers a member by: elements of nested loops have equal paths.
std::string key_of(const char* kind, const MemberPath& path) {
  return kind + path.member + (path.of_element() ? "@" + std::to_string(path.loop) : "");
}

}  // namespace

ValueId FunctionBuilder::weight(ClassInfo& owner, std::uint32_t member, const MemberPath& path, source::Span use) {
  reachable(path, use);
  const std::string key = key_of("w:", path);
  if (const auto id = known(key)) return *id;
  const Slot& slot = owner.instance->slots[member];
  const ValueId id = new_value(in_.class_of(owner).weights[slot.index].type);
  ValueInfo& known = infos_[id.index];
  for (const AxisPattern& axis : slot.type.axes) known.axes.push_back(axis.formula);
  known.owner = &owner;
  known.weight = slot.index;
  known.declared = owner.instance->def.members[member].span;
  graph::Op& op = add_op(OpKind::weight, use);
  op.member = path.member;
  op.results = {id};
  blocks_.back().known[key] = id;
  return id;
}

ValueId FunctionBuilder::constant(ClassInfo& owner, std::uint32_t member, const MemberPath& path, source::Span use) {
  reachable(path, use);
  const std::string key = key_of("c:", path);
  if (const auto id = known(key)) return *id;
  const Slot& slot = owner.instance->slots[member];
  const ValueId id = new_value(in_.class_of(owner).consts[slot.index].type);
  for (const AxisPattern& axis : slot.type.axes) infos_[id.index].axes.push_back(axis.formula);
  infos_[id.index].declared = owner.instance->def.members[member].span;
  graph::Op& op = add_op(OpKind::constant_ref, use);
  op.member = path.member;
  op.results = {id};
  blocks_.back().known[key] = id;
  return id;
}

std::optional<ValueId> FunctionBuilder::promote(const Value& value, source::Span span, const graph::Type* beside) {
  switch (value.kind()) {
    case ValueKind::error: return std::nullopt;
    case ValueKind::tensor: return value.as_graph().id;
    case ValueKind::boolean:
      return emit_one(OpKind::cast, {{literal(value.as_bool() ? 1 : 0, span), span}}, {{"dtype", std::string("bool")}}, span);
    case ValueKind::integer:
    case ValueKind::real: {
      const ValueId id = literal(value.as_real(), span);
      const bool whole = value.is(ValueKind::integer) && beside != nullptr && graph::is_integer(beside->dtype);
      if (!whole) return id;
      return emit_one(OpKind::cast, {{id, span}}, {{"dtype", std::string(name(beside->dtype))}}, span);
    }
    case ValueKind::list: {
      std::vector<double> numbers;
      for (const Value& item : value.items()) {
        if (!item.is_number()) {
          fail(code::wrong_operand, span, "a list is a tensor when all its elements are numbers: found " + kind_name(item));
          return std::nullopt;
        }
        numbers.push_back(item.as_real());
      }
      return emit_one(OpKind::tensor_literal, {}, {{"values", std::move(numbers)}}, span);
    }
    case ValueKind::dim:
      fail(code::run_time_size, span,
           "`" + in_.source_text(span) + "` is a size of run time: it can stand in shapes and slices, not in a computation");
      return std::nullopt;
    case ValueKind::absent: {
      const AbsentMember& member = value.as_absent();
      fail(code::absent_used, span, "`" + member.name + "` is absent here" + (member.reason.empty() ? "" : ": " + member.reason))
          .label(member.where, "declared here")
          .help("use it only where its condition holds");
      return std::nullopt;
    }
    case ValueKind::none: fail(code::none_used, span, "`" + in_.source_text(span) + "` is none here"); return std::nullopt;
    case ValueKind::member:
      fail(code::wrong_operand, span, value.as_member()->describe() + " is no tensor")
          .help(dynamic_cast<const StateMember*>(value.as_member().get()) != nullptr
                    ? "an operation over a state takes it after its tensors: `attend(q, cache, at, …)`"
                    : "a child is called: `" + in_.source_text(span) + "(…)`");
      return std::nullopt;
    default: fail(code::wrong_operand, span, "a tensor or a number is wanted here, not " + kind_name(value)); return std::nullopt;
  }
}

std::optional<FunctionBuilder::Operand> FunctionBuilder::operand(const Value& value, source::Span span, std::string_view) {
  if (value.is(ValueKind::batch)) return Operand{value.as_graph().id, span};
  const auto id = promote(value, span);
  if (!id) return std::nullopt;
  return Operand{*id, span};
}

// The value as one of type `wanted`, from which it may differ in an index's bound alone; that is checked when it runs.
std::optional<ValueId> FunctionBuilder::rebound(ValueId id, const graph::Type& wanted, source::Span span) {
  if (type(id) == wanted) return id;
  return emit_one(OpKind::cast, {{id, span}}, {{"dtype", std::string(name(wanted.dtype))}}, span, {{}, nullptr, &wanted, nullptr});
}

// Under a policy what declares f32 is f32 (an input of a module or of an operation, an operation's result), and what is computed
// from it: as if the text said `x as f32`. A weight says it of itself (WeightDecl::required_dtype).
std::optional<ValueId> FunctionBuilder::kept_f32(ValueId id, const TypePattern& declared, source::Span span) {
  const graph::Type own = type(id);
  const bool says_f32 = declared.typed && own.kind == graph::TypeKind::tensor && own.dtype == DType::f32;
  if (!in_.keep_casts || !says_f32 || infos_[id.index].owner != nullptr) return id;
  return emit_one(OpKind::cast, {{id, span}}, {{"dtype", std::string("f32")}}, span, {{}, nullptr, &own, nullptr});
}

// ---- errors ---------------------------------------------------------------------------------------------------------

diag::Builder FunctionBuilder::fail(const diag::Code& code, source::Span span, std::string message) {
  auto builder = in_.sink().error(code, span, std::move(message));
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < entered_.size() && i < shown; ++i) {
    const Entered& e = entered_[entered_.size() - 1 - i];
    builder.label(e.call, "in this call of `" + e.name + "`");
  }
  for (std::size_t i = frames_.size(); i-- > 1;) { builder.label(frames_[i].call, "in this call of `" + frames_[i].name + "`"); }
  return builder;
}

void FunctionBuilder::fail_shape(const graph::ShapeError& error, OpKind kind, const std::vector<Operand>& operands, source::Span span) {
  const graph::OpInfo& row = graph::info(kind);
  source::Span place = span;
  if (error.operand >= 0 && static_cast<std::size_t>(error.operand) < operands.size()) {
    const Operand& wrong = operands[static_cast<std::size_t>(error.operand)];
    if (wrong.id && wrong.span.valid()) place = wrong.span;
  }
  if (const auto written = attribute_spans_.find(error.attr); written != attribute_spans_.end()) {
    // A word that the operation does not know: sizes have no part in it.
    const std::string_view word = ev_.sources().text(written->second);
    const bool quoted = word.size() > 2 && word.front() == '"';
    fail(code::shape_mismatch, written->second, error.message)
        .help(diag::did_you_mean(quoted ? word.substr(1, word.size() - 2) : word, error.values));
    return;
  }
  // The language's word for what the table has by another name.
  const bool cross = kind == OpKind::cross_set && error.message.starts_with("cross_");
  auto message = fail(code::shape_mismatch, place, cross ? error.message.substr(6) : error.message);
  std::vector<AxisText> axes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].id || type(*operands[i].id).kind != graph::TypeKind::tensor) continue;
    const ValueId id = *operands[i].id;
    const std::size_t named = std::min(i, row.operands.empty() ? 0 : row.operands.size() - 1);
    if (row.operands.empty() || (type(id).shape.empty() && operands.size() > 1)) continue;
    message.note(std::string(row.operands[named].name) +
                 (row.variadic && i >= row.operands.size() - 1 ? "[" + std::to_string(i - named) + "]" : "") + " is " + shown(id));
    const auto more = axes_of(id);
    axes.insert(axes.end(), more.begin(), more.end());
    const ValueInfo& known = infos_[id.index];
    if (known.declared.valid()) message.label(known.declared, known.owner != nullptr ? "the weight is declared here" : "declared here");
  }
  for (std::string& line : shape_origins(axes)) message.note(std::move(line));
}

Value FunctionBuilder::not_carried_out(source::Span span, const std::string& what) {
  fail(code::not_carried_out, span, what + " not carried out yet");
  return Value::error();
}

}  // namespace modelc::sema
