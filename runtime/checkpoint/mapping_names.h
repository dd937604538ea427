// Helpers of mapping.cpp on names: what a weight is called in the file, and which name may have been meant.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc {

// The renames, applied from model to file.
class FileNames {
 public:
  explicit FileNames(const std::vector<MappingRules::Rename>& renames);
  std::string in_file(const std::string& weight) const;

 private:
  struct Rule { TensorPattern model, file; };
  std::vector<Rule> rules_;                                // most components first
};

// Names that are left over on the other side, to find the one that was meant. Indices count as equal, so that a slip in
// every layer is one suggestion.
class NearNames {
 public:
  explicit NearNames(std::span<const std::string> candidates);
  // A pattern of candidates for these alike names ("layers.{0..31}.mlp.upproj.weight"); nothing when none is near.
  std::optional<std::string> instead_of(const std::vector<std::string>& names) const;

 private:
  struct Group { std::string text; std::string first; std::string skeleton; };
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
