#include "runtime/checkpoint/coded.h"

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "runtime/base/strings.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

Error wrong(const std::string& why) { return Error{"encoding", why, {}, {}}; }

// ---- lists ----------------------------------------------------------------------------------------------------------
struct Node {
  std::string word;                                        // of a leaf
  std::vector<Node> items;                                 // of a list: its operation, then the operands
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::optional<Node> read(int depth = 0) {
    skip();
    if (at_ == text_.size() || text_[at_] == ')' || depth > 64) return std::nullopt;
    Node n;
    if (text_[at_] != '(') {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '(' && text_[at_] != ')') ++at_;
      n.word = text_.substr(begin, at_ - begin);
      return n;
    }
    ++at_;
    for (skip(); at_ < text_.size() && text_[at_] != ')'; skip()) {
      auto item = read(depth + 1);
      if (!item) return std::nullopt;
      n.items.push_back(std::move(*item));
    }
    if (at_ == text_.size() || n.items.empty()) return std::nullopt;
    ++at_;
    return n;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

using Sizes = std::map<std::string, std::int64_t, std::less<>>;

// Whole numbers of sizes: names, and + - * / (exact) and ceil_div.
std::optional<std::int64_t> number(const Node& n, const Sizes& sizes) {
  if (n.items.empty()) {
    if (const auto at = sizes.find(n.word); at != sizes.end()) return at->second;
    return parse_int(n.word);
  }
  if (n.items.size() != 3) return std::nullopt;
  const auto a = number(n.items[1], sizes), b = number(n.items[2], sizes);
  if (!a || !b) return std::nullopt;
  const std::string& op = n.items[0].word;
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (*a < -most || *a > most || *b < -most || *b > most) return std::nullopt;
  if (op == "+") return *a + *b;
  if (op == "-") return *a - *b;
  if (op == "*") return *b == 0 || std::abs(*a) <= most / std::abs(*b) ? std::optional(*a * *b) : std::nullopt;
  if (*b <= 0 || *a < 0) return std::nullopt;
  if (op == "/" && *a % *b == 0) return *a / *b;
  if (op == "ceil_div") return (*a + *b - 1) / *b;
  return std::nullopt;
}

// "... n k" on a shape: the names' sizes, and what `...` stands for.
struct Axes {
  Sizes sizes;
  TensorShape rest;
};
std::optional<Axes> bind_axes(const std::string& axes, const TensorShape& shape) {
  Axes out;
  const auto names = split(axes, ' ');
  const bool open = !names.empty() && names[0] == "...";
  const std::size_t named = names.size() - (open ? 1 : 0);
  if (shape.size() < named || (!open && shape.size() != named)) return std::nullopt;
  out.rest.assign(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(named));
  for (std::size_t i = 0; i < named; ++i) out.sizes[std::string(names[i + (open ? 1 : 0)])] = shape[shape.size() - named + i];
  return out;
}

// ---- values ---------------------------------------------------------------------------------------------------------
struct Values {
  TensorShape shape;
  std::vector<float> v;
};

std::size_t count(const TensorShape& s) { return static_cast<std::size_t>(element_count(s).value_or(0)); }

// The elements of a part as numbers: whole numbers, and what decode() gives.
Result<Values> load(const HostArray& x) {
  Values out{x.shape, std::vector<float>(count(x.shape))};
  if (stored_bytes(x.encoding, x.shape) != static_cast<std::int64_t>(x.bytes.size()))
    return wrong("a part is not as large as its shape says");
  if (x.encoding == Encoding::u8 || x.encoding == Encoding::i8) {
    for (std::size_t i = 0; i < out.v.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(x.bytes[i]);
      out.v[i] = x.encoding == Encoding::u8 ? static_cast<float>(byte) : static_cast<float>(static_cast<std::int8_t>(byte));
    }
    return out;
  }
  if (!modelc::decode(x.encoding, x.bytes.data(), out.v))
    return wrong("parts stored as " + std::string(name(x.encoding)) + " are not decoded");
  return out;
}

// What a formula may hold at once: a hostile header cannot ask for more than its tensors' sizes suggest.
constexpr std::size_t max_elements = std::size_t{1} << 34;

std::optional<std::size_t> axis_at(std::int64_t axis, const TensorShape& s) {
  if (axis < 0) axis += static_cast<std::int64_t>(s.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(s.size())) return std::nullopt;
  return static_cast<std::size_t>(axis);
}
std::size_t inner_of(const TensorShape& s, std::size_t axis) {
  return std::accumulate(s.begin() + static_cast<std::ptrdiff_t>(axis) + 1, s.end(), std::size_t{1},
                         [](std::size_t a, std::int64_t b) { return a * static_cast<std::size_t>(b); });
}

class Formula {
 public:
  Formula(Sizes sizes, std::map<std::string, Values> parts) : sizes_(std::move(sizes)), parts_(std::move(parts)) {}

