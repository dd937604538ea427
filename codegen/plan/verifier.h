// What holds of every plan, whatever made it; checked after lowering, before emission.
#pragma once

#include <string>
#include <vector>

#include "codegen/plan/plan.h"

namespace modelc::plan {

// Names members, buffers and packs that exist; views of the buffer's count; reads after writes; buffers whose lives meet
// that do not share memory (tried at several sizes of the run-time axes); frames that hold their buffers. Empty: sound.
std::vector<std::string> verify(const Program& program);

}  // namespace modelc::plan
