// The draft's nodes as the plan's steps, once every value has its place.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "codegen/lower/draft.h"

namespace modelc::lower {

struct Placement {
  std::vector<plan::Buffer> buffers;
  std::vector<std::optional<plan::BufferId>> buffer_of;    // by root value
  std::map<const Node*, std::vector<plan::Carried>> carried;
  graph::DimId frame_bytes;
};

// Adds the products to cls.packs and the kernels to program.kernels.
plan::Function build_steps(const Draft&, const Placement&, plan::Class& cls, plan::Program& program);

}  // namespace modelc::lower
