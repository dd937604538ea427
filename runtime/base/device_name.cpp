#include "runtime/base/device_name.h"

#include "runtime/base/strings.h"

namespace modelc {

std::optional<DeviceName> read_device_name(std::string_view text) {
  constexpr std::string_view vulkan = "vulkan";
  if (text == "cpu") return DeviceName{};
  if (!text.starts_with(vulkan)) return std::nullopt;
  text.remove_prefix(vulkan.size());
  if (text.empty()) return DeviceName{.vulkan = true};
  const auto number = text.front() == ':' ? parse_uint(text.substr(1)) : std::nullopt;
  if (!number || *number >= 1024) return std::nullopt;
  return DeviceName{.vulkan = true, .number = static_cast<int>(*number)};
}

std::string whole_device_name(std::string_view text) {
  const auto known = read_device_name(text);
  return known ? known->text() : std::string(text);
}

}  // namespace modelc
