#include "runtime/chat/interpreter.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc::chat {

const Value* Call::find(std::size_t position, std::string_view argument) const {
  if (position < arguments.size()) return &arguments[position];
  for (const auto& [name_of, value] : named)
    if (name_of == argument) return &value;
  return nullptr;
}

bool Call::only(std::vector<std::string_view> names, std::size_t unnamed) const {
  if (arguments.size() > names.size()) {
    in.fail(place,
            name + " takes at most " + counted(names.size() - unnamed, "argument") + ", not " + std::to_string(arguments.size() - unnamed));
    return false;
  }
  for (const auto& [given, value] : named) {
    const auto found = std::find(names.begin(), names.end(), given);
    if (found == names.end() || found - names.begin() < static_cast<std::ptrdiff_t>(std::max(unnamed, arguments.size()))) {
      in.fail(place, name + " has no argument `" + printable(given) + "` to give", "template-unsupported");
      return false;
    }
  }
  return true;
}

Interpreter::~Interpreter() {
  for (const auto& held : held_scopes_)
    if (const auto scope = held.lock()) scope->names.clear();
  for (const auto& held : namespaces_)
    if (const auto space = held.lock()) space->members.items.clear();
}

Value Interpreter::fail(Place place, const std::string& message, std::string kind, std::string help) {
  if (!error_) error_ = error_at(std::move(kind), name_, place, message, std::move(help));
  return {};
}

bool Interpreter::work(Place place, std::size_t steps) {
  steps_ += steps;
  if (steps_ > options_.max_steps) fail(place, "the template takes more than " + grouped(options_.max_steps) + " steps", "template-limit");
  return ok();
}

std::string Interpreter::text(Place place, const Value& value) {
  std::string text = to_text(value, options_.max_output);
  if (text.size() > options_.max_output) fail(place, "a text is longer than " + human_bytes(options_.max_output), "template-limit");
  work(place, text.size() / 16);
  return text;
}

void Interpreter::print(Place place, std::string& out, std::string_view text) {
  if (out.size() + text.size() > options_.max_output) {
    fail(place, "the text is longer than " + human_bytes(options_.max_output), "template-limit");
    return;
  }
  out.append(text);
}

std::shared_ptr<Namespace> Interpreter::new_namespace() {
  auto space = std::make_shared<Namespace>();
  namespaces_.push_back(space);
  return space;
}

Result<std::string> Interpreter::run(const Node& root, const Json& context) {
  const auto scope = std::make_shared<Scope>();
  if (const JsonObject* variables = context.as_object())
    for (const JsonMember& m : *variables) scope->names.insert_or_assign(m.key, from_json(m.value));
  std::string out;
  statement(root, std::make_shared<Scope>(Scope{scope, {}}), out);
  if (error_) return std::move(*error_);
  return out;
}

