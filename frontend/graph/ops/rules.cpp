#include "frontend/graph/ops/rules.h"

#include <algorithm>
#include <cassert>

namespace modelc::graph::rules {

namespace {
const Type no_type;
std::string axes(std::size_t n) { return std::to_string(n) + (n == 1 ? " axis" : " axes"); }
}  // namespace

Rule::Rule(const ShapeQuery& query) : q_(query), info_(info(query.op.kind)) {}

bool Rule::has(int operand) const {
  return operand >= 0 && static_cast<std::size_t>(operand) < q_.operands.size() && q_.operands[operand].has_value();
}

const Type& Rule::type(int operand) const { return has(operand) ? *q_.operands[operand] : no_type; }

std::string Rule::operand(int operand) const {
  const int last = static_cast<int>(info_.operands.size()) - 1;
  if (info_.variadic && operand >= last) return std::string(info_.operands[last].name) + "[" + std::to_string(operand - last) + "]";
  return std::string(info_.operands[operand].name);
}

std::string Rule::axis_name(int operand, int axis) const {
  const int n = static_cast<int>(rank(operand));
  const int from_start = axis < 0 ? axis + n : axis;
  if (n == 1) return "the axis";
  if (from_start == n - 1) return "the last axis";
  if (from_start == 0) return "the first axis";
  return "axis " + std::to_string(from_start);
}

std::string Rule::text(int operand) const { return graph::text(type(operand), q_.dims); }

void Rule::require(bool holds, int operand, int axis, std::string message) {
  if (holds || failed_) return;
  failed_ = true;
  error_ = ShapeError{operand, axis, std::string(info_.name) + ": " + std::move(message), {}, {}};
}

void Rule::need(int i) {
  if (!failed_) require(has(i), i, -1, operand(i) + " is missing");
}
void Rule::none(int i, std::string_view why) {
  if (!failed_ && has(i)) require(false, i, -1, operand(i) + " is given, but " + std::string(why));
}
void Rule::tensor(int i) {
  need(i);
  if (!failed_) require(type(i).kind == TypeKind::tensor, i, -1, operand(i) + " is a " + text(i) + ", not a tensor");
}
void Rule::batch(int i) {
  need(i);
  if (!failed_) require(type(i).kind == TypeKind::batch, i, -1, operand(i) + " is " + text(i) + ", not a Batch");
}
void Rule::sequences(int i) {
  need(i);
  if (!failed_) require(type(i).kind == TypeKind::sequences, i, -1, operand(i) + " is " + text(i) + ", not a Sequences");
}
void Rule::floats(int i) {
  tensor(i);
  if (!failed_) require(is_float(type(i).dtype), i, -1, operand(i) + " is " + text(i) + ", not of floats; write `as f32`");
}
void Rule::number(int i) {
  tensor(i);
  if (!failed_) require(type(i).dtype != DType::boolean, i, -1, operand(i) + " is " + text(i) + ", not of numbers; write `as f32`");
}
void Rule::booleans(int i) {
  tensor(i);
  if (!failed_) require(type(i).dtype == DType::boolean, i, -1, operand(i) + " is " + text(i) + ", not of bools");
}

void Rule::index(int i, DimId below) {
  tensor(i);
  if (failed_) return;
  const Type& t = type(i);
  require(is_integer(t.dtype), i, -1, operand(i) + " is " + text(i) + ", not an index");
  require(t.index_bound.has_value(), i, -1,
          operand(i) + " has no bound: declare it as index(" + dims().text(below) + ")" + graph::shape_text(t.shape, dims()));
  if (failed_) return;
  const auto bound = dims().value(*t.index_bound), limit = dims().value(below);
  const bool fits = DimTable::same(*t.index_bound, below) || (bound && limit && *bound <= *limit);
  require(fits, i, -1, operand(i) + " is " + text(i) + ", and there are only " + dims().text(below) + " rows");
}

void Rule::rank_is(int i, std::size_t n) {
  tensor(i);
  if (!failed_) require(rank(i) == n, i, -1, operand(i) + " has " + axes(rank(i)) + ", not " + std::to_string(n) + ": " + text(i));
}
void Rule::rank_at_least(int i, std::size_t n) {
  tensor(i);
  if (!failed_)
    require(rank(i) >= n, i, -1, operand(i) + " has " + axes(rank(i)) + ", wanted at least " + std::to_string(n) + ": " + text(i));
}

DimId Rule::dim(int i, int axis) {
  tensor(i);
  const int n = static_cast<int>(rank(i));
  const int from_start = axis < 0 ? axis + n : axis;
  if (!failed_) rank_at_least(i, static_cast<std::size_t>(axis < 0 ? -axis : axis + 1));
  return failed_ ? DimTable::too_large : type(i).shape[from_start];
}

void Rule::same(int a, int axis_a, int b, int axis_b) {
  const DimId da = dim(a, axis_a), db = dim(b, axis_b);
  if (failed_ || DimTable::same(da, db)) return;
  const std::string name_a = axis_name(a, axis_a), name_b = axis_name(b, axis_b);
  const int at = axis_a < 0 ? axis_a + static_cast<int>(rank(a)) : axis_a;
  require(false, a, at,
          name_a + " of " + operand(a) + " is " + dims().text(da) + ", " + (name_a == name_b ? "" : name_b + " ") + "of " + operand(b) +
              " " + dims().text(db));
}

void Rule::is(int i, int axis, DimId wanted, std::string_view what) {
  const DimId d = dim(i, axis);
  if (failed_ || DimTable::same(d, wanted)) return;
  const int at = axis < 0 ? axis + static_cast<int>(rank(i)) : axis;
  require(false, i, at,
          axis_name(i, axis) + " of " + operand(i) + " is " + dims().text(d) + ", " + std::string(what) + " " + dims().text(wanted));
}

void Rule::tokens(int i) {
  const std::optional<AxisId> axis = dims().find_axis("tokens");
  require(axis.has_value(), -1, -1, "the axis tokens is not declared");
  if (!failed_) is(i, 0, dims().of_axis(*axis), "wanted");
}

void Rule::multiple(int i, int axis, DimId of, std::string_view whose) {
  const DimId d = dim(i, axis);
  if (failed_) return;
  const auto n = dims().value(d), by = dims().value(of);
  require(n && by && *by >= 1 && *n % *by == 0, i, axis < 0 ? axis + static_cast<int>(rank(i)) : axis,
          operand(i) + " has " + dims().text(d) + " heads, not a multiple of the " + dims().text(of) + " of " + std::string(whose));
}

const StateDecl* Rule::state(StateKind kind) {
  const StateDecl* s = q_.state;
  require(s != nullptr, -1, -1, "no state, a " + std::string(language_name(kind)) + ", is named");
  if (s != nullptr)
    require(s->kind == kind, -1, -1,
            "the state " + s->name + " is a " + std::string(language_name(s->kind)) + ", not a " + std::string(language_name(kind)));
  return failed_ ? nullptr : s;
}

void Rule::one_of(std::string_view attr, std::initializer_list<std::string_view> values) {
  if (failed_ || !q_.op.attrs.contains(std::string(attr))) return;
  const std::string v = string_attr(q_.op, attr, "");
  std::string all;
  for (std::string_view s : values) {
    if (v == s) return;
    all += (all.empty() ? "\"" : " or \"") + std::string(s) + "\"";
  }
  require(false, -1, -1, std::string(attr) + " is \"" + v + "\", wanted " + all);
  error_.attr = attr;
  error_.values.assign(values.begin(), values.end());
}

std::size_t Rule::axis(int i, std::int64_t absent) {
  tensor(i);
  const auto n = static_cast<std::int64_t>(rank(i));
  const std::int64_t given = integer_attr(q_.op, "axis", absent);
  require(
      given >= -n && given < n, i, -1,
      "axis " + std::to_string(given) + " does not exist, " + (failed_ ? "" : operand(i)) + " has " + axes(static_cast<std::size_t>(n)));
  return failed_ ? 0 : static_cast<std::size_t>(given < 0 ? given + n : given);
}

std::vector<DimId> Rule::broadcast(std::initializer_list<int> operands) {
  std::size_t most = 0;
  for (int i : operands) {
    tensor(i);
    most = std::max(most, rank(i));
  }
  std::vector<DimId> shape(most, dims().constant(1));
  std::vector<int> from(most, -1);                                            // which operand gave the size
  for (int i : operands) {
    if (failed_) break;
    for (std::size_t back = 1; back <= rank(i); ++back) {
      const DimId d = type(i).shape[rank(i) - back];
      const std::size_t at = most - back;
      if (is_one(dims(), d) || (from[at] >= 0 && DimTable::same(shape[at], d))) continue;
      if (from[at] >= 0 || d == DimTable::too_large) {
        const int axis = static_cast<int>(rank(i) - back);
        const int j = std::max(from[at], 0);
        require(false, i, axis,
                axis_name(j, -static_cast<int>(back)) + " of " + operand(j) + " is " + dims().text(shape[at]) + ", of " + operand(i) + " " +
                    dims().text(d) + "; sizes must be equal, or literally 1");
        break;
      }
      shape[at] = d;
      from[at] = i;
    }
  }
  return shape;
}

ShapeResult Rule::result(std::vector<Type> types) const {
  if (failed_) return error_;
  return types;
}

}  // namespace modelc::graph::rules
