#include "codegen/emit/cpp/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "codegen/emit/cpp/namer.h"
#include "runtime/abi/axes.h"

namespace modelc::emit {

std::string string_literal(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      s += '\\';
      s += c;
    } else if (c == '\n') {
      s += "\\n";
    } else if (u < 0x20 || u >= 0x7f) {
      s += fmt::format("\\{:03o}", u);           // three octal digits: never takes in what follows
    } else if (c == '?' && !s.empty() && s.back() == '?') {
      s += "\\?";
    } else {
      s += c;
    }
  }
  return s + "\"";
}

std::string comment_text(std::string_view text, std::size_t most) {
  std::string s;
  std::size_t count = 0;
  bool space = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto u = static_cast<unsigned char>(text[i]);
    if (u <= 0x20 || u == 0x7f) {
      space = !s.empty();
      continue;
    }
    const bool first_byte = (u & 0xc0) != 0x80;
    if (first_byte && count >= most) {
      s += "...";
      break;
    }
    if (space) s += ' ', ++count, space = false;
    s += text[i];
    count += first_byte ? 1 : 0;
  }
  while (!s.empty() && (s.back() == '\\' || s.back() == ' ')) s.pop_back();
  // Two question marks and a slash are a backslash to a compiler that reads trigraphs.
  for (std::size_t at = s.find("?"
                               "?/");
       at != std::string::npos; at = s.find("?"
                                            "?/",
                                            at))
    s.replace(at, 3, "? ?/");
  return s;
}

std::string double_literal(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value)) return value > 0 ? "std::numeric_limits<double>::infinity()" : "-std::numeric_limits<double>::infinity()";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string s(buffer, end);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

std::string float_literal(double value) {
  if (std::isnan(value)) return "std::numeric_limits<float>::quiet_NaN()";
  const auto f = static_cast<float>(value);
  if (std::isinf(f)) return f > 0 ? "std::numeric_limits<float>::infinity()" : "-std::numeric_limits<float>::infinity()";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, f).ptr;
  std::string s(buffer, end);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + "F";
}

namespace {

// Those that every model has are functions, a model's own are numbers.
std::string axis_call(const graph::DimTable& dims, graph::AxisId axis) {
  const std::string name = identifier(dims.axis(axis).name);
  return axis.index < prelude_axes.size() ? name + "()" : "axis(axes::" + name + ")";
}

}  // namespace

std::string dim_expression(const graph::DimTable& dims, graph::DimId dim, const AxisNames& names) {
  if (const auto v = dims.value(dim)) return std::to_string(*v);
  std::string s;
  for (const auto& term : dims.terms(dim)) {
    std::string t;
    const std::int64_t magnitude = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (magnitude != 1 || term.atoms.empty()) t = std::to_string(magnitude);
    for (const std::uint32_t index : term.atoms) {
      const auto& a = dims.atom(index);
      std::string atom = a.divisor == 0 ? names.object + axis_call(dims, a.axis)
                                        : fmt::format("({}) / {}", dim_expression(dims, a.dividend, names), a.divisor);
      if (a.divisor != 0) atom = "(" + atom + ")";
      t += (t.empty() ? "" : " * ") + atom;
    }
    if (s.empty()) s = (term.coefficient < 0 ? "-" : "") + t;
    else s += (term.coefficient < 0 ? " - " : " + ") + t;
  }
  return s.empty() ? "0" : s;
}

std::string shape_expression(const graph::DimTable& dims, const std::vector<graph::DimId>& shape, const AxisNames& names) {
  std::string s = "{";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + dim_expression(dims, shape[i], names);
  return s + "}";
}

std::string wrapped(const std::string& head, const std::vector<std::string>& items, const std::string& tail) {
  const std::size_t newline = head.rfind('\n');
  const std::size_t indent = head.size() - (newline == std::string::npos ? 0 : newline + 1);
  std::string s = head;
  std::size_t column = indent;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : tail);
    if (i > 0) {
      if (column + 1 + item.size() > 120) {
        s += "\n" + std::string(indent, ' ');
        column = indent;
      } else {
        s += ' ';
        ++column;
      }
    }
    s += item;
    const std::size_t last = item.rfind('\n');
    column = last == std::string::npos ? column + item.size() : item.size() - last - 1;
  }
  if (items.empty()) s += tail;
  return s;
}

}  // namespace modelc::emit
