// devices: what can run models here.
#include <cstdio>

#include "codegen/driver/commands.h"
#include "runtime/base/json.h"
#include "runtime/device/device.h"

namespace modelc::driver {

int devices_command(const Options& o) {
  std::vector<DeviceInfo> all;
  if (auto cpu = open_cpu({})) all.push_back({"cpu", (*cpu)->description(), {}, true});
  auto vulkan = vulkan_devices();
  if (vulkan) all.insert(all.end(), vulkan->begin(), vulkan->end());
  for (const DeviceInfo& d : all) {
    if (o.json) {
      JsonObject j;
      j.set("name", Json(d.name));
      j.set("description", Json(d.description));
      JsonArray limits;
      for (const std::string& l : d.limits) limits.push_back(Json(l));
      j.set("limits", Json(std::move(limits)));
      j.set("usable", Json(d.usable));
      std::printf("%s\n", dump(Json(std::move(j))).c_str());
      continue;
    }
    std::printf("%s  %s\n", d.name.c_str(), d.description.c_str());
    for (const std::string& l : d.limits) std::printf("  %s\n", l.c_str());
  }
  if (!vulkan) std::fprintf(stderr, "note: no Vulkan device: %s\n", vulkan.error().message.c_str());
  else if (vulkan->empty()) std::fputs("note: Vulkan is there, and no device with it\n", stderr);
  return 0;
}

}  // namespace modelc::driver
