// `is`, `match`, comprehensions, indices and casts.
#include <algorithm>
#include <set>

#include "frontend/sema/expressions.h"
#include "frontend/sema/habits.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(modelc::quote(name));
  return listed(out, 12);
}

std::string literal_text(const ast::Literal& literal) { return show(Expressions::literal(literal)); }

// The variant that a value is, or would be if it were not none.
const VariantDef* variant_of(const Value& value) {
  if (value.is(ValueKind::variant)) return value.as_variant().definition;
  return value.is_none() ? value.none_of() : nullptr;
}

}  // namespace

// ---- is, match ------------------------------------------------------------------------------------------------------

// Whether the value is what the literal says. A literal that can never be it is reported, and `failed` set.
bool Expressions::matches(const Value& subject, const ast::Literal& literal, bool& failed) {
  if (literal.kind == ast::LiteralKind::none) return subject.is_none();
  if (const VariantDef* variant = variant_of(subject)) {
    const auto index = literal.kind == ast::LiteralKind::string ? variant->find(literal.text) : std::nullopt;
    if (!index) {
      failed = true;
      const std::string near = literal.kind == ast::LiteralKind::string ? diag::did_you_mean(literal.text, variant->tags()) : "";
      auto message = fail(diag::code::match_bad_arm, literal.span, variant->symbol->name + " has no case " + literal_text(literal));
      message.label(variant->symbol->span, "its cases are " + quoted_list(variant->tags()));
      if (!near.empty()) message.help(near);
      return false;
    }
    return subject.is(ValueKind::variant) && subject.as_variant().case_index == *index;
  }
  if (subject.is_none()) return false;
  const Value wanted = Expressions::literal(literal);
  const bool same_kind = wanted.kind() == subject.kind() || (wanted.is_number() && subject.is_number());
  if (!same_kind) {
    failed = true;
    fail(diag::code::match_bad_arm, literal.span, kind_name(subject) + " is never " + literal_text(literal), {&subject});
    return false;
  }
  return equal(subject, wanted);
}

Value Expressions::eval_is(const ast::IsExpr& expr, const Environment& env) {
  const Value subject = eval(*expr.operand, env);
  if (subject.is_error()) return subject;
  if (subject.is(ValueKind::absent) && unusable(subject, expr.operand->span)) return Value::error();
  if (subject.is_graph() || subject.is(ValueKind::dim)) {
    fail(diag::code::bad_condition, expr.operand->span, "`is` asks a value that is known early, not " + kind_name(subject));
    return Value::error();
  }
  bool failed = false;
  const bool result = matches(subject, expr.literal, failed);
  if (failed) return Value::error();
  return Value::boolean(result != expr.negated);
}

// What is wrong with the arms whatever the value is.
bool Expressions::check_arms(const ast::MatchExpr& expr, const Value& subject) {
  const VariantDef* variant = variant_of(subject);
  std::set<std::string> seen;
  std::set<std::size_t> cases;
  bool good = true, wildcard = false, none = false;
  for (const ast::Arm& arm : expr.arms) {
    if (wildcard) {
      fail(diag::code::match_bad_arm, arm.span, "this arm stands behind `_` and is never taken");
      return false;
    }
    wildcard = arm.wildcard;
    for (const ast::Literal& literal : arm.literals) {
      bool failed = false;
      if (variant != nullptr) matches(subject, literal, failed);
      if (failed) {
        good = false;
        continue;
      }
      none = none || literal.kind == ast::LiteralKind::none;
      const auto index = variant != nullptr && literal.kind == ast::LiteralKind::string ? variant->find(literal.text) : std::nullopt;
      // Another spelling of a case is the same case; in one arm both may stand.
      if (!seen.insert(literal_text(literal)).second) {
        fail(diag::code::match_bad_arm, literal.span, literal_text(literal) + " has an arm already");
        good = false;
      }
      if (index) cases.insert(*index);
    }
  }
  if (!good || wildcard || variant == nullptr) return good;

  std::vector<std::string> missing;
  for (std::size_t i = 0; i < variant->cases.size(); ++i) {
    if (!cases.contains(i)) missing.push_back(modelc::quote(variant->cases[i].decl->tags.front().value));
  }
  const bool optional = subject.is_none() || subject.as_variant().optional;
  if (optional && !none) missing.insert(missing.begin(), "none");
  if (missing.empty()) return true;
  fail(diag::code::match_not_exhaustive, expr.subject->span, "this match on " + variant->symbol->name + " misses " + listed(missing, 12))
      .label(variant->symbol->span, "declared here")
      .help("add an arm for each, or a last arm `_ => …`");
  return false;
}

