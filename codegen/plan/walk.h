// What a step reads and writes, in one place for every kind of step.
#pragma once

#include <functional>

#include "codegen/plan/plan.h"

namespace modelc::plan {

using OperandVisitor = std::function<void(const Operand&)>;

// Reads first, in the order of the kernel's arguments; then writes. A body is not entered.
void for_each_operand(const StepKind& step, const OperandVisitor& reads, const OperandVisitor& writes);

// The steps inside of a Repeat or a Custom; null of others.
const std::vector<Step>* body_of(const StepKind& step);

// "linear", "map", …
const char* kind_name(const StepKind& step);

}  // namespace modelc::plan
