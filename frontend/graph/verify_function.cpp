#include "frontend/graph/verify_function.h"

#include <algorithm>
#include <utility>

#include "frontend/graph/members.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/types.h"

namespace modelc::graph {

namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& m, DimTable& dims, ClassId owner, const Function& f, std::vector<std::string>& faults)
      : m_(m), dims_(dims), owner_(owner), f_(f), faults_(faults), defined_(f.values.size()), visible_(f.values.size()) {}

  void run() {
    int batches = 0;
    for (const Parameter& p : f_.inputs) {
      define(p.value);
      batches += type(p.value).kind == TypeKind::batch ? 1 : 0;
    }
    if (batches > 1) fault("more than one Batch");
    block(f_.body);
    for (ValueId v : f_.body.results) use(v, "a result");
  }

 private:
  const Type& type(ValueId v) const { return f_.values[v.index].type; }
  std::string shown(ValueId v) const { return text(type(v), dims_); }

  void fault(const std::string& what) {
    std::string where = m_.of(owner_).name + "." + f_.name;
    if (op_ != nullptr) where += ": `" + print_op(m_, f_, *op_) + "`";
    faults_.push_back(where + ": " + what);
  }

  // ---- SSA ----
  bool define(ValueId v) {
    if (v.index >= f_.values.size()) return fault("defines a value that is not in the table"), false;
    if (defined_[v.index]) return fault("defines " + f_.values[v.index].name + " again"), false;
    defined_[v.index] = visible_[v.index] = true;
    scope_.push_back(v.index);
    return true;
  }
  bool use(ValueId v, const std::string& what) {
    if (v.index >= f_.values.size()) return fault(what + " is not in the table"), false;
    if (!defined_[v.index]) return fault(what + " is used before it is defined"), false;
    if (!visible_[v.index]) return fault(what + " is of another block"), false;
    return true;
  }

  void block(const Block& b) {
    for (const Op& op : b.ops) {
      const Op* outer = op_;
      op_ = &op;
      one(op);
      op_ = outer;
    }
  }

  void one(const Op& op) {
    if (static_cast<int>(op.kind) > static_cast<int>(OpKind::custom)) return fault("no kind of operation");
    bool sound = true;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      if (op.operands[i]) sound &= use(*op.operands[i], "operand " + std::to_string(i));
    for (ValueId v : op.results)
      if (v.index >= f_.values.size()) return fault("a result is not in the table");
    if (sound) rule(op);
    for (ValueId v : op.results) {
      define(v);
      stage(f_.values[v.index].stage);
    }
  }

  void rule(const Op& op) {
    const OpInfo& row = info(op.kind);
    const bool structural = is_structure(op.kind);
    if (!op.callee.empty() && op.kind != OpKind::call) fault("only a call has a callee");
    const bool may_have_body = op.kind == OpKind::repeat || op.kind == OpKind::moe || op.kind == OpKind::custom;
    if (op.body && !may_have_body) fault("only a repeat, a moe and a custom have a body");
    if (op.custom.has_value() != (op.kind == OpKind::custom)) fault("a custom, and nothing else, says how it is computed");
    if (!structural && !row.has_state && !op.member.empty()) fault("takes no member");
    if (f_.kind == FunctionKind::init &&
        (row.has_state || op.kind == OpKind::call || op.kind == OpKind::repeat || op.kind == OpKind::batch_field))
      fault("an init function computes from weights and consts alone");
    if (structural && op.kind != OpKind::batch_field && op.kind != OpKind::literal && !op.attrs.empty()) fault("takes no named arguments");
    switch (op.kind) {
      case OpKind::weight: return member_value(op, MemberKind::weight);
      case OpKind::constant_ref: return member_value(op, MemberKind::constant);
      case OpKind::batch_field: return batch_field(op);
      case OpKind::call: return call(op);
      case OpKind::repeat: return repeat(op);
      case OpKind::literal: return literal(op);
      case OpKind::custom: return custom(op);
      default: return computation(op);
    }
  }

  // ---- members ----
  // What a member path leads to: one, or inside a repeat one for each class of element.
  std::vector<MemberRef> find(const std::string& member) {
    std::vector<MemberRef> found;
    const bool of_element = member.empty() || member[0] == '.';
    if (of_element && !in_repeat_) return fault("the member \"" + member + "\" is of a loop's element, and there is no loop"), found;
    const std::vector<ClassId> from = of_element ? elements_ : std::vector<ClassId>{owner_};
    const std::string_view path = std::string_view(member).substr(of_element && !member.empty() ? 1 : 0);
    for (ClassId c : from) {
      if (const auto ref = find_member(m_, c, path)) found.push_back(*ref);
      else fault("class " + m_.of(c).name + " has no member \"" + member + "\"");
    }
    return found;
  }

  void stage(const std::string& path) {
    if (path.empty()) return;
    const bool of_element = path[0] == '.';
    if (of_element && !in_repeat_) return fault("the stage \"" + path + "\" is of a loop's element, and there is no loop");
    for (ClassId c : of_element ? elements_ : std::vector<ClassId>{owner_})
      if (!find_stage(m_, c, std::string_view(path).substr(of_element ? 1 : 0)))
        fault("class " + m_.of(c).name + " has no child at the stage \"" + path + "\"");
  }

  void results_are(const Op& op, const std::vector<Type>& wanted) {
    if (op.results.size() != wanted.size())
      return fault(std::to_string(op.results.size()) + " results, wanted " + std::to_string(wanted.size()));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (type(op.results[i]) != wanted[i])
        fault("result " + std::to_string(i) + " is " + shown(op.results[i]) + ", but must be " + text(wanted[i], dims_));
  }
  void operands_are(const Op& op, std::size_t n) {
    if (op.operands.size() != n) fault(std::to_string(op.operands.size()) + " operands, wanted " + std::to_string(n));
  }

  void member_value(const Op& op, MemberKind kind) {
    operands_are(op, 0);
    for (const MemberRef& ref : find(op.member)) {
      if (ref.kind != kind) {
        fault("\"" + op.member + "\" is no " + (kind == MemberKind::weight ? "weight" : "const"));
        continue;
      }
      results_are(op, {kind == MemberKind::weight ? weight_of(m_, ref)->type : const_of(m_, ref)->type});
      if (kind == MemberKind::constant && f_.kind == FunctionKind::init && ref.owner == owner_ && !before_this_init(ref.index))
        fault("the const is declared later, or is this one");
    }
  }
  // Consts of one class are computed in their order.
  bool before_this_init(std::uint32_t index) const {
    const std::vector<ConstDecl>& consts = m_.of(owner_).consts;
    for (std::uint32_t i = 0; i < consts.size(); ++i)
      if (&m_.of(owner_).functions[consts[i].init.index] == &f_) return index < i;
    return false;
  }

  void batch_field(const Op& op) {
    operands_are(op, 1);
    if (op.operands.size() != 1 || !op.operands[0] || type(*op.operands[0]).kind != TypeKind::batch) return fault("wants a Batch");
    const std::string field = string_attr(op, "field", "");
    const std::optional<Type> wanted = batch_field_type(field, dims_, m_.context);
    if (!wanted || op.attrs.size() != 1) return fault("a Batch has no field \"" + field + "\"");
    results_are(op, {*wanted});
  }

  void literal(const Op& op) {
    operands_are(op, 0);
    const auto it = op.attrs.find("value");
    if (op.attrs.size() != 1 || it == op.attrs.end() || !std::holds_alternative<double>(it->second))
      fault("wants the argument value, a float, and no other");
    results_are(op, {tensor(DType::f32, {})});
  }

  // ---- calls and loops ----
  void call(const Op& op) {
    for (const MemberRef& ref : find(op.member)) {
      if (ref.kind != MemberKind::child) {
        fault("\"" + op.member + "\" is no child");
        continue;
      }
      const Class& c = m_.of(ref.owner);
      const Function* callee = find_function(c, op.callee);
      if (callee == nullptr || callee->kind == FunctionKind::init) {
        fault("class " + c.name + " has no function " + op.callee);
        continue;
      }
      signature(op, c.name + "." + callee->name, *callee);
    }
  }

  void signature(const Op& op, const std::string& callee_name, const Function& callee) {
    if (op.operands.size() != callee.inputs.size())
      return fault(std::to_string(op.operands.size()) + " operands, " + callee_name + " takes " + std::to_string(callee.inputs.size()));
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Parameter& p = callee.inputs[i];
      const Type& wanted = callee.values[p.value.index].type;
      if (!op.operands[i]) {
        if (!p.default_value) fault("the input " + p.name + " of " + callee_name + " is missing");
      } else if (type(*op.operands[i]) != wanted) {
        fault("the input " + p.name + " of " + callee_name + " is " + text(wanted, dims_) + ", not " + shown(*op.operands[i]));
      }
    }
    std::vector<Type> results;
    for (ValueId v : callee.body.results) results.push_back(callee.values[v.index].type);
    results_are(op, results);
  }

  void repeat(const Op& op) {
    if (!op.body) return fault("has no body");
    std::vector<ClassId> elements;
    for (const MemberRef& ref : find(op.member)) {
      const ChildDecl* list = list_of(m_, ref);
      if (list == nullptr) {
        fault("\"" + op.member + "\" is no list of children");
        continue;
      }
      for (ClassId e : list->elements)
        if (std::find(elements.begin(), elements.end(), e) == elements.end()) elements.push_back(e);
    }
    const std::size_t n = op.operands.size();
    if (op.body->arguments.size() != n || op.body->results.size() != n || op.results.size() != n)
      return fault("carries " + std::to_string(n) + " values in, " + std::to_string(op.body->arguments.size()) + " inside, " +
                   std::to_string(op.body->results.size()) + " on and " + std::to_string(op.results.size()) + " out");

    const std::size_t scope = scope_.size();
    const std::vector<ClassId> outer_elements = std::exchange(elements_, std::move(elements));
    const bool outer_repeat = std::exchange(in_repeat_, true);
    for (ValueId v : op.body->arguments)
      if (!define(v)) return;
    block(*op.body);
    bool sound = true;
    for (std::size_t i = 0; i < n; ++i) {
      sound &= use(op.body->results[i], "a carried value");
      if (!op.operands[i]) sound = false, fault("a carried value is missing");
    }
    elements_ = outer_elements;
    in_repeat_ = outer_repeat;
    for (; scope_.size() > scope; scope_.pop_back()) visible_[scope_.back()] = false;
    if (!sound) return;
    for (std::size_t i = 0; i < n; ++i) {
      const Type& carried = type(*op.operands[i]);
      for (ValueId v : {op.body->arguments[i], op.body->results[i], op.results[i]})
        if (type(v) != carried) fault("carries " + text(carried, dims_) + " in, but has it as " + shown(v));
    }
  }

  // ---- custom operations ----
  // The body takes the operands and gives the results, and sees nothing else.
  void custom(const Op& op) {
    if (!op.body || !op.custom) return fault("has no body, or does not say how it is computed");
    const Block& body = *op.body;
    const std::size_t n = op.operands.size();
    if (body.arguments.size() != n || body.results.size() != op.results.size())
      return fault("its body takes " + std::to_string(body.arguments.size()) + " values and gives " + std::to_string(body.results.size()) +
                   ", wanted " + std::to_string(n) + " and " + std::to_string(op.results.size()));
    if (!op.attrs.empty()) fault("takes no named arguments");
    for (const Dispatch& d : op.custom->dispatches) {
      if (d.shader < 0 || static_cast<std::size_t>(d.shader) >= m_.shaders.size()) fault("there is no shader " + std::to_string(d.shader));
      if (d.groups.empty() || d.groups.size() > 3) fault("a shader runs in one to three axes of groups");
      if (d.local_size < 1 || d.local_size > max_local_size)
        fault("a group of " + std::to_string(d.local_size) + " is none of 1 to " + std::to_string(max_local_size));
    }
    if (op.custom->host >= 0) {
      if (static_cast<std::size_t>(op.custom->host) >= m_.host_code.size()) return fault("there is no host code of that number");
      const HostCode& h = m_.host_code[static_cast<std::size_t>(op.custom->host)];
      const auto same = [&](const std::vector<DType>& types, std::size_t i, ValueId v) { return types[i] == type(v).dtype; };
      bool fits = h.inputs.size() == n && h.results.size() == op.results.size();
      for (std::size_t i = 0; i < n && fits; ++i) fits = op.operands[i] && same(h.inputs, i, *op.operands[i]);
      for (std::size_t i = 0; i < op.results.size() && fits; ++i) fits = same(h.results, i, op.results[i]);
      if (!fits) return fault("its host code takes and gives other types");
    }
    const std::size_t scope = scope_.size();
    const std::vector<bool> outside = std::exchange(visible_, std::vector<bool>(visible_.size()));
    const std::vector<ClassId> elements = std::exchange(elements_, {});
    const bool in_repeat = std::exchange(in_repeat_, false);
    bool sound = true;
    for (std::size_t i = 0; i < n && sound; ++i) {
      sound = define(body.arguments[i]);
      if (!op.operands[i]) sound = false, fault("an operand is missing");
      else if (sound && type(body.arguments[i]) != type(*op.operands[i]))
        fault("its body takes " + shown(body.arguments[i]) + ", and is given " + shown(*op.operands[i]));
    }
    if (sound) {
      for (const Op& o : body.ops)
        if ((is_structure(o.kind) && o.kind != OpKind::literal) || info(o.kind).has_state)
          fault("its body has " + std::string(info(o.kind).name) + ", which reads more than its arguments");
      block(body);
      for (std::size_t i = 0; i < body.results.size(); ++i)
        if (use(body.results[i], "a result of its body") && type(body.results[i]) != type(op.results[i]))
          fault("its body gives " + shown(body.results[i]) + ", wanted " + shown(op.results[i]));
    }
    elements_ = elements;
    in_repeat_ = in_repeat;
    visible_ = outside;
    scope_.resize(scope);
  }

  // ---- computations ----
  void computation(const Op& op) {
    const StateDecl* state = nullptr;
    if (!op.member.empty()) {
      for (const MemberRef& ref : find(op.member)) {
        const StateDecl* next = state_of(m_, ref);
        if (next == nullptr) return fault("\"" + op.member + "\" is no state");
        if (state != nullptr && (state->kind != next->kind || state->sizes != next->sizes))
          return fault("the state \"" + op.member + "\" differs between the elements of the loop");
        state = next;
      }
      if (state == nullptr) return;                                           // said by find
      // Twice in a call is verify_moves' to find, which follows calls; here only what needs no such walk.
      const bool moves = state->kind == StateKind::ring || state->kind == StateKind::recurrent || op.kind == OpKind::append;
      if (moves && in_repeat_ && op.member[0] != '.') fault("the state \"" + op.member + "\" goes over the same tokens twice");
    }
    std::vector<std::optional<Type>> operands;
    for (const auto& v : op.operands) operands.push_back(v ? std::optional(type(*v)) : std::nullopt);
    const Type* wanted = op.results.size() == 1 ? &type(op.results[0]) : nullptr;
    const ShapeResult result = infer(ShapeQuery{op, operands, dims_, state, wanted});
    if (const auto* error = std::get_if<ShapeError>(&result)) return fault(error->message);
    results_are(op, std::get<std::vector<Type>>(result));
    if (op.kind == OpKind::moe) formula(op, tensor(type(*op.operands[0]).dtype, {type(*op.operands[3]).shape[1]}));
  }

  // The body of a computation: elementwise, from its two arguments and numbers to one result, all rows of one type.
  void formula(const Op& op, const Type& row) {
    if (!op.body) return fault("has no body");
    const Block& body = *op.body;
    if (body.arguments.size() != 2 || body.results.size() != 1)
      return fault("its body takes " + std::to_string(body.arguments.size()) + " values and gives " + std::to_string(body.results.size()) +
                   ", wanted 2 and 1");
    const std::size_t scope = scope_.size();
    std::vector<bool> inside(f_.values.size());
    bool sound = true;
    const auto defined = [&](ValueId v) {
      sound &= v.index < inside.size();
      if (sound) inside[v.index] = true;
    };
    for (ValueId v : body.arguments) {
      if (!define(v)) return;
      defined(v);
    }
    for (const Op& o : body.ops) {
      if (static_cast<int>(o.kind) > static_cast<int>(OpKind::custom)) return fault("no kind of operation in its body");
      if (o.kind != OpKind::literal && o.kind != OpKind::cast && !info(o.kind).elementwise)
        fault("its body has " + std::string(info(o.kind).name) + ", which is not elementwise");
      for (const auto& v : o.operands)
        if (v && (v->index >= inside.size() || !inside[v->index])) fault("its body uses a value of outside");
      for (ValueId v : o.results) defined(v);
    }
    block(body);
    sound &= use(body.results[0], "the result of its body");
    for (; scope_.size() > scope; scope_.pop_back()) visible_[scope_.back()] = false;
    if (!sound) return;
    if (!inside[body.results[0].index]) return fault("its body gives a value of outside");
    for (ValueId v : {body.arguments[0], body.arguments[1], body.results[0]})
      if (type(v) != row) fault("its body has " + shown(v) + ", wanted " + text(row, dims_));
  }

  const Module& m_;
  DimTable& dims_;
  ClassId owner_;
  const Function& f_;
  std::vector<std::string>& faults_;
  const Op* op_ = nullptr;                       // the one being checked
  std::vector<bool> defined_, visible_;
  std::vector<std::uint32_t> scope_;             // visible values, the innermost block's last
  std::vector<ClassId> elements_;                // classes of the innermost loop's elements
  bool in_repeat_ = false;
  static constexpr std::int64_t max_local_size = 1024;
};

}  // namespace

void verify_function(const Module& module, DimTable& dims, ClassId owner, const Function& function, std::vector<std::string>& faults) {
  FunctionVerifier(module, dims, owner, function, faults).run();
}

}  // namespace modelc::graph
