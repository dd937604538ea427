// The table of the language's functions and the words that need no import.
#include <algorithm>
#include <array>
#include <string>

#include "frontend/sema/symbols.h"
#include "runtime/abi/dtype.h"

namespace modelc::sema {

namespace {

constexpr int many = 1000;

// By name. Static: a meaning on numbers, texts and lists known early (builtins.cpp). On tensors: an operation of the
// graph; its arity and names are the graph's own table's affair.
constexpr std::array builtins = {
    Builtin{"abs", "abs(x)", 1, 1, true, true},
    Builtin{"activate", "activate(x, name): the activation of this name in transformers' table", 2, 2, false, true},
    Builtin{"arange", "arange(n): 0, 1, … n - 1", 1, 1, false, true},
    Builtin{"argmax", "argmax(x; axis)", 1, many, false, true},
    Builtin{"attend", "attend(q, cache, at; mask, scale, …)", 1, many, false, true},
    Builtin{"attend_latent", "attend_latent(q_nope, q_rope, cache, at; up, mask, scale)", 1, many, false, true},
    Builtin{"causal_conv1d", "causal_conv1d(x, w, b?, ring, at)", 1, many, false, true},
    Builtin{"ceil", "ceil(x): the next whole number upwards, as a float", 1, 1, true, true},
    Builtin{"ceil_div", "ceil_div(a, b): a / b, rounded up", 2, 2, true, false},
    Builtin{"clamp", "clamp(x, lo, hi)", 3, 3, true, true},
    Builtin{"concat", "concat(xs; axis)", 1, many, false, true},
    Builtin{"conv1d", "conv1d(x, w, b?; stride, padding, dilation, groups)", 1, many, false, true},
    Builtin{"conv2d", "conv2d(x, w, b?; stride, padding, dilation, groups)", 1, many, false, true},
    Builtin{"conv3d", "conv3d(x, w, b?; stride, padding, dilation, groups)", 1, many, false, true},
    Builtin{"conv_transpose1d", "conv_transpose1d(x, w, b?; stride, padding, dilation, groups)", 1, many, false, true},
    Builtin{"cos", "cos(x)", 1, 1, true, true},
    Builtin{"count", "count(x): the number of elements", 1, 1, true, true},
    Builtin{"cumsum", "cumsum(x; axis)", 1, many, false, true},
    Builtin{"div", "div(a, b): a / b, rounded down", 2, 2, true, false},
    Builtin{"dtype", "dtype(x): the element type of a tensor", 1, 1, false, true},
    Builtin{"e2m1", "e2m1(x): four-bit floats as f32", 1, 1, false, true},
    Builtin{"einsum", "einsum(pattern, a, b)", 1, many, false, true},
    Builtin{"erf", "erf(x)", 1, 1, true, true},
    Builtin{"exp", "exp(x)", 1, 1, true, true},
    Builtin{"exp2", "exp2(x)", 1, 1, true, true},
    Builtin{"expand", "expand(x, shape)", 1, many, false, true},
    Builtin{"expm1", "expm1(x): exp(x) - 1", 1, 1, true, true},
    Builtin{"flatten", "flatten(x, a, b)", 1, many, false, true},
    Builtin{"float", "float(x): a number as a float", 1, 1, true, false},
    Builtin{"floor", "floor(x): the next whole number downwards, as a float", 1, 1, true, true},
    Builtin{"gated_delta", "gated_delta(q, k, v, decay, beta, state, at; scale, normalize?)", 1, many, false, true},
    Builtin{"gelu", "gelu(x)", 1, 1, true, true},
    Builtin{"gelu_tanh", "gelu_tanh(x)", 1, 1, true, true},
    Builtin{"int", "int(x): a number without its fraction", 1, 1, true, false},
    Builtin{"l2_normalize", "l2_normalize(x)", 1, many, false, true},
    Builtin{"layer_norm", "layer_norm(x, w?, b?; eps)", 1, many, false, true},
    Builtin{"len", "len(list): the number of elements of a list, of entries of a map", 1, 1, true, false},
    Builtin{"linear", "linear(x, w, b?): x wᵀ + b", 1, many, false, true},
    Builtin{"linspace", "linspace(lo, hi, n)", 1, many, false, true},
    Builtin{"log", "log(x): the natural logarithm", 1, 1, true, true},
    Builtin{"matmul", "matmul(a, b)", 1, many, false, true},
    Builtin{"max", "max(a, b, …); of a tensor: max(x; axis)", 1, many, true, true},
    Builtin{"mean", "mean(x; axis, where)", 1, many, false, true},
    Builtin{"min", "min(a, b, …); of a tensor: min(x; axis)", 1, many, true, true},
    Builtin{"moe", "moe(x, chosen, weights, gate, up, down, …; gated)", 1, many, false, true},
    Builtin{"nibbles", "nibbles(x): the two halves of each byte, low first", 1, 1, false, true},
    Builtin{"one_hot", "one_hot(x, n)", 1, many, false, true},
    Builtin{"outer", "outer(a, b)", 1, many, false, true},
    Builtin{"pad", "pad(x, …)", 1, many, false, true},
    Builtin{"put", "put(x, rows, v)", 1, many, false, true},
    Builtin{"quick_gelu", "quick_gelu(x)", 1, 1, true, true},
    Builtin{"relu", "relu(x)", 1, 1, true, true},
    Builtin{"repeat", "repeat(x, n; axis)", 1, many, false, true},
    Builtin{"rms_norm", "rms_norm(x, w?; eps, offset, multiply)", 1, many, false, true},
    Builtin{"rope", "rope(x, angles; pairs, magnitude)", 1, many, false, true},
    Builtin{"route", "route(scores, k; bias?, groups, …)", 1, many, false, true},
    Builtin{"rsqrt", "rsqrt(x): 1 / sqrt(x)", 1, 1, true, true},
    Builtin{"sigmoid", "sigmoid(x)", 1, 1, true, true},
    Builtin{"silu", "silu(x): x · sigmoid(x)", 1, 1, true, true},
    Builtin{"sin", "sin(x)", 1, 1, true, true},
    Builtin{"softcap", "softcap(x, c?): c · tanh(x / c)", 1, many, false, true},
    Builtin{"softmax", "softmax(x; axis)", 1, many, false, true},
    Builtin{"softplus", "softplus(x): log(1 + exp(x))", 1, 1, true, true},
    Builtin{"split", "split(x, sizes; axis)", 1, many, false, true},
    Builtin{"sqrt", "sqrt(x)", 1, 1, true, true},
    Builtin{"ssd_scan", "ssd_scan(x, dt, a, b, c, d, state, at)", 1, many, false, true},
    Builtin{"stack", "stack(xs; axis)", 1, many, false, true},
    Builtin{"sum", "sum(x; axis, where)", 1, many, false, true},
    Builtin{"take", "take(x, rows)", 1, many, false, true},
    Builtin{"take_along", "take_along(x, i)", 1, many, false, true},
    Builtin{"tanh", "tanh(x)", 1, 1, true, true},
    Builtin{"tensor", "tensor(list)", 1, 1, false, true},
    Builtin{"top_k", "top_k(x, k)", 1, many, false, true},
    Builtin{"transpose", "transpose(x, a, b)", 1, many, false, true},
    Builtin{"unflatten", "unflatten(x, axis, sizes)", 1, many, false, true},
    Builtin{"where", "where(c, a, b)", 1, many, false, true},
};

constexpr bool sorted() {
  for (std::size_t i = 1; i < builtins.size(); ++i) {
    if (!(builtins[i - 1].name < builtins[i].name)) return false;
  }
  return true;
}
static_assert(sorted(), "find_builtin searches by halves");

constexpr std::string_view state_kinds[] = {"KVCache", "LatentCache", "CrossCache", "Ring", "Recurrent"};
constexpr std::string_view type_words[] = {"dim", "int", "float", "bool", "string", "module", "Batch", "Sequences"};

template <class Range> bool contains(const Range& range, std::string_view name) {
  return std::find(std::begin(range), std::end(range), name) != std::end(range);
}

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  const auto it =
      std::lower_bound(builtins.begin(), builtins.end(), name, [](const Builtin& b, std::string_view wanted) { return b.name < wanted; });
  return it != builtins.end() && it->name == name ? &*it : nullptr;
}

bool is_prelude_axis(std::string_view name) { return contains(prelude_axes, name); }
bool is_axis(const FileSymbols& file, std::string_view name) {
  if (is_prelude_axis(name)) return true;
  const Symbol* symbol = find_symbol(file, name).symbol;
  return symbol != nullptr && symbol->kind == SymbolKind::axis;
}
bool is_state_kind(std::string_view name) { return contains(state_kinds, name); }
bool is_type_word(std::string_view name) { return contains(type_words, name) || dtype_from_name(name).has_value(); }

void prelude_names(std::vector<std::string>& into) {
  for (const Builtin& builtin : builtins) into.emplace_back(builtin.name);
  for (const std::string_view axis : prelude_axes) into.emplace_back(axis);
  into.emplace_back("pi");
  into.emplace_back("plain");
}

}  // namespace modelc::sema