  Result<Values> eval(const Node& n) {
    if (n.items.empty()) {
      if (const auto at = parts_.find(n.word); at != parts_.end()) return at->second;
      if (const auto size = number(n, sizes_)) return Values{{}, {static_cast<float>(*size)}};
      if (const auto real = parse_double(n.word)) return Values{{}, {static_cast<float>(*real)}};
      return wrong("the formula has no " + quote(n.word));
    }
    const std::string& op = n.items[0].word;
    std::vector<Values> in;
    const std::size_t operands = op == "+" || op == "-" || op == "*" || op == "/" ? 2 : 1;
    if (n.items.size() <= operands) return wrong("the formula's " + op + " has too few operands");
    for (std::size_t i = 1; i <= operands; ++i) {
      auto v = eval(n.items[i]);
      if (!v) return v;
      in.push_back(std::move(*v));
    }
    std::vector<std::int64_t> more;
    for (std::size_t i = operands + 1; i < n.items.size(); ++i) {
      const auto v = number(n.items[i], sizes_);
      if (!v) return wrong("a size in the formula's " + op + " is not known");
      more.push_back(*v);
    }
    if (operands == 2) return binary(op, in[0], in[1]);
    Values& x = in[0];
    if (op == "f32") return x;
    if (op == "exp2") return each(x, [](float v) { return std::exp2(v); });
    if (op == "e2m1")
      return each(x, [](float v) {
        constexpr float values[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
        const int code = static_cast<int>(v) & 15;
        return code & 8 ? -values[code & 7] : values[code & 7];
      });
    if (op == "nibbles") return nibbles(x);
    if (op == "repeat" && more.size() == 2) return repeat(x, more[0], more[1]);
    if (op == "slice" && more.size() % 3 == 0) return slice(std::move(x), more);
    if (op == "shape") return shaped(x, more);
    return wrong("the formula has no operation " + quote(op));
  }

 private:
  template <class F> static Values each(Values x, F f) {
    for (float& v : x.v) v = f(v);
    return x;
  }
  // NumPy's broadcasting.
  static Result<Values> binary(const std::string& op, const Values& a, const Values& b) {
    Values y;
    const std::size_t rank = std::max(a.shape.size(), b.shape.size());
    const auto size = [rank](const Values& x, std::size_t i) {
      return i < rank - x.shape.size() ? 1 : x.shape[i - (rank - x.shape.size())];
    };
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t p = size(a, i), q = size(b, i);
      if (p != q && p != 1 && q != 1) return wrong("the formula joins " + shape_text(a.shape) + " and " + shape_text(b.shape));
      y.shape.push_back(p == 1 ? q : p);
    }
    y.v.resize(count(y.shape));
    std::vector<std::size_t> sa(rank), sb(rank);
    std::size_t na = 1, nb = 1;
    for (std::size_t i = rank; i-- > 0;) {
      sa[i] = size(a, i) == 1 ? 0 : na;
      sb[i] = size(b, i) == 1 ? 0 : nb;
      na *= static_cast<std::size_t>(size(a, i));
      nb *= static_cast<std::size_t>(size(b, i));
    }
    std::vector<std::int64_t> index(rank, 0);
    std::size_t ia = 0, ib = 0;
    for (float& v : y.v) {
      const float p = a.v[ia], q = b.v[ib];
      v = op == "+" ? p + q : op == "-" ? p - q : op == "*" ? p * q : p / q;
      for (std::size_t i = rank; i-- > 0;) {
        ia += sa[i], ib += sb[i];
        if (++index[i] < y.shape[i]) break;
        ia -= sa[i] * static_cast<std::size_t>(y.shape[i]);
        ib -= sb[i] * static_cast<std::size_t>(y.shape[i]);
        index[i] = 0;
      }
    }
    return y;
  }
  // Each byte's two halves, low half first, on the last axis.
  static Result<Values> nibbles(const Values& x) {
    if (x.shape.empty()) return wrong("nibbles of one number");
    Values y{x.shape, std::vector<float>(2 * x.v.size())};
    y.shape.back() *= 2;
    for (std::size_t i = 0; i < x.v.size(); ++i) {
      const int byte = static_cast<int>(x.v[i]);
      y.v[2 * i] = static_cast<float>(byte & 15);
      y.v[2 * i + 1] = static_cast<float>(byte >> 4 & 15);
    }
    return y;
  }
  static Result<Values> repeat(const Values& x, std::int64_t times, std::int64_t along) {
    const auto axis = axis_at(along, x.shape);
    if (!axis || times < 1 || x.v.size() > max_elements / static_cast<std::size_t>(times)) return wrong("repeat of " + shape_text(x.shape));
    Values y{x.shape, {}};
    y.shape[*axis] *= times;
    y.v.reserve(count(y.shape));
    const std::size_t inner = inner_of(x.shape, *axis);
    for (std::size_t at = 0; at < x.v.size(); at += inner)
      for (std::int64_t t = 0; t < times; ++t)
        y.v.insert(y.v.end(), x.v.begin() + static_cast<std::ptrdiff_t>(at), x.v.begin() + static_cast<std::ptrdiff_t>(at + inner));
    return y;
  }
  // Triples: axis, first, last (exclusive).
  static Result<Values> slice(Values x, const std::vector<std::int64_t>& triples) {
    for (std::size_t i = 0; i < triples.size(); i += 3) {
      const auto axis = axis_at(triples[i], x.shape);
      const std::int64_t first = triples[i + 1], last = triples[i + 2];
      if (!axis || first < 0 || last < first || last > x.shape[*axis])
        return wrong("a slice of " + shape_text(x.shape) + " that it does not have");
      const std::size_t inner = inner_of(x.shape, *axis), row = inner * static_cast<std::size_t>(x.shape[*axis]);
      Values y{x.shape, {}};
      y.shape[*axis] = last - first;
      y.v.reserve(count(y.shape));
      for (std::size_t at = 0; row > 0 && at < x.v.size(); at += row)
        y.v.insert(y.v.end(), x.v.begin() + static_cast<std::ptrdiff_t>(at + static_cast<std::size_t>(first) * inner),
                   x.v.begin() + static_cast<std::ptrdiff_t>(at + static_cast<std::size_t>(last) * inner));
      x = std::move(y);
    }
    return x;
  }
  // (shape x kept sizes…): the last axes become these, what stands before stays. `kept` counts the axes that go.
  static Result<Values> shaped(Values& x, const std::vector<std::int64_t>& to) {
    if (to.empty() || to[0] < 0 || static_cast<std::size_t>(to[0]) > x.shape.size())
      return wrong("a shape that " + shape_text(x.shape) + " has not");
    TensorShape s(x.shape.begin(), x.shape.end() - to[0]);
    std::int64_t before = 1, after = 1;
    for (std::size_t i = x.shape.size() - static_cast<std::size_t>(to[0]); i < x.shape.size(); ++i) before *= x.shape[i];
    std::optional<std::size_t> open;
    for (std::size_t i = 1; i < to.size(); ++i) {
      if (to[i] < 0) open = s.size();
      else after *= to[i];
      s.push_back(to[i]);
    }
    if (open) s[*open] = after > 0 && before % after == 0 ? before / after : -1, after = after > 0 && before % after == 0 ? before : after;
    if (before != after) return wrong(shape_text(x.shape) + " does not become " + shape_text(s));
    return Values{std::move(s), std::move(x.v)};
  }

