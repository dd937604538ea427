// One run of a shader, as plain data: what it reads and writes, its constants and arguments, how many workgroups.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace modelc::vulkan {

// The code of a shader: one that the runtime holds, or one of a generated model. Named by its address, which stays.
struct ShaderCode {
  const char* name = nullptr;
  const char* code = nullptr;
  std::size_t bytes = 0;
  std::uint32_t needs = 0;
};

struct Binding {
  Tensor tensor;                                           // or none: the shader does not touch it
  std::int64_t bytes = 0;                                  // from the tensor's first on
  bool read = false, written = false;
};

struct Dispatch {
  static constexpr std::size_t max_words = 32;             // of push constants: 128 bytes
  ShaderCode shader;
  std::vector<Binding> bindings;
  std::vector<std::uint32_t> constants;                    // specialization constants 1, 2, …; constant 0 is group_size
  std::vector<std::uint32_t> arguments;                    // after the bindings' offsets
  bool offsets = true;                                     // false: each binding begins with its tensor, and none is told
  std::array<std::uint32_t, 3> shape{};                    // of the groups, where a shader wants them so; 0: as they fit
  std::uint32_t group_size = 64;
  std::uint32_t subgroup = 0;                              // lanes of a subgroup that the shader is promised; 0: any
  std::uint64_t groups = 0;
  std::uint64_t work = 0;                                  // multiplications, about

  Dispatch& read(const Tensor& t) { return bind(t, t ? t.size() : 0, true, false); }
  Dispatch& write(const Tensor& t) { return bind(t, t ? t.size() : 0, false, true); }
  Dispatch& update(const Tensor& t) { return bind(t, t ? t.size() : 0, true, true); }
  Dispatch& none() { return bind({}, 0, false, false); }
  Dispatch& bind(const Tensor& t, std::int64_t bytes, bool reads, bool writes) {
    bindings.push_back({t, bytes, reads, writes});
    return *this;
  }
  Dispatch& constant(std::uint32_t v) {
    constants.push_back(v);
    return *this;
  }
  Dispatch& push(std::int64_t v) {
    assert(v >= 0 && v <= 0xFFFFFFFFLL);
    arguments.push_back(static_cast<std::uint32_t>(v));
    return *this;
  }
  Dispatch& push_real(float v) {
    arguments.push_back(std::bit_cast<std::uint32_t>(v));
    return *this;
  }
  // An invocation for each of `count`.
  Dispatch& each(std::int64_t count, std::uint32_t size) {
    group_size = size;
    groups = (static_cast<std::uint64_t>(count) + size - 1) / size;
    work = static_cast<std::uint64_t>(count);
    return *this;
  }
  // A workgroup for each of `count`.
  Dispatch& group_each(std::int64_t count, std::uint32_t size, std::int64_t work_of_one) {
    group_size = size;
    groups = static_cast<std::uint64_t>(count);
    work = groups * static_cast<std::uint64_t>(work_of_one);
    return *this;
  }
};

}  // namespace modelc::vulkan
