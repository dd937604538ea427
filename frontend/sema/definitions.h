// Checks of modules as they are written, for every module of a program, whether or not an instance is made of it and
// whatever the configuration: names, the arguments of calls, members of children, members that nothing uses.
#pragma once

#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/module_def.h"

namespace modelc::sema {

// Gives the names that stand behind a dot somewhere: members that are looked at from outside.
std::set<std::string, std::less<>> check_definitions(Evaluator& evaluator, ModuleDefs& defs, const Imports& imports);

}  // namespace modelc::sema
