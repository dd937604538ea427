// Calls of children and states, leaves expanded in place, and the fold over a list of children.
#include <algorithm>
#include <cassert>
#include <functional>

#include "frontend/graph/members.h"
#include "frontend/graph/types.h"
#include "frontend/sema/expressions.h"
#include "frontend/sema/function_builder.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;
using graph::ValueId;

Value FunctionBuilder::call_member(const Value& member, std::string_view name, std::span<const Argument> arguments, source::Span span) {
  const Member& target = *member.as_member();
  if (const auto* own = dynamic_cast<const MethodMember*>(&target)) {
    if (name.empty()) return call_own(*own->method, arguments, span);
    fail(code::unknown_field, span, target.describe() + " has no function `" + std::string(name) + "`")
        .label(own->method->span, "declared here");
    return Value::error();
  }
  if (const auto* state = dynamic_cast<const StateMember*>(&target)) return call_state(*state, name, arguments, span);
  if (const auto* list = dynamic_cast<const ListMember*>(&target)) {
    fail(code::not_callable, span, "`" + list->name + "` is a list of children and cannot be called")
        .label(list->declared, "declared here")
        .help("run over it: `for layer in " + list->name + " { h = layer(h) }`");
    return Value::error();
  }
  const auto& child = dynamic_cast<const ChildMember&>(target);
  if (child.info == nullptr) return Value::error();
  const ModuleDef& def = child.info->instance->def;
  const std::string method(name.empty() ? std::string_view("forward") : name);
  const MemberDef* found = def.find(method);
  if (found != nullptr && found->kind == MemberKind::method) return call_child(child, method, arguments, span);
  if (found != nullptr && !name.empty()) {
    const ast::Name field_name{method, span};
    const Value inner = field(member, field_name);
    if (inner.is_error()) return inner;
    return ev_.call(inner, arguments, span, span);
  }
  std::vector<std::string> names;
  for (const MemberDef& m : def.members) {
    if (m.kind == MemberKind::method || m.kind == MemberKind::child) names.push_back(m.name);
  }
  fail(code::no_forward, span,
       "the module `" + def.name() + "` of `" + child.name + "` has no " + (name.empty() ? "forward" : "entry `" + method + "`"))
      .label(def.symbol->span, "declared here")
      .help(name.empty() ? "" : diag::did_you_mean(method, names));
  return Value::error();
}

// ---- arguments ------------------------------------------------------------------------------------------------------

std::optional<FunctionBuilder::Bound> FunctionBuilder::bind_inputs(const std::string& callee, const SignaturePattern& signature,
                                                                   std::span<const Argument> arguments, source::Span span) {
  std::vector<Expressions::ParamSpec> specs;
  for (const auto& input : signature.inputs) specs.push_back({input.name, !input.default_value.has_value(), input.type.span});
  std::vector<const Argument*> arranged;
  if (!Expressions(ev_).arrange(specs, arguments, callee, span, arranged)) return std::nullopt;
  Bound bound;
  bool ok = true;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const SignaturePattern::Input& input = signature.inputs[i];
    if (arranged[i] == nullptr) {
      bound.values.push_back(std::nullopt);
      bound.spans.push_back(span);
      continue;
    }
    const Argument& argument = *arranged[i];
    const auto given = operand(argument.value, argument.span, "");
    bound.spans.push_back(argument.span);
    bound.values.push_back(given ? given->id : std::nullopt);
    if (!given) {
      ok = false;
      continue;
    }
    const auto problem = mismatch(input.type, type(*given->id), dims(), bound.ellipsis);
    if (!problem) continue;
    ok = false;
    auto message =
        fail(code::signature_mismatch, argument.span, "the argument `" + input.name + "` of " + callee + " does not fit: " + *problem);
    message.mark("expected " + wanted(input.type, *given->id));
    message.note("found " + shown(*given->id, &input.type)).label(input.type.span, "`" + input.name + "` is declared here");
    message.help(advice_on_type(input.type, *given->id, argument.span));
    std::vector<AxisText> axes = axis_texts(input.type);
    const std::vector<AxisText> found = axes_of(*given->id);
    axes.insert(axes.end(), found.begin(), found.end());
    for (std::string& line : shape_origins(axes)) message.note(std::move(line));
  }
  if (!ok) return std::nullopt;
  return bound;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

