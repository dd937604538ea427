#include "frontend/diagnostics/codes.h"

#include <cctype>

namespace modelc::diag {

namespace {

constexpr Code table[] = {
#define MODELC_CODE(ID, CODE, TITLE, EXPLANATION) code::ID,
#include "frontend/diagnostics/codes/all.def"
#undef MODELC_CODE
};

bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::toupper(static_cast<unsigned char>(a[i])) != std::toupper(static_cast<unsigned char>(b[i]))) return false;
  }
  return true;
}

}  // namespace

std::span<const Code> all_codes() { return table; }

const Code* find_code(std::string_view text) {
  for (const Code& c : table) {
    if (same_text(c.text, text)) return &c;
  }
  return nullptr;
}

std::string explain(const Code& code) {
  std::string s;
  s.append(code.text).append(": ").append(code.title).append("\n\n");
  // The tables write one paragraph a line or more; blank ends do not count.
  std::string_view body = code.explanation;
  while (!body.empty() && std::isspace(static_cast<unsigned char>(body.front()))) body.remove_prefix(1);
  while (!body.empty() && std::isspace(static_cast<unsigned char>(body.back()))) body.remove_suffix(1);
  return s.append(body).append("\n");
}

}  // namespace modelc::diag
