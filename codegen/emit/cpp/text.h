// Pieces of C++ text: the one escaper for whatever comes from a file, numbers that read back exactly, and wrapped lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/dims.h"

namespace modelc::emit {

// "a\"b" with quotes; every byte outside printable ASCII as an escape, so that no text can end the literal early, form a
// trigraph or join with the next.
std::string string_literal(std::string_view text);

// For a // comment: one line, no backslash at its end, no control characters, at most `most` code points.
std::string comment_text(std::string_view text, std::size_t most = 100);

// 0.25F, 1e-05F, modelc's infinity and NaN where C++ has no literal.
std::string float_literal(double value);
std::string double_literal(double value);

// What the run-time axes belong to where the expression stands: "s.tokens()", "tokens()".
struct AxisNames {
  std::string object;
};

// A dim as an expression of type std::int64_t: "768 * s.tokens() + 64".
std::string dim_expression(const graph::DimTable& dims, graph::DimId dim, const AxisNames& names);
// "{s.tokens(), 4, 16}"
std::string shape_expression(const graph::DimTable& dims, const std::vector<graph::DimId>& shape, const AxisNames& names);

// head + "a, b, c" + tail, broken into lines of at most 120 columns, the following ones indented to behind `head`.
std::string wrapped(const std::string& head, const std::vector<std::string>& items, const std::string& tail);

}  // namespace modelc::emit
