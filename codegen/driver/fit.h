// What of a model fits on a device: decided from sizes, as plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace modelc::driver {

// Something that a device holds once, a weight or the state of a module, and which parts of the model need it there.
struct Held {
  std::int64_t bytes = 0;
  std::vector<std::int64_t> elements = {};       // of the model's list (ModelList), ascending
  bool rest = false;                             // what is beside the list
};

// The list of modules by which a model is divided: "model.layers", 32 of them. None: no name.
struct ModelList {
  std::string name;
  std::int64_t elements = 0;
};

// A model as one device would hold it.
struct HeldModel {
  std::vector<Held> weights, caches;
  std::int64_t activations = 0;                  // of one call, whichever part of the model is there
};

// The bytes that the first `elements` of the list take, with the activations, where nothing else is; and what all the rest takes.
std::int64_t bytes_of_first(const HeldModel& model, std::int64_t elements);
std::int64_t bytes_without_first(const HeldModel& model, std::int64_t elements);

// What nobody asks for by name: constants, staging buffers, blocks that are not filled whole, other programs. A sixteenth of the
// memory, at least 64 MiB and at most 2 GiB.
std::uint64_t kept_free(std::uint64_t memory);
// What a model may take: what is free beside that.
std::int64_t room_of(std::uint64_t memory, std::uint64_t free);

struct Fit {
  enum class Kind : std::uint8_t { whole, part, nothing } kind = Kind::nothing;
  std::int64_t weights = 0, caches = 0, activations = 0;   // of the whole model
  std::int64_t elements = 0;                     // of a part: so many of the list, from the first
  std::int64_t taken = 0;                        // bytes that the whole, or the part, takes
  std::int64_t left = 0;                         // of a part: bytes of weights and caches, as this device would have them, elsewhere
  std::string place;                             // for --device: "vulkan:0", "model.layers[0..17]=vulkan:0,cpu"; "" of nothing
  std::int64_t total() const { return weights + caches + activations; }
};

// Whether the model fits into `room` bytes of a device, or how many elements of its list do, the first ones, with all that they need.
// The rest is then on the CPU, so that on the CPU itself ("cpu") it is the whole or nothing.
Fit what_fits(const HeldModel& model, const ModelList& list, const std::string& device, std::int64_t room);

}  // namespace modelc::driver
