// Products, summed in f64.
#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

// y[r, o] = Σ_i x[r, i] · w[o, i] + b[o]
Status linear(Call& c) {
  const Array &x = c.in(0), &w = c.in(1);
  Array& y = c.out();
  const auto outputs = static_cast<std::size_t>(w.shape[0]), inputs = static_cast<std::size_t>(w.shape[1]);
  const std::size_t rows = y.count() / outputs;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = c.has(2) ? c.in(2).reals[o] : 0.0;
      for (std::size_t i = 0; i < inputs; ++i) sum += double{x.reals[r * inputs + i]} * w.reals[o * inputs + i];
      y.reals[r * outputs + o] = round_to(y.dtype, sum);
    }
  return {};
}

// y[…, i, j] = Σ_l a[…, i, l] · b[…, l, j]
Status matmul(Call& c) {
  const Array &a = c.in(0), &b = c.in(1);
  Array& y = c.out();
  const auto m = static_cast<std::size_t>(y.shape[y.shape.size() - 2]), n = static_cast<std::size_t>(y.shape.back());
  const auto k = static_cast<std::size_t>(a.shape.back());
  const Shape lead(y.shape.begin(), y.shape.end() - 2);
  const Broadcast at_a(Shape(a.shape.begin(), a.shape.end() - 2), lead), at_b(Shape(b.shape.begin(), b.shape.end() - 2), lead);
  for_each_index(lead, [&](const Shape& index, std::size_t flat) {
    const float* p = a.reals.data() + at_a(index) * m * k;
    const float* q = b.reals.data() + at_b(index) * k * n;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += double{p[i * k + l]} * q[l * n + j];
        y.reals[(flat * m + i) * n + j] = round_to(y.dtype, sum);
      }
  });
  return {};
}

Status outer(Call& c) {
  const Array &a = c.in(0), &b = c.in(1);
  Array& y = c.out();
  for (std::size_t i = 0; i < a.count(); ++i)
    for (std::size_t j = 0; j < b.count(); ++j) y.reals[i * b.count() + j] = round_to(y.dtype, double{a.reals[i]} * b.reals[j]);
  return {};
}

// The sum over every letter that the result has not; the letters are numbered, the result's first.
Status einsum(Call& c) {
  const Einsum e = *parse_einsum(string_attr(c.op, "formula", ""));
  Array& y = c.out();
  std::string letters = e.result;
  for (const std::string& o : e.operands)
    for (char letter : o)
      if (letters.find(letter) == std::string::npos) letters += letter;
  constexpr double most = 1e10;                                               // products of numbers
  Shape inner;                                                                // sizes of the letters that are summed
  std::vector<std::vector<std::size_t>> steps;                                // of each operand, by letter
  std::vector<std::int64_t> sizes(letters.size(), 1);
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    const std::vector<std::size_t> strides = strides_of(c.in(i).shape);
    std::vector<std::size_t>& step = steps.emplace_back(letters.size(), 0);
    for (std::size_t axis = 0; axis < e.operands[i].size(); ++axis) {
      const std::size_t letter = letters.find(e.operands[i][axis]);
      step[letter] += strides[axis];                                          // a letter twice in one operand: its diagonal
      sizes[letter] = c.in(i).shape[axis];
    }
  }
  double terms = 1;
  for (std::int64_t s : sizes) terms *= static_cast<double>(s);
  if (terms > most) return Error{"size", "einsum: too many terms for the evaluator", {}, ""};
  inner.assign(sizes.begin() + static_cast<std::ptrdiff_t>(e.result.size()), sizes.end());
  for_each_index(y.shape, [&](const Shape& outer, std::size_t flat) {
    double sum = 0;
    for_each_index(inner, [&](const Shape& index, std::size_t) {
      double product = 1;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        std::size_t at = 0;
        for (std::size_t letter = 0; letter < letters.size(); ++letter)
          at += steps[i][letter] * static_cast<std::size_t>(letter < outer.size() ? outer[letter] : index[letter - outer.size()]);
        product *= c.in(i).reals[at];
      }
      sum += product;
    });
    y.reals[flat] = round_to(y.dtype, sum);
  });
  return {};
}

}  // namespace modelc::graph::eval::reference
