// What a checked model would take on a device, without compiling or loading it: weights by the mapping to a checkpoint's headers and
// the encodings that the device reads, states as the device reserves them, activations by the plan that `build` makes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/driver/fit.h"
#include "codegen/driver/pipeline.h"
#include "runtime/device/held.h"

namespace modelc::driver {

class ModelSizes {
 public:
  // The model of the command line with its checkpoint, for one sequence of `context` positions (none: the model's, at most 4096).
  // None when something is wrong, which is in the sink.
  static std::optional<ModelSizes> of(Session& s, std::optional<std::int64_t> context);

  // On this device alone; the states as mode fast keeps them, or in f32. Errors: a state that the device does not have.
  Result<HeldModel> on(const Device& device, bool fast) const;

  const std::string& name() const { return graph_.name; }
  // The list by which a model is divided: of those that are in no other list the one whose weights have the most elements.
  const ModelList& list() const { return list_; }
  std::int64_t context() const { return context_; }        // positions of the sequence
  std::int64_t tokens() const { return tokens_; }          // of the prompt in one call
  bool keeps_states() const { return !states_.empty(); }

 private:
  struct Placed {                                          // where in the model
    std::optional<std::int64_t> element;
  };
  struct State : Placed {
    std::string name;
    StateSlot slot;
  };
  void find_members();
  bool find_activations(Session& s, const plan::Program& plan);

  graph::Module graph_;
  std::shared_ptr<const CheckpointIndex> checkpoint_;
  std::vector<MappingWeight> weights_;
  std::vector<WeightRole> roles_;
  std::vector<Placed> where_;                              // of the weights
  Mapping mapping_;
  std::vector<State> states_;
  ModelList list_;
  std::int64_t context_ = 0, tokens_ = 0, activations_ = 0, arena_ = 0;
};

}  // namespace modelc::driver
