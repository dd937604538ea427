#include "runtime/checkpoint/transform.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/base/strings.h"
#include "runtime/encoding/convert.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

Error wrong(const Transform& t, const std::string& why) { return Error{"transform", text(t) + ": " + why, {}, {}}; }

// A negative axis counts from the end; nothing when there is no such axis.
std::optional<std::size_t> axis_of(std::int64_t axis, const TensorShape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

Error no_axis(const Transform& t, const TensorShape& shape) {
  return wrong(t, "a tensor of shape " + shape_text(shape) + " has no such axis");
}

// ---- shapes, from the model's to the file's -------------------------------------------------------------------------
Result<std::vector<TensorShape>> before(const Transform& t, const std::vector<TensorShape>& after) {
  std::vector<TensorShape> in;
  switch (t.kind) {
    case TransformKind::transpose:
      for (TensorShape s : after) {
        const auto a = axis_of(t.a, s), b = axis_of(t.b, s);
        if (!a || !b) return no_axis(t, s);
        std::swap(s[*a], s[*b]);
        in.push_back(std::move(s));
      }
      return in;
    case TransformKind::reshape: {
      const auto count = element_count(t.sizes);
      for (const TensorShape& s : after)
        if (!count || element_count(s) != count) return wrong(t, shape_text(t.sizes) + " has not as many elements as " + shape_text(s));
      in.assign(after.size(), t.sizes);
      return in;
    }
    case TransformKind::stack: {
      if (after.size() != 1) return wrong(t, "one weight is stacked of several tensors, not " + std::to_string(after.size()));
      if (after[0].empty() || after[0][0] < 1) return no_axis(t, after[0]);
      constexpr std::int64_t most = 1 << 20;
      if (after[0][0] > most) return wrong(t, "more than " + grouped(most) + " tensors");
      in.assign(static_cast<std::size_t>(after[0][0]), TensorShape(after[0].begin() + 1, after[0].end()));
      return in;
    }
    case TransformKind::split: {
      if (after.size() < 2) return wrong(t, "it makes several weights of one tensor: [a, b]");
      TensorShape whole = after[0];
      const auto axis = axis_of(t.a, whole);
      if (!axis) return no_axis(t, whole);
      for (std::size_t i = 1; i < after.size(); ++i) {
        TensorShape same = after[i];
        if (same.size() != whole.size())
          return wrong(t, shape_text(after[0]) + " and " + shape_text(same) + " cannot be parts of one tensor");
        if (same[*axis] > std::numeric_limits<std::int64_t>::max() - whole[*axis]) return wrong(t, "the sizes are too large");
        const std::int64_t sum = whole[*axis] + same[*axis];
        same[*axis] = whole[*axis];
        if (same != whole) return wrong(t, shape_text(after[0]) + " and " + shape_text(after[i]) + " cannot be parts of one tensor");
        whole[*axis] = sum;
      }
      in.push_back(std::move(whole));
      return in;
    }
    case TransformKind::concat: {
      if (after.size() != 1) return wrong(t, "it makes one weight of several tensors");
      const auto axis = axis_of(t.a, after[0]);
      if (!axis) return no_axis(t, after[0]);
      std::int64_t sum = 0;
      for (std::int64_t n : t.sizes) {
        if (n < 0 || sum > after[0][*axis] - n)
          return wrong(t, "the sizes add up to more than " + std::to_string(after[0][*axis]) + " of " + shape_text(after[0]));
        sum += n;
        in.push_back(after[0]);
        in.back()[*axis] = n;
      }
      if (sum != after[0][*axis])
        return wrong(t, "the sizes add up to " + std::to_string(sum) + ", not to " + std::to_string(after[0][*axis]) + " of " +
                            shape_text(after[0]));
      return in;
    }
    case TransformKind::unzip: {
      if (after.size() < 2) return wrong(t, "it makes several weights of one tensor: [a, b]");
      TensorShape whole = after[0];
      const auto axis = axis_of(t.a, whole);
      if (!axis) return no_axis(t, whole);
      for (const TensorShape& s : after)
        if (s != whole) return wrong(t, shape_text(whole) + " and " + shape_text(s) + " differ");
      const auto count = static_cast<std::int64_t>(after.size());
      if (whole[*axis] > std::numeric_limits<std::int64_t>::max() / count) return wrong(t, "the sizes are too large");
      whole[*axis] *= count;
      in.push_back(std::move(whole));
      return in;
    }
    case TransformKind::deinterleave_rope_rows:
      for (const TensorShape& s : after) {
        if (s.empty() || s[0] % t.a != 0) return wrong(t, shape_text(s) + " is not whole heads: " + std::to_string(t.a) + " of them");
        const std::int64_t head = s[0] / t.a, rows = t.b > 0 ? t.b : head;
        if (rows % 2 != 0 || rows > head)
          return wrong(t, "a head of " + shape_text(s) + " has " + std::to_string(head) + " rows, and " + std::to_string(rows) +
                              " of them are no pairs of it");
      }
      return after;
    case TransformKind::offset:
    case TransformKind::log_negated:
    case TransformKind::cast: return after;
  }
  return after;
}

// ---- moves ----------------------------------------------------------------------------------------------------------
// An array as units that move as wholes: elements, or blocks along the last axis.
struct Units {
  TensorShape shape;
  std::size_t bytes = 1;
};
std::optional<Units> units_of(const HostArray& x) {
  Units u{x.shape, static_cast<std::size_t>(block_bytes(x.encoding))};
  const std::int64_t per = block_elements(x.encoding);
  if (per == 1) return u;
  if (x.shape.empty() || x.shape.back() % per != 0) return std::nullopt;
  u.shape.back() /= per;
  return u;
}
std::size_t product(std::span<const std::int64_t> s) {
  std::size_t n = 1;
  for (std::int64_t d : s) n *= static_cast<std::size_t>(d);
  return n;
}

Error blocks(const Transform& t, const HostArray& x) {
  return wrong(t, "a tensor stored as " + std::string(name(x.encoding)) + " moves in whole blocks of " +
                      std::to_string(block_elements(x.encoding)) + " along its last axis: " + shape_text(x.shape));
}

Result<HostArray> transpose(const Transform& t, const HostArray& x, const TensorShape& to) {
  const auto u = units_of(x);
  const std::size_t a = *axis_of(t.a, x.shape), b = *axis_of(t.b, x.shape);
  const bool packed = block_elements(x.encoding) > 1;
  if (!u || (packed && a != b && (a + 1 == x.shape.size() || b + 1 == x.shape.size()))) return blocks(t, x);
  HostArray y{x.encoding, to, std::vector<std::byte>(x.bytes.size())};
  const std::size_t rank = u->shape.size();
  std::vector<std::size_t> step(rank, u->bytes);           // of x, in bytes
  for (std::size_t i = rank; i-- > 1;) step[i - 1] = step[i] * static_cast<std::size_t>(u->shape[i]);
  TensorShape shape = u->shape;
  std::swap(shape[a], shape[b]);
  std::swap(step[a], step[b]);
  std::vector<std::int64_t> index(rank, 0);
  std::size_t from = 0;
  for (std::size_t at = 0; at < y.bytes.size(); at += u->bytes) {
    std::memcpy(y.bytes.data() + at, x.bytes.data() + from, u->bytes);
    for (std::size_t i = rank; i-- > 0;) {
      from += step[i];
      if (++index[i] < shape[i]) break;
      from -= step[i] * static_cast<std::size_t>(shape[i]);
      index[i] = 0;
    }
  }
  return y;
}

// Copies, for each of `outer`, `n` bytes; the strides are those of the two sides.
void copy_rows(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step, std::size_t outer, std::size_t n) {
  if (n == 0) return;
  for (std::size_t o = 0; o < outer; ++o) std::memcpy(to + o * to_step, from + o * from_step, n);
}

// One tensor and its pieces along an axis, in either direction.
Status pieces(const Transform& t, bool cut, HostArray& whole, std::vector<HostArray>& parts, std::size_t axis) {
  const auto u = units_of(whole);
  if (!u) return blocks(t, whole);
  const std::size_t outer = product(std::span(u->shape).first(axis));
  const std::size_t inner = product(std::span(u->shape).subspan(axis + 1)) * u->bytes;
  const std::size_t row = static_cast<std::size_t>(u->shape[axis]) * inner;
  std::size_t at = 0;
  for (HostArray& p : parts) {
    const auto v = units_of(p);
    if (!v) return blocks(t, p);
    const std::size_t n = static_cast<std::size_t>(v->shape[axis]) * inner;
    if (cut) copy_rows(p.bytes.data(), n, whole.bytes.data() + at, row, outer, n);
    else copy_rows(whole.bytes.data() + at, row, p.bytes.data(), n, outer, n);
    at += n;
  }
  return {};
}

// One tensor whose elements along an axis go round several.
Status zipped(const Transform& t, bool cut, HostArray& whole, std::vector<HostArray>& parts, std::size_t axis) {
  const auto u = units_of(whole);
  if (!u || (block_elements(whole.encoding) > 1 && axis + 1 == whole.shape.size())) return blocks(t, whole);
  const std::size_t inner = product(std::span(u->shape).subspan(axis + 1)) * u->bytes;
  const std::size_t rows = product(std::span(u->shape).first(axis)) * static_cast<std::size_t>(parts[0].shape[axis]);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::byte* p = parts[k].bytes.data();
    std::byte* w = whole.bytes.data() + k * inner;
    if (cut) copy_rows(p, inner, w, inner * parts.size(), rows, inner);
    else copy_rows(w, inner * parts.size(), p, inner, rows, inner);
  }
  return {};
}

