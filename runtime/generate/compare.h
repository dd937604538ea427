// Compares what a model computes with what a reference computed: expected.safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/model.h"

namespace modelc {

// Differences of one tensor over the rows that count.
struct Difference {
  std::string name;
  bool output = false;                                     // of the model; else a stage
  std::int64_t values = 0;
  double max_abs = 0, mean_abs = 0;                        // NaN on either side but not both: infinity
  double cosine = 1;
  // Of logits: KL(reference || ours) in nats a row, what 99 % of the rows stay below, share of rows with equal best.
  std::optional<double> max_kl, kl_99, mean_kl, top1;
  std::int64_t worst = 0;                                  // index of the largest difference
  double expected = 0, found = 0;                          // there
  bool within = true;
};

Difference compare(const std::string& name, std::span<const float> expected, std::span<const float> found);
// Adds KL and top-1 agreement, for rows of `classes` logits.
void compare_logits(Difference& d, std::span<const float> expected, std::span<const float> found, std::int64_t classes);

struct VerifyOptions {
  double within = 1e-4;                                    // absolute, of every output and stage
  // Of the logits' rows: each, all but the worst 1 %, their mean. Any of them replaces `within` for logits.
  std::optional<double> within_kl = {}, within_kl_99 = {}, within_mean_kl = {};
  std::int64_t chunk = 0;                                  // tokens of a sequence in one call; 0: all at once
};
struct VerifyReport {
  std::vector<Difference> differences;                     // outputs, then stages in order of execution
  std::optional<std::string> first_stage;                  // the first stage that is not within its bound
  std::int64_t sequences = 0, rows = 0;                    // compared: padding does not count
  bool passed = false;
};

// The inputs in `expected_path` through entry forward: outputs from a pass without hooks, stages from a second one. Entries whose
// inputs the file holds run before, in their order, for its sequences: what they leave in the states is what forward reads. Errors:
// no inputs, nothing to compare, a stage that the model does not have (with the nearest), shapes that do not fit.
Result<VerifyReport> verify(Model& model, const std::string& expected_path, const VerifyOptions& options);

std::string report_text(const VerifyReport& report, const VerifyOptions& options);
Json report_json(const VerifyReport& report);

// Inputs of the runs, by name: i32 for an index and a bool.
using RunInputs = std::map<std::string, HostTensor>;

// Runs joined by `+`: "prefill(12)+decode(12)", "batch(5, 9, 1)", "alone(5, 9, 1)", and entries by name, for the sequence at
// hand: "encode+prefill(8)". An entry's numbers are tokens where it takes a Batch, else the sizes of its run-time axes, in
// the order of its inputs or by name: "heard(frames:20)". Tokens and other inputs are those given, else drawn from the
// seed. Gives forward's first result for every token, sequence after sequence; of entries alone, what they give. Of a
// forward without a Batch, over [batch, seq], batch pads and masks. Errors: a run that is not one of these, more positions
// than the context, an input that runs do not feed.
Result<std::vector<float>> run_results(Model& model, const std::string& runs, std::uint64_t seed, const RunInputs& given = {});
// The largest difference between these runs' results and those of the first.
Result<double> compare_runs(Model& model, const std::vector<std::string>& runs, std::uint64_t seed, const RunInputs& given = {});

}  // namespace modelc
