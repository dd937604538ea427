#include "runtime/device/port_dims.h"

#include <limits>

#include "runtime/base/strings.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

class PortDimParser {
 public:
  PortDimParser(std::string_view text, std::span<const AxisDesc> axes) : text_(text), axes_(axes) {}

  Result<PortDim> run() {
    out_.text_ = std::string(trim(text_));
    if (!sum(0) || (skip(), at_ != text_.size())) {
      if (!unknown_.empty()) return Error{"axis", "there is no axis " + quote(unknown_), {}, {}};
      return Error{"axis", quote(out_.text_) + " is not the size of an axis", {}, {}};
    }
    return std::move(out_);
  }

 private:
  using Kind = PortDim::Term::Kind;
  static constexpr int max_depth = 32;

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void push(Kind kind, std::int64_t n = 0) { out_.terms_.push_back({kind, n}); }

  bool sum(int depth) {
    if (depth > max_depth) return false;
    const bool negative = take('-');
    if (negative) push(Kind::number, 0);
    if (!product(depth)) return false;
    if (negative) push(Kind::sub);
    for (;;) {
      const bool plus = take('+');
      if (!plus && !take('-')) return true;
      if (!product(depth)) return false;
      push(plus ? Kind::add : Kind::sub);
    }
  }
  bool product(int depth) {
    if (!factor(depth)) return false;
    while (take('*')) {
      if (!factor(depth)) return false;
      push(Kind::mul);
    }
    return true;
  }
  std::string_view word() {
    skip();
    const std::size_t begin = at_;
    const auto part_of_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
    while (at_ < text_.size() && part_of_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool factor(int depth) {
    if (take('(')) return sum(depth + 1) && take(')');
    const std::string_view w = word();
    if (w.empty()) return false;
    if (const auto n = parse_int(w)) return push(Kind::number, *n), true;
    if (w == "div" && take('(')) {
      if (!sum(depth + 1) || !take(',')) return false;
      const auto n = parse_int(word());
      if (!n || *n < 1 || !take(')')) return false;
      return push(Kind::div, *n), true;
    }
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (w != axes_[i].name) continue;
      out_.axes_ |= std::uint32_t{1} << i;
      return push(Kind::axis, static_cast<std::int64_t>(i)), true;
    }
    unknown_ = w;
    return false;
  }

  std::string_view text_;
  std::span<const AxisDesc> axes_;
  std::size_t at_ = 0;
  std::string unknown_;
  PortDim out_;
};

Result<PortDim> PortDim::parse(std::string_view text, std::span<const AxisDesc> axes) { return PortDimParser(text, axes).run(); }

std::optional<std::int64_t> PortDim::number() const {
  if (terms_.size() == 1 && terms_[0].kind == Term::Kind::number) return terms_[0].n;
  return std::nullopt;
}

std::optional<int> PortDim::axis() const {
  if (terms_.size() == 1 && terms_[0].kind == Term::Kind::axis) return static_cast<int>(terms_[0].n);
  return std::nullopt;
}

std::optional<std::int64_t> PortDim::value(const StepSizes& sizes) const {
  std::vector<std::int64_t> stack;
  for (const Term& t : terms_) {
    if (t.kind == Term::Kind::number) {
      stack.push_back(t.n);
      continue;
    }
    if (t.kind == Term::Kind::axis) {
      stack.push_back(sizes.axis(static_cast<int>(t.n)));
      continue;
    }
    if (t.kind == Term::Kind::div) {
      const std::int64_t a = stack.back();
      stack.back() = a / t.n - (a % t.n < 0 ? 1 : 0);
      continue;
    }
    const std::int64_t b = stack.back();
    stack.pop_back();
    std::int64_t& a = stack.back();
    const bool over = t.kind == Term::Kind::add   ? __builtin_add_overflow(a, b, &a)
                      : t.kind == Term::Kind::sub ? __builtin_sub_overflow(a, b, &a)
                                                  : __builtin_mul_overflow(a, b, &a);
    if (over) return std::nullopt;
  }
  return stack.back();
}

std::optional<std::int64_t> solve(const PortDim& dim, std::int64_t wanted, int axis, const AxisDesc& desc, StepSizes sizes) {
  const std::int64_t by = desc.by > 0 ? desc.by : 1;
  const std::int64_t highest = desc.hi > 0 ? desc.hi : std::numeric_limits<std::int32_t>::max();
  // Sizes of tensors grow with their axes, so that the first size that is enough is found by halving.
  std::int64_t low = (desc.lo + by - 1) / by, high = highest / by;
  const auto at = [&](std::int64_t n) {
    sizes.size[static_cast<std::size_t>(axis)] = n * by;
    return dim.value(sizes).value_or(std::numeric_limits<std::int64_t>::max());
  };
  if (low > high) return std::nullopt;
  const std::int64_t most = high;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (at(middle) >= wanted) high = middle;
    else low = middle + 1;
  }
  if (at(low) != wanted || (low < most && at(low + 1) == wanted)) return std::nullopt;
  return low * by;
}

Result<std::vector<PortDim>> parse_port_shape(std::string_view shape, std::span<const AxisDesc> axes) {
  const std::string_view text = trim(shape);
  std::vector<PortDim> dims;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return Error{"axis", quote(text) + " is not a shape", {}, {}};
  const std::string_view inner = trim(text.substr(1, text.size() - 2));
  // Commas inside of div( , ) do not part axes.
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= inner.size() && !inner.empty(); ++i) {
    if (i < inner.size() && inner[i] == '(') ++depth;
    if (i < inner.size() && inner[i] == ')') --depth;
    if (i < inner.size() && (inner[i] != ',' || depth > 0)) continue;
    auto dim = PortDim::parse(inner.substr(begin, i - begin), axes);
    if (!dim) return std::move(dim.error());
    dims.push_back(std::move(*dim));
    begin = i + 1;
  }
  if (dims.size() > Shape::max_rank) return Error{"axis", "a shape of more than " + std::to_string(Shape::max_rank) + " axes", {}, {}};
  return dims;
}

}  // namespace modelc
