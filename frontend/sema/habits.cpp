#include "frontend/sema/habits.h"

#include <algorithm>
#include <span>

#include "frontend/sema/symbols.h"

namespace modelc::sema {

namespace {

struct Habit {
  std::string_view word, advice;
};

std::string_view find(std::span<const Habit> table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Habit& h) { return h.word == word; });
  return found == table.end() ? std::string_view{} : found->advice;
}

constexpr std::string_view reshaped = "a tensor takes another shape by `x as [tokens, n]`";
constexpr std::string_view product = "a matrix product is written `matmul(a, b)`, or `linear(x, w)` for x wᵀ";
constexpr std::string_view numbered =
    "a `for` names one element; what differs by number stands where the list is made: "
    "`[Layer(i) for i in 0..n]`";
constexpr std::string_view looked_at = "values are looked at from outside: name it with `let`, and run with `--trace` and that name";
constexpr std::string_view evaluated = "nothing is trained here: leave it out";

constexpr Habit names[] = {
    // A declaration's word behind its name instead of before it
    {"param", "the word stands before the name: `param w: [n, m]`"},
    {"const", "the word stands before the name: `const w: [n] = …`"},
    {"state", "the word stands before the name: `state s: …`"},
    // Python
    {"None", "what is absent is written `none`"},
    {"True", "write `true`"},
    {"False", "write `false`"},
    {"null", "what is absent is written `none`"},
    {"self", "a module's members are written by their names alone, without `self.`"},
    {"super", "a module that extends another has its members as its own; `override` writes one anew"},
    {"range", "a range is written `0..n`"},
    {"enumerate", numbered},
    {"zip", numbered},
    {"print", looked_at},
    {"causal", "a mask is named by a string: `mask: \"causal\"`"},
    {"full", "a mask is named by a string: `mask: \"full\"`"},
    {"round", "the nearest whole number is `floor(x + 0.5)`"},
    {"sorted", "numbers are put in order by `top_k(x, k)`"},
    {"isinstance", "the case of a variant is asked by `x is \"case\"`, or chosen by `match x { … }`"},
    {"getattr", "a field is read by its name, `c.name`; one that may be absent by `c.name ?? otherwise`"},
    {"hasattr", "a field that may be absent is declared `name: T?` and asked by `c.name is not none`"},
    {"any", "a condition on values is written out with `or`"},
    {"all", "a condition on values is written out with `and`"},
    {"str", "a text is written in double quotes"},
    {"list", "a list is written `[a, b]`"},
    {"dict", "an object with fields of its own is a `variant`'s case"},
    // PyTorch: where names come from
    {"torch", "operations are written by their names alone: `softmax(x)`"},
    {"F", "operations are written by their names alone: `softmax(x)`"},
    {"np", "operations are written by their names alone: `sqrt(x)`"},
    {"math", "functions are written by their names alone: `sqrt(x)`"},
    {"nn", "modules are written by their names alone: `import nn.linear` makes `Linear` known"},
    // PyTorch: operations
    {"dropout", "an inference drops nothing out: leave it out"},
    {"Dropout", "an inference drops nothing out: leave it out"},
    {"view", reshaped},
    {"reshape", reshaped},
    {"squeeze", reshaped},
    {"unsqueeze", reshaped},
    {"rearrange", "a tensor takes another shape by `x as [tokens, n]`, and axes change places by `transpose(x, a, b)`"},
    {"permute", "axes change places by `transpose(x, a, b)`, two at a time"},
    {"cat", "tensors are joined by `concat([a, b], axis: …)`"},
    {"concatenate", "tensors are joined by `concat([a, b], axis: …)`"},
    {"chunk", "a tensor is cut by `split(x, [sizes])`"},
    {"unbind", "a tensor is cut by `split(x, [sizes])`"},
    {"bmm", product},
    {"mm", product},
    {"dot", product},
    {"pow", "a power is written `a ^ b`"},
    {"square", "a power is written `x ^ 2`"},
    {"masked_fill", "to choose element by element, write `where(condition, a, b)`"},
    {"topk", "the largest are `top_k(x, k)`"},
    {"gather", "along an axis, write `take_along(x, i)`; whole rows are `take(x, rows)`"},
    {"index_select", "whole rows are `take(x, rows)`"},
    {"embedding", "rows of a table are `take(table, ids)`"},
    {"repeat_interleave", "write `repeat(x, n, axis: …)`"},
    {"triu", "`attend` masks by itself: `mask: \"causal\"`"},
    {"tril", "`attend` masks by itself: `mask: \"causal\"`"},
    {"scaled_dot_product_attention", "attention is `attend(q, k, v, mask: …, scale: …)`"},
    {"ones", "a number stands for a tensor of it: `1.0`, or `expand(1.0, [n])`"},
    {"zeros", "a number stands for a tensor of it: `0.0`, or `expand(0.0, [n])`"},
    {"ones_like", "a number stands for a tensor of it: `x * 0 + 1`"},
    {"zeros_like", "a number stands for a tensor of it: `x * 0`"},
    {"swish", "it is called `silu(x)` here"},
    {"layernorm", "write `layer_norm(x, w, b, eps: …)`; `nn.norm` has modules"},
    {"normalize", "write `l2_normalize(x)`"},
    {"no_grad", evaluated},
    // PyTorch: modules
    {"ModuleList", "a list of children is written `layers: [Layer(c) for i in 0..n]`"},
    {"Sequential", "children are members, and `forward` calls one after the other"},
    {"Parameter", "a weight is a member: `param name: [n, m]`"},
    {"Conv1d", "a convolution is `conv1d(x, w, b, stride: …)` over a `param`; `nn.conv` has modules"},
    {"SiLU", "it is an operation: `silu(x)`"},
    {"GELU", "it is an operation: `gelu(x)`"},
    {"ReLU", "it is an operation: `relu(x)`"},
    {"Softmax", "it is an operation: `softmax(x)`"},
    {"MultiheadAttention", "attention is an operation, `attend(q, k, v, …)`; `nn.attention` has modules"},
};

