#include "frontend/graph/eval/evaluator.h"

#include <algorithm>
#include <cassert>

#include "frontend/graph/members.h"
#include "frontend/graph/types.h"
#include "frontend/graph/verifier.h"

namespace modelc::graph::eval {

namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 28;   // of one value

using Shared = std::shared_ptr<const Array>;

// A value at run time; neither, before it is computed.
struct Slot {
  Shared array;
  const Batch* batch = nullptr;
  const Sequences* sequences = nullptr;
  Flow flow = {};                                // of the rounding that a policy asks for
};

// Where code runs: an instance, and inside a repeat the element at hand.
struct Place {
  ClassId owner;
  std::string path;
  const Place* element = nullptr;
};

Error failure(std::string kind, std::string message) { return Error{std::move(kind), std::move(message), {}, ""}; }

std::string shape_name(const Shape& shape) {
  std::string s;
  for (std::int64_t d : shape) s += (s.empty() ? "" : ", ") + std::to_string(d);
  return "[" + s + "]";
}

// What an integer dtype holds.
std::pair<std::int64_t, std::int64_t> limits(DType t) {
  if (t == DType::boolean) return {0, 1};
  if (t == DType::i64) return {INT64_MIN, INT64_MAX};
  const bool is_signed = t == DType::i32 || t == DType::i16 || t == DType::i8;
  const std::int64_t span = std::int64_t{1} << bits(t);
  return is_signed ? std::pair(-span / 2, span / 2 - 1) : std::pair<std::int64_t, std::int64_t>(0, span - 1);
}

}  // namespace

struct Evaluator::Impl {
  const Module& module;
  WeightSource source;
  Trace trace;
  Precision precision;
  DimTable dims;                                 // the module's; attributes that are dims are parsed into it
  std::optional<std::vector<std::string>> faults;
  std::vector<std::int64_t> axis_sizes;          // of the call at hand; -1: not bound
  std::map<std::string, Shared, std::less<>> weights, consts;
  std::map<std::string, State, std::less<>> states;
  std::map<std::int64_t, std::int64_t> lengths;
  bool has_state = false;

  Impl(const Module& m, WeightSource s) : module(m), source(std::move(s)), dims(m.dims) {
    for (const Class& c : m.classes) has_state = has_state || !c.states.empty();
  }

  // ---- types and sizes ----
  Result<Shape> shape_of(const Type& type, std::string_view what) {
    Shape shape;
    std::int64_t count = 1;
    for (DimId d : type.shape) {
      const std::optional<std::int64_t> size = dims.evaluate(d, axis_sizes);
      if (!size)
        return failure("size",
                       std::string(what) + " is " + text(type, dims) + ", and the size of " + dims.text(d) + " is not known in this call");
      if (*size < 0)
        return failure("size", std::string(what) + " is " + text(type, dims) + ", and " + dims.text(d) + " is " + std::to_string(*size));
      if (*size > 0 && count > max_elements / *size) {
        const bool early = dims.value(d).has_value();
        return failure("size", std::string(what) + " is " + text(type, dims) +
                                   (early ? "" : ", where " + dims.text(d) + " is " + std::to_string(*size)) + ": more than the " +
                                   std::to_string(max_elements) + " elements that are evaluated at most");
      }
      shape.push_back(*size);
      count *= std::max<std::int64_t>(*size, 1);
    }
    return shape;
  }

  // Integers within their dtype, indices within their bound.
  Status check_range(const Array& a, const Type& type, std::string_view what, std::string_view kind) {
    if (is_float(a.dtype)) return {};
    auto [low, high] = limits(type.dtype);
    if (type.index_bound) {
      const std::optional<std::int64_t> bound = dims.evaluate(*type.index_bound, axis_sizes);
      if (!bound) return failure("size", std::string(what) + ": the bound " + dims.text(*type.index_bound) + " is not known in this call");
      low = 0;
      high = *bound - 1;
    }
    for (std::size_t i = 0; i < a.count(); ++i)
      if (a.integers[i] < low || a.integers[i] > high)
        return failure(std::string(kind), std::string(what) + " is " + text(type, dims) + ", and has " + std::to_string(a.integers[i]) +
                                              " at " + std::to_string(i) + ", not in " + std::to_string(low) + ".." +
                                              std::to_string(high + (type.index_bound ? 1 : 0)));
    return {};
  }

