// What the tests share that run an example's graph in the reference evaluator on a fixture of transformers' numbers.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/sema/analyze.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc::sema::test {

constexpr double parity_bound = 1e-4;            // absolute, in f32 throughout

struct Checkpoint {
  std::shared_ptr<const CheckpointIndex> index;
  std::unique_ptr<CheckpointData> data;

  bool has(const std::string& name) const { return index->find(name) != nullptr; }
  graph::eval::Array floats(const std::string& name) const;
  graph::eval::Array integers(const std::string& name) const;                 // as i32
  graph::eval::Array booleans(const std::string& name) const;                 // of integers: whether not 0
};
Checkpoint open_fixture(const std::filesystem::path& path);

// The model on the folder's config.json; the test fails on any message.
Program program_of(const std::filesystem::path& model, const std::filesystem::path& folder);

// Weights by name, or by `prefix` and name; through the aliases of the model's first checkpoint block.
graph::eval::WeightSource weights_of(const Program& program, const Checkpoint& weights, std::string prefix = "");

// Largest absolute difference; infinite where the counts differ or one is no number.
double distance(const std::vector<float>& a, const std::vector<float>& b);

// Rows of [rows, …] that are kept, one after another.
std::vector<float> kept_rows(const graph::eval::Array& a, const std::vector<std::int64_t>& keep);

}  // namespace modelc::sema::test
