#include "runtime/base/build_info.h"

#include <simdjson.h>
#ifdef MODELC_VULKAN
#include <vulkan/vulkan_core.h>
#endif

namespace modelc {

const char* const runtime_version = MODELC_VERSION;

std::vector<std::pair<std::string, std::string>> runtime_built_with() {
  std::vector<std::pair<std::string, std::string>> list;
#if defined(__clang__)
  list.emplace_back("compiler", "clang++ " __clang_version__);
#elif defined(__GNUC__)
  list.emplace_back("compiler", "g++ " __VERSION__);
#else
  list.emplace_back("compiler", "another than g++ and clang++");
#endif
  list.emplace_back("simdjson", std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." + std::to_string(simdjson::SIMDJSON_VERSION_MINOR) +
                                    "." + std::to_string(simdjson::SIMDJSON_VERSION_REVISION));
  list.emplace_back("PCRE2", MODELC_PCRE2_VERSION);
  list.emplace_back("utf8proc", MODELC_UTF8PROC_VERSION);
#ifdef MODELC_VULKAN
  list.emplace_back("Vulkan headers", std::to_string(VK_API_VERSION_MAJOR(VK_HEADER_VERSION_COMPLETE)) + "." +
                                          std::to_string(VK_API_VERSION_MINOR(VK_HEADER_VERSION_COMPLETE)) + "." +
                                          std::to_string(VK_API_VERSION_PATCH(VK_HEADER_VERSION_COMPLETE)));
#else
  list.emplace_back("Vulkan", "not built: " MODELC_VULKAN_MISSING);
#endif
  return list;
}

}  // namespace modelc
