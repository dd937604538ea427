// Builds .safetensors files, right ones and wrong ones, from the text of their header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace modelc::test {

inline std::string length_prefix(std::uint64_t n) {
  std::string s;
  for (int i = 0; i < 8; ++i) s += static_cast<char>(n >> 8 * i & 0xff);
  return s;
}

inline std::string safetensors(std::string_view header, std::string_view data = {}) {
  return length_prefix(header.size()) + std::string(header) + std::string(data);
}
// With so many zero bytes of data.
inline std::string safetensors(std::string_view header, std::size_t data_bytes) {
  return safetensors(header, std::string(data_bytes, '\0'));
}

// "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}
inline std::string entry(std::string_view name, std::string_view dtype, std::string_view shape, std::uint64_t begin, std::uint64_t end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + std::string(shape) + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// A file of one-element F32 tensors with these names.
template <class Names> std::string safetensors_of(const Names& names) {
  std::string header = "{";
  std::uint64_t at = 0;
  for (const auto& name : names) {
    if (at) header += ",";
    header += entry(name, "F32", "[1]", at, at + 4);
    at += 4;
  }
  return safetensors(header + "}", static_cast<std::size_t>(at));
}

}  // namespace modelc::test