// Methods that give a tensor another shape.
constexpr std::string_view reshapes[] = {"view", "reshape", "view_as", "squeeze", "unsqueeze"};

constexpr Habit methods[] = {
    {"shape", "sizes are known by name: those of the axes in the declared shape"},
    {"size", "sizes are known by name: those of the axes in the declared shape"},
    {"ndim", "sizes are known by name: those of the axes in the declared shape"},
    {"T", "axes change places by `transpose(x, a, b)`"},
    {"mT", "axes change places by `transpose(x, a, b)`"},
    {"t", "axes change places by `transpose(x, a, b)`"},
    {"permute", "axes change places by `transpose(x, a, b)`, two at a time"},
    {"numel", "the number of elements is `count(x)`"},
    {"to", "a tensor takes another type by `x as f32`; where it is computed is chosen outside, by `--device`"},
    {"type", "a tensor takes another type by `x as f32`"},
    {"type_as", "a tensor takes another type by `x as f32`"},
    {"cuda", "where it is computed is chosen outside, by `--device`: leave it out"},
    {"cpu", "where it is computed is chosen outside, by `--device`: leave it out"},
    {"device", "where it is computed is chosen outside, by `--device`: leave it out"},
    {"contiguous", "how a tensor lies in memory is not said: leave it out"},
    {"clone", "values do not change, so none needs a copy: leave it out"},
    {"detach", evaluated},
    {"requires_grad_", evaluated},
    {"backward", evaluated},
    {"weight", "a `param` is the tensor itself: leave `.weight` out"},
    {"data", "a `param` is the tensor itself: leave `.data` out"},
    {"item", "a number is read outside; within the model it stays a tensor"},
    {"append", "lists do not grow: write `[f(x) for x in list]`"},
};

constexpr Habit arguments[] = {
    {"dim", "an axis is named `axis`, as in `softmax(x, axis: -1)`"},
    {"keepdim", "the axis goes; it is put back by `as`, as in `mean(x, axis: -1) as [tokens, 1]`"},
    {"keepdims", "the axis goes; it is put back by `as`, as in `mean(x, axis: -1) as [tokens, 1]`"},
    {"dtype", "the result takes another type by `as`, as in `softmax(x) as f32`"},
    {"device", "where it is computed is chosen outside, by `--device`: leave it out"},
    {"inplace", "values do not change: leave it out"},
    {"out", "values do not change: leave it out"},
    {"approximate", "the approximation is an operation of its own: `gelu_tanh(x)`"},
    {"is_causal", "write `mask: \"causal\"`"},
    {"attn_mask", "write `mask: \"causal\"` or `mask: \"full\"`; which positions count is `keep`, what is added is `bias`"},
    {"dropout_p", "an inference drops nothing out: leave it out"},
    {"p", "an inference drops nothing out: leave it out"},
    {"requires_grad", evaluated},
    {"training", evaluated},
};