Value FunctionBuilder::call_child(const ChildMember& child, const std::string& name, std::span<const Argument> arguments,
                                  source::Span span) {
  ClassInfo& info = *child.info;
  const MemberDef& method = *info.instance->def.find(name);
  const SignaturePattern* signature = in_.signature(info, method);
  if (signature == nullptr) return Value::error();
  const std::string callee = "`" + child.name + "`" + (method.name == "forward" ? "" : "'s `" + method.name + "`");
  auto bound = bind_inputs(callee, *signature, arguments, span);
  if (!bound) return Value::error();
  if (info.leaf && calls_leaves_ && child.path.of_element()) {
    info.leaf = false;
    in_.class_of(info).leaf = false;
  }
  if (info.leaf) return expand_leaf(child, method, *signature, std::move(*bound), span);

  const MethodVariant* variant = in_.variant(info, method, signature->has_ellipsis() ? bound->ellipsis : std::nullopt);
  if (variant == nullptr) return Value::error();
  std::vector<std::optional<ValueId>> operands;
  for (std::size_t i = 0; i < signature->inputs.size(); ++i) {
    std::optional<ValueId> id = bound->values[i];
    if (id) {
      note_uses(OpKind::call, {{*id, bound->spans[i]}});
      id = rebound(*id, concrete(signature->inputs[i].type, bound->ellipsis), bound->spans[i]);
      if (!id) return Value::error();
    }
    operands.push_back(id);
  }
  if (!child_moves(child, *variant, span)) return Value::error();
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < variant->results.size(); ++i) {
    const ValueId id = new_value(variant->results[i]);
    results.push_back(id);
    if (!signature->results || i >= signature->results->size()) continue;
    ValueInfo& known = infos_[id.index];
    for (const AxisPattern& axis : (*signature->results)[i].type.axes) {
      if (!axis.ellipsis) known.axes.push_back(axis.formula);
      else if (bound->ellipsis) known.axes.resize(known.axes.size() + bound->ellipsis->size());
    }
  }
  if (!reachable(child.path, span)) return Value::error();
  graph::Op& op = add_op(OpKind::call, span);
  op.member = child.path.member;
  op.callee = variant->callee;
  op.operands = std::move(operands);
  op.results = results;
  return as_value(results);
}

// A function of the module itself is expanded: its weights and states are at hand already.
Value FunctionBuilder::call_own(const MemberDef& method, std::span<const Argument> arguments, source::Span span) {
  const Frame frame = frames_.back();
  for (std::size_t i = frames_.size(); i-- > 0 && frames_[i].info == frame.info;) {
    if (frames_[i].method != &method) continue;
    fail(code::member_cycle, span, "`" + method.name + "` of `" + frame.info->instance->def.name() + "` calls itself")
        .label(method.span, "declared here")
        .help("a loop is `for layer in layers { … }`, over children");
    return Value::error();
  }
  const SignaturePattern* signature = in_.signature(*frame.info, method);
  if (signature == nullptr) return Value::error();
  auto bound = bind_inputs("`" + method.name + "`", *signature, arguments, span);
  if (!bound) return Value::error();
  Frame inside{frame.info, frame.path, bound->ellipsis, span, method.name, &method};
  const auto results = expand(std::move(inside), *signature, std::move(*bound), span);
  return results ? as_value(*results) : Value::error();
}

Value FunctionBuilder::expand_leaf(const ChildMember& child, const MemberDef& method, const SignaturePattern& signature, Bound bound,
                                   source::Span span) {
  const std::size_t first_value = fn_.values.size();
  Frame inside{child.info, child.path, bound.ellipsis, span, child.name, &method};
  const auto results = expand(std::move(inside), signature, std::move(bound), span);
  if (!results) return Value::error();
  mark_stage(*results, child.path, first_value);
  return as_value(*results);
}

