// Where the time of a run goes: operations summed up over the layers, as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/meter.h"

namespace modelc::main_program {

// The same operation of all layers: "model.layers.*.self_attn", "q_proj, k_proj, v_proj", "linear".
struct ProfileRow {
  std::string module, of, kind;
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
  // "model.layers.*.mlp.down_proj"
  std::string label() const;
};

// One layer, or what stands outside of any: "model.layers.3", "model.embed_tokens".
struct ProfilePart {
  std::string name;
  double seconds = 0;
};

struct Profile {
  std::string title;                                       // "prefill of 512 tokens"
  std::int64_t tokens = 0;
  double seconds = 0;                                      // of all operations
  double flops = 0, bytes = 0;
  std::vector<ProfileRow> rows;                            // the slowest first
  std::vector<ProfilePart> layers;                         // in order
};

// What the yardsticks are, 0 where there is none.
struct ProfileLimits {
  double bytes_per_second = 0, flops_per_second = 0;
};

Profile make_profile(std::string title, std::int64_t tokens, const std::vector<Operation>& operations);

// One panel a profile, below each other. All that comes from a file is escaped.
std::string profile_svg(const std::string& heading, const std::vector<Profile>& profiles, const ProfileLimits& limits);

}  // namespace modelc::main_program
