#include "runtime/checkpoint/mapping_names.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/name_patterns.h"

namespace modelc {
namespace {

constexpr std::size_t compared_groups = 200;               // left-over patterns looked at: the search is quadratic

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The name with its numbers as '#'.
std::string skeleton_of(std::string_view name) {
  std::string s;
  for (std::string_view part : split(name, '.')) {
    if (!s.empty()) s += '.';
    if (is_number(part)) s += '#';
    else s += part;
  }
  return s;
}

// One is the other with components before it: "model.layers.0.x" and "layers.0.x".
bool lacks_prefix(std::string_view a, std::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  return a.size() > b.size() + 1 && a.ends_with(b) && a[a.size() - b.size() - 1] == '.' &&
         b.find('.') != std::string_view::npos;
}

bool begins_or_ends(std::string_view whole, std::string_view part) {
  return whole.starts_with(part) || whole.ends_with(part);
}

// How far apart two names are when they can be a slip of each other: their components are equal, but for one that is
// near (3 edits at most, a third of its length; "gate" for "gate_proj") or one that is missing.
std::optional<std::size_t> slip(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  const auto x = split(a, '.'), y = split(b, '.');
  if (x.size() > TensorPattern::max_components || y.size() > TensorPattern::max_components) return std::nullopt;
  if (x.size() == y.size()) {
    std::size_t cost = 0, different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == y[i]) continue;
      if (++different > 1) return std::nullopt;
      const std::size_t longest = std::max(x[i].size(), y[i].size());
      if (longest > 200) return std::nullopt;
      const std::size_t limit = std::clamp<std::size_t>(longest / 3, 1, 3);
      cost = edit_distance(x[i], y[i], limit);
      if (cost > limit && !begins_or_ends(x[i], y[i]) && !begins_or_ends(y[i], x[i])) return std::nullopt;
    }
    return cost;
  }
  const auto& longer = x.size() > y.size() ? x : y;
  const auto& shorter = x.size() > y.size() ? y : x;
  if (longer.size() != shorter.size() + 1 || shorter.size() < 2) return std::nullopt;
  std::size_t skipped = 0;
  for (std::size_t i = 0; i < longer.size(); ++i) {
    if (i - skipped < shorter.size() && longer[i] == shorter[i - skipped]) continue;
    if (++skipped > 1) return std::nullopt;
  }
  return 4;
}

}  // namespace

FileNames::FileNames(const std::vector<MappingRules::Rename>& renames) {
  for (const auto& r : renames) rules_.push_back({TensorPattern(r.model), TensorPattern(r.file)});
  std::stable_sort(rules_.begin(), rules_.end(),
                   [](const Rule& a, const Rule& b) { return a.model.size() > b.model.size(); });
}

std::string FileNames::in_file(const std::string& weight) const {
  for (const Rule& r : rules_) {
    std::string rest;
    const auto captures = r.model.match_prefix(weight, rest);
    if (!captures) continue;
    auto name = r.file.fill(*captures);
    if (!name) continue;
    if (rest.empty()) return *name;
    return name->empty() ? rest : *name + "." + rest;
  }
  return weight;
}

NearNames::NearNames(std::span<const std::string> candidates) {
  for (const NamePattern& p : group_names(candidates)) {
    if (groups_.size() == compared_groups) break;
    const std::string& first = candidates[p.members[0]];
    groups_.push_back({printable(p.text), first, skeleton_of(first)});
  }
}

std::optional<std::string> NearNames::instead_of(const std::vector<std::string>& names) const {
  const std::string skeleton = skeleton_of(names.front());
  const Group* best = nullptr;
  std::size_t least = 0;
  for (const Group& g : groups_) {
    std::optional<std::size_t> cost = slip(skeleton, g.skeleton);
    if (!cost && lacks_prefix(skeleton, g.skeleton)) cost = 5;
    if (!cost || (best != nullptr && *cost >= least)) continue;
    best = &g;
    least = *cost;
  }
  if (best == nullptr) return std::nullopt;
  return best->text;
}

void AlikeNames::add(const std::string& name) { by_skeleton_[skeleton_of(name)].push_back(name); }

std::string AlikeNames::pattern(const std::string& name) const {
  const auto at = by_skeleton_.find(skeleton_of(name));
  if (at == by_skeleton_.end()) return {};
  const auto lines = name_lines(at->second, 1);
  return lines.empty() ? "" : lines[0];
}

std::string as_rule(const NamePattern& group) {
  std::string s;
  for (const std::string& part : group.parts) {
    if (!s.empty()) s += '.';
    s += part.starts_with('{') ? "*" : part;
  }
  return printable(s);
}

}  // namespace modelc
