#include "frontend/graph/dims.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace modelc::graph {

namespace {

using Term = DimTable::Term;
using Terms = std::vector<Term>;

// Coefficients stay within ±(2^63 - 1), so that each can be negated.
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

bool checked_add(std::int64_t a, std::int64_t b, std::int64_t& sum) { return !__builtin_add_overflow(a, b, &sum) && sum >= -largest; }
bool checked_mul(std::int64_t a, std::int64_t b, std::int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product) && product >= -largest;
}
std::int64_t floor_quotient(std::int64_t a, std::int64_t d) {
  std::int64_t q = a / d;
  return a % d < 0 ? q - 1 : q;
}

// Graded lexicographic, highest first: a monomial order, so that the leading term of a product is the product of the
// leading terms.
bool before(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return a < b;
}

// Sorts, adds up equal monomials, drops zeros. False on overflow.
bool normalise(Terms& terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return before(a.atoms, b.atoms); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms.size();) {
    Term sum = std::move(terms[i]);
    for (++i; i < terms.size() && terms[i].atoms == sum.atoms; ++i)
      if (!checked_add(sum.coefficient, terms[i].coefficient, sum.coefficient)) return false;
    if (sum.coefficient != 0) terms[kept++] = std::move(sum);
  }
  terms.resize(kept);
  return kept <= DimTable::max_terms;
}

std::vector<std::uint32_t> merged(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> all(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), all.begin());
  return all;
}

std::size_t hash_of(const Terms& terms) {
  std::size_t h = terms.size();
  auto mix = [&h](std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  };
  for (const Term& t : terms) {
    mix(static_cast<std::uint64_t>(t.coefficient));
    for (std::uint32_t a : t.atoms) mix(a + 1ull);
  }
  return h;
}

}  // namespace

DimTable::DimTable() {
  dims_.emplace_back();                                                       // DimId 0: the constant 0
  by_hash_.emplace(hash_of({}), 0);
  dims_.push_back({Term{0, {}}});                                             // too_large: no polynomial looks like it
}

AxisId DimTable::add_axis(Axis axis) {
  assert(!find_axis(axis.name));
  axes_.push_back(std::move(axis));
  return AxisId{static_cast<std::uint32_t>(axes_.size() - 1)};
}

std::optional<AxisId> DimTable::find_axis(std::string_view name) const {
  for (std::uint32_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name) return AxisId{i};
  return std::nullopt;
}

const Axis& DimTable::axis(AxisId id) const {
  assert(id.index < axes_.size());
  return axes_[id.index];
}
const std::vector<Axis>& DimTable::axes() const { return axes_; }

const std::vector<Term>& DimTable::terms(DimId id) const {
  assert(id.index < dims_.size());
  return dims_[id.index];
}
const DimTable::Atom& DimTable::atom(std::uint32_t index) const {
  assert(index < atoms_.size());
  return atoms_[index];
}

DimId DimTable::intern(Terms terms) {
  if (!normalise(terms)) return too_large;
  for (const Term& t : terms)
    if (t.atoms.size() > max_degree) return too_large;
  const std::size_t h = hash_of(terms);
  for (auto [it, end] = by_hash_.equal_range(h); it != end; ++it)
    if (dims_[it->second] == terms) return DimId{it->second};
  const auto index = static_cast<std::uint32_t>(dims_.size());
  dims_.push_back(std::move(terms));
  by_hash_.emplace(h, index);
  return DimId{index};
}

std::uint32_t DimTable::intern_atom(Atom atom) {
  for (std::uint32_t i = 0; i < atoms_.size(); ++i)
    if (atoms_[i] == atom) return i;
  atoms_.push_back(atom);
  return static_cast<std::uint32_t>(atoms_.size() - 1);
}

DimId DimTable::of_atom(std::uint32_t atom) { return intern({Term{1, {atom}}}); }

DimId DimTable::constant(std::int64_t value) {
  if (value < -largest) return too_large;
  return intern({Term{value, {}}});
}

DimId DimTable::of_axis(AxisId axis) {
  assert(axis.index < axes_.size());
  return of_atom(intern_atom(Atom{axis, DimId{}, 0}));
}

DimId DimTable::add(DimId a, DimId b) {
  if (a == too_large || b == too_large) return too_large;
  Terms sum = terms(a);
  sum.insert(sum.end(), terms(b).begin(), terms(b).end());
  return intern(std::move(sum));
}

DimId DimTable::sub(DimId a, DimId b) { return add(a, mul(b, constant(-1))); }

DimId DimTable::mul(DimId a, DimId b) {
  if (a == too_large || b == too_large) return too_large;
  if (terms(a).size() * terms(b).size() > max_terms) return too_large;
  Terms product;
  for (const Term& s : terms(a))
    for (const Term& t : terms(b)) {
      std::int64_t c = 0;
      if (!checked_mul(s.coefficient, t.coefficient, c)) return too_large;
      product.push_back(Term{c, merged(s.atoms, t.atoms)});
    }
  return intern(std::move(product));
}

