// Dimensions: interned integer expressions. Two dims are equal exactly when their ids are.
//
// A dim is kept as a polynomial with integer coefficients over atoms. An atom is a run-time axis (`tokens`, `frames`)
// or an integer division that does not work out (`div(frames + 1, 2)`). A dim without atoms is known at compile time:
// its value is all that counts for equality, while the formula that led to it (`heads * d`) travels beside it for
// messages (WeightDecl::shape_text), so that [heads * d] and [hidden_size] of one instance agree when both are 576.
//
// Arithmetic is checked: what leaves 64 bits (or grows beyond max_terms) is DimTable::too_large, which every operation
// on it gives again, which has no value and which same() holds different from all dims, itself included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace modelc::graph {

struct DimId {
  std::uint32_t index = 0;                       // 0 is the constant 0
  friend bool operator==(DimId, DimId) = default;
};

struct AxisId {
  std::uint32_t index = 0;
  friend bool operator==(AxisId, AxisId) = default;
};

// `axis frames: 2..3000 by 2`, or one of the prelude (tokens, outputs, batch, seq).
struct Axis {
  std::string name;
  std::int64_t lo = 1;                           // smallest size
  std::optional<std::int64_t> hi = {};           // largest size, inclusive; none: memory decides
  std::int64_t by = 1;                           // the size is a multiple of it
};

class DimTable {
 public:
  // What arithmetic gives that overflows; its text is "?", which parse() refuses.
  static constexpr DimId too_large{1};
  // Terms of one dim at most, and atoms multiplied in one term.
  static constexpr std::size_t max_terms = 256;
  static constexpr std::size_t max_degree = 16;

  DimTable();

  AxisId add_axis(Axis axis);                    // a name at most once (asserts)
  std::optional<AxisId> find_axis(std::string_view name) const;
  const Axis& axis(AxisId id) const;
  const std::vector<Axis>& axes() const;

  // Equal for every size of the axes, as far as the polynomials show. The test to use in shape rules.
  static bool same(DimId a, DimId b) { return a == b && a != too_large; }

  DimId constant(std::int64_t value);
  DimId of_axis(AxisId axis);
  DimId add(DimId a, DimId b);
  DimId sub(DimId a, DimId b);
  DimId mul(DimId a, DimId b);
  // floor(a / divisor), divisor >= 1 (asserts). Folded as far as coefficients divide: div(4 * t + 2, 4) is t and
  // div(div(t, 2), 3) is div(t, 6); what remains is an atom.
  DimId floor_div(DimId a, std::int64_t divisor);
  std::optional<DimId> exact_div(DimId a, DimId b);         // none unless a = b · q for a dim q

  std::optional<std::int64_t> value(DimId id) const;        // of a dim known at compile time
  bool is_constant(DimId id) const { return value(id).has_value(); }
  // With run-time sizes, one per axis in order; checked: none on overflow or an unbound (negative) axis in use.
  std::optional<std::int64_t> evaluate(DimId id, const std::vector<std::int64_t>& axis_sizes) const;
  // Upper bound by the axes' `hi`; none when an axis in it has none.
  std::optional<std::int64_t> upper_bound(DimId id) const;

  std::string text(DimId id) const;              // "576", "tokens", "2 * tokens + 1"; parse() reads it back
  std::optional<DimId> parse(std::string_view text);        // axes must be declared

  // The terms of the polynomial, for the memory plan: coefficient and the atoms multiplied.
  struct Atom {                                  // axis when divisor == 0, else floor(dividend / divisor)
    AxisId axis;
    DimId dividend;
    std::int64_t divisor = 0;
    friend bool operator==(const Atom&, const Atom&) = default;
  };
  struct Term {
    std::int64_t coefficient = 0;
    std::vector<std::uint32_t> atoms;            // indices into atoms(), sorted; empty: the constant term
    friend bool operator==(const Term&, const Term&) = default;
  };
  // References stay valid for the life of the table.
  const std::vector<Term>& terms(DimId id) const;           // highest degree first, the constant term last
  const Atom& atom(std::uint32_t index) const;
  std::size_t size() const { return dims_.size(); }         // dims made so far

 private:
  DimId intern(std::vector<Term> terms);
  std::uint32_t intern_atom(Atom atom);
  DimId of_atom(std::uint32_t atom);
  struct Range {
    std::optional<std::int64_t> lo, hi;
  };     // none: without bound
  Range range(DimId id) const;
  std::vector<Axis> axes_;
  std::deque<Atom> atoms_;
  std::deque<std::vector<Term>> dims_;
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
};

// The axes that every file has: tokens, outputs, batch, seq. A table gets them once, before any other.
void add_prelude_axes(DimTable& dims);

}  // namespace modelc::graph