  // ---- members ----
  // The instance that a member path starts from, and the rest of the path.
  static std::pair<const Place*, std::string_view> start(const Place& at, std::string_view member) {
    if (!member.empty() && member[0] != '.') return {&at, member};
    assert(at.element != nullptr && "verified");
    return {at.element, member.empty() ? member : member.substr(1)};
  }
  // Class and full path of what a member path leads to.
  std::pair<MemberRef, std::string> find(const Place& at, std::string_view member) const {
    const auto [from, rest] = start(at, member);
    const std::optional<MemberRef> ref = find_member(module, from->owner, rest);
    assert(ref && "verified");
    return {*ref, join_path(from->path, ref->path)};
  }

  Result<Shared> weight(const Place& at, std::string_view member) {
    const auto [ref, path] = find(at, member);
    const WeightDecl& decl = *weight_of(module, ref);
    const std::string name = join_path(path, decl.path);
    if (const auto known = weights.find(name); known != weights.end()) return known->second;
    // The source gives f32, which has every integer of up to 16 bits.
    const bool whole = !is_float(decl.type.dtype);
    if (whole && bits(decl.type.dtype) > 16)
      return failure("missing-weight",
                     name + " is " + text(decl.type, dims) + ": weights of integers wider than 16 bits are not evaluated yet");
    Result<Shape> shape = shape_of(decl.type, name);
    if (!shape) return shape.error();
    Array a = zeros(decl.type.dtype, std::move(*shape));
    if (std::optional<std::vector<float>> data = source(name, decl)) {
      if (data->size() != a.count())
        return failure("weight-size",
                       name + " is " + text(decl.type, dims) + ", and its data has " + std::to_string(data->size()) + " elements");
      if (whole) std::copy(data->begin(), data->end(), a.integers.begin());
      else a.reals = std::move(*data);
    } else if (decl.default_value) {
      if (whole) a.integers.assign(a.count(), static_cast<std::int64_t>(*decl.default_value));
      else a.reals.assign(a.count(), static_cast<float>(*decl.default_value));
    } else {
      return failure("missing-weight", "there is no data for " + name);
    }
    for (float& v : a.reals) v = round_to(a.dtype, v);
    return weights[name] = std::make_shared<const Array>(std::move(a));
  }

  Result<Shared> constant(const Place& at, std::string_view member) {
    const auto [ref, path] = find(at, member);
    const Class& owner = module.of(ref.owner);
    const ConstDecl& decl = *const_of(module, ref);
    const std::string name = join_path(path, decl.name);
    if (const auto known = consts.find(name); known != consts.end()) return known->second;
    const Trace silent = std::exchange(trace, nullptr);
    const Precision policy = std::exchange(precision, {});                    // computed at load, in f32
    Result<std::vector<Slot>> value = function(Place{ref.owner, path, nullptr}, owner.functions[decl.init.index], {});
    precision = policy;
    trace = silent;
    if (!value) return value.error();
    return consts[name] = (*value)[0].array;
  }

  Result<State*> state(const Place& at, std::string_view member) {
    const auto [ref, path] = find(at, member);
    const StateDecl& decl = *state_of(module, ref);
    const auto [it, fresh] = states.try_emplace(join_path(path, decl.name));
    if (fresh) {
      it->second.kind = decl.kind;
      std::int64_t count = 1;
      for (std::int64_t s : decl.sizes) {
        if (count > max_elements / s) return failure("size", "the state " + it->first + " is too large");
        count *= s;
        it->second.sizes.push_back(static_cast<std::size_t>(s));
      }
    }
    return &it->second;
  }

