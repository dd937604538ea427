// Helpers of mapping.cpp on names: what a weight is called in the file, and which name may have been meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc {

// What `only` says: each index lies in one of its ranges, ends inclusive.
struct IndexBounds {
  struct Bound {
    std::string index;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  };
  std::vector<Bound> bounds;
  // By what a pattern's names in braces stand for; a name that is not there is not bound.
  bool hold(const std::vector<std::pair<std::string, std::string>>& captures) const;
};
std::optional<IndexBounds> parse_only(std::string_view text);

// What the rules make a weight of, before any tensor is looked up.
struct Wanted {
  std::vector<std::string> file;                           // names of the tensors
  std::shared_ptr<const TransformPlan> plan;               // none: the one tensor is the weight
  std::size_t pick = 0;
  std::string wrong;                                       // the rule does not fit the weight: why
};

// The maps of the rules, applied from model to file.
class WeightRules {
 public:
  WeightRules(const MappingRules& rules, const std::vector<MappingWeight>& weights);
  // One alternative of each set, by number.
  std::vector<int> chosen;
  Wanted wanted(const MappingWeight& w) const;
  // The first tensor of a weight by its name, for messages.
  std::string in_file(const std::string& weight) const;
  // Whether a map of any alternative of the set is about the weight.
  bool concerns(int set, const std::string& weight) const;
  const MappingWeight* weight_called(const std::string& name) const;
  // The texts of `via` that the rules say of the weight, for messages.
  std::string via_of(const std::string& weight) const;

 private:
  struct Rule {
    const MappingRules::Map* map;
    TensorPattern model;
    std::size_t pick;
    IndexBounds only;
    std::vector<Transform> via;
  };
  struct Match {
    const Rule* rule = nullptr;
    TensorPattern::Captures captures;
    std::string rest;
  };
  Match match(const std::string& weight, bool names) const;
  bool active(const Rule& r) const;
  std::string name_of(const std::string& pattern, const Match& m, const std::string& rest) const;

  bool modules_have_paths_;                                // in safetensors: a module without a rule adds its own
  std::vector<Rule> rules_;                                // most components first
  std::unordered_map<std::string, const MappingWeight*> by_name_;
};

// Names that are left over on the other side, to find the one that was meant. Indices count as equal, so that a slip in
// every layer is one suggestion.
class NearNames {
 public:
  explicit NearNames(std::span<const std::string> candidates);
  // A pattern of candidates for these alike names ("layers.{0..31}.mlp.upproj.weight"); nothing when none is near.
  std::optional<std::string> instead_of(const std::vector<std::string>& names) const;

 private:
  struct Group {
    std::string text;
    std::string first;
    std::string skeleton;
  };
  std::vector<Group> groups_;
};

// Names that differ from this one in their numbers alone, as one pattern ("layers.{0..1}.mlp.up_proj.weight"); "" when
// there are none. Built when first asked.
class AlikeNames {
 public:
  template <class ForEach>                                 // calls the function that it is given with every name
  std::string of(const std::string& name, ForEach&& names) {
    if (by_skeleton_.empty()) names([this](const std::string& n) { add(n); });
    return pattern(name);
  }

 private:
  void add(const std::string& name);
  std::string pattern(const std::string& name) const;
  std::unordered_map<std::string, std::vector<std::string>> by_skeleton_;
};

// A group ("layers.{0..31}.inv_freq") as a rule spells it: "layers.*.inv_freq".
std::string as_rule(const NamePattern& group);

}  // namespace modelc
