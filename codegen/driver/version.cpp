// --version: modelc's own, and those of what it is made of.
#include <cstdio>
#include <string>

#include "codegen/driver/commands.h"
#include "codegen/driver/settings.h"
#include "frontend/syntax/parser_version.h"
#include "runtime/base/build_info.h"
#include "runtime/cpu/isa.h"
#ifdef MODELC_VULKAN
#include "codegen/emit/spirv/compile.h"
#endif

namespace modelc::driver {

int version_command() {
  std::printf("modelc %s\n", settings::version);
  std::printf("ANTLR %s\nyaml-cpp %s\n", syntax::antlr_version().c_str(), settings::yaml_cpp_version);
  for (const auto& [what, version] : runtime_built_with()) std::printf("%s %s\n", what.c_str(), version.c_str());
#ifdef MODELC_VULKAN
  for (const auto& [what, version] : emit::shaders_built_with()) std::printf("%s %s\n", what.c_str(), version.c_str());
#endif
  std::string sets;
  for (const cpu::Kernels* k : cpu::available_kernels()) sets += (sets.empty() ? "" : ", ") + std::string(k->isa);
  std::printf("instruction sets of this machine: %s\n", sets.c_str());
  return 0;
}

}  // namespace modelc::driver