  // ---- functions ----
  Result<std::vector<Slot>> function(const Place& at, const Function& f, const std::vector<Slot>& inputs) {
    std::vector<Slot> values(f.values.size());
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      Slot s = inputs[i];
      const Type& type = f.values[f.inputs[i].value.index].type;
      if (s.array == nullptr && s.batch == nullptr && s.sequences == nullptr) {                         // left out: its default
        Result<Shape> shape = shape_of(type, f.inputs[i].name);
        if (!shape) return shape.error();
        Array a = zeros(type.dtype, std::move(*shape));
        const double v = *f.inputs[i].default_value;
        if (is_float(a.dtype)) a.reals.assign(a.count(), round_to(a.dtype, v));
        else a.integers.assign(a.count(), static_cast<std::int64_t>(v));
        s.array = std::make_shared<const Array>(std::move(a));
      }
      values[f.inputs[i].value.index] = std::move(s);
    }
    if (Status s = block(at, f, f.body, values); !s) return s.error();
    std::vector<Slot> results;
    for (ValueId v : f.body.results) results.push_back(values[v.index]);
    return results;
  }

  Status block(const Place& at, const Function& f, const Block& b, std::vector<Slot>& values) {
    for (const Op& op : b.ops) {
      Status s = op.kind == OpKind::repeat   ? repeat(at, f, op, values)
                 : op.kind == OpKind::custom ? custom(at, f, op, values)
                                             : one(at, f, op, values);
      if (!s) {
        Error e = s.error();
        if (!op.source.empty() && e.notes.size() < 4)
          e.notes.push_back("in " + (at.path.empty() ? module.name : at.path) + ": " + op.source);
        return e;
      }
      if (trace) report(at, f, op, values);
    }
    return {};
  }

  void report(const Place& at, const Function& f, const Op& op, const std::vector<Slot>& values) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Value& v = f.values[op.results[i].index];
      const Array* a = values[op.results[i].index].array.get();
      if (a == nullptr) continue;
      if (op.kind == OpKind::call) {
        const auto [ref, path] = find(at, op.member);
        const Function& callee = *find_function(module.of(ref.owner), op.callee);
        const std::string& name = callee.result_names[i];
        trace(op.results.size() == 1 ? path : join_path(path, name.empty() ? std::to_string(i) : name), *a);
      }
      if (!v.stage.empty()) {
        const auto [from, rest] = start(at, v.stage);
        trace(join_path(from->path, rest), *a);
      }
      if (!v.name.empty()) trace(join_path(at.path, v.name), *a);
    }
  }

  // The body once for each element of a list, its carried values handed on.
  Status repeat(const Place& at, const Function& f, const Op& op, std::vector<Slot>& values) {
    const auto [ref, path] = find(at, op.member);
    const std::vector<ClassId>& elements = list_of(module, ref)->elements;
    std::vector<Slot> carried;
    for (const auto& v : op.operands) {
      carried.push_back(values[v->index]);
      carry(carried.back());
    }
    for (std::size_t e = 0; e < elements.size(); ++e) {
      const Place element{elements[e], join_path(path, std::to_string(e)), nullptr};
      const Place inside{at.owner, at.path, &element};
      for (std::size_t i = 0; i < carried.size(); ++i) values[op.body->arguments[i].index] = carried[i];
      if (Status s = block(inside, f, *op.body, values); !s) return s;
      for (std::size_t i = 0; i < carried.size(); ++i) carry(carried[i] = values[op.body->results[i].index]);
    }
    for (std::size_t i = 0; i < carried.size(); ++i) values[op.results[i].index] = carried[i];
    return {};
  }

  // Its reference, as if that stood in its place.
  Status custom(const Place& at, const Function& f, const Op& op, std::vector<Slot>& values) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) values[op.body->arguments[i].index] = values[op.operands[i]->index];
    if (Status s = block(at, f, *op.body, values); !s) return s;
    for (std::size_t i = 0; i < op.results.size(); ++i) values[op.results[i].index] = values[op.body->results[i].index];
    return {};
  }

  Status one(const Place& at, const Function& f, const Op& op, std::vector<Slot>& values) {
    auto set = [&](Result<Shared> value) -> Status {
      if (!value) return value.error();
      values[op.results[0].index].array = *value;
      return {};
    };
    switch (op.kind) {
      case OpKind::weight: {
        const WeightDecl* decl = weight_of(module, find(at, op.member).first);
        values[op.results[0].index].flow = flow_of_weight(*decl);
        return set(weight(at, op.member));
      }
      case OpKind::constant_ref: return set(constant(at, op.member));
      case OpKind::literal: return set(std::make_shared<const Array>(array({}, {static_cast<float>(real_attr(op, "value", 0))})));
      case OpKind::batch_field: {
        const std::vector<std::int64_t>& field = *values[op.operands[0]->index].batch->field(string_attr(op, "field", ""));
        return set(std::make_shared<const Array>(index_array({static_cast<std::int64_t>(field.size())}, field)));
      }
      case OpKind::call: return call(at, op, values);
      default: return compute(at, f, op, values);
    }
  }

  Status call(const Place& at, const Op& op, std::vector<Slot>& values) {
    const auto [ref, path] = find(at, op.member);
    std::vector<Slot> inputs;
    for (const auto& v : op.operands) inputs.push_back(v ? values[v->index] : Slot{});
    Result<std::vector<Slot>> results = function(Place{ref.owner, path, nullptr}, *find_function(module.of(ref.owner), op.callee), inputs);
    if (!results) return results.error();
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      settle((*results)[i], path);
      values[op.results[i].index] = (*results)[i];
    }
    return {};
  }

  // The body of a computation, which stands for no stage of the model: it is not traced.
  Result<Array> inner(const Place& at, const Function& f, const Op& op, std::vector<Slot>& values, std::vector<Array> arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      values[op.body->arguments[i].index].array = std::make_shared<const Array>(std::move(arguments[i]));
    const Trace silent = std::exchange(trace, nullptr);
    const Status done = block(at, f, *op.body, values);
    trace = silent;
    if (!done) return done.error();
    return *values[op.body->results[0].index].array;
  }

  Status compute(const Place& at, const Function& f, const Op& op, std::vector<Slot>& values) {
    const std::string what(info(op.kind).name);
    Call c{.op = op, .operands = {}, .results = {}, .dims = dims, .axis_sizes = axis_sizes};
    for (const auto& v : op.operands) {
      c.operands.push_back(v ? values[v->index].array.get() : nullptr);
      if (v && values[v->index].batch != nullptr) c.batch = values[v->index].batch;
      if (v && values[v->index].sequences != nullptr) c.sequences = values[v->index].sequences;
    }
    for (ValueId v : op.results) {
      const Type& type = f.values[v.index].type;
      Result<Shape> shape = shape_of(type, what);
      if (!shape) return shape.error();
      c.results.push_back(zeros(type.dtype, std::move(*shape)));
    }
    if (!op.member.empty()) {
      const Result<State*> s = state(at, op.member);
      if (!s) return s.error();
      c.state = *s;
    }
    if (op.body) c.body = [&](std::vector<Array> arguments) { return inner(at, f, op, values, std::move(arguments)); };
    const Reference reference = reference_of(op.kind);
    if (reference == nullptr) return failure("operation", what + " is not carried out yet");
    if (Status s = reference(c); !s) return s;
    std::vector<Flow> flows;
    for (const auto& v : op.operands)
      if (v) flows.push_back(values[v->index].flow);
    if (c.state != nullptr) round_state(*c.state);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Value& v = f.values[op.results[i].index];
      if (Status s = check_range(c.results[i], v.type, what, "integer-range"); !s) return s;
      Rounded made;
      if (precision.compute) {
        std::string path = at.path;
        if (!v.stage.empty()) {
          const auto [from, rest] = start(at, v.stage);
          path = join_path(from->path, rest);
        }
        made = rounded_result(precision, op, v, flows, precision.compute(path));
        round(c.results[i], made.to);
      }
      values[op.results[i].index].array = std::make_shared<const Array>(std::move(c.results[i]));
      values[op.results[i].index].flow = made.flow;
    }
    return {};
  }

  static void round(Array& a, DType to) {
    if (a.dtype != DType::f32 || to == DType::f32) return;
    for (float& v : a.reals) v = round_to(to, v);
  }
  void round_state(State& s) const {
    const bool cache = s.kind == StateKind::kv_cache || s.kind == StateKind::latent_cache || s.kind == StateKind::cross_cache;
    const DType to = cache ? precision.cache : precision.state;
    if (to == DType::f32) return;
    for (auto& [number, slot] : s.slots)
      for (std::vector<float>* values : {&slot.k, &slot.v})
        for (float& v : *values) v = round_to(to, v);
  }
  // What a module gives is of its type, unless its last word is a cast.
  void settle(Slot& s, const std::string& path) const {
    if (precision.compute && s.array != nullptr) apply(s, rounded_call(s.flow, precision.compute(path)));
  }
  // What a loop hands on is of the residual's type.
  void carry(Slot& s) const {
    if (precision.compute && s.array != nullptr) apply(s, rounded_carry(precision));
  }
  static void apply(Slot& s, const Rounded& rounded) {
    s.flow = rounded.flow;
    if (rounded.to == DType::f32 || s.array->dtype != DType::f32) return;
    Array a = *s.array;
    round(a, rounded.to);
    s.array = std::make_shared<const Array>(std::move(a));
  }

  // ---- a call from outside ----
  Status bind_axis(std::string_view axis, std::int64_t size) {
    const std::optional<AxisId> id = dims.find_axis(axis);
    if (!id) return {};
    if (const std::int64_t bound = axis_sizes[id->index]; bound >= 0 && bound != size)
      return failure("batch", "one input makes " + std::string(axis) + " " + std::to_string(bound) + ", another " + std::to_string(size));
    return bind_axis(*id, size, "the batch");
  }
  Status bind_axis(AxisId id, std::int64_t size, std::string_view whose) {
    const Axis& axis = dims.axis(id);
    std::int64_t& bound = axis_sizes[id.index];
    if (bound >= 0) return {};                                                // compared with the whole shape later
    if (axis.name == "seq" && module.context && size > *module.context)
      return failure("input",
                     std::string(whose) + " makes seq " + std::to_string(size) + ", the context is " + std::to_string(*module.context));
    if (size < axis.lo || (axis.hi && size > *axis.hi) || size % axis.by != 0)
      return failure("input", std::string(whose) + " makes " + axis.name + " " + std::to_string(size) + ", wanted " +
                                  std::to_string(axis.lo) + ".." + (axis.hi ? std::to_string(*axis.hi) : "") +
                                  (axis.by == 1 ? "" : " by " + std::to_string(axis.by)));
    bound = size;
    return {};
  }

  Status bind_batch(const Batch& b) {
    if (std::optional<Error> wrong = check_batch(b, module.context)) return *wrong;
    for (const Segment& g : b.segments)
      if (const std::int64_t have = length_of(g.slot); g.start != have)
        return failure("batch", "slot " + std::to_string(g.slot) + " has " + std::to_string(have) + " tokens, the batch goes on at " +
                                    std::to_string(g.start));
    if (Status s = bind_axis("tokens", b.tokens()); !s) return s;
    if (Status s = bind_axis("outputs", static_cast<std::int64_t>(b.outputs.size())); !s) return s;
    return bind_axis("batch", static_cast<std::int64_t>(b.segments.size()));
  }

  Status bind_sequences(const Sequences& s) {
    if (std::optional<Error> wrong = check_sequences(s)) return *wrong;
    for (std::size_t i = 0; i < s.slots.size(); ++i)
      if (const std::int64_t have = length_of(s.slots[i]); s.lengths[i] != have)
        return failure("batch", "slot " + std::to_string(s.slots[i]) + " has " + std::to_string(have) + " tokens, not " +
                                    std::to_string(s.lengths[i]));
    return bind_axis("batch", static_cast<std::int64_t>(s.slots.size()));
  }

  // Axes that stand alone in an input's shape get their size from it.
  Status bind_shape(const std::string& name, const Type& type, const Array& a) {
    if (a.dtype != type.dtype || a.shape.size() != type.shape.size() || a.count() != count_of(a.shape))
      return failure("input", name + " is " + std::string(modelc::name(a.dtype)) + shape_name(a.shape) + ", wanted " + text(type, dims));
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      const std::vector<DimTable::Term>& terms = dims.terms(type.shape[i]);
      if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].atoms.size() != 1) continue;
      const DimTable::Atom& atom = dims.atom(terms[0].atoms[0]);
      if (atom.divisor != 0) continue;
      if (Status s = bind_axis(atom.axis, a.shape[i], name); !s) return s;
    }
    return {};
  }
  Status check_input(const std::string& name, const Type& type, const Array& a) {
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      const std::optional<std::int64_t> wanted = dims.evaluate(type.shape[i], axis_sizes);
      if (wanted != a.shape[i])
        return failure("input", name + " is " + shape_name(a.shape) + ", wanted " + text(type, dims) + ": axis " + std::to_string(i) +
                                    " is " + (wanted ? std::to_string(*wanted) : "of unknown size"));
    }
    return check_range(a, type, name, "index-range");
  }

  std::int64_t length_of(std::int64_t slot) const {
    const auto it = lengths.find(slot);
    return it == lengths.end() ? 0 : it->second;
  }

  Status verified() {
    if (!faults) faults = verify(module);
    if (faults->empty()) return {};
    return Error{"graph", "the graph has " + std::to_string(faults->size()) + " faults", *faults, ""};
  }

  Result<std::vector<Output>> run(std::string_view name, const std::map<std::string, Input>& inputs) {
    if (Status s = verified(); !s) return s.error();
    const Class& root = module.of(module.root);
    const Function* f = find_function(root, name);
    if (f == nullptr || f->kind == FunctionKind::init) return failure("function", module.name + " has no function " + std::string(name));
    axis_sizes.assign(dims.axes().size(), -1);

    std::vector<Slot> slots(f->inputs.size());
    const Batch* batch = nullptr;
    for (const auto& [given, value] : inputs)
      if (std::none_of(f->inputs.begin(), f->inputs.end(), [&](const Parameter& p) { return p.name == given; }))
        return failure("input", f->name + " has no input " + given);
    for (std::size_t i = 0; i < f->inputs.size(); ++i) {
      const Parameter& p = f->inputs[i];
      const Type& type = f->values[p.value.index].type;
      const auto it = inputs.find(p.name);
      if (it == inputs.end()) {
        if (!p.default_value) return failure("input", "the input " + p.name + " is missing");
        continue;
      }
      constexpr TypeKind kinds[] = {TypeKind::tensor, TypeKind::batch, TypeKind::sequences};   // as in Input
      constexpr std::string_view kind_names[] = {"a tensor", "a Batch", "a Sequences"};
      if (const TypeKind given = kinds[it->second.index()]; given != type.kind)
        return failure("input", p.name + " must be " + std::string(kind_names[static_cast<int>(type.kind)]) + ", not " +
                                    std::string(kind_names[static_cast<int>(given)]));
      if (type.kind == TypeKind::batch) {
        slots[i].batch = batch = &std::get<Batch>(it->second);
        if (Status s = bind_batch(*batch); !s) return s.error();
      } else if (type.kind == TypeKind::sequences) {
        slots[i].sequences = &std::get<Sequences>(it->second);
        if (Status s = bind_sequences(*slots[i].sequences); !s) return s.error();
      } else {
        slots[i].array = std::make_shared<const Array>(std::get<Array>(it->second));
      }
    }
    for (auto check : {&Impl::bind_shape, &Impl::check_input})
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i].array)
          if (Status s = (this->*check)(f->inputs[i].name, f->values[f->inputs[i].value.index].type, *slots[i].array); !s) return s.error();

    // A call that fails leaves every sequence as it was: rings and recurrent states are written over.
    const auto before = states;
    Result<std::vector<Slot>> results = function(Place{module.root, "", nullptr}, *f, slots);
    if (!results) {
      states = before;
      return results.error();
    }
    if (batch != nullptr && has_state)
      for (const Segment& g : batch->segments) lengths[g.slot] = g.start + g.tokens;
    std::vector<Output> outputs;
    for (Slot& result : *results) settle(result, "");
    for (std::size_t i = 0; i < results->size(); ++i)
      if ((*results)[i].array) outputs.push_back({f->result_names[i], *(*results)[i].array});
    return outputs;
  }
};

