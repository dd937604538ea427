#include "codegen/lower/sizes.h"

#include <algorithm>
#include <map>

namespace modelc::lower {

namespace {

using graph::DimId;
using graph::DimTable;

DimId of_atom(DimTable& dims, std::uint32_t index) {
  const DimTable::Atom a = dims.atom(index);
  return a.divisor == 0 ? dims.of_axis(a.axis) : dims.floor_div(a.dividend, a.divisor);
}

DimId from_terms(DimTable& dims, const std::vector<DimTable::Term>& terms) {
  DimId sum = dims.constant(0);
  for (const DimTable::Term& t : terms) {
    DimId product = dims.constant(t.coefficient);
    for (std::uint32_t a : t.atoms) product = dims.mul(product, of_atom(dims, a));
    sum = dims.add(sum, product);
  }
  return sum;
}

}  // namespace

DimId padded_bytes(DimTable& dims, const std::vector<DimId>& shape) {
  DimId bytes = dims.constant(4);
  for (DimId d : shape) bytes = dims.mul(bytes, d);
  std::vector<DimTable::Term> terms = dims.terms(bytes);
  // Terms below zero ([tokens - 1]) are left out: a little more than is needed, and every sum stays aligned.
  std::erase_if(terms, [](const DimTable::Term& t) { return t.coefficient <= 0; });
  for (DimTable::Term& t : terms) t.coefficient = (t.coefficient + 63) / 64 * 64;
  return from_terms(dims, terms);
}

DimId upper_of(DimTable& dims, DimId a, DimId b) {
  if (a == b) return a;
  std::map<std::vector<std::uint32_t>, std::int64_t> largest;
  for (const auto& t : dims.terms(a)) largest[t.atoms] = t.coefficient;
  for (const auto& t : dims.terms(b)) {
    auto [it, fresh] = largest.try_emplace(t.atoms, t.coefficient);
    if (!fresh) it->second = std::max(it->second, t.coefficient);
  }
  std::vector<DimTable::Term> terms;
  for (const auto& [atoms, coefficient] : largest)
    if (coefficient > 0) terms.push_back({coefficient, atoms});
  return from_terms(dims, terms);
}

}  // namespace modelc::lower
