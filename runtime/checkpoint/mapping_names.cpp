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
  return a.size() > b.size() + 1 && a.ends_with(b) && a[a.size() - b.size() - 1] == '.' && b.find('.') != std::string_view::npos;
}

bool begins_or_ends(std::string_view whole, std::string_view part) { return whole.starts_with(part) || whole.ends_with(part); }

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

WeightRules::WeightRules(const MappingRules& rules, const std::vector<MappingWeight>& weights)
    : chosen(rules.sets.size(), 0), modules_have_paths_(rules.format == "safetensors") {
  for (const MappingWeight& w : weights) by_name_.emplace(w.name, &w);
  for (const auto& m : rules.maps) {
    auto via = parse_transforms(m.via);
    auto only = parse_only(m.only);
    if (!via || !only) continue;                           // rules are written by the compiler
    for (std::size_t i = 0; i < m.model.size(); ++i) rules_.push_back({&m, TensorPattern(m.model[i]), i, *only, *via});
  }
  std::stable_sort(rules_.begin(), rules_.end(), [](const Rule& a, const Rule& b) { return a.model.size() > b.model.size(); });
}

bool WeightRules::active(const Rule& r) const {
  return r.map->set < 0 || chosen[static_cast<std::size_t>(r.map->set)] == r.map->alternative;
}

WeightRules::Match WeightRules::match(const std::string& weight, bool names) const {
  for (const Rule& r : rules_) {
    if (r.map->file.empty() == names || !active(r)) continue;
    Match m;
    const auto captures = r.model.match_prefix(weight, m.rest);
    if (!captures || !r.only.hold(*captures)) continue;
    m.rule = &r;
    m.captures = *captures;
    return m;
  }
  return {};
}

std::string WeightRules::name_of(const std::string& pattern, const Match& m, const std::string& rest) const {
  const auto name = TensorPattern(pattern).fill(m.captures);
  if (!name) return {};
  if (rest.empty()) return *name;
  return name->empty() ? rest : *name + "." + rest;
}

bool WeightRules::concerns(int set, const std::string& weight) const {
  std::string rest;
  for (const Rule& r : rules_) {
    if (r.map->set != set) continue;
    const auto captures = r.model.match_prefix(weight, rest);
    if (captures && r.only.hold(*captures)) return true;
  }
  return false;
}

const MappingWeight* WeightRules::weight_called(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

std::string WeightRules::via_of(const std::string& weight) const {
  std::string s;
  for (bool names : {true, false}) {
    const Match m = match(weight, names);
    if (m.rule != nullptr && !m.rule->map->via.empty()) s += (s.empty() ? "" : ", ") + m.rule->map->via;
  }
  return s;
}

std::string WeightRules::in_file(const std::string& weight) const {
  if (const MappingWeight* w = weight_called(weight)) {
    const Wanted x = wanted(*w);
    if (!x.file.empty()) return x.file.front();
  }
  return weight;
}

Wanted WeightRules::wanted(const MappingWeight& w) const {
  Wanted out;
  const Match named = match(w.name, true), added = match(w.name, false);
  const std::size_t dot = w.name.rfind('.');
  const std::string own = !w.own.empty() ? w.own : dot == std::string::npos ? w.name : w.name.substr(dot + 1);
  std::vector<Transform> steps;
  if (named.rule == nullptr) {
    out.file = {modules_have_paths_ ? w.name : own};
    if (added.rule == nullptr) return out;
    steps = added.rule->via;
  } else {
    const MappingRules::Map& map = *named.rule->map;
    steps = named.rule->via;
    if (added.rule != nullptr) steps.insert(steps.end(), added.rule->via.begin(), added.rule->via.end());
    // Below a module a GGUF file knows no further modules.
    const std::string& rest = modules_have_paths_ || named.rest.size() < own.size() ? named.rest : own;
    std::vector<TensorShape> model;
    for (std::size_t i = 0; i < map.model.size(); ++i) {
      const std::string mate = i == named.rule->pick ? w.name : name_of(map.model[i], named, named.rest);
      const MappingWeight* declared = i == named.rule->pick ? &w : weight_called(mate);
      if (declared == nullptr) {
        out.wrong = "the rule makes it together with " + mate + ", which the model does not have";
        return out;
      }
      model.push_back(declared->shape);
    }
    out.pick = named.rule->pick;
    if (!steps.empty()) {
      auto plan = plan_transforms(std::move(steps), std::move(model));
      if (!plan) {
        out.wrong = "the checkpoint rule does not fit: " + plan.error().message;
        return out;
      }
      out.plan = std::make_shared<const TransformPlan>(std::move(*plan));
    }
    const std::size_t count = out.plan ? out.plan->file().size() : 1;
    const auto stack =
        std::find_if(named.rule->via.begin(), named.rule->via.end(), [](const Transform& t) { return t.kind == TransformKind::stack; });
    if (stack != named.rule->via.end()) {
      for (std::size_t e = 0; e < count; ++e) {
        Match each = named;
        each.captures.emplace_back(stack->index, std::to_string(e));
        out.file.push_back(name_of(map.file.front(), each, rest));
      }
    } else {
      for (const std::string& f : map.file) out.file.push_back(name_of(f, named, rest));
    }
    if (out.file.size() != count)
      out.wrong = "the checkpoint rule names " + counted(out.file.size(), "tensor") + ", and its transforms take " + std::to_string(count);
    return out;
  }
  auto plan = plan_transforms(std::move(steps), {w.shape});
  if (plan) out.plan = std::make_shared<const TransformPlan>(std::move(*plan));
  else out.wrong = "the checkpoint rule does not fit: " + plan.error().message;
  return out;
}

bool IndexBounds::hold(const std::vector<std::pair<std::string, std::string>>& captures) const {
  for (const Bound& b : bounds)
    for (const auto& [name, text] : captures) {
      if (name != b.index) continue;
      const auto n = parse_int(text);
      if (!n) continue;                                    // "{1}" of a pattern
      if (std::none_of(b.ranges.begin(), b.ranges.end(), [&](const auto& r) { return *n >= r.first && *n <= r.second; })) return false;
    }
  return true;
}

std::optional<IndexBounds> parse_only(std::string_view text) {
  IndexBounds out;
  for (std::string_view part : split(text, ';')) {
    part = trim(part);
    if (part.empty()) continue;
    const std::size_t in = part.find(" in ");
    if (in == std::string_view::npos) return std::nullopt;
    IndexBounds::Bound b{std::string(part.substr(0, in)), {}};
    for (std::string_view range : split(part.substr(in + 4), ',')) {
      if (range.empty()) continue;                         // "i in ": none
      const std::size_t dots = range.find("..");
      const auto low = parse_int(range.substr(0, dots));
      std::optional<std::int64_t> high = low;
      if (dots != std::string_view::npos)
        high = dots + 2 == range.size() ? std::numeric_limits<std::int64_t>::max() : parse_int(range.substr(dots + 2));
      if (!low || !high) return std::nullopt;
      b.ranges.emplace_back(*low, *high);
    }
    out.bounds.push_back(std::move(b));
  }
  return out;
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