Result<HostArray> rope_rows(const Transform& t, const HostArray& x, bool to_model) {
  const auto u = units_of(x);
  if (!u || (block_elements(x.encoding) > 1 && x.shape.size() < 2)) return blocks(t, x);
  HostArray y = x;
  const std::size_t inner = product(std::span(u->shape).subspan(1)) * u->bytes;
  const auto head = static_cast<std::size_t>(u->shape[0] / t.a);
  const std::size_t half = (t.b > 0 ? static_cast<std::size_t>(t.b) : head) / 2;
  for (std::size_t h = 0; h < static_cast<std::size_t>(t.a); ++h)
    for (std::size_t i = 0; i < half; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        const std::size_t model = (h * head + j * half + i) * inner, file = (h * head + 2 * i + j) * inner;
        if (inner > 0) std::memcpy(y.bytes.data() + (to_model ? model : file), x.bytes.data() + (to_model ? file : model), inner);
      }
  return y;
}

// Each element through f, in f32 (f64 stays what it is).
template <class F> Result<HostArray> each(const Transform& t, const HostArray& x, F&& f) {
  auto y = cast(x, x.encoding == Encoding::f64 ? DType::f64 : DType::f32);
  if (!y) return wrong(t, y.error().message);
  if (y->encoding == Encoding::f64) {
    for (std::size_t i = 0; i + 8 <= y->bytes.size(); i += 8) {
      const double v = f(std::bit_cast<double>(load_u64(y->bytes.data() + i)));
      std::memcpy(y->bytes.data() + i, &v, 8);
    }
  } else {
    for (std::size_t i = 0; i + 4 <= y->bytes.size(); i += 4) {
      const float v = f(std::bit_cast<float>(load_u32(y->bytes.data() + i)));
      std::memcpy(y->bytes.data() + i, &v, 4);
    }
  }
  return y;
}