Interpreter::Flow Interpreter::statement(const Node& node, const ScopePointer& scope, std::string& out) {
  const Deeper deeper(depth_);
  if (deeper.depth > options_.max_depth) fail(node.place, "nested deeper than " + std::to_string(options_.max_depth), "template-limit");
  if (!work(node.place, 1)) return Flow::on;
  switch (node.kind) {
    case NodeKind::text: print(node.place, out, node.name); break;
    case NodeKind::output: {
      const Value value = evaluate(*node.children[0], scope);
      if (ok()) print(node.place, out, text(node.place, value));
      break;
    }
    case NodeKind::sequence:
      for (const NodePointer& child : node.children) {
        const Flow flow = statement(*child, scope, out);
        if (flow != Flow::on || !ok()) return flow;
      }
      break;
    case NodeKind::if_:
      if (truth(evaluate(*node.children[0], scope))) return ok() ? statement(*node.children[1], scope, out) : Flow::on;
      if (node.children[2] && ok()) return statement(*node.children[2], scope, out);
      break;
    case NodeKind::for_: return for_loop(node, scope, out);
    case NodeKind::set: assign(*node.children[0], evaluate(*node.children[1], scope), scope); break;
    case NodeKind::set_block: {
      std::string inside;
      statement(*node.children[1], std::make_shared<Scope>(Scope{scope, {}}), inside);
      Value value = std::move(inside);
      if (node.children[2]) {
        captured_ = value;
        value = evaluate(*node.children[2], scope);
      }
      assign(*node.children[0], std::move(value), scope);
      break;
    }
    case NodeKind::macro: scope->names.insert_or_assign(node.name, macro(node, scope)); break;
    case NodeKind::call_block: {
      const Node& called = *node.children[0];
      const Value function = evaluate(*called.children[0], scope);
      Call arguments = arguments_of(called, scope, 1);
      arguments.named.emplace_back("caller", macro(*node.children[1], scope));
      const Value result = call(node.place, function, std::move(arguments.arguments), std::move(arguments.named));
      if (ok()) print(node.place, out, text(node.place, result));
      break;
    }
    case NodeKind::filter_block: {
      std::string inside;
      statement(*node.children[1], std::make_shared<Scope>(Scope{scope, {}}), inside);
      captured_ = std::move(inside);
      const Value value = ok() ? evaluate(*node.children[0], scope) : Value();
      if (ok()) print(node.place, out, text(node.place, value));
      break;
    }
    case NodeKind::with: {
      const auto inner = std::make_shared<Scope>(Scope{scope, {}});
      std::vector<Value> values;
      for (std::size_t i = 1; i + 1 < node.children.size(); i += 2) values.push_back(evaluate(*node.children[i + 1], scope));
      for (std::size_t i = 0; i < values.size(); ++i) assign(*node.children[2 * i + 1], std::move(values[i]), inner);
      return ok() ? statement(*node.children[0], inner, out) : Flow::on;
    }
    case NodeKind::break_: return Flow::break_;
    case NodeKind::continue_: return Flow::continue_;
    default: break;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::for_loop(const Node& node, const ScopePointer& scope, std::string& out) {
  const Value iterable = evaluate(*node.children[1], scope);
  return ok() ? for_each(node, iterable, scope, out, 1) : Flow::on;
}

Interpreter::Flow Interpreter::for_each(const Node& node, const Value& iterable, const ScopePointer& scope, std::string& out, int depth) {
  std::vector<Value> all = items(node.place, iterable);
  if (node.children[2]) {  // those that fulfil the condition count
    std::vector<Value> kept;
    for (Value& value : all) {
      const auto inner = std::make_shared<Scope>(Scope{scope, {}});
      assign(*node.children[0], value, inner);
      if (!ok() || !work(node.place, 1)) return Flow::on;
      if (truth(evaluate(*node.children[2], inner))) kept.push_back(std::move(value));
    }
    all.swap(kept);
  }
  if (all.empty() && node.children[4] && ok()) return statement(*node.children[4], std::make_shared<Scope>(Scope{scope, {}}), out);
  const auto count = static_cast<std::int64_t>(all.size());
  // What loop.changed() was last called with.
  const auto last_change = std::make_shared<std::optional<Value>>();
  for (std::int64_t i = 0; i < count && ok(); ++i) {
    if (!work(node.place, 1)) break;
    const auto inner = std::make_shared<Scope>(Scope{scope, {}});
    auto loop = std::make_shared<Dict>();
    loop->items = {{"index", i + 1},
                   {"index0", i},
                   {"revindex", count - i},
                   {"revindex0", count - i - 1},
                   {"first", i == 0},
                   {"last", i + 1 == count},
                   {"length", count},
                   {"depth", std::int64_t{depth}},
                   {"depth0", std::int64_t{depth - 1}},
                   {"previtem", i > 0 ? all[static_cast<std::size_t>(i - 1)] : Value(Undefined{"loop.previtem"})},
                   {"nextitem", i + 1 < count ? all[static_cast<std::size_t>(i + 1)] : Value(Undefined{"loop.nextitem"})}};
    loop->set("cycle", std::make_shared<Callable>(Callable{"loop.cycle", [i](const Call& c) -> Value {
                                                             if (c.arguments.empty())
                                                               return c.in.fail(c.place, "loop.cycle() needs something to go through");
                                                             return c.arguments[static_cast<std::size_t>(i) % c.arguments.size()];
                                                           }}));
    loop->set("changed", std::make_shared<Callable>(Callable{"loop.changed", [last_change](const Call& c) -> Value {
                                                               const Value now = make_list(c.arguments, true);
                                                               const bool changed = !*last_change || !equal(**last_change, now);
                                                               *last_change = now;
                                                               return changed;
                                                             }}));
    if (node.name == "recursive") {
      // Only while this pass through the loop is under way, which a scope that is gone tells.
      const std::weak_ptr<Scope> weak = scope;
      const Node* loop_node = &node;
      loop->set("__call__", std::make_shared<Callable>(Callable{"loop", [this, weak, loop_node, depth](const Call& c) -> Value {
                                                                  const ScopePointer outer = weak.lock();
                                                                  if (!outer || c.arguments.size() != 1)
                                                                    return c.in.fail(c.place, "loop() takes one list to go through");
                                                                  std::string inside;
                                                                  for_each(*loop_node, c.arguments[0], outer, inside, depth + 1);
                                                                  return Value(std::move(inside));
                                                                }}));
    }
    inner->names.insert_or_assign("loop", Value(std::move(loop)));
    assign(*node.children[0], all[static_cast<std::size_t>(i)], inner);
    if (!ok()) break;
    if (statement(*node.children[3], inner, out) == Flow::break_) break;
  }
  return Flow::on;
}

void Interpreter::assign(const Node& target, Value value, const ScopePointer& scope) {
  if (!ok()) return;
  if (target.kind == NodeKind::variable) {
    scope->names.insert_or_assign(target.name, std::move(value));
  } else if (target.kind == NodeKind::attribute) {
    const Value object = evaluate(*target.children[0], scope);
    if (Namespace* space = object.name_space()) space->members.set(target.name, std::move(value));
    else if (ok())
      fail(target.place, "only a namespace has attributes that can be set, and this is " + type_name(object), "template-error",
           "{% set ns = namespace(x=1) %} makes one");
  } else {
    const std::vector<Value> values = items(target.place, value);
    if (ok() && values.size() != target.children.size())
      fail(target.place, "expected " + std::to_string(target.children.size()) + " values to set, found " + std::to_string(values.size()));
    for (std::size_t i = 0; ok() && i < values.size(); ++i) assign(*target.children[i], values[i], scope);
  }
}

Value Interpreter::macro(const Node& node, const ScopePointer& scope) {
  held_scopes_.push_back(scope);
  return std::make_shared<Callable>(
      Callable{"macro " + node.name, [this, &node, scope](const Call& c) -> Value {
                 if (c.arguments.size() > node.named.size())
                   return fail(c.place, "the macro `" + node.name + "` takes " + counted(node.named.size(), "argument") + ", not " +
                                            std::to_string(c.arguments.size()));
                 const auto inner = std::make_shared<Scope>(Scope{scope, {}});
                 inner->names.insert_or_assign("caller", Undefined{"caller"});
                 for (const auto& [name, value] : c.named) {
                   const auto known = std::find_if(node.named.begin(), node.named.end(), [&](const auto& p) { return p.first == name; });
                   if (known == node.named.end() && name != "caller")
                     return fail(c.place, "the macro `" + node.name + "` has no argument `" + printable(name) + "`");
                   if (known != node.named.end() && known - node.named.begin() < static_cast<std::ptrdiff_t>(c.arguments.size()))
                     return fail(c.place, "the argument `" + printable(name) + "` of the macro `" + node.name + "` is given twice");
                   inner->names.insert_or_assign(name, value);
                 }
                 for (std::size_t i = 0; i < node.named.size() && ok(); ++i) {
                   const auto& [name, otherwise] = node.named[i];
                   if (i < c.arguments.size()) inner->names.insert_or_assign(name, c.arguments[i]);
                   else if (!inner->names.contains(name))
                     inner->names.insert_or_assign(name, otherwise ? evaluate(*otherwise, inner) : Value(Undefined{name}));
                 }
                 std::string out;
                 if (ok()) statement(*node.children[0], inner, out);
                 return Value(std::move(out));
               }});
}

Value Interpreter::variable(const Node& node, const ScopePointer& scope) {
  for (const Scope* s = scope.get(); s; s = s->outer.get())
    if (const auto found = s->names.find(node.name); found != s->names.end()) return found->second;
  return global(node.name);
}

Call Interpreter::arguments_of(const Node& node, const ScopePointer& scope, std::size_t skip) {
  Call c{*this, node.place, node.name, {}, {}};
  for (std::size_t i = skip; i < node.children.size() && ok(); ++i) c.arguments.push_back(evaluate(*node.children[i], scope));
  for (const auto& [name, value] : node.named)
    if (ok()) c.named.emplace_back(name, evaluate(*value, scope));
  return c;
}

Value Interpreter::call(Place place, const Value& function, std::vector<Value> arguments,
                        std::vector<std::pair<std::string, Value>> named) {
  if (!ok()) return {};
  const Callable* callable = function.callable();
  Value held = function;
  if (!callable && function.dict())
    if (const Value* self = function.dict()->find("__call__")) {
      held = *self;
      callable = held.callable();
    }
  if (!callable) {
    if (const Undefined* u = function.undefined())
      return fail(place, (u->name.empty() ? "this" : "`" + printable(u->name) + "`") + " is undefined, so it cannot be called");
    return fail(place, type_name(function) + " cannot be called");
  }
  return callable->call(Call{*this, place, callable->name, std::move(arguments), std::move(named)});
}

Value Interpreter::attribute(Place place, const Value& object, const std::string& name) {
  if (!ok()) return {};
  if (const Undefined* u = object.undefined())
    return fail(place,
                (u->name.empty() ? "the value" : "`" + printable(u->name) + "`") + " is undefined, so it has no `" + printable(name) + "`");
  if (is_method(object, name)) {
    return std::make_shared<Callable>(Callable{
        name, [object](const Call& c) -> Value {
          std::optional<Value> result = c.in.call_method(object, c);
          if (result) return std::move(*result);
          return c.in.fail(c.place, "the method `" + c.name + "` of " + type_name(object) + " is not carried out", "template-unsupported");
        }});
  }
  if (Namespace* space = object.name_space()) {
    if (const Value* found = space->members.find(name)) return *found;
  } else if (object.dict()) {
    work(place, object.dict()->items.size() / 16);
    if (const Value* found = object.dict()->find(name)) return *found;
  }
  return Undefined{name};
}

Value Interpreter::item(Place place, const Value& object, const Value& key) {
  if (!ok()) return {};
  if (const std::string* name = key.string()) {
    if (object.dict()) {
      work(place, object.dict()->items.size() / 16);
      if (const Value* found = object.dict()->find(*name)) return *found;
    }
    return attribute(place, object, *name);
  }
  if (const Undefined* u = object.undefined())
    return fail(place, (u->name.empty() ? "the value" : "`" + printable(u->name) + "`") + " is undefined, so it has no items");
  const std::optional<std::int64_t> index = key.integer();
  if (index && (object.list() || object.string())) {
    const auto at = [&](std::size_t size) -> std::optional<std::size_t> {
      const std::int64_t i = *index < 0 ? *index + static_cast<std::int64_t>(size) : *index;
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
      if (i < 0 || i > static_cast<std::int64_t>(size)) return std::nullopt;
#else
      if (i < 0 || i >= static_cast<std::int64_t>(size)) return std::nullopt;
#endif
      return static_cast<std::size_t>(i);
    };
    if (object.list()) {
      const auto& list = object.list()->items;
      if (const auto i = at(list.size())) return list[*i];
    } else {
      work(place, object.string()->size() / 4);
      const auto all = characters(*object.string());
      if (const auto i = at(all.size())) return all[*i];
    }
  }
  return Undefined{to_text(key, 100)};
}

std::vector<Value> Interpreter::items(Place place, const Value& value) {
  if (!ok() || value.is_undefined()) return {};
  std::vector<Value> result;
  if (value.list()) {
    result = value.list()->items;
  } else if (value.dict()) {
    for (const auto& entry : value.dict()->items) result.emplace_back(entry.first);
  } else if (value.string()) {
    if (!work(place, value.string()->size())) return {};
    for (const std::string_view c : characters(*value.string())) result.emplace_back(c);
  } else {
    fail(place, "expected something to go through, found " + type_name(value));
  }
  work(place, result.size());
  return result;
}

Value Interpreter::evaluate(const Node& node, const ScopePointer& scope) {
  const Deeper deeper(depth_);
  if (deeper.depth > options_.max_depth) fail(node.place, "nested deeper than " + std::to_string(options_.max_depth), "template-limit");
  if (!work(node.place, 1)) return {};
  const auto child = [&](std::size_t i) { return evaluate(*node.children[i], scope); };
  switch (node.kind) {
    case NodeKind::constant: return node.value;
    case NodeKind::variable: return variable(node, scope);
    case NodeKind::captured: return captured_;
    case NodeKind::list:
    case NodeKind::tuple: {
      std::vector<Value> values;
      for (std::size_t i = 0; i < node.children.size(); ++i) values.push_back(child(i));
      return make_list(std::move(values), node.kind == NodeKind::tuple);
    }
    case NodeKind::dict: {
      auto dict = std::make_shared<Dict>();
      for (std::size_t i = 0; i + 1 < node.children.size() && ok(); i += 2) {
        const Value key = child(i);
        if (ok() && !key.string())
          return fail(node.children[i]->place, "a key that is " + type_name(key) + ", no string, is not carried out",
                      "template-unsupported");
        if (ok()) dict->set(*key.string(), child(i + 1));
      }
      return dict;
    }
    case NodeKind::attribute: return attribute(node.place, child(0), node.name);
    case NodeKind::item: {
      const Value object = child(0);
      return item(node.place, object, child(1));
    }
    case NodeKind::slice: return sliced(node, scope);
    case NodeKind::call: {
      const Value function = child(0);
      Call c = arguments_of(node, scope, 1);
      return call(node.place, function, std::move(c.arguments), std::move(c.named));
    }
    case NodeKind::filter: {
      const Call c = arguments_of(node, scope, 0);
      return ok() ? call_filter(c) : Value();
    }
    case NodeKind::test: {
      const Call c = arguments_of(node, scope, 0);
      if (!ok()) return {};
      if (const auto result = call_test(c)) return *result;
      return fail(node.place, "the test `" + printable(node.name) + "` is not carried out", "template-unsupported");
    }
    case NodeKind::not_: return !truth(child(0));
    case NodeKind::negative:
    case NodeKind::positive: {
      const Value value = child(0);
      const bool negative = node.kind == NodeKind::negative;
      if (const auto whole = value.integer()) {
        if (*whole == INT64_MIN) return fail(node.place, "the number is too large");
        return negative ? -*whole : *whole;
      }
      if (const auto number = value.number()) return negative ? -*number : *number;
      return fail(node.place, std::string("`") + (negative ? "-" : "+") + "` of " + type_name(value));
    }
    case NodeKind::and_: {
      Value left = child(0);
      return truth(left) ? child(1) : left;
    }
    case NodeKind::or_: {
      Value left = child(0);
      return truth(left) ? left : child(1);
    }
    case NodeKind::binary: {
      const Value left = child(0), right = child(1);
      return ok() ? binary(node.place, node.name, left, right) : Value();
    }
    case NodeKind::compare: return compared(node, scope);
    case NodeKind::choice:
      if (truth(child(0))) return ok() ? child(1) : Value();
      return node.children[2] && ok() ? child(2) : Value(Undefined{"the value of an `if` without `else`"});
    default: return fail(node.place, "this is no expression");
  }
}

Value Interpreter::compared(const Node& node, const ScopePointer& scope) {
  Value left = evaluate(*node.children[0], scope);
  for (std::size_t i = 0; i < node.names.size() && ok(); ++i) {
    Value right = evaluate(*node.children[i + 1], scope);
    if (!ok()) return {};
    const std::string& sign = node.names[i];
    bool holds = false;
    if (sign == "==" || sign == "!=") {
      holds = equal(left, right) == (sign == "==");
    } else if (sign == "in" || sign == "not in") {
      holds = contains(node.place, right, left) == (sign == "in");
    } else {
      const auto order = compare(left, right);
      if (!order) return fail(node.place, "`" + sign + "` between " + type_name(left) + " and " + type_name(right) + " has no meaning");
      holds = sign == "<" ? *order < 0 : sign == "<=" ? *order <= 0 : sign == ">" ? *order > 0 : *order >= 0;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::sliced(const Node& node, const ScopePointer& scope) {
  const Value object = evaluate(*node.children[0], scope);
  std::optional<std::int64_t> parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (!node.children[i + 1]) continue;
    const Value value = evaluate(*node.children[i + 1], scope);
    if (!ok()) return {};
    if (value.is_none()) continue;
    parts[i] = value.integer();
    if (!parts[i]) return fail(node.place, "a slice from or to " + type_name(value) + ": expected whole numbers");
  }
  if (!ok()) return {};
  if (!object.list() && !object.string()) return fail(node.place, "a slice of " + type_name(object) + ": expected a list or string");
  const std::int64_t step = parts[2].value_or(1);
  if (step == 0) return fail(node.place, "a slice with a step of 0");
  std::vector<std::string_view> letters;
  if (object.string()) letters = characters(*object.string());
  const auto size = static_cast<std::int64_t>(object.list() ? object.list()->items.size() : letters.size());
  work(node.place, static_cast<std::size_t>(size));
  const auto bound = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
    if (!given) return otherwise;
    const std::int64_t i = *given < 0 ? std::max<std::int64_t>(*given, -size - 1) + size : *given;
    return step > 0 ? std::clamp<std::int64_t>(i, 0, size) : std::clamp<std::int64_t>(i, -1, size - 1);
  };
  const std::int64_t begin = bound(parts[0], step > 0 ? 0 : size - 1), end = bound(parts[1], step > 0 ? size : -1);
  std::vector<Value> values;
  std::string text;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
    const auto at = static_cast<std::size_t>(i);
    if (object.list()) values.push_back(object.list()->items[at]);
    else text.append(letters[at]);
    if (step > 0 ? step >= end - i : step <= end - i) break;
    i += step;
  }
  if (object.list()) return make_list(std::move(values), object.list()->is_tuple);
  return text;
}

}  // namespace modelc::chat