Evaluator::Evaluator(const Module& module, WeightSource source) : impl_(std::make_unique<Impl>(module, std::move(source))) {}
Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

void Evaluator::set_trace(Trace trace) { impl_->trace = std::move(trace); }
void Evaluator::set_precision(Precision precision) { impl_->precision = std::move(precision); }

Result<Batch> Evaluator::batch(std::span<const Next> next, Outputs outputs) const {
  std::vector<Segment> segments;
  for (const Next& n : next) segments.push_back({n.slot, n.tokens, impl_->length_of(n.slot)});
  return make_batch(std::move(segments), outputs, impl_->module.context);
}

Sequences Evaluator::sequences(std::vector<std::int64_t> slots) const {
  Sequences out;
  for (const std::int64_t slot : slots) out.lengths.push_back(impl_->length_of(slot));
  out.slots = std::move(slots);
  return out;
}

Result<std::vector<Output>> Evaluator::run(std::string_view function, const std::map<std::string, Input>& inputs) {
  return impl_->run(function, inputs);
}

Result<Array> Evaluator::constant(std::string_view name) {
  if (Status s = impl_->verified(); !s) return s.error();
  impl_->axis_sizes.assign(impl_->dims.axes().size(), -1);
  const std::optional<MemberRef> ref = find_member(impl_->module, impl_->module.root, name);
  if (!ref || ref->kind != MemberKind::constant) return failure("function", "there is no const " + std::string(name));
  Result<Shared> value = impl_->constant(Place{impl_->module.root, "", nullptr}, name);
  if (!value) return value.error();
  return **value;
}

std::int64_t Evaluator::length(std::int64_t slot) const { return impl_->length_of(slot); }

void Evaluator::reset(std::int64_t slot) {
  impl_->lengths.erase(slot);
  for (auto& [name, state] : impl_->states) state.slots.erase(slot);
}

}  // namespace modelc::graph::eval