Result<HostArray> offset(const Transform& t, const HostArray& x, double value) {
  return each(t, x, [&]<class T>(T v) { return v + static_cast<T>(value); });
}

Result<HostArray> log_negated(const Transform& t, const HostArray& x, bool to_model) {
  bool below = true;
  auto y = each(t, x, [&]<class T>(T v) {
    if (!to_model) return static_cast<T>(-std::exp(static_cast<double>(v)));
    below = below && v < 0;
    return static_cast<T>(std::log(-static_cast<double>(v)));
  });
  if (y && !below) return wrong(t, "an element is not below 0");
  return y;
}

HostArray blank(Encoding e, const TensorShape& shape, std::size_t bytes) { return {e, shape, std::vector<std::byte>(bytes)}; }
std::size_t size_of(Encoding e, const TensorShape& shape) {
  const auto n = stored_bytes(e, shape);
  return n ? static_cast<std::size_t>(*n) : 0;
}
Status same_encoding(const Transform& t, const std::vector<HostArray>& arrays) {
  for (const HostArray& x : arrays)
    if (x.encoding != arrays[0].encoding)
      return wrong(
          t, "tensors stored as " + std::string(name(arrays[0].encoding)) + " and " + std::string(name(x.encoding)) + " cannot become one");
  return {};
}

// One step on arrays of the shapes on its near side, to those on its far side.
Result<std::vector<HostArray>> apply(const Transform& t, bool forward, std::vector<HostArray> in, const std::vector<TensorShape>& to) {
  std::vector<HostArray> out;
  switch (t.kind) {
    case TransformKind::transpose:
      for (std::size_t i = 0; i < in.size(); ++i) {
        auto y = transpose(t, in[i], to[i]);
        if (!y) return std::move(y.error());
        out.push_back(std::move(*y));
      }
      return out;
    case TransformKind::reshape:
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i].shape = to[i];
        if (!units_of(in[i])) return blocks(t, in[i]);
      }
      return in;
    case TransformKind::stack:
    case TransformKind::split:
    case TransformKind::concat:
    case TransformKind::unzip: {
      // Which side is the one tensor.
      const bool joins = (t.kind == TransformKind::stack || t.kind == TransformKind::concat) == forward;
      if (Status s = same_encoding(t, in); !s) return std::move(s.error());
      for (const TensorShape& shape : to) {
        HostArray y = blank(in[0].encoding, shape, size_of(in[0].encoding, shape));
        if (!stored_bytes(y.encoding, shape)) return blocks(t, y);
        out.push_back(std::move(y));
      }
      std::vector<HostArray>& parts = joins ? in : out;
      HostArray& whole = joins ? out[0] : in[0];
      if (t.kind == TransformKind::stack) {
        std::size_t at = 0;
        for (HostArray& p : parts) {
          if (p.bytes.empty()) continue;
          if (joins) std::memcpy(whole.bytes.data() + at, p.bytes.data(), p.bytes.size());
          else std::memcpy(p.bytes.data(), whole.bytes.data() + at, p.bytes.size());
          at += p.bytes.size();
        }
        return out;
      }
      const std::size_t axis = *axis_of(t.a, whole.shape);
      Status s = t.kind == TransformKind::unzip ? zipped(t, !joins, whole, parts, axis) : pieces(t, !joins, whole, parts, axis);
      if (!s) return std::move(s.error());
      return out;
    }
    case TransformKind::deinterleave_rope_rows:
    case TransformKind::offset:
    case TransformKind::log_negated:
    case TransformKind::cast:
      for (const HostArray& x : in) {
        auto y = t.kind == TransformKind::offset        ? offset(t, x, forward ? t.value : -t.value)
                 : t.kind == TransformKind::log_negated ? log_negated(t, x, forward)
                 : t.kind == TransformKind::cast        ? (forward ? cast(x, t.dtype) : Result<HostArray>(x))
                                                        : rope_rows(t, x, forward);
        if (!y) return std::move(y.error());
        out.push_back(std::move(*y));
      }
      return out;
  }
  return out;
}