std::optional<std::vector<ValueId>> FunctionBuilder::expand(Frame frame, const SignaturePattern& signature, Bound bound,
                                                            source::Span span) {
  Instance& instance = *frame.info->instance;
  const MemberDef& method = *frame.method;
  constexpr std::size_t max_frames = 64;
  if (frames_.size() >= max_frames) {
    fail(code::module_too_large, span, "leaf modules are expanded more than " + std::to_string(max_frames) + " deep");
    return std::nullopt;
  }
  Environment env = instance.environment(method.level);
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const SignaturePattern::Input& input = signature.inputs[i];
    if (const auto before = env.declared(input.name)) {
      fail(code::duplicate_name, input.span, "`" + input.name + "` is already a name of `" + instance.def.name() + "`")
          .label(*before, "this one")
          .help("parameters, members and locals of a module share one name space: choose another name");
    }
    std::optional<ValueId> id = bound.values[i];
    if (!id) {
      // What the default says, at the input's type.
      graph::Type wanted = concrete(input.type, bound.ellipsis);
      id = literal(*input.default_value, span);
      if (wanted.dtype != DType::f32 || wanted.index_bound) {
        const graph::Type scalar{graph::TypeKind::tensor, wanted.dtype, {}, wanted.index_bound};
        id = emit_one(OpKind::cast, {{*id, span}},
                      {{"dtype", std::string(graph::is_value_dtype(wanted.dtype) ? modelc::name(wanted.dtype) : "f32")}}, span,
                      {{}, nullptr, &scalar, nullptr});
        if (!id) return std::nullopt;
      }
      id = emit_one(OpKind::expand, {{*id, span}}, {}, span, {{}, nullptr, &wanted, nullptr});
      if (!id) return std::nullopt;
    }
    id = kept_f32(*id, input.type, span);
    if (!id) return std::nullopt;
    const GraphValue value{*id, type(*id)};
    env.define(input.name, input.type.kind == graph::TypeKind::tensor ? Value::tensor(value) : Value::batch(value), input.span);
  }
  const std::size_t first_value = fn_.values.size();
  frames_.push_back(std::move(frame));
  const Value returned = ev_.run(ast::as<ast::MethodMember>(*method.item).body, env);
  std::optional<std::vector<ValueId>> results;
  if (!returned.is_error()) {
    Ellipsis ellipsis = bound.ellipsis;
    results = results_of(returned, signature, method, instance, ellipsis);
  }
  frames_.pop_back();
  if (!results) return std::nullopt;
  // The operation that gives the result stands for the call.
  for (const ValueId id : *results) {
    for (auto& op : blocks_.back().block.ops) {
      if (id.index < first_value || std::find(op.results.begin(), op.results.end(), id) == op.results.end()) continue;
      place_op(op, span);
    }
  }
  return results;
}

void FunctionBuilder::mark_stage(const std::vector<ValueId>& results, const MemberPath& path, std::size_t first_value) {
  if (results.empty() || results[0].index < first_value) return;
  std::string& stage = fn_.values[results[0].index].stage;
  if (stage.empty()) stage = path.stage;
}

