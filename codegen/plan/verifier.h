// What holds of every plan, whatever made it; checked after lowering, before emission.
#pragma once

#include <string>
#include <vector>

#include "codegen/plan/plan.h"

namespace modelc::plan {

// Every operand of every step: that it is there where the step needs it, is of the kind wanted (numbers, the batch, a buffer
// to write), and names a member, buffer, product or field that exists; views of the count that what they name has; reads
// after writes; uses within the life that a buffer declares; calls of functions with their inputs; buffers whose lives meet
// that do not share memory (tried at several sizes of the run-time axes); frames that hold their buffers. Empty: sound.
std::vector<std::string> verify(const Program& program);

}  // namespace modelc::plan
