// GLSL to SPIR-V in process: glslang, then SPIRV-Tools' validator and optimiser. Without a device, and without files but
// those that a shader includes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emit/spirv/contract.h"
#include "runtime/base/result.h"

namespace modelc::emit {

struct ShaderSource {
  std::string name;                              // in messages: "shaders/linear/matvec.comp"
  std::string text;                              // begins with #version
  std::vector<std::pair<std::string, std::string>> defines = {};
  std::string include_folder = {};               // where #include "math.glsl" is looked for
  const ShaderContract* contract = nullptr;      // of a shader that comes with an operation: kept, or an error
};

// A compute shader for Vulkan 1.2, optimised, without names and lines. Error "shader": the compiler's own lines, which
// name the line of the text.
Result<std::vector<std::uint32_t>> compile_shader(const ShaderSource& source);

// Names and versions for people: {"glslang", "12.0.0"}, {"SPIRV-Tools", "v2023.1"}.
std::vector<std::pair<std::string, std::string>> shaders_built_with();

// A string literal of C++ whose bytes are these, over several lines, each indented by `indent`. Its length is the
// words' times four.
std::string literal_of(const std::vector<std::uint32_t>& words, std::size_t indent);

}  // namespace modelc::emit
