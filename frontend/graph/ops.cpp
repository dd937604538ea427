#include "frontend/graph/ops.h"

#include <cassert>
#include <cmath>

#include "frontend/graph/ops/rules.h"
#include "frontend/graph/types.h"

namespace modelc::graph {

namespace {

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// The parts of "a, b, c", in order.
template <class F> void each_part(std::string_view list, F f) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    f(trim(list.substr(0, comma)));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

AttrType attr_type(std::string_view s) {
  constexpr std::string_view names[] = {"integer", "real", "boolean", "string", "integers", "reals", "dim"};
  for (int i = 0; i < 7; ++i)
    if (names[i] == s) return static_cast<AttrType>(i);
  assert(false && "the table names an attribute type that does not exist");
  return AttrType::integer;
}

// A row. `operands` is "x, w, b?"; the last may be "xs...", any number. `attrs` is "eps: real, offset: real?".
OpInfo row(OpKind kind, std::string_view name, std::string_view operands, std::string_view attrs, std::string_view shapes,
           std::string_view doc, ShapeRule shape) {
  OpInfo r;
  r.kind = kind;
  r.name = name;
  r.doc = doc;
  r.shapes = shapes;
  r.shape = shape;
  each_part(operands, [&r](std::string_view o) {
    if (o.ends_with("...")) {
      r.variadic = true;
      r.operands.push_back({o.substr(0, o.size() - 3), false});
    } else {
      const bool optional = o.ends_with('?');
      r.operands.push_back({o.substr(0, o.size() - (optional ? 1 : 0)), optional});
    }
  });
  each_part(attrs, [&r](std::string_view a) {
    const bool optional = a.ends_with('?');
    if (optional) a.remove_suffix(1);
    const std::size_t colon = a.find(':');
    r.attrs.push_back({trim(a.substr(0, colon)), attr_type(trim(a.substr(colon + 1))), optional});
  });
  return r;
}
// Elementwise on one, two or three operands.
OpInfo map(OpKind kind, std::string_view name, std::string_view operands, std::string_view doc, ShapeRule shape) {
  const bool unary = operands.find(',') == std::string_view::npos;
  OpInfo r = row(kind, name, operands, "", unary ? "[...] -> [...]" : "[...], broadcast -> [...]", doc, shape);
  r.elementwise = true;
  return r;
}
OpInfo with_state(OpInfo r, std::string_view name = {}) {
  r.has_state = true;
  r.state_name = name;
  return r;
}

std::vector<OpInfo> make_table() {
  using K = OpKind;
  using namespace rules;
  constexpr ShapeRule not_yet = nullptr;
  return {
      // ---- products ----
      row(K::linear, "linear", "x, w, b?", "", "[..., k], [n, k], [n]? -> [..., n]", "x wᵀ + b", linear),
      row(K::matmul, "matmul", "a, b", "", "[..., m, k], [..., k, n] -> [..., m, n]",
          "a b, as NumPy's: no transpose; leading axes broadcast", matmul),

      // ---- rows by index; an index must be declared with a bound that fits: index(n) ----
      row(K::take, "take", "x, rows", "", "[n, ...], index(n)[s...] -> [s..., ...]", "y[s] = x[rows[s]]", rules::take),
      row(K::put, "put", "x, rows, v", "", "[n, ...], index(n)[s], [s, ...] -> [n, ...]",
          "x, but y[rows[i]] = v[i]; of equal rows the last one stands", rules::put),

      // ---- attention. `attend` has two forms: with Op::member, a kv_cache or a cross_cache, it reads that and takes q,
      // at, sinks; without, it takes k and v. `append` has no result. ----
      with_state(row(K::attend, "attend", "q, k?, v?, at?, sinks?, keep?, bias?",
                     "mask: string, scale: real, window: integer?, softcap: real?",
                     "[tokens, H, d], Batch, sinks [H]? -> [tokens, H, dv], or [..., n, H, d], [..., m, Hk, d], "
                     "[..., m, Hk, dv], Batch?, sinks [H]?, keep bool[..., m]?, bias [..., H, n, m]? -> [..., n, H, dv]",
                     "softmax(cap(scale · q kᵀ) + bias) v per head; head h reads kv head h / (H/Hk); mask \"causal\" or "
                     "\"full\" (all of a cross_cache, always); window counts visible positions, own included (causal only); "
                     "cap(s) = softcap · "
                     "tanh(s / softcap); a sink is one more logit with value 0; with `at`, within each sequence; "
                     "a row that sees nothing gives 0",
                     attend)),
      with_state(row(K::append, "append", "k, v, at", "",
                     "[tokens, Hk, d], [tokens, Hk, dv], Batch ->, or [tokens, rank], [tokens, r], Batch ->",
                     "the rows of each sequence are added to its slot of the kv_cache or latent_cache Op::member", append)),
      row(K::rope, "rope", "x, angles", "pairs: string, magnitude: real?", "[tokens, ..., d], [tokens, r/2] -> [tokens, ..., d]",
          "turns the first r channels by angles: (a, b) -> magnitude · (a cos - b sin, b cos + a sin), where pairs is "
          "\"halves\" (i, i + r/2) or \"adjacent\" (2i, 2i + 1); magnitude is 1 unless given",
          rope),

      // ---- norms, over the last axis, in f32 ----
      row(K::rms_norm, "rms_norm", "x, w?", "eps: real, offset: real?, multiply: string?", "[..., n], [n]? -> [..., n]",
          "x / sqrt(mean(x²) + eps) · (w + offset); offset is 0 unless given; multiply \"after_cast\" (the default) "
          "rounds to x's dtype before the weight, \"before_cast\" after it",
          rms_norm),
      row(K::layer_norm, "layer_norm", "x, w?, b?", "eps: real", "[..., n], [n]?, [n]? -> [..., n]",
          "(x - mean) / sqrt(var + eps) · w + b, var without Bessel's correction", layer_norm),
      row(K::l2_normalize, "l2_normalize", "x", "eps: real?", "[..., n] -> [..., n]",
          "x / max(sqrt(sum x²), eps); eps is 1e-12 unless given", l2_normalize),

      // ---- reductions over one axis (the last unless given). `where`: bool, x's axes up to the reduced one. ----
      row(K::softmax, "softmax", "x, where?", "axis: integer?", "[...] -> [...]",
          "exp(x - max) / sum exp(x - max); what `where` leaves out is 0", softmax),
      row(K::sum, "sum", "x, where?", "axis: integer?", "[..., n, ...] -> [..., ...]", "the sum; of nothing 0", rules::reduce),
      row(K::mean, "mean", "x, where?", "axis: integer?", "[..., n, ...] -> [..., ...]", "the mean; of nothing 0", mean),
      row(K::max_reduce, "max_reduce", "x, where?", "axis: integer?", "[..., n, ...] -> [..., ...]",
          "the largest; of nothing -inf (of integers the least one); max(x) in the language", rules::reduce),
      row(K::min_reduce, "min_reduce", "x, where?", "axis: integer?", "[..., n, ...] -> [..., ...]",
          "the smallest; of nothing inf (of integers the largest one); min(x) in the language", rules::reduce),
      row(K::argmax, "argmax", "x, where?", "axis: integer?", "[..., n, ...] -> index(n)[..., ...]",
          "where the largest is; of equals the first; of nothing 0", argmax),
      row(K::cumsum, "cumsum", "x, where?", "axis: integer?", "[...] -> [...]", "y[i] = x[0] + … + x[i]; what `where` leaves out counts 0",
          cumsum),

      // ---- views and copies ----
      row(K::reshape, "reshape", "x", "", "[a...] -> [b...]",
          "the same elements in row order; the result's type says the shape, of equal product", reshape),
      row(K::cast, "cast", "x", "dtype: string", "[...] -> [...]",
          "x as dtype: floats round to nearest even, to integers towards 0 (what does not fit is an error), to bool x "
          "≠ 0; a result of type index(n) is checked",
          cast),
      row(K::slice, "slice", "x", "axis: integer, start: dim?, stop: dim?, step: integer?, drop: boolean?",
          "[..., n, ...] -> [..., m, ...]",
          "one axis: start (0), start + step (1), … below stop (n); bounds count from 0, never from the end; with drop "
          "the axis goes, only `start` is given and may be a run-time dim",
          slice),
      row(K::concat, "concat", "xs...", "axis: integer?", "[..., a, ...], [..., b, ...] -> [..., a + b, ...]",
          "one after another along an axis, the last unless given", concat),
      row(K::stack, "stack", "xs...", "axis: integer?", "[...], [...] -> [..., 2, ...]", "along a new axis, the first unless given", stack),
      row(K::split, "split", "x", "sizes: integers, axis: integer?", "[..., a + b, ...] -> [..., a, ...], [..., b, ...]",
          "consecutive parts of these sizes, which add up, along the last axis unless given", split),
      row(K::transpose, "transpose", "x", "a: integer, b: integer", "[..., m, ..., n, ...] -> [..., n, ..., m, ...]",
          "axes a and b change places", transpose),
      row(K::repeat_axis, "repeat_axis", "x", "times: integer, axis: integer?", "[..., n, ...] -> [..., n · times, ...]",
          "each element `times` times in a row along the last axis unless given; repeat(x, times) in the language", repeat_axis),
      row(K::expand, "expand", "x", "", "[..., 1, ...] -> [..., n, ...]",
          "sizes that are literally 1, and axes missing at the left, become those of the result's type", expand),
      row(K::pad, "pad", "x", "before: integer, after: integer, axis: integer?, value: real?",
          "[..., n, ...] -> [..., before + n + after, ...]", "value (0) around an axis, the last unless given", pad),

      // ---- makers ----
      row(K::arange, "arange", "", "count: dim", "-> f32[n]", "0, 1, …, count - 1", arange),
      row(K::linspace, "linspace", "", "start: real, stop: real, count: integer", "-> f32[n]",
          "count numbers from start to stop, both included; the second half counts down from stop, as PyTorch does", linspace),
      row(K::tensor_literal, "tensor_literal", "", "values: reals, shape: integers?", "-> f32[n...]",
          "these numbers, rounded to f32; of one axis unless a shape is given", tensor_literal),
      row(K::one_hot, "one_hot", "i", "count: integer", "index(n)[...] -> f32[..., n]", "y[…, j] = 1 if i[…] == j else 0", rules::one_hot),
      row(K::outer, "outer", "a, b", "", "[m], [n] -> [m, n]", "a[i] · b[j]", outer),
      map(K::where, "where", "c, a, b", "a where c, else b", rules::where),
      row(K::top_k, "top_k", "x", "k: integer", "[..., n] -> [..., k], index(n)[..., k]",
          "the k largest of the last axis, largest first, and where they are; of equals the lower index first", top_k),

      // ---- elementwise, two operands; broadcast as NumPy's ----
      map(K::add, "add", "a, b", "a + b", binary),
      map(K::sub, "sub", "a, b", "a - b", binary),
      map(K::mul, "mul", "a, b", "a · b", binary),
      map(K::div, "div", "a, b", "a / b, of floats", binary),
      map(K::pow, "pow", "a, b", "a to the power b, of floats", binary),
      map(K::min, "min", "a, b", "the smaller; not a number if either is not", binary),
      map(K::max, "max", "a, b", "the larger; not a number if either is not", binary),
      map(K::mod, "mod", "a, b", "a - b · floor(a / b): the sign of b, as Python's %", binary),
      map(K::less, "less", "a, b", "a < b", compare),
      map(K::less_equal, "less_equal", "a, b", "a ≤ b", compare),
      map(K::greater, "greater", "a, b", "a > b", compare),
      map(K::greater_equal, "greater_equal", "a, b", "a ≥ b", compare),
      map(K::equal, "equal", "a, b", "a = b", compare),
      map(K::not_equal, "not_equal", "a, b", "a ≠ b", compare),
      map(K::logical_and, "logical_and", "a, b", "a and b, of bools", logical),
      map(K::logical_or, "logical_or", "a, b", "a or b, of bools", logical),
      map(K::logical_not, "logical_not", "x", "not x, of bools", logical),

      // ---- elementwise, one operand ----
      map(K::neg, "neg", "x", "-x", unary_number),
      map(K::silu, "silu", "x", "x / (1 + exp(-x))", unary),
      map(K::gelu, "gelu", "x", "x/2 · (1 + erf(x / √2))", unary),
      map(K::gelu_tanh, "gelu_tanh", "x", "x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))", unary),
      map(K::quick_gelu, "quick_gelu", "x", "x / (1 + exp(-1.702 x))", unary),
      map(K::relu, "relu", "x", "max(x, 0)", unary),
      map(K::sigmoid, "sigmoid", "x", "1 / (1 + exp(-x))", unary),
      map(K::tanh, "tanh", "x", "tanh x", unary),
      map(K::softplus, "softplus", "x", "log(1 + exp x)", unary),
      map(K::exp, "exp", "x", "e to the power x", unary),
      map(K::exp2, "exp2", "x", "2 to the power x", unary),
      map(K::expm1, "expm1", "x", "exp(x) - 1, exact near 0", unary),
      map(K::log, "log", "x", "the natural logarithm", unary),
      map(K::sqrt, "sqrt", "x", "√x", unary),
      map(K::rsqrt, "rsqrt", "x", "1 / √x", unary),
      map(K::erf, "erf", "x", "2/√π · ∫₀ˣ exp(-t²) dt", unary),
      map(K::cos, "cos", "x", "cos x", unary),
      map(K::sin, "sin", "x", "sin x", unary),
      map(K::abs, "abs", "x", "|x|", unary_number),
      map(K::floor, "floor", "x", "the largest whole number ≤ x", unary_number),
      map(K::ceil, "ceil", "x", "the smallest whole number ≥ x", unary_number),

      // ---- with letters, latents and state; some are known to the language and not carried out ----
      row(K::einsum, "einsum", "xs...", "formula: string", "by the formula -> by the formula",
          "\"ij,jk->ik\": a letter for each axis; the result is the product, summed over the letters that it has not", einsum),
      with_state(row(K::attend_latent, "attend_latent", "q_nope, q_rope, at, up", "mask: string, scale: real",
                     "[tokens, H, n], [tokens, H, r], Batch, [H·(n+v), rank] -> [tokens, H, v]",
                     "attention over the LatentCache Op::member: of each head the key is the first n rows of its up · latent, then "
                     "the one key that was turned, its value the last v; q_nope · and q_rope · added, scaled; mask "
                     "\"causal\" or \"full\"",
                     attend_latent),
                 "cache"),
      row(K::take_along, "take_along", "x, i", "axis: integer?", "[..., n, ...], index(n)[..., k, ...] -> [..., k, ...]",
          "y[…, j, …] = x[…, i[…, j, …], …] along an axis, the last unless given", rules::take_along),
      // The language writes route(scores, k; …) and gives moe's body as `gated`, a fn of two (sema/builder_experts.cpp).
      row(K::route, "route", "scores, bias?",
          "k: integer, groups: integer?, keep_groups: integer?, group_score: string?, renormalize: boolean, "
          "scale: real?",
          "[..., n], [n]? -> index(n)[..., k], f32[..., k]",
          "the k largest of scores + bias, largest first, of equals the lower index first, and their scores without bias "
          "· scale (1), which renormalize divides by their sum; with groups (1), only those of the keep_groups (all) "
          "groups with the largest group_score: \"max\" (the default) or \"top2_sum\" of scores + bias",
          rules::route),
      row(K::moe, "moe", "x, chosen, weights, gate, up, down, gate_b?, up_b?, down_b?", "",
          "[..., d], index(E)[..., k], [..., k], [E, f, d], [E, f, d], [E, d, f], [E, f]?, [E, f]?, [E, d]? -> [..., d]",
          "Σ over the chosen e of weight · (down[e] h + down_b[e]), where h = body(gate[e] x + gate_b[e], up[e] x + "
          "up_b[e]): elementwise operations on two rows [f]",
          rules::moe),
      row(K::conv1d, "conv1d", "x, w, b?", "stride: integer?, padding: integer?, dilation: integer?, groups: integer?",
          "[batch, c, n], [o, c/groups, k], [o]? -> [batch, o, m]",
          "as PyTorch's; m = div(n + 2 · padding - dilation · (k - 1) - 1, stride) + 1; stride, dilation and groups are "
          "1, padding 0 unless given, and the same along every axis",
          conv1d),
      row(K::conv2d, "conv2d", "x, w, b?", "stride: integer?, padding: integer?, dilation: integer?, groups: integer?",
          "[batch, c, n, m], [o, c/groups, k, l], [o]? -> [batch, o, …]", "conv1d over two axes", conv2d),
      row(K::conv3d, "conv3d", "x, w, b?", "stride: integer?, padding: integer?, dilation: integer?, groups: integer?",
          "[batch, c, n, m, l], [o, c/groups, k…], [o]? -> [batch, o, …]", "conv1d over three axes", conv3d),
      row(K::conv_transpose1d, "conv_transpose1d", "x, w, b?", "stride: integer?, padding: integer?, dilation: integer?, groups: integer?",
          "[batch, c, n], [c, o/groups, k], [o]? -> [batch, o, m]",
          "as PyTorch's; m = (n - 1) · stride + dilation · (k - 1) + 1 - 2 · padding", conv_transpose1d),
      with_state(row(K::causal_conv1d, "causal_conv1d", "x, w, b?, at", "", "[tokens, c], [c, k], [c]?, Batch -> [tokens, c]",
                     "depthwise: y[t] = b + Σ_j w[j] · x[t - (k - 1) + j] within each sequence, whose last k - 1 rows are "
                     "kept in the Ring Op::member; before its beginning there are zeros",
                     rules::causal_conv1d),
                 "ring"),
      with_state(row(K::ssd_scan, "ssd_scan", "x, dt, a, b, c, d, at", "",
                     "[tokens, H, P], [tokens, H], [H], [tokens, G, N], [tokens, G, N], [H], Batch -> [tokens, H, P]",
                     "token by token, for each head: S ← e^(dt·a) S + dt · x bᵀ; y = S c + d x; S is the Recurrent "
                     "Op::member, 0 at a sequence's beginning; head h reads b and c of group h / (H/G)",
                     rules::ssd_scan),
                 "state"),
      with_state(row(K::gated_delta, "gated_delta", "q, k, v, decay, beta, at", "scale: real, normalize: real?",
                     "[tokens, Hk, dk], [tokens, Hk, dk], [tokens, Hv, dv], [tokens, Hv], [tokens, Hv], Batch -> "
                     "[tokens, Hv, dv]",
                     "token by token, for each head: S ← e^decay S; S += k (β(v - Sᵀk))ᵀ; y = Sᵀ q · scale; S is the "
                     "Recurrent Op::member, 0 at a sequence's beginning; value head h reads q and k of head h / (Hv/Hk); "
                     "with normalize q and k are first divided by sqrt(Σ x² + normalize)",
                     rules::gated_delta),
                 "state"),
      with_state(row(K::cross_set, "cross_set", "k, v, at", "", "[batch, n, Hk, d], [batch, n, Hk, d], Sequences ->",
                     "the whole of each sequence's slot of the cross_cache Op::member, before its first token; "
                     "memory.set(k, v, at) in the language",
                     cross_set)),
      row(K::nibbles, "nibbles", "x", "", "u8[..., n] -> u8[..., 2n]", "two halves of each byte, the low one first", rules::nibbles),
      row(K::e2m1, "e2m1", "x", "", "u8[...] -> f32[...]",
          "the 4-bit floats 0, 0.5, 1, 1.5, 2, 3, 4, 6 and (codes 8 to 15) their negatives; of a byte its low half", e2m1),
      row(K::custom, "custom", "xs...", "", "as declared", "an operation that the file declares: its body, which a shader may compute",
          not_yet),
  };
}

std::vector<OpInfo> make_structure() {
  using K = OpKind;
  return {
      row(K::weight, "weight", "", "", "-> its type", "the weight Op::member", nullptr),
      row(K::constant_ref, "constant_ref", "", "", "-> its type", "the const Op::member", nullptr),
      row(K::batch_field, "batch_field", "at", "field: string", "Batch -> index[...]",
          "positions, lengths, sequence, outputs or last of a Batch", nullptr),
      row(K::call, "call", "xs...", "", "-> the callee's results",
          "Op::callee of the child Op::member; of the loop's element when that is \"\"", nullptr),
      row(K::repeat, "repeat", "xs...", "", "[carried]... -> [carried]...", "the body once for each element of the children Op::member",
          nullptr),
      row(K::literal, "literal", "", "value: real", "-> f32[]", "one number", nullptr),
  };
}

}  // namespace

const std::vector<OpInfo>& op_table() {
  static const std::vector<OpInfo> table = make_table();
  return table;
}

const OpInfo& info(OpKind kind) {
  static const std::vector<OpInfo> structure = make_structure();
  const std::size_t i = static_cast<std::size_t>(kind);
  const OpInfo& r = i < structure.size() ? structure[i] : op_table()[i - structure.size()];
  assert(r.kind == kind && "the table follows the order of OpKind");
  return r;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo& r : op_table())
    if (r.name == name) return &r;
  return nullptr;
}

