// The C++ name of everything that a plan mentions: types, members, products. Made once, before any text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/emit/cpp/namer.h"
#include "codegen/emit/emit.h"
#include "codegen/plan/plan.h"

namespace modelc::emit {

struct ClassNames {
  std::string type;                              // "LlamaAttention"
  // A leaf that holds weights and nothing else. Those of one definition with the same weights are one struct, whatever
  // their sizes; whoever owns one says the sizes.
  bool plain_leaf = false;
  bool first = true;                             // of the classes that share the struct: the one that is written
  std::map<std::string, std::string> members;    // by the language's name
  std::map<std::string, std::string> functions;  // "forward" → "forward"
  std::vector<std::string> packs, once;
  Scope scope;                                   // all of these, and what the base class has
};

struct Names {
  const plan::Program& program;
  std::vector<ClassNames> classes;
  std::vector<std::string> kernels;              // in namespace kernels
  std::vector<std::string> shaders;              // of custom operations, beside those of kernels in namespace shaders
  std::vector<std::string> host;                 // functions of custom operations, in namespace host
  bool vulkan = false;                           // shaders come with it

  Names(const plan::Program& program, const Options& options);

  // C++ for a member path from a class: "q_proj.weight"; with `element`, below the loop variable.
  std::string path(graph::ClassId from, const std::string& member) const;
};

}  // namespace modelc::emit