Value FunctionBuilder::call_state(const StateMember& state, std::string_view name, std::span<const Argument> arguments, source::Span span) {
  const graph::StateDecl decl = in_.class_of(*state.info).states[state.index];
  const std::string kind(graph::language_name(decl.kind));
  std::string_view function;
  switch (decl.kind) {
    case graph::StateKind::kv_cache:
    case graph::StateKind::latent_cache: function = "append"; break;
    case graph::StateKind::cross_cache: function = "set"; break;
    default: break;
  }
  if (name != function || name.empty()) {
    auto message = name.empty() ? fail(code::not_callable, span, "the state `" + state.member + "` is not called itself")
                                : fail(code::unknown_field, in_.part_of(span, "." + std::string(name)),
                                       "a " + kind + " has no function `" + std::string(name) + "`");
    message.label(state.declared, "declared here");
    message.help(function.empty() ? "it is passed to the operation that reads and writes it"
                                  : "it is written by `" + state.member + "." + std::string(function) + "(…)`");
    return Value::error();
  }
  std::vector<const Argument*> arranged;
  const bool latent = decl.kind == graph::StateKind::latent_cache;
  const std::vector<Expressions::ParamSpec> specs = {{latent ? "latent" : "k", true}, {latent ? "key" : "v", true}, {"at", true}};
  if (!Expressions(ev_).arrange(specs, arguments, "`" + state.member + "." + std::string(function) + "`", span, arranged))
    return Value::error();
  std::vector<Operand> operands;
  for (const Argument* argument : arranged) {
    const auto given = operand(argument->value, argument->span, "");
    if (!given) return Value::error();
    operands.push_back(*given);
  }
  EmitOptions options;
  options.member = state.member;
  options.state = &decl;
  const OpKind kind_of_write = decl.kind == graph::StateKind::cross_cache ? OpKind::cross_set : OpKind::append;
  // What is set holds for a whole sequence and may be set again; what is appended are the rows of this call's tokens.
  if (kind_of_write == OpKind::append && !moves(state.member, {span, span, state.declared, true})) return Value::error();
  if (!emit(kind_of_write, std::move(operands), {}, span, options)) return Value::error();
  return Value::none();
}

bool FunctionBuilder::moves(const std::string& path, const StateMove& move) {
  const bool in_loop = std::any_of(blocks_.begin(), blocks_.end(), [](const BlockState& b) { return b.loop; });
  const auto [before, first] = moved_.try_emplace(path, move);
  const bool each_turn = in_loop && !path.starts_with('.');
  if (first && !each_turn) return true;
  const std::string shown = path.starts_with('.') ? path.substr(1) : path;
  auto message =
      fail(code::bad_state, move.place,
           "the state `" + shown + "` would " + (move.cache ? "be given rows for the same tokens " : "go over the same tokens ") +
               (first ? "once in each turn of the loop" : "a second time"));
  const std::string does = move.cache ? "it is given them " : "it goes over them ";
  if (!first) message.label(before->second.place, does + "here");
  if (move.write != move.place) message.label(move.write, does + "by this");
  message.label(move.declared, "declared here");
  message.help(move.write != move.place ? "declare a child for each call, each with a state of its own" : "declare a state for each use");
  return false;
}

// What a child's function moves on, it moves on wherever it is called: a second call in the same call of the model
// would go over the same tokens.
bool FunctionBuilder::child_moves(const ChildMember& child, const MethodVariant& variant, source::Span span) {
  for (const auto& [path, move] : variant.moves) {
    if (!moves(child.path.member + "." + path, {span, move.write, move.declared, move.cache})) return false;
  }
  return true;
}

// ---- the fold -------------------------------------------------------------------------------------------------------

