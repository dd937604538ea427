#include <algorithm>
#include <cctype>

#include "frontend/diagnostics/diagnostics.h"

namespace modelc::diag {

namespace {

// Costs are in halves, so that a change of letter case, or of `_` to `-`, can cost less than another letter.
constexpr std::size_t whole = 2;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::size_t replace_cost(char a, char b) {
  if (a == b) return 0;
  const bool joins = (a == '_' || a == '-' || a == '.') && (b == '_' || b == '-' || b == '.');
  return lower(a) == lower(b) || joins ? 1 : whole;
}

// Edit distance with neighbours exchanged as one edit, in halves of an edit; `limit` + 1 when it is beyond the limit.
std::size_t distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference * whole > limit) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j * whole;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i * whole;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + whole, row[j - 1] + whole, last[j - 1] + replace_cost(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) { row[j] = std::min(row[j], before[j - 2] + whole); }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], limit + 1);
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates) {
  // A name longer than any in the field is no slip of the pen; it would only cost time.
  if (name.empty() || name.size() > 256) return std::nullopt;
  std::size_t limit = std::max<std::size_t>(1, name.size() / 3) * whole;
  const std::string* best = nullptr;
  for (const std::string& c : candidates) {
    // All letters changed is another name.
    const std::size_t d = distance(name, c, limit);
    if (d > limit || d >= std::max(name.size(), c.size()) * whole) continue;
    if (best != nullptr && d == limit) continue;
    best = &c;
    limit = d;
    if (d == 0) break;
  }
  if (best != nullptr) return *best;
  // Words of a name: `bias` where `has_bias` is meant.
  constexpr std::size_t shortest_word = 3;
  for (const std::string& c : candidates) {
    const std::string& longer = c.size() > name.size() ? c : std::string(name);
    const std::string_view shorter = c.size() > name.size() ? name : std::string_view(c);
    if (shorter.size() < shortest_word || longer.size() == shorter.size()) continue;
    if (("_" + longer + "_").find("_" + std::string(shorter) + "_") != std::string::npos) return c;
  }
  return std::nullopt;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::optional<std::string> near = nearest(name, candidates);
  return near ? "did you mean `" + *near + "`?" : std::string();
}

}  // namespace modelc::diag
