// What the tests of the handwritten Llama share: its random checkpoint, the fixture, comparisons.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/device/handwritten_llama.h"

namespace modelc::test {

inline const std::string fixture = std::string(MODELC_SOURCE_DIR) + "/examples/llama/fixtures/llama-tiny";

struct NamedValues {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// Random weights by the names of the checkpoint, in the model's own order.
inline std::vector<NamedValues> random_weights(unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<NamedValues> out;
  handwritten::Llama llama;
  for (const NamedParameter& p : llama.parameters()) {
    if (p.weight->spec.default_value) continue;
    const auto axes = p.weight->spec.shape.axes();
    NamedValues v{p.name, {axes.begin(), axes.end()}, {}};
    const bool vector = axes.size() == 1;
    std::normal_distribution<float> matrix(0, 1.0F / std::sqrt(static_cast<float>(axes.back())));
    std::uniform_real_distribution<float> norm(0.7F, 1.3F);
    for (std::int64_t i = 0; i < p.weight->spec.shape.count(); ++i) v.values.push_back(vector ? norm(random) : matrix(random));
    out.push_back(std::move(v));
  }
  return out;
}

// Writes DIR/model.safetensors; `change` may take weights out, rename or reshape them.
inline void write_checkpoint(const TemporaryFolder& folder, std::vector<NamedValues> weights,
                             const std::function<void(std::vector<NamedValues>&)>& change = {}) {
  if (change) change(weights);
  SafetensorsWriter writer;
  for (const NamedValues& w : weights) REQUIRE(writer.add_f32(w.name, w.shape, w.values).ok());
  REQUIRE(writer.write(folder / "model.safetensors").ok());
}

inline NamedValues& weight_called(std::vector<NamedValues>& weights, const std::string& name) {
  for (NamedValues& w : weights)
    if (w.name == name) return w;
  FAIL("no weight " << name);
  return weights.front();
}

inline std::unique_ptr<handwritten::Llama> load_llama(const std::string& path, const LoadOptions& options = {}) {
  auto llama = handwritten::Llama::load(path, options);
  if (!llama) FAIL(llama.error().text());
  return std::move(*llama);
}
inline std::unique_ptr<handwritten::Llama> random_llama(const LoadOptions& options = {}) {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  return load_llama(folder.path(), options);               // the mapping outlives the name
}

template <class T> T good(Result<T> r) {
  if (!r) FAIL(r.error().text());
  return std::move(*r);
}

inline std::vector<std::int32_t> random_tokens(std::size_t n, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> ids(n);
  for (auto& id : ids) id = static_cast<std::int32_t>(random() % 64);
  return ids;
}

// Logits of every row of one sequence that is fed in pieces.
inline std::vector<float> logits_in_pieces(handwritten::Llama& llama, std::span<const std::int32_t> ids,
                                           const std::vector<std::int64_t>& pieces) {
  auto state = good(llama.new_state());
  std::vector<float> out;
  std::size_t at = 0;
  for (const std::int64_t n : pieces) {
    const Segment segment{0, n};
    const Batch batch = good(Batch::make(*state, {&segment, 1}, Outputs::all));
    const auto logits = good(llama.forward(*state, ids.subspan(at, static_cast<std::size_t>(n)), batch));
    out.insert(out.end(), logits.begin(), logits.end());
    at += static_cast<std::size_t>(n);
  }
  REQUIRE(at == ids.size());
  return out;
}

inline float largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float d = std::fabs(a[i] - b[i]);
    worst = d > worst || std::isnan(d) ? d : worst;
  }
  return worst;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace modelc::test
