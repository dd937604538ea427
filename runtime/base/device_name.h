// A device as people and files name it. What there is under a name is another question (open_device).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace modelc {

struct DeviceName {
  bool vulkan = false;                                     // else the CPU
  int number = 0;                                          // of a Vulkan device, as `modelc devices` counts them

  std::string text() const { return vulkan ? "vulkan:" + std::to_string(number) : "cpu"; }
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// What to say of a text that is no device's name.
inline constexpr const char* device_names_help = "cpu, vulkan or vulkan:N; `modelc devices` lists them";

// "cpu", "vulkan" (the first), "vulkan:N" with N from 0 to 1023; nothing for any other text.
std::optional<DeviceName> read_device_name(std::string_view text);
// One text for all names of a device: "vulkan" is "vulkan:0". What is no such name stays as it is.
std::string whole_device_name(std::string_view text);

}  // namespace modelc