std::optional<Type> batch_field_type(std::string_view field, DimTable& dims, std::optional<std::int64_t> context) {
  const auto tokens = dims.find_axis("tokens"), batch = dims.find_axis("batch"), outputs = dims.find_axis("outputs");
  if (!tokens || !batch || !outputs) return std::nullopt;
  const DimId t = dims.of_axis(*tokens), b = dims.of_axis(*batch), o = dims.of_axis(*outputs);
  if (field == "positions") {
    Type positions = tensor(DType::i32, {t});
    if (context) positions.index_bound = dims.constant(*context);
    return positions;
  }
  if (field == "lengths") return tensor(DType::i32, {t});
  if (field == "sequence") return index_tensor(b, {t});
  if (field == "outputs") return index_tensor(t, {o});
  if (field == "last") return index_tensor(t, {b});
  return std::nullopt;
}

std::optional<DimId> dim_of(const AttrValue& value, DimTable& dims) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return dims.constant(*i);
  if (const auto* s = std::get_if<std::string>(&value)) return dims.parse(*s);
  return std::nullopt;
}

namespace {

template <class T> const T* find_attr(const Op& op, std::string_view name) {
  const auto it = op.attrs.find(std::string(name));
  return it == op.attrs.end() ? nullptr : std::get_if<T>(&it->second);
}

bool has_type(const AttrValue& v, AttrType t) {
  switch (t) {
    case AttrType::integer: return std::holds_alternative<std::int64_t>(v);
    case AttrType::real: return std::holds_alternative<double>(v);
    case AttrType::boolean: return std::holds_alternative<bool>(v);
    case AttrType::string: return std::holds_alternative<std::string>(v);
    case AttrType::integers: return std::holds_alternative<std::vector<std::int64_t>>(v);
    case AttrType::reals: return std::holds_alternative<std::vector<double>>(v);
    case AttrType::dim: return std::holds_alternative<std::int64_t>(v) || std::holds_alternative<std::string>(v);
  }
  return false;
}

std::string_view type_name(AttrType t) {
  constexpr std::string_view names[] = {
      "an integer", "a float", "a bool", "a string", "a list of integers", "a list of floats", "an integer or a dim's text"};
  return names[static_cast<int>(t)];
}

std::optional<ShapeError> check_attrs(const OpInfo& row, const Op& op) {
  const std::string prefix = std::string(row.name) + ": ";
  for (const auto& [name, value] : op.attrs) {
    const AttrSpec* spec = nullptr;
    for (const AttrSpec& a : row.attrs)
      if (a.name == name) spec = &a;
    if (spec == nullptr) return ShapeError{-1, -1, prefix + "there is no argument " + name};
    if (!has_type(value, spec->type)) return ShapeError{-1, -1, prefix + name + " must be " + std::string(type_name(spec->type))};
  }
  for (const AttrSpec& a : row.attrs)
    if (!a.optional && !op.attrs.contains(std::string(a.name)))
      return ShapeError{-1, -1, prefix + "argument " + std::string(a.name) + " is missing"};
  return std::nullopt;
}

}  // namespace

