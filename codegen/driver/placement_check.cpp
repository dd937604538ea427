// What a placement may not do: what computes together lies together. A load would say so, too, by the weights' names; said here it has
// the line of the model file, and nothing is compiled or read for it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/driver/pipeline.h"
#include "codegen/lower/lower.h"
#include "frontend/graph/members.h"
#include "runtime/base/device_name.h"
#include "runtime/checkpoint/place_lines.h"
#include "runtime/device/place_text.h"

namespace modelc::driver {

namespace code = diag::code;

namespace {

std::string join_path(const std::string& above, const std::string& below) {
  return above.empty() || below.empty() ? above + below : above + "." + below;
}

class Check {
 public:
  Check(Session& s, const graph::Module& m, const plan::Program* plan, const std::vector<PlaceRule>& rules)
      : s_(s), m_(m), plan_(plan), rules_(rules), lines_(rules) {}

  // Of a class that many modules have, the first that is torn is said.
  void visit(graph::ClassId id, const std::string& path) {
    const graph::Class& c = m_.of(id);
    std::vector<std::string> own;
    for (const graph::WeightDecl& w : c.weights) own.push_back(join_path(path, w.path));
    together(id, 0, path, own, "has weights on several devices", "what computes with a weight is where the weight is");
    if (plan_ != nullptr) {
      const auto& packs = plan_->classes[id.index].packs;
      for (std::size_t i = 0; i < packs.size(); ++i) {
        std::vector<std::string> weights;
        for (const std::string& member : packs[i].weights)
          if (const auto at = graph::find_member(m_, id, member); at && at->kind == graph::MemberKind::weight)
            weights.push_back(join_path(join_path(path, at->path), m_.of(at->owner).weights[at->index].path));
        together(id, i + 1, path, weights, "computes one product with weights on several devices", "the product is computed on one");
      }
    }
    for (const graph::ChildDecl& child : c.children) {
      const std::string below = join_path(path, child.path);
      for (std::size_t e = 0; e < child.elements.size(); ++e)
        if (child.elements[e].index < id.index) visit(child.elements[e], child.list ? join_path(below, std::to_string(e)) : below);
    }
  }

 private:
  std::string device_of(const std::string& weight) const {
    const auto line = lines_.decides(weight);
    return line ? whole_device_name(rules_[*line].device) : DeviceName{}.text();
  }
  std::string said(const std::string& weight) const {
    const auto line = lines_.decides(weight);
    if (!line) return fmt::format("{} is on {}, as no line names it", weight, device_of(weight));
    const PlaceRule& rule = rules_[*line];
    return fmt::format("{} is on {}, by `{}`{}", weight, device_of(weight), text_of(rule), rule.where.empty() ? "" : " in " + rule.where);
  }

  void together(graph::ClassId id, std::size_t group, const std::string& path, const std::vector<std::string>& weights, const char* does,
                const char* why) {
    const auto other =
        std::find_if(weights.begin(), weights.end(), [&](const std::string& w) { return device_of(w) != device_of(weights.front()); });
    if (other == weights.end() || !seen_.emplace(id.index, group).second) return;
    const std::string module = path.empty() ? "the model" : "`" + path + "`";
    Error e{"placement", module + " " + does, {said(weights.front()), said(*other)}, "place " + module + " as a whole: " + why};
    // The line that names one of them apart: it comes before the one that has the rest.
    const auto a = lines_.decides(weights.front()), b = lines_.decides(*other);
    const std::size_t line = std::min(a.value_or(rules_.size()), b.value_or(rules_.size()));
    const source::Span span = line < rules_.size() ? span_at(s_, rules_[line].where) : source::Span{};
    if (span.valid()) s_.sink.error(code::section_target_unknown, span, e);
    else
      s_.sink.error(s_.options.device.empty() ? code::section_target_unknown : code::bad_option,
                    s_.options.device.empty() ? "place" : "--device", e);
  }

  Session& s_;
  const graph::Module& m_;
  const plan::Program* plan_;
  const std::vector<PlaceRule>& rules_;
  const PlaceLines lines_;
  std::set<std::pair<std::uint32_t, std::size_t>> seen_;
};

bool on_several(const std::vector<PlaceRule>& rules) {
  return std::any_of(rules.begin(), rules.end(), [&](const PlaceRule& r) {
    return whole_device_name(r.device) != whole_device_name(rules.front().device) || rules.back().pattern != "**";
  });
}

}  // namespace

void check_placement(Session& s, const graph::Module& module, const plan::Program* plan) {
  std::vector<PlaceRule> rules = module.placement;
  if (!s.options.device.empty()) {
    auto given = read_placement(s.options.device);
    if (!given) return;                                    // said where options are checked
    rules = std::move(*given);
  }
  if (rules.empty() || !on_several(rules)) return;
  lower::Lowered lowered;
  if (plan == nullptr) {                                   // products that are computed together are found by planning
    lowered = lower::lower(std::make_shared<const graph::Module>(module), {});
    if (lowered.failures.empty()) plan = &lowered.program;
  }
  Check(s, module, plan, rules).visit(module.root, "");
}

}  // namespace modelc::driver