Status fits(const std::vector<HostArray>& arrays, const std::vector<TensorShape>& shapes) {
  bool same = arrays.size() == shapes.size();
  for (std::size_t i = 0; same && i < arrays.size(); ++i)
    same = arrays[i].shape == shapes[i] && stored_bytes(arrays[i].encoding, shapes[i]) == static_cast<std::int64_t>(arrays[i].bytes.size());
  if (same) return {};
  return Error{"transform", "the tensors have not the shapes that the transforms were planned for", {}, {}};
}

}  // namespace

Result<TransformPlan> plan_transforms(std::vector<Transform> steps, std::vector<TensorShape> model) {
  TransformPlan plan;
  plan.shapes.resize(steps.size() + 1);
  plan.shapes.back() = std::move(model);
  for (std::size_t k = steps.size(); k-- > 0;) {
    auto in = before(steps[k], plan.shapes[k + 1]);
    if (!in) return std::move(in.error());
    plan.shapes[k] = std::move(*in);
  }
  plan.steps = std::move(steps);
  return plan;
}

Result<std::vector<HostArray>> to_model(const TransformPlan& plan, std::vector<HostArray> arrays) {
  if (Status s = fits(arrays, plan.file()); !s) return std::move(s.error());
  for (std::size_t k = 0; k < plan.steps.size(); ++k) {
    auto next = apply(plan.steps[k], true, std::move(arrays), plan.shapes[k + 1]);
    if (!next) return std::move(next.error());
    arrays = std::move(*next);
  }
  return arrays;
}

Result<std::vector<HostArray>> to_file(const TransformPlan& plan, std::vector<HostArray> arrays) {
  if (Status s = fits(arrays, plan.model()); !s) return std::move(s.error());
  for (std::size_t k = plan.steps.size(); k-- > 0;) {
    auto next = apply(plan.steps[k], false, std::move(arrays), plan.shapes[k]);
    if (!next) return std::move(next.error());
    arrays = std::move(*next);
  }
  return arrays;
}

Encoding encoding_after(const TransformPlan* plan, Encoding e) {
  if (plan == nullptr) return e;
  for (const Transform& t : plan->steps) {
    if (computes(t.kind) && e != Encoding::f64) e = Encoding::f32;
    if (t.kind == TransformKind::cast) e = encoding_of(t.dtype);
  }
  return e;
}

Result<HostArray> cast(const HostArray& x, DType to) {
  if (x.encoding == encoding_of(to)) return x;
  const bool narrow_to = to == DType::f32 || to == DType::f16 || to == DType::bf16;
  std::vector<float> values(static_cast<std::size_t>(element_count(x.shape).value_or(0)));
  if (!narrow_to || stored_bytes(x.encoding, x.shape) != static_cast<std::int64_t>(x.bytes.size()) ||
      !decode(x.encoding, x.bytes.data(), values))
    return Error{"transform", "tensors stored as " + std::string(name(x.encoding)) + " are not cast to " + std::string(name(to)), {}, {}};
  HostArray y{encoding_of(to), x.shape, std::vector<std::byte>(values.size() * static_cast<std::size_t>(bytes(to)))};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (to == DType::f32) {
      std::memcpy(y.bytes.data() + 4 * i, &values[i], 4);
    } else {
      const std::uint16_t v = to == DType::f16 ? f16_from_f32(values[i]) : bf16_from_f32(values[i]);
      std::memcpy(y.bytes.data() + 2 * i, &v, 2);
    }
  }
  return y;
}

}  // namespace modelc