namespace {

// Elements of one value that are known before the axes are: 256 GiB of f32. More is a slip in a size.
constexpr std::int64_t max_value_elements = std::int64_t{1} << 36;

bool can_be_computed(const Type& type, const DimTable& dims) {
  std::int64_t elements = 1;
  for (const DimId d : type.shape) {
    const std::int64_t n = std::max<std::int64_t>(dims.value(d).value_or(1), 1);
    if (n > max_value_elements / elements) return false;
    elements *= n;
  }
  return true;
}

}  // namespace

ShapeResult infer(const ShapeQuery& query) {
  const OpInfo& row = info(query.op.kind);
  const std::string prefix = std::string(row.name) + ": ";
  if (!carried_out(row)) return ShapeError{-1, -1, prefix + (is_structure(row.kind) ? "has no shape rule" : "is not carried out yet")};
  const std::size_t fixed = row.operands.size() - (row.variadic ? 1 : 0);
  const std::size_t given = query.operands.size();
  if (row.variadic ? given <= fixed : given != fixed)
    return ShapeError{-1, -1,
                      prefix + std::to_string(given) + " operands, wanted " + std::to_string(fixed) + (row.variadic ? " and more" : "")};
  for (std::size_t i = 0; i < given; ++i) {
    const OperandSpec& spec = row.operands[std::min(i, row.operands.size() - 1)];
    if (!spec.optional && !query.operands[i]) return ShapeError{static_cast<int>(i), -1, prefix + std::string(spec.name) + " is missing"};
  }
  if (auto error = check_attrs(row, query.op)) return *error;
  if (query.state != nullptr && !row.has_state) return ShapeError{-1, -1, prefix + "takes no state"};
  ShapeResult result = row.shape(query);
  if (const auto* types = std::get_if<std::vector<Type>>(&result))
    for (const Type& type : *types)
      if (!can_be_computed(type, query.dims))
        return ShapeError{-1, -1,
                          prefix + "gives " + text(type, query.dims) +
                              ", and one value holds at most 2^36 = " + std::to_string(max_value_elements) + " elements"};
  return result;
}