Value Expressions::eval_match(const ast::MatchExpr& expr, const Environment& env) {
  const Value subject = eval(*expr.subject, env);
  if (subject.is_error()) return subject;
  if (subject.is(ValueKind::absent) && unusable(subject, expr.subject->span)) return Value::error();
  if (!subject.is_none() && !subject.is(ValueKind::variant) && !subject.is(ValueKind::string) && !subject.is_number() &&
      !subject.is(ValueKind::boolean)) {
    fail(diag::code::bad_condition, expr.subject->span, "`match` chooses by a value that is known early, not by " + kind_name(subject));
    return Value::error();
  }
  if (st_.checked_matches.insert(&expr).second && !check_arms(expr, subject)) return Value::error();

  const ast::Arm* taken = nullptr;
  bool failed = false;
  for (const ast::Arm& arm : expr.arms) {
    bool hit = arm.wildcard;
    for (const ast::Literal& literal : arm.literals) hit = matches(subject, literal, failed) || hit;
    if (hit && taken == nullptr) taken = &arm;
  }
  if (failed) return Value::error();
  Value result;
  for (const ast::Arm& arm : expr.arms) {
    if (&arm != taken) {
      ev_.touch(arm, subject, env);
      continue;
    }
    Environment inner = env;
    if (arm.binding) {
      check_new_name(*arm.binding, env);
      inner.define(arm.binding->text, subject, arm.binding->span);
    }
    result = eval(*arm.value, inner);
  }
  if (taken == nullptr) {
    fail(diag::code::match_not_exhaustive, expr.subject->span, "this match has no arm for " + show(subject), {&subject})
        .help("add an arm for it, or a last arm `_ => …`");
    return Value::error();
  }
  return result;
}

// ---- comprehensions -------------------------------------------------------------------------------------------------

Value Expressions::eval_comprehension(const ast::ComprehensionExpr& expr, const Environment& env) {
  check_new_name(expr.variable, env);
  std::vector<Value> source;
  std::int64_t low = 0, high = 0;
  if (expr.range) {
    for (const auto& [end, side] : {std::pair(&low, expr.range->low.get()), std::pair(&high, expr.range->high.get())}) {
      if (side == nullptr) {
        fail(diag::code::wrong_operand, expr.range->span, "a list over a range needs its end: `0..n`");
        return Value::error();
      }
      const Value v = eval(*side, env);
      if (unusable(v, side->span)) return Value::error();
      if (v.is(ValueKind::dim)) {
        fail(diag::code::run_time_size, side->span, "a list has a length that is known early, not a size of run time");
        return Value::error();
      }
      if (!v.is(ValueKind::integer)) {
        fail(diag::code::wrong_operand, side->span, "a range goes over whole numbers, not " + kind_name(v), {&v});
        return Value::error();
      }
      *end = v.as_int();
      // `3..1` is empty; to below 0 nothing counts, and a subtraction went wrong.
      if (side == expr.range->high.get() && high < low && high < 0) {
        fail(diag::code::wrong_operand, expr.range->span,
             "the range `" + std::string(ev_.sources().text(expr.range->span)) + "` = " + std::to_string(low) + ".." +
                 std::to_string(high) + " ends before it begins, below 0",
             {&v});
        return Value::error();
      }
      const std::uint64_t length = high > low ? static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) : 0;
      if (side == expr.range->high.get() && length > ev_.limits_.list_elements) {
        fail(
            diag::code::too_much_work, expr.range->span,
            "a list of " + grouped(length) + " elements is more than the " + grouped(std::uint64_t{ev_.limits_.list_elements}) + " allowed",
            {&v});
        return Value::error();
      }
    }
  } else {
    const Value list = eval(*expr.source, env);
    if (unusable(list, expr.source->span)) return Value::error();
    if (list.is(ValueKind::list)) {
      source = list.items();
    } else {
      std::optional<std::vector<Value>> elements;
      if (list.is(ValueKind::member) && st_.tensors != nullptr) elements = st_.tensors->elements(list);
      if (!elements) {
        fail(diag::code::wrong_operand, expr.source->span, "`for … in` goes over a list or a range, not " + kind_name(list), {&list})
            .help(list.is(ValueKind::integer) ? "a range up to it is written `0.." + text(expr.source->span) + "`" : "");
        return Value::error();
      }
      source = std::move(*elements);
    }
    high = static_cast<std::int64_t>(source.size());
  }

  std::vector<Value> items;
  for (std::int64_t i = low; i < high; ++i) {
    Environment inner = env;
    const Value element = expr.range ? Value::integer(i) : source[static_cast<std::size_t>(i)];
    inner.define(expr.variable.text, element, expr.variable.span);
    if (expr.condition) {
      const auto wanted = condition(*expr.condition, inner);
      if (!wanted) return Value::error();
      if (!*wanted) {
        ev_.touch(*expr.element, inner);
        continue;
      }
    }
    items.push_back(eval(*expr.element, inner));
    // One message for the first element that fails, not one for each.
    if (items.back().is_error()) return Value::error();
  }
  // A list without elements reads what its elements would have read.
  if (low >= high) {
    Environment inner = env;
    inner.define(expr.variable.text, Value::error(), expr.variable.span);
    ev_.touch(*expr.element, inner);
    if (expr.condition) ev_.touch(*expr.condition, inner);
  }
  return Value::list(std::move(items));
}

