#include "codegen/emit/spirv/compile.h"

#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/build_info.h>

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>

namespace modelc::emit {
namespace {

// Files of one folder, read when they are asked for.
class Includer final : public glslang::TShader::Includer {
 public:
  explicit Includer(std::string folder) : folder_(std::move(folder)) {}
  IncludeResult* includeLocal(const char* name, const char*, std::size_t) override { return find(name); }
  IncludeResult* includeSystem(const char* name, const char*, std::size_t) override { return find(name); }
  void releaseInclude(IncludeResult* r) override { delete r; }

 private:
  IncludeResult* find(const std::string& name) {
    auto known = texts_.find(name);
    if (known == texts_.end()) {
      std::ifstream file(folder_ + "/" + name, std::ios::binary);
      if (folder_.empty() || !file) return nullptr;
      std::ostringstream text;
      text << file.rdbuf();
      known = texts_.emplace(name, text.str()).first;
    }
    return new IncludeResult(name, known->second.data(), known->second.size(), nullptr);
  }

  std::string folder_;
  std::map<std::string, std::string> texts_;
};

Error failed(const ShaderSource& source, const char* by, const std::string& log) {
  Error e{"shader", source.name + " is refused by " + by, {}, ""};
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line) && e.notes.size() < 30;)
    if (!line.empty()) e.notes.push_back(line);
  return e;
}

struct Process {
  Process() { glslang::InitializeProcess(); }
  ~Process() { glslang::FinalizeProcess(); }
};

std::string collect(spv_message_level_t, const char*, const spv_position_t& at, const char* text) {
  return "word " + std::to_string(at.index) + ": " + text + "\n";
}

}  // namespace

Result<std::vector<std::uint32_t>> compile_shader(const ShaderSource& source) {
  static std::mutex one_at_a_time;               // glslang keeps its tables for the process
  const std::lock_guard guard(one_at_a_time);
  static Process process;

  glslang::TShader shader(EShLangCompute);
  const char* text = source.text.c_str();
  const int length = static_cast<int>(source.text.size());
  const char* name = source.name.c_str();
  shader.setStringsWithLengthsAndNames(&text, &length, &name, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  std::string preamble = "#extension GL_GOOGLE_include_directive : require\n";
  for (const auto& [key, value] : source.defines) preamble += "#define " + key + " " + value + "\n";
  shader.setPreamble(preamble.c_str());
  const auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  Includer includer(source.include_folder);
  if (!shader.parse(GetDefaultResources(), 450, false, messages, includer)) return failed(source, "glslang", shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) return failed(source, "glslang", program.getInfoLog());
  std::vector<std::uint32_t> words;
  spv::SpvBuildLogger logger;
  glslang::SpvOptions options;
  options.disableOptimizer = true;               // done below, where failures are seen
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &logger, &options);
  if (words.empty()) return failed(source, "glslang", logger.getAllMessages());

  std::string log;
  const auto consumer = [&log](spv_message_level_t level, const char* from, const spv_position_t& at, const char* message) {
    if (level <= SPV_MSG_ERROR) log += collect(level, from, at, message);
  };
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer(consumer);
  if (!tools.Validate(words)) return failed(source, "spirv-val", log);
  if (source.contract != nullptr)
    if (auto faults = contract_faults(words, source.name, source.text, *source.contract); !faults.empty())
      return Error{"shader", source.name + " asks for what its operation does not give it", std::move(faults), ""};
  spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_2);
  optimizer.SetMessageConsumer(consumer);
  optimizer.RegisterPass(spvtools::CreateStripDebugInfoPass()).RegisterPass(spvtools::CreateStripNonSemanticInfoPass());
  optimizer.RegisterPerformancePasses();
  std::vector<std::uint32_t> optimised;
  if (!optimizer.Run(words.data(), words.size(), &optimised)) return failed(source, "spirv-opt", log);
  if (!tools.Validate(optimised)) return failed(source, "spirv-val after spirv-opt", log);
  return optimised;
}

std::vector<std::pair<std::string, std::string>> shaders_built_with() {
  const std::string numbers =
      std::to_string(GLSLANG_VERSION_MAJOR) + "." + std::to_string(GLSLANG_VERSION_MINOR) + "." + std::to_string(GLSLANG_VERSION_PATCH);
  const std::string tools = spvSoftwareVersionString();
  return {{"glslang", numbers + GLSLANG_VERSION_FLAVOR}, {"SPIRV-Tools", tools}};
}

std::string literal_of(const std::vector<std::uint32_t>& words, std::size_t indent) {
  std::string s, line;
  const auto flush = [&] {
    s += std::string(indent, ' ') + "\"" + line + "\"\n";
    line.clear();
  };
  std::string bytes;
  for (const std::uint32_t w : words)
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(w >> (8 * i) & 0xFF);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (c >= 32 && c < 127) {
      if (c == '"' || c == '\\' || c == '?') line += '\\';           // "?": no trigraphs
      line += static_cast<char>(c);
    } else {
      // As few digits as do, unless a digit comes next.
      const bool digit = i + 1 < bytes.size() && bytes[i + 1] >= '0' && bytes[i + 1] <= '9';
      char octal[5];
      std::snprintf(octal, sizeof octal, digit ? "\\%03o" : "\\%o", c);
      line += octal;
    }
    if (line.size() + indent > 112) flush();
  }
  if (!line.empty() || s.empty()) flush();
  s.pop_back();
  return s;
}

}  // namespace modelc::emit
