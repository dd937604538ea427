// From the plan to files. Nothing is decided here but text: the same plan gives the same bytes.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/spirv/contract.h"
#include "codegen/plan/plan.h"

namespace modelc::emit {

struct Options {
  std::string file;                              // "llama": base of the file names
  std::string class_name;                        // "Llama"
  std::string name_space;                        // "llama"; may be nested: "acme::models"
  std::string version;                           // modelc's
  bool vulkan = false;                           // map kernels come with shaders
};

struct File {
  std::string name;                              // below the output folder
  std::string text;
};

// The map kernels as compute shaders, then those that come with custom operations, to be compiled (spirv/compile.h) with
// shaders/include; none for a program without either.
struct ShaderFile {
  std::string kernel;                            // its name in C++
  File file;
  std::vector<std::pair<std::string, std::string>> defines;
  std::string computes;                          // for messages: "x * 2", "the operation xielu"
  graph::Where where = {};                       // the line of the model file that brings it, or that it is made for
  const graph::Shader* custom = nullptr;
  ShaderContract contract = {};                  // of a custom operation's
};
std::vector<ShaderFile> glsl(const plan::Program& program, const Options& options);
// FILE_shaders.h: what they were compiled to, as literals (literal_of) of so many bytes.
struct ShaderBinary {
  std::string kernel, literal, file;
  std::size_t bytes = 0;
  const graph::Shader* custom = nullptr;
};
File shader_header(const plan::Program& program, const Options& options, const std::vector<ShaderBinary>& binaries);

std::vector<File> cpp(const plan::Program& program, const Options& options);

// Whether the generated class maps tokens to logits: what the stock main's `generate` and `same` call.
bool is_language_model(const plan::Program& program);

// FILE_main.cpp: a program whose main is the runtime's stock main on the class.
File stock_main(const plan::Program& program, const Options& options);

// FILE_c.h and FILE_c.cpp: the class for the C API, as NAME_model_type().
std::vector<File> c_api(const plan::Program& program, const Options& options);

// FILE.manifest.json: every weight with its name, shape, role and source; the plan's memory.
File manifest(const plan::Program& program, const Options& options);

}  // namespace modelc::emit