constexpr Habit elements[] = {
    {"float16", "f16"}, {"half", "f16"},    {"bfloat16", "bf16"}, {"float32", "f32"}, {"float", "f32"}, {"fp16", "f16"},  {"fp32", "f32"},
    {"fp64", "f64"},    {"float64", "f64"}, {"double", "f64"},    {"int64", "i64"},   {"long", "i64"},  {"int32", "i32"}, {"int", "i32"},
    {"int16", "i16"},   {"short", "i16"},   {"int8", "i8"},       {"uint8", "u8"},    {"byte", "u8"},
};

constexpr Habit types[] = {
    {"str", "write `string`"},
    {"float16", "a number is `float` or `int`"},
    {"float32", "a number is `float` or `int`"},
    {"float64", "a number is `float` or `int`"},
    {"int32", "a number is `float` or `int`"},
    {"int64", "a number is `float` or `int`"},
    {"List", "a list is `list[T]`, or `list[T, n]` of n values"},
    {"tuple", "a list is `list[T]`, or `list[T, n]` of n values"},
    {"Tuple", "a list is `list[T]`, or `list[T, n]` of n values"},
    {"dict", "a mapping is `map[T]`; an object with fields of its own is a `variant`'s case"},
    {"Dict", "a mapping is `map[T]`; an object with fields of its own is a `variant`'s case"},
    {"Optional", "a value that may be absent is `T?`"},
    {"Union", "alternatives are written `\"a\" | \"b\"`; objects of several kinds are a `variant`"},
    {"Literal", "alternatives are written `\"a\" | \"b\"`"},
    {"Callable", "write `fn`"},
    {"Module", "write `module`, or the name of an `interface`"},
    {"Tensor", "a tensor's type is its shape: `[tokens, n]`, `f32[n]`"},
    {"FloatTensor", "a tensor's type is its shape: `[tokens, n]`, `f32[n]`"},
    {"LongTensor", "ids are `index(n)[tokens]`, n being how many there are"},
};

}  // namespace

std::string habit_of_name(std::string_view name) { return std::string(find(names, name)); }

std::string habit_of_method(std::string_view name, std::string_view object) {
  constexpr std::size_t longest = 24;
  const std::string x(object.size() <= longest && object.find('\n') == object.npos ? object : "x");
  if (std::find(std::begin(reshapes), std::end(reshapes), name) != std::end(reshapes))
    return "a tensor takes another shape by `" + x + " as [tokens, n]`";
  if (const std::string_view advice = find(methods, name); !advice.empty()) return std::string(advice);
  if (const std::string_view type = element_of_habit(name); !type.empty())
    return "a tensor takes another type by `" + x + " as " + std::string(type) + "`";
  if (name.size() > 1 && name.back() == '_') { return "values do not change: write the new one out, as in `let y = " + x + " * 2`"; }
  if (find_builtin(name) != nullptr) return "an operation is written before its tensor: `" + std::string(name) + "(" + x + ", …)`";
  return habit_of_name(name);
}

std::string habit_of_argument(std::string_view name) { return std::string(find(arguments, name)); }

std::string_view element_of_habit(std::string_view word) { return find(elements, word); }

std::string habit_of_type(std::string_view word) { return std::string(find(types, word)); }

std::string habit_of_format(std::string_view word) {
  std::string out = "the formats are `safetensors` and `gguf`";
  constexpr std::string_view pickled[] = {"pytorch", "torch", "bin", "pt", "pth", "ckpt", "pickle"};
  if (std::find(std::begin(pickled), std::end(pickled), word) != std::end(pickled))
    out += "; a file of PyTorch's own is saved as safetensors first";
  return out;
}

}  // namespace modelc::sema