// ---- indices --------------------------------------------------------------------------------------------------------

Value Expressions::eval_index(const ast::IndexExpr& expr, const Environment& env) {
  const Value object = eval(*expr.object, env);
  std::vector<SliceValue> slices;
  bool failed = unusable(object, expr.object->span);
  for (const ast::Slice& slice : expr.slices) {
    SliceValue value{slice.kind, Value::none(), Value::none(), Value::none(), slice.span};
    for (const auto& [part, target] :
         {std::pair(slice.low.get(), &value.low), std::pair(slice.high.get(), &value.high), std::pair(slice.step.get(), &value.step)}) {
      if (part == nullptr) continue;
      *target = eval(*part, env);
      if (unusable(*target, part->span)) {
        failed = true;
        continue;
      }
      const bool key = object.is(ValueKind::map) && target->is(ValueKind::string);
      if (target->is(ValueKind::integer) || target->is(ValueKind::dim) || key) continue;
      failed = true;
      auto message = fail(diag::code::wrong_operand, part->span, "an index is a whole number, not " + kind_name(*target), {target});
      if (object.is(ValueKind::tensor) && target->is(ValueKind::tensor)) {
        const bool flags = target->as_graph().type.dtype == DType::boolean;
        message.help(flags ? "to choose element by element, write `where(condition, a, b)`"
                           : "rows by a tensor of indices are `take(" + text(expr.object->span) + ", " + text(part->span) + ")`");
      }
    }
    slices.push_back(std::move(value));
  }
  if (failed) return Value::error();
  if (object.is(ValueKind::tensor)) {
    if (!have_tensors(expr.span, "`[…]`")) return Value::error();
    return st_.tensors->slice(object, slices, expr.span);
  }
  return index_static(object, expr, slices);
}