  Sizes sizes_;
  std::map<std::string, Values> parts_;
};

}  // namespace

std::string part_name(const MappingRules::Encode::Part& part, const std::string& name) { return replace_all(part.at, "{name}", name); }

Result<std::vector<TensorShape>> part_shapes(const MappingRules::Encode& encode, const TensorShape& shape) {
  const auto axes = bind_axes(encode.axes, shape);
  if (!axes) return wrong(encode.name + " is of [" + replace_all(encode.axes, " ", ", ") + "], not of " + shape_text(shape));
  std::vector<TensorShape> out;
  for (const auto& part : encode.parts) {
    TensorShape s;
    const auto list = Reader(part.shape).read();
    if (!list) return wrong("the shape of " + part.name + " does not read");
    for (const Node& n : list->items) {
      if (n.word == "...") {
        s.insert(s.end(), axes->rest.begin(), axes->rest.end());
        continue;
      }
      const auto size = number(n, axes->sizes);
      if (!size || *size < 0) return wrong("a tensor of shape " + shape_text(shape) + " is not in whole blocks of " + encode.name);
      s.push_back(*size);
    }
    out.push_back(std::move(s));
  }
  return out;
}

Result<HostArray> decode(const MappingRules::Encode& encode, const TensorShape& shape, std::span<const HostArray> parts) {
  const auto axes = bind_axes(encode.axes, shape);
  const auto formula = Reader(encode.value).read();
  if (!axes || !formula || parts.size() != encode.parts.size()) return wrong(encode.name + " does not read");
  std::map<std::string, Values> values;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto v = load(parts[i]);
    if (!v) return std::move(v.error());
    values.emplace(encode.parts[i].name, std::move(*v));
  }
  auto result = Formula(axes->sizes, std::move(values)).eval(*formula);
  if (!result) return std::move(result.error());
  if (result->shape != shape) return wrong(encode.name + " gives " + shape_text(result->shape) + ", not " + shape_text(shape));
  HostArray out{Encoding::f32, shape, std::vector<std::byte>(result->v.size() * sizeof(float))};
  if (!result->v.empty()) std::memcpy(out.bytes.data(), result->v.data(), out.bytes.size());
  return out;
}

}  // namespace modelc
