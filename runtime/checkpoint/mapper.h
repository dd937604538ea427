// How mapping.cpp decides and mapping_report.cpp reports: private to the two.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc {

// One mapping: run() asks where each weight is, keeps what does not fit, and reports it at the end, alike things together.
class Mapper {
 public:
  Mapper(const std::vector<MappingWeight>& weights, const MappingRules& rules, const CheckpointIndex& index, const MappingOptions& options);

  Mapping run();

 private:
  struct Alias {
    TensorPattern weight, target;
    const MappingRules::Alias* rule;
  };
  struct Missing {
    std::size_t weight;
    std::vector<std::string> file_names;
    std::size_t of;
    const Alias* off;
  };
  struct Differing {
    std::string kind, found, expected;
    std::vector<std::size_t> weights, tensors;
  };
  struct Bounded {
    TensorPattern pattern;
    IndexBounds only;
  };
  // The tensors of a weight, as far as the file has them.
  struct Found {
    WeightSource source;
    std::vector<std::string> lacking;                      // names that the file has not
    std::size_t wanted = 1;
    std::string unfit;                                     // why the rule cannot make the weight
    bool there() const { return lacking.empty() && unfit.empty(); }
    bool any() const { return lacking.size() < wanted && unfit.empty(); }
  };

  // ---- mapping.cpp: which tensors each weight is made of
  std::optional<std::size_t> tensor_of(const std::string& name) const;
  bool input(const std::string& name, const TensorShape& shape, Found& found);
  static bool name_fits(std::string_view dtype, Encoding e);
  bool is_part(const MappingRules::Encode& encode, const std::string& name, std::size_t tensor) const;
  Found find(const MappingWeight& w);
  void simplify(WeightSource& source, const TensorShape& shape) const;
  void need(const Found& f);
  void check_architecture();
  void choose(int set);
  std::optional<std::string> alias_target(const std::string& name, const Alias** off) const;
  void place(std::size_t i);
  void take(std::size_t i, const WeightValue& value);
  bool castable(Encoding from, DType to) const;
  void cast_if_declared(std::size_t i, WeightSource& source);
  bool reported_as_missing(const std::string& name);
  bool declared_alike(const std::string& target, const MappingWeight& w);
  bool ignored(std::size_t t);
  bool compare(std::size_t i, const WeightSource& source);
  bool compare(std::size_t i, std::size_t t, const TensorShape& shape, const TransformPlan* plan);
  static std::string text_of(const TransformPlan& plan);
  void differ(const char* kind, std::string found, std::string expected, std::size_t weight, std::size_t tensor);

  // ---- mapping_report.cpp: what is said of what did not fit
  static std::string expected_shape(const MappingWeight& w);
  const std::string& found_in(const TensorInfo& t) const { return index_.file_of(t).label; }
  void note_casts();
  void report_given();
  void report_unfit();
  void report_parts();
  void report_short_lists();
  void report_long_lists();
  void report_missing();
  void explain_alias(const Missing& m, Problem& p) const;
  void report_unexpected();
  std::vector<std::string> counted_by(std::uint64_t count) const;
  std::string tensors_alike(const std::string& name);
  std::string weights_alike(const std::string& name);
  void report_differing();
  std::string more_files(const std::vector<std::size_t>& members, const std::vector<std::size_t>& tensors) const;

  const std::vector<MappingWeight>& weights_;
  const CheckpointIndex& index_;
  MappingOptions options_;
  const std::vector<MappingRules::Set>& sets_;
  std::string architecture_;
  WeightRules names_;
  std::vector<Alias> aliases_;
  std::vector<Bounded> ignores_, encodes_;
  struct Incomplete {
    std::string name;
    std::size_t have;
    std::vector<std::string> lacking;
  };
  std::map<std::string, std::vector<Incomplete>> incomplete_;                // by encoding
  std::vector<std::pair<std::size_t, std::string>> unfit_;                   // weight, why
  std::set<std::string> settled_;                                            // weights whose `one_of` is a problem
  std::map<std::string, std::vector<std::string>> made_;                     // weights by what `via` says of them
  std::vector<std::string> given_;                                           // weights that the caller handed in
  std::map<std::pair<Encoding, DType>, std::uint64_t> casts_;                // weights that auto_cast converts
  Mapping out_;
  std::vector<bool> needed_;                               // per tensor of the file
  std::vector<Missing> missing_;
  std::vector<std::size_t> unexpected_;
  std::vector<Differing> differing_;
  std::unordered_map<std::string, std::size_t> differing_at_;
  std::map<std::string, std::vector<std::string>> used_ignores_;
  AlikeNames tensors_alike_, weights_alike_;
};

}  // namespace modelc