DimId DimTable::floor_div(DimId a, std::int64_t divisor) {
  assert(divisor >= 1);
  if (a == too_large) return too_large;
  Terms all = terms(a);

  // floor((g·P + c) / (g·d)) = floor((P + floor(c / g)) / d) for integers: P, an integer polynomial, g of its content.
  std::int64_t g = divisor;
  for (const Term& t : all)
    if (!t.atoms.empty()) g = std::gcd(g, t.coefficient);
  for (Term& t : all) t.coefficient = floor_quotient(t.coefficient, g);
  divisor /= g;

  // floor((d·Q + R) / d) = Q + floor(R / d), where R has coefficients in 0 … d - 1.
  Terms quotient, rest;
  for (const Term& t : all) {
    const std::int64_t q = floor_quotient(t.coefficient, divisor);
    if (q != 0) quotient.push_back(Term{q, t.atoms});
    if (t.coefficient != q * divisor) rest.push_back(Term{t.coefficient - q * divisor, t.atoms});
  }
  DimId whole = intern(std::move(quotient));
  if (rest.empty() || rest[0].atoms.empty()) return whole;                    // a constant rest is less than d

  // floor((floor(x / m) + c) / d) = floor((x + c·m) / (m·d)).
  const bool one_atom =
      rest[0].coefficient == 1 && rest[0].atoms.size() == 1 && (rest.size() == 1 || (rest.size() == 2 && rest[1].atoms.empty()));
  if (one_atom && atoms_[rest[0].atoms[0]].divisor != 0) {
    const Atom inner = atoms_[rest[0].atoms[0]];
    const std::int64_t c = rest.size() == 2 ? rest[1].coefficient : 0;
    std::int64_t shift = 0, both = 0;
    if (!checked_mul(c, inner.divisor, shift) || !checked_mul(inner.divisor, divisor, both)) return too_large;
    return add(whole, floor_div(add(inner.dividend, constant(shift)), both));
  }
  const DimId dividend = intern(std::move(rest));
  if (dividend == too_large) return too_large;
  return add(whole, of_atom(intern_atom(Atom{AxisId{}, dividend, divisor})));
}

std::optional<DimId> DimTable::exact_div(DimId a, DimId b) {
  if (a == too_large || b == too_large || terms(b).empty()) return std::nullopt;
  // Division of polynomials: leading term by leading term, until nothing is left or one does not divide.
  const Term lead = terms(b)[0];
  DimId quotient;
  for (DimId rest = a; !terms(rest).empty();) {
    const Term& t = terms(rest)[0];
    if (t.coefficient % lead.coefficient != 0) return std::nullopt;
    if (!std::includes(t.atoms.begin(), t.atoms.end(), lead.atoms.begin(), lead.atoms.end())) return std::nullopt;
    Term q{t.coefficient / lead.coefficient, {}};
    std::set_difference(t.atoms.begin(), t.atoms.end(), lead.atoms.begin(), lead.atoms.end(), std::back_inserter(q.atoms));
    const DimId step = intern({std::move(q)});
    quotient = add(quotient, step);
    rest = sub(rest, mul(step, b));
    if (quotient == too_large || rest == too_large) return std::nullopt;
  }
  return quotient;
}

std::optional<std::int64_t> DimTable::value(DimId id) const {
  if (id == too_large) return std::nullopt;
  const Terms& t = terms(id);
  if (t.empty()) return 0;
  if (t.size() == 1 && t[0].atoms.empty()) return t[0].coefficient;
  return std::nullopt;
}

std::optional<std::int64_t> DimTable::evaluate(DimId id, const std::vector<std::int64_t>& axis_sizes) const {
  if (id == too_large) return std::nullopt;
  std::int64_t sum = 0;
  for (const Term& t : terms(id)) {
    std::int64_t product = t.coefficient;
    for (std::uint32_t index : t.atoms) {
      const Atom& a = atoms_[index];
      std::int64_t factor = 0;
      if (a.divisor == 0) {
        if (a.axis.index >= axis_sizes.size() || axis_sizes[a.axis.index] < 0) return std::nullopt;
        factor = axis_sizes[a.axis.index];
      } else {
        std::optional<std::int64_t> dividend = evaluate(a.dividend, axis_sizes);
        if (!dividend) return std::nullopt;
        factor = floor_quotient(*dividend, a.divisor);
      }
      if (!checked_mul(product, factor, product)) return std::nullopt;
    }
    if (!checked_add(sum, product, sum)) return std::nullopt;
  }
  return sum;
}