namespace {

bool same_block(const graph::Block& a, const graph::Block& b);

// But for the names of what is called: a class numbers the functions that it has for each meaning of `...`.
bool same_op(const graph::Op& a, const graph::Op& b) {
  return a.kind == b.kind && a.operands == b.operands && a.results == b.results && a.attrs == b.attrs && a.member == b.member &&
         a.body.has_value() == b.body.has_value() && (!a.body || same_block(*a.body, *b.body)) && a.custom == b.custom;
}

bool same_block(const graph::Block& a, const graph::Block& b) {
  return a.arguments == b.arguments && a.results == b.results &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

// The calls of a loop's body in the order of the text, each with the classes whose function it may be; `elements` are
// those of the loop's element, `self` is the class that the function belongs to.
void each_call(const graph::Module& module, graph::Block& block, graph::ClassId self, const std::vector<graph::ClassId>& elements,
               const std::function<void(graph::Op& call, const std::vector<graph::ClassId>& owners)>& f) {
  for (graph::Op& op : block.ops) {
    if (op.kind != OpKind::call && !op.body) continue;
    const bool of_element = op.member.empty() || op.member.front() == '.';
    std::vector<graph::ClassId> owners;
    for (const graph::ClassId from : of_element ? elements : std::vector{self}) {
      const std::string_view path = std::string_view(op.member).substr(of_element && !op.member.empty() ? 1 : 0);
      const auto ref = graph::find_member(module, from, path);
      const graph::ChildDecl* list = ref && op.body ? graph::list_of(module, *ref) : nullptr;
      if (list != nullptr) owners.insert(owners.end(), list->elements.begin(), list->elements.end());
      else if (ref) owners.push_back(ref->owner);
    }
    if (op.body) each_call(module, *op.body, self, owners, f);
    else f(op, owners);
  }
}

// The place where a loop assigns a name.
source::Span assigned_at(const ast::Block& block, const std::string& name) {
  source::Span found;
  for (const ast::StatementPtr& statement : block.statements) {
    if (const auto* assign = ast::try_as<ast::AssignStatement>(*statement)) {
      if (assign->name.text == name) found = assign->value->span;
    } else if (const auto* loop = ast::try_as<ast::ForStatement>(*statement)) {
      const source::Span inner = assigned_at(loop->body, name);
      if (inner.valid()) found = inner;
    }
  }
  return found;
}

}  // namespace

std::optional<std::vector<Value>> FunctionBuilder::fold(const Value& value, const ast::ForStatement& statement,
                                                        std::span<const Carried> carried, const FoldBody& body) {
  const auto* list = dynamic_cast<const ListMember*>(value.as_member().get());
  if (list == nullptr) {
    fail(code::bad_fold, statement.source->span, value.as_member()->describe() + " is no list of children");
    return std::nullopt;
  }
  if (!reachable(list->path, statement.source->span)) return std::nullopt;
  std::vector<Value> before;
  std::vector<ValueId> initial;
  for (const Carried& c : carried) {
    if (!c.value.is(ValueKind::tensor)) {
      fail(code::bad_fold, assigned_at(statement.body, c.name),
           "the loop carries `" + c.name + "`, which is " + kind_name(c.value) + " before it: a loop carries tensors")
          .label(c.span, "made here");
      return std::nullopt;
    }
    before.push_back(c.value);
    initial.push_back(c.value.as_graph().id);
  }
  std::vector<ClassInfo*> kinds;
  for (ClassInfo* element : list->elements) {
    if (element == nullptr) return std::nullopt;
    if (std::find(kinds.begin(), kinds.end(), element) == kinds.end()) kinds.push_back(element);
  }
  if (kinds.empty()) return before;  // nothing to run over
  for (const ValueId id : initial) note_uses(OpKind::repeat, {{id, {}}});

  const std::size_t base = fn_.values.size();
  std::optional<graph::Block> block;
  std::vector<graph::Value> made;
  using Callees = std::vector<std::pair<graph::ClassId, std::string>>;        // of one call, by kind
  std::vector<Callees> callees;
  const StateMoves moved_before = moved_;
  StateMoves moved_inside;
  // The body for each kind of element: null when all are alike, else the first kind that is not, nothing on an error.
  const auto run_bodies = [&]() -> std::optional<ClassInfo*> {
    block.reset();
    callees.clear();
    moved_inside.clear();
    for (ClassInfo* kind : kinds) {
      moved_.clear();                                  // elements are others than what is called outside, or judged below
      fn_.values.resize(base);
      infos_.resize(base);
      blocks_.emplace_back();
      blocks_.back().loop = true;
      std::vector<Value> inside;
      for (std::size_t i = 0; i < carried.size(); ++i) {
        const ValueId id = new_value(type(initial[i]));
        fn_.values[id.index].name = carried[i].name;
        infos_[id.index].axes = infos_[initial[i].index].axes;
        infos_[id.index].declared = carried[i].span;
        blocks_.back().block.arguments.push_back(id);
        inside.push_back(tensor(id));
      }
      auto element = std::make_shared<ChildMember>();
      element->info = kind;
      element->path = {"", ".", true, loops_open()};
      element->name = statement.variable.text;
      element->declared = list->declared;
      auto after = body(Value::member(std::move(element)), inside);
      for (const auto& [path, move] : std::exchange(moved_, moved_before)) {
        for (std::size_t i = 0; i < list->elements.size(); ++i) {
          if (list->elements[i] == kind) moved_inside.emplace(list->path.member + "." + std::to_string(i) + path, move);
        }
      }
      BlockState state = std::move(blocks_.back());
      blocks_.pop_back();
      if (!after) return std::nullopt;
      for (std::size_t i = 0; i < carried.size(); ++i) {
        const source::Span place = assigned_at(statement.body, carried[i].name);
        const Value& result = (*after)[i];
        if (!result.is(ValueKind::tensor) || result.as_graph().type != type(initial[i])) {
          auto message =
              fail(code::bad_fold, place, "the loop changes what `" + carried[i].name + "` is: it must keep its shape and element type");
          message.mark(result.is(ValueKind::tensor) ? "this is " + shown(result.as_graph().id) : "this is " + kind_name(result));
          message.label(carried[i].span, "before the loop it is " + shown(initial[i]));
          if (kinds.size() > 1) message.note("for an element of type `" + kind->instance->def.name() + "`");
          return std::nullopt;
        }
        state.block.results.push_back(result.as_graph().id);
      }
      std::size_t call = 0;
      each_call(in_.module(), state.block, info_.id, {kind->id}, [&](const graph::Op& op, const std::vector<graph::ClassId>& owners) {
        if (callees.size() <= call) callees.resize(call + 1);
        for (const graph::ClassId owner : owners) callees[call].emplace_back(owner, op.callee);
        ++call;
      });
      if (!block) {
        block = std::move(state.block);
        made.assign(fn_.values.begin() + static_cast<std::ptrdiff_t>(base), fn_.values.end());
        continue;
      }
      const bool same_values =
          std::equal(made.begin(), made.end(), fn_.values.begin() + static_cast<std::ptrdiff_t>(base), fn_.values.end(),
                     [](const graph::Value& a, const graph::Value& b) { return a.type == b.type && a.stage == b.stage; });
      if (!same_values || !same_block(*block, state.block)) return kind;
    }
    return nullptr;
  };
  std::optional<ClassInfo*> other = run_bodies();
  if (other && *other != nullptr && !calls_leaves_) {
    // Once more, with functions for the leaves among them: the loop then calls one or the other.
    calls_leaves_ = true;
    other = run_bodies();
    calls_leaves_ = false;
  }
  if (!other) return std::nullopt;
  if (*other != nullptr) {
    // Not the calls alone differ: what the text reads or chooses does. It is written out, element by element.
    fn_.values.resize(base);
    infos_.resize(base);
    std::vector<Value> at = before;
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      auto element = std::make_shared<ChildMember>();
      element->info = list->elements[i];
      element->path = list->path.then(std::to_string(i), std::to_string(i));
      element->name = statement.variable.text;
      element->declared = list->declared;
      auto after = body(Value::member(std::move(element)), at);
      if (!after) return std::nullopt;
      at = std::move(*after);
    }
    return at;
  }
  for (const auto& [path, move] : moved_inside) {
    if (!moves(path, move)) return std::nullopt;
  }
  std::size_t call = 0;
  each_call(in_.module(), *block, info_.id, {kinds.front()->id}, [&](graph::Op& op, const std::vector<graph::ClassId>&) {
    if (!callees[call].empty()) op.callee = in_.common_name(callees[call]);
    ++call;
  });
  std::vector<Value> after;
  graph::Op repeat;
  repeat.kind = OpKind::repeat;
  repeat.member = list->path.member;
  repeat.source = "for " + statement.variable.text + " in " + in_.source_text(statement.source->span);
  repeat.where = in_.where(statement.span);
  repeat.body = std::move(block);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    repeat.operands.push_back(initial[i]);
    const ValueId id = new_value(type(initial[i]));
    fn_.values[id.index].name = carried[i].name;
    infos_[id.index].axes = infos_[initial[i].index].axes;
    repeat.results.push_back(id);
    after.push_back(tensor(id));
  }
  blocks_.back().block.ops.push_back(std::move(repeat));
  return after;
}

}  // namespace modelc::sema
