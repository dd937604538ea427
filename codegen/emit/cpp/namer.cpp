#include "codegen/emit/cpp/namer.h"

#include <algorithm>
#include <array>

namespace modelc::emit {

namespace {

// Keywords and alternative tokens of C++23, and the macros of standard headers that generated code includes.
constexpr std::array<std::string_view, 106> reserved = {"alignas",
                                                        "alignof",
                                                        "and",
                                                        "and_eq",
                                                        "asm",
                                                        "assert",
                                                        "auto",
                                                        "bitand",
                                                        "bitor",
                                                        "bool",
                                                        "break",
                                                        "case",
                                                        "catch",
                                                        "char",
                                                        "char16_t",
                                                        "char32_t",
                                                        "char8_t",
                                                        "class",
                                                        "co_await",
                                                        "co_return",
                                                        "co_yield",
                                                        "compl",
                                                        "concept",
                                                        "const",
                                                        "const_cast",
                                                        "consteval",
                                                        "constexpr",
                                                        "constinit",
                                                        "continue",
                                                        "decltype",
                                                        "default",
                                                        "delete",
                                                        "do",
                                                        "double",
                                                        "dynamic_cast",
                                                        "else",
                                                        "enum",
                                                        "errno",
                                                        "explicit",
                                                        "export",
                                                        "extern",
                                                        "false",
                                                        "float",
                                                        "for",
                                                        "friend",
                                                        "goto",
                                                        "if",
                                                        "inline",
                                                        "int",
                                                        "linux",
                                                        "long",
                                                        "main",
                                                        "mutable",
                                                        "namespace",
                                                        "new",
                                                        "noexcept",
                                                        "not",
                                                        "not_eq",
                                                        "nullptr",
                                                        "operator",
                                                        "or",
                                                        "or_eq",
                                                        "private",
                                                        "protected",
                                                        "public",
                                                        "register",
                                                        "reinterpret_cast",
                                                        "requires",
                                                        "return",
                                                        "short",
                                                        "signed",
                                                        "sizeof",
                                                        "static",
                                                        "static_assert",
                                                        "static_cast",
                                                        "stderr",
                                                        "stdin",
                                                        "stdout",
                                                        "struct",
                                                        "switch",
                                                        "template",
                                                        "this",
                                                        "thread_local",
                                                        "throw",
                                                        "true",
                                                        "try",
                                                        "typedef",
                                                        "typeid",
                                                        "typename",
                                                        "union",
                                                        "unix",
                                                        "unsigned",
                                                        "using",
                                                        "virtual",
                                                        "void",
                                                        "volatile",
                                                        "wchar_t",
                                                        "while",
                                                        "xor",
                                                        "xor_eq",
                                                        "final",
                                                        "override",
                                                        "import",
                                                        "module",
                                                        "std",
                                                        "modelc"};

// Other macros of system headers, by their looks: all capitals with an underscore, errors of errno, and a few words.
bool looks_like_macro(std::string_view s) {
  constexpr std::array<std::string_view, 12> words = {"NULL",  "NAN",  "SNAN", "INFINITY", "BUFSIZ",   "MAXFLOAT",
                                                      "NZERO", "WEOF", "EOF",  "EIO",      "offsetof", "alloca"};
  if (std::find(words.begin(), words.end(), s) != words.end()) return true;
  const bool capitals = std::none_of(s.begin(), s.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return capitals && ((s.size() > 3 && s[0] == 'E') || s.find('_', 1) < s.size() - 1);
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string s;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    if (letter || digit) s += c;
    else if (s.empty() || s.back() != '_') s += '_';         // two underscores in a row are the implementation's
  }
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) s.insert(0, "n");
  if (s[0] == '_') s.insert(0, "n");
  if (std::find(reserved.begin(), reserved.end(), s) != reserved.end() || looks_like_macro(s)) s += '_';
  return s;
}

std::string snake_case(std::string_view name) {
  std::string s;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool upper = c >= 'A' && c <= 'Z';
    const bool before_lower = i + 1 < name.size() && name[i + 1] >= 'a' && name[i + 1] <= 'z';
    const bool after_lower = i > 0 && !(name[i - 1] >= 'A' && name[i - 1] <= 'Z') && name[i - 1] != '_';
    if (upper && i > 0 && (after_lower || (before_lower && name[i - 1] != '_'))) s += '_';
    s += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return identifier(s);
}

Scope::Scope(std::initializer_list<std::string_view> taken) {
  for (std::string_view s : taken) names_.emplace(s);
}

std::string Scope::unique(std::string_view name) {
  const std::string base = identifier(name);
  std::string s = base;
  for (int i = 2; !names_.insert(s).second; ++i) s = base + (base.back() == '_' ? "" : "_") + std::to_string(i);
  return s;
}

}  // namespace modelc::emit
