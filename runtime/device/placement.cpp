#include "runtime/device/placement.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/base/device_name.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/place_lines.h"

namespace modelc {

namespace {

// How many elements the list of a range has; of several lists, the longest.
std::int64_t elements_of(const ModuleTree& tree, const PlaceRule& rule) {
  const PlaceLines line(std::span(&rule, 1));
  std::int64_t n = 0;
  for (const Module* m : tree.bottom_up())
    if (const auto i = line.element(0, m->qualified_name())) n = std::max(n, static_cast<std::int64_t>(*i) + 1);
  return n;
}

}  // namespace

Result<Placement> decide_placement(const ModuleTree& tree, std::span<const PlaceRule> rules, const std::string& rest) {
  const PlaceLines lines(rules);
  Placement out;
  std::vector<bool> used(rules.size(), false);
  const auto number = [&](const std::string& called) {
    const std::string device = whole_device_name(called);
    const auto it = std::find(out.devices.begin(), out.devices.end(), device);
    if (it != out.devices.end()) return static_cast<int>(it - out.devices.begin());
    out.devices.push_back(device);
    return static_cast<int>(out.devices.size()) - 1;
  };
  const auto device_of = [&](const std::string& name) {
    const auto line = lines.decides(name);
    if (line) used[*line] = true;
    return number(line ? rules[*line].device : rest);
  };

  std::unordered_map<const Module*, std::size_t> first;    // of a module's own weights
  for (std::size_t i = 0; i < tree.weights().size(); ++i) {
    const NamedParameter& w = tree.weights()[i];
    out.weights.push_back(device_of(w.name));
    const auto [known, fresh] = first.emplace(&tree.owner(i), i);
    if (fresh || out.weights[known->second] == out.weights[i]) continue;
    const auto on = [&](std::size_t k) {
      const auto line = lines.decides(tree.weights()[k].name);
      return tree.weights()[k].name + " is on " + out.devices[static_cast<std::size_t>(out.weights[k])] +
             (line ? ", by " + quote(text_of(rules[*line])) : "") +
             (line && !rules[*line].where.empty() ? " in " + rules[*line].where : "");
    };
    const std::string module = tree.owner(i).qualified_name();
    return Error{"placement",
                 (module.empty() ? std::string("the model") : module) + " has weights on more than one device",
                 {on(known->second), on(i)},
                 "place whole modules: what computes with a weight is where the weight is"};
  }
  for (const Module* m : tree.bottom_up()) {
    const auto own = first.find(m);
    out.modules.push_back(own != first.end() ? out.weights[own->second] : device_of(m->qualified_name()));
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].where.empty()) continue;                 // the compiler has looked at it
    if (const std::int64_t n = rules[i].end ? elements_of(tree, rules[i]) : 0; n > 0 && *rules[i].end > n)
      return Error{"placement",
                   quote(text_of(rules[i])) + " ends at " + grouped(*rules[i].end) + ", and there are " +
                       counted(static_cast<std::uint64_t>(n), "element"),
                   {},
                   "a range without an end, [" + std::to_string(rules[i].first.value_or(0)) + "..], reaches to the last"};
    if (used[i]) continue;
    // One that others come before matches what it names all the same.
    const PlaceLines alone(rules.subspan(i, 1));
    std::vector<std::string> names;
    bool matches = false;
    for (const Module* m : tree.bottom_up()) {
      const std::string& name = m->qualified_name();
      matches = matches || alone.decides(name).has_value();
      // An element of a list, and the list.
      const std::size_t dot = name.rfind('.');
      if (dot != std::string::npos && parse_uint(std::string_view(name).substr(dot + 1)) &&
          (names.empty() || names.back() != name.substr(0, dot)))
        names.push_back(name.substr(0, dot));
      names.push_back(name);
    }
    for (const NamedParameter& w : tree.weights()) matches = matches || alone.decides(w.name).has_value();
    if (matches) continue;
    const auto near = nearest(rules[i].pattern, names);
    return Error{"placement",
                 "no module and no weight is " + quote(text_of(rules[i])),
                 {},
                 near ? "did you mean " + *near + "?" : "`modelc inspect` lists a model's modules"};
  }
  return out;
}

}  // namespace modelc
