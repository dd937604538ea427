// Sizes in bytes as dims: what the memory plan adds, rounds and compares without knowing the run-time axes.
#pragma once

#include <vector>

#include "frontend/graph/dims.h"

namespace modelc::lower {

// Bytes of `count` elements of f32 (or i32), each term rounded up to a multiple of 64, so that sums of such sizes are
// aligned whatever the axes are.
graph::DimId padded_bytes(graph::DimTable& dims, const std::vector<graph::DimId>& shape);

// At least as large as both for every size of the axes: term by term the larger coefficient.
graph::DimId upper_of(graph::DimTable& dims, graph::DimId a, graph::DimId b);

}  // namespace modelc::lower
