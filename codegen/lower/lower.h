// From the typed graph to the plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/plan/plan.h"
#include "frontend/graph/graph.h"

namespace modelc::lower {

struct Failure {
  std::string message;                           // names the operation
  graph::Where where;
  bool fault = false;                            // the plan does not hold together: a fault of these passes
};
struct Lowered {
  plan::Program program;
  std::vector<Failure> failures;                 // not empty: the program is not to be used
  std::vector<std::string> notes;                // what is carried out otherwise than the text says
};

struct Options {
  bool shaders = false;                          // custom operations that bring shaders stay apart; those with host code do anyhow
};
Lowered lower(std::shared_ptr<const graph::Module> module, const Options& options = {});

}  // namespace modelc::lower