Value Expressions::index_static(const Value& object, const ast::IndexExpr& expr, std::span<const SliceValue> slices) {
  if (slices.size() != 1 || slices[0].kind == ast::SliceKind::ellipsis || slices[0].kind == ast::SliceKind::whole) {
    fail(diag::code::bad_index, expr.span, kind_name(object) + " takes one index or range, as in `[0]` or `[0..2]`");
    return Value::error();
  }
  const SliceValue& slice = slices[0];
  if (object.is(ValueKind::map) && slice.kind == ast::SliceKind::index) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.entries()) {
      if (slice.low.is(ValueKind::string) && key == slice.low.as_string()) return value;
      keys.push_back(key);
    }
    fail(diag::code::bad_index, slice.span, "the map has no key " + show(slice.low))
        .help(slice.low.is(ValueKind::string) ? diag::did_you_mean(slice.low.as_string(), keys) : "its keys are strings");
    return Value::error();
  }
  std::optional<std::vector<Value>> items;
  if (object.is(ValueKind::list)) items = object.items();
  if (object.is(ValueKind::member) && st_.tensors != nullptr) items = st_.tensors->elements(object);
  if (!items) {
    fail(diag::code::bad_index, expr.object->span, kind_name(object) + " has no elements to index");
    return Value::error();
  }
  const auto bound = [&](const Value& v, std::int64_t missing) -> std::optional<std::int64_t> {
    if (v.is_none()) return missing;
    if (v.is(ValueKind::integer)) return v.as_int();
    fail(diag::code::run_time_size, slice.span, "a list is indexed by a number that is known early, not by a size of run time");
    return std::nullopt;
  };
  const auto count = static_cast<std::int64_t>(items->size());
  const auto low = bound(slice.low, 0);
  const auto high = bound(slice.high, count);
  const auto step = bound(slice.step, 1);
  if (!low || !high || !step) return Value::error();
  if (slice.kind == ast::SliceKind::index) {
    if (*low >= 0 && *low < count) return (*items)[static_cast<std::size_t>(*low)];
    fail(diag::code::bad_index, slice.span, "index " + show(slice.low) + " is outside of a list of " + counted(items->size(), "element"),
         {&slice.low});
    return Value::error();
  }
  if (*low < 0 || *low > *high || *high > count || *step < 1) {
    fail(diag::code::bad_index, slice.span,
         std::to_string(*low) + ".." + std::to_string(*high) + (*step == 1 ? "" : " by " + std::to_string(*step)) +
             " is no part of a list of " + counted(items->size(), "element"),
         {&slice.low, &slice.high});
    return Value::error();
  }
  std::vector<Value> part;
  for (std::int64_t i = *low; i < *high; i += std::min(*step, *high - i)) { part.push_back((*items)[static_cast<std::size_t>(i)]); }
  return Value::list(std::move(part));
}

// ---- casts ----------------------------------------------------------------------------------------------------------

Value Expressions::eval_cast(const ast::CastExpr& expr, const Environment& env) {
  const Value value = eval(*expr.operand, env);
  CastTarget target;
  target.span = expr.type.span;
  target.is_index = expr.type.is_index;
  bool failed = unusable(value, expr.operand->span);
  if (expr.type.bound) {
    target.bound = size(*expr.type.bound, env, "the bound of an index");
    failed = failed || target.bound->is_error();
  }
  if (expr.type.dtype) {
    target.dtype = dtype_from_name(expr.type.dtype->text);
    if (!target.dtype) {
      failed = true;
      std::vector<std::string> names;
      for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) names.emplace_back(modelc::name(static_cast<DType>(i)));
      const std::string_view habit = element_of_habit(expr.type.dtype->text);
      const std::string near = habit.empty() ? diag::did_you_mean(expr.type.dtype->text, names) : "write `as " + std::string(habit) + "`";
      fail(diag::code::unknown_type, expr.type.dtype->span, "`" + expr.type.dtype->text + "` is no element type")
          .help(near.empty() ? "the element types are " + listed(names, 20) : near);
    }
  }
  if (expr.type.shape) {
    target.shape = shape(*expr.type.shape, env);
    for (const ShapeAxis& axis : *target.shape) failed = failed || axis.size.is_error();
  }
  if (failed) return Value::error();
  if (value.is(ValueKind::dim)) {
    fail(diag::code::run_time_size, expr.operand->span,
         "`" + text(expr.operand->span) + "` is a size of run time: it stands in shapes and slices only");
    return Value::error();
  }
  const bool list = value.is(ValueKind::list) || value.is(ValueKind::boolean) || value.is_number();
  if (!value.is(ValueKind::tensor) && !list) {
    fail(diag::code::wrong_operand, expr.operand->span, "`as` takes a tensor or numbers, not " + kind_name(value));
    return Value::error();
  }
  if (!have_tensors(expr.span, "`as`")) return Value::error();
  return st_.tensors->cast(value, target, expr.span);
}

}  // namespace modelc::sema