DimTable::Range DimTable::range(DimId id) const {
  if (id == too_large) return {};
  Range sum{0, 0};
  for (const Term& t : terms(id)) {
    // The product of intervals; ends that overflow or are not known become none.
    Range product{t.coefficient, t.coefficient};
    for (std::uint32_t index : t.atoms) {
      const Atom& a = atoms_[index];
      Range f;
      if (a.divisor == 0) {
        f = Range{axes_[a.axis.index].lo, axes_[a.axis.index].hi};
      } else {
        const Range d = range(a.dividend);
        if (d.lo) f.lo = floor_quotient(*d.lo, a.divisor);
        if (d.hi) f.hi = floor_quotient(*d.hi, a.divisor);
      }
      Range r;
      if (product.lo && product.hi && f.lo && f.hi) {
        std::int64_t e[4];
        if (checked_mul(*product.lo, *f.lo, e[0]) && checked_mul(*product.lo, *f.hi, e[1]) && checked_mul(*product.hi, *f.lo, e[2]) &&
            checked_mul(*product.hi, *f.hi, e[3]))
          r = Range{*std::min_element(e, e + 4), *std::max_element(e, e + 4)};
      } else if (f.lo && *f.lo >= 0 && product.lo && *product.lo >= 0) {      // both not negative: upwards unbounded
        std::int64_t low = 0;
        if (checked_mul(*product.lo, *f.lo, low)) r.lo = low;
      } else if (f.lo && *f.lo >= 0 && product.hi && *product.hi <= 0) {      // downwards unbounded
        std::int64_t high = 0;
        if (checked_mul(*product.hi, *f.lo, high)) r.hi = high;
      }
      product = r;
    }
    auto plus = [](std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
      std::int64_t s = 0;
      return a && b && checked_add(*a, *b, s) ? std::optional(s) : std::nullopt;
    };
    sum = Range{plus(sum.lo, product.lo), plus(sum.hi, product.hi)};
  }
  return sum;
}

std::optional<std::int64_t> DimTable::upper_bound(DimId id) const { return range(id).hi; }

std::string DimTable::text(DimId id) const {
  if (id == too_large) return "?";
  std::string s;
  for (const Term& t : terms(id)) {
    const bool negative = t.coefficient < 0;
    const std::int64_t size = negative ? -t.coefficient : t.coefficient;
    s += s.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::string product;
    if (size != 1 || t.atoms.empty()) product = std::to_string(size);
    for (std::uint32_t index : t.atoms) {
      const Atom& a = atoms_[index];
      if (!product.empty()) product += " * ";
      product += a.divisor == 0 ? axes_[a.axis.index].name : "div(" + text(a.dividend) + ", " + std::to_string(a.divisor) + ")";
    }
    s += product;
  }
  return s.empty() ? "0" : s;
}

namespace {

// sum: ['-'] product (('+' | '-') product)* ; product: factor ('*' factor)* ;
// factor: INT | axis | 'div' '(' sum ',' INT ')' | '(' sum ')'
class Parser {
 public:
  Parser(DimTable& dims, std::string_view text) : dims_(dims), text_(text) {}

  std::optional<DimId> whole() {
    std::optional<DimId> d = sum(0);
    skip_space();
    if (!d || at_ != text_.size() || *d == DimTable::too_large) return std::nullopt;
    return d;
  }

 private:
  static constexpr int max_depth = 32;

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  std::optional<std::int64_t> integer() {
    skip_space();
    const std::size_t begin = at_;
    std::int64_t v = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      if (!checked_mul(v, 10, v) || !checked_add(v, text_[at_] - '0', v)) return std::nullopt;
    if (at_ == begin) return std::nullopt;
    return v;
  }

  std::optional<DimId> sum(int depth) {
    if (depth > max_depth) return std::nullopt;
    const bool negative = take('-');
    std::optional<DimId> total = product(depth);
    if (total && negative) total = dims_.mul(*total, dims_.constant(-1));
    while (total) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      std::optional<DimId> next = product(depth);
      if (!next) return std::nullopt;
      total = plus ? dims_.add(*total, *next) : dims_.sub(*total, *next);
    }
    return total;
  }

  std::optional<DimId> product(int depth) {
    std::optional<DimId> total = factor(depth);
    while (total && take('*')) {
      std::optional<DimId> next = factor(depth);
      if (!next) return std::nullopt;
      total = dims_.mul(*total, *next);
    }
    return total;
  }

  std::optional<DimId> factor(int depth) {
    skip_space();
    if (at_ >= text_.size()) return std::nullopt;
    if (take('(')) {
      std::optional<DimId> d = sum(depth + 1);
      if (!d || !take(')')) return std::nullopt;
      return d;
    }
    if (is_digit(text_[at_])) {
      std::optional<std::int64_t> v = integer();
      if (!v) return std::nullopt;
      return dims_.constant(*v);
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > begin && is_digit(text_[at_])))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) return std::nullopt;
    if (name == "div" && take('(')) {
      std::optional<DimId> d = sum(depth + 1);
      if (!d || !take(',')) return std::nullopt;
      std::optional<std::int64_t> by = integer();
      if (!by || *by < 1 || !take(')')) return std::nullopt;
      return dims_.floor_div(*d, *by);
    }
    std::optional<AxisId> axis = dims_.find_axis(name);
    if (!axis) return std::nullopt;
    return dims_.of_axis(*axis);
  }

  DimTable& dims_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<DimId> DimTable::parse(std::string_view text) { return Parser(*this, text).whole(); }

void add_prelude_axes(DimTable& dims) {
  dims.add_axis(Axis{.name = "tokens"});
  dims.add_axis(Axis{.name = "outputs", .lo = 0});                            // a chunk of a prompt may want none
  dims.add_axis(Axis{.name = "batch"});
  dims.add_axis(Axis{.name = "seq"});
}

}  // namespace modelc::graph