std::optional<Einsum> parse_einsum(std::string_view formula) {
  Einsum e;
  e.operands.emplace_back();
  bool result = false;
  for (std::size_t i = 0; i < formula.size(); ++i) {
    const char c = formula[i];
    if (c == ' ') continue;
    if (c == '-' && !result && i + 1 < formula.size() && formula[i + 1] == '>') {
      result = true;
      ++i;
    } else if (c == ',' && !result) {
      e.operands.emplace_back();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      (result ? e.result : e.operands.back()) += c;
    } else {
      return std::nullopt;
    }
  }
  if (!result) return std::nullopt;
  for (std::size_t i = 0; i < e.result.size(); ++i) {
    bool known = false;
    for (const std::string& o : e.operands) known = known || o.find(e.result[i]) != std::string::npos;
    if (!known || e.result.find(e.result[i], i + 1) != std::string::npos) return std::nullopt;
  }
  return e;
}

std::int64_t integer_attr(const Op& op, std::string_view name, std::int64_t absent) {
  const auto* v = find_attr<std::int64_t>(op, name);
  return v == nullptr ? absent : *v;
}
double real_attr(const Op& op, std::string_view name, double absent) {
  const auto* v = find_attr<double>(op, name);
  return v == nullptr ? absent : *v;
}
std::string string_attr(const Op& op, std::string_view name, std::string_view absent) {
  const auto* v = find_attr<std::string>(op, name);
  return v == nullptr ? std::string(absent) : *v;
}
bool boolean_attr(const Op& op, std::string_view name, bool absent) {
  const auto* v = find_attr<bool>(op, name);
  return v == nullptr ? absent : *v;
}
std::size_t axis_attr(const Op& op, std::size_t rank, std::int64_t absent) {
  std::int64_t axis = integer_attr(op, "axis", absent);
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  assert(axis >= 0);
  return static_cast<std::size_t>(axis);
}

}  // namespace modelc::graph
