// One run of a shader, as plain data: what it reads and writes, its constants and arguments, how many workgroups.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
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
  std::int64_t row_bytes = 0;                              // from one row of the dispatch to the next; 0: every row sees all
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
  std::uint64_t rounds = 0;                                // of one invocation's loops, about, where they may be many

  // Rows that it does one like the other, so that some of them may be run at a time (cut.h); 0: it runs whole.
  struct Rows {
    std::int64_t count = 0;
    struct Told {
      std::size_t argument;
      std::int64_t unit, per;
    };
    std::vector<Told> told;                                // rows · unit / per, rounded up
    std::vector<std::pair<std::size_t, std::int64_t>> begun;           // an argument: from + the first row
    std::int64_t items = 0, of_group = 1, across = 1;      // of all rows; a workgroup does so many, `across` times over
    std::int64_t most = 0;                                 // at a time; 0: any number
  } rows;

  // Before the bindings: what follows with of_rows() is one row after another.
  Dispatch& in_rows(std::int64_t n) {
    rows.count = n;
    return *this;
  }
  // The last binding: each row has its own part of it.
  Dispatch& of_rows() {
    Binding& b = bindings.back();
    b.row_bytes = rows.count > 0 ? b.bytes / rows.count : 0;
    assert(b.row_bytes * rows.count == b.bytes);
    return *this;
  }
  // No more than so many rows at a time.
  Dispatch& most_rows(std::int64_t n) {
    rows.most = n;
    return *this;
  }
  // So many rows times `unit`, by `per`; `from` and the first of them.
  Dispatch& push_rows(std::int64_t unit = 1, std::int64_t per = 1) {
    rows.told.push_back({arguments.size(), unit, per});
    arguments.push_back(static_cast<std::uint32_t>((rows.count * unit + per - 1) / per));
    return *this;
  }
  Dispatch& push_first(std::int64_t from) {
    rows.begun.emplace_back(arguments.size(), from);
    arguments.push_back(static_cast<std::uint32_t>(from));
    return *this;
  }
  std::uint64_t groups_of(std::int64_t n) const {          // for n of the rows
    const std::int64_t part = rows.count > 0 ? rows.items / rows.count * n : rows.items;
    return static_cast<std::uint64_t>((part + rows.of_group - 1) / rows.of_group * rows.across);
  }

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
  Dispatch& loops(std::int64_t n) {
    rounds = static_cast<std::uint64_t>(n);
    return *this;
  }
  // An invocation for each of `count`.
  Dispatch& each(std::int64_t count, std::uint32_t size) { return spread(count, size, 1, size, size); }
  // A workgroup for each of `count`.
  Dispatch& group_each(std::int64_t count, std::uint32_t size, std::int64_t work_of_one) { return spread(count, 1, 1, size, work_of_one); }
  // A workgroup for each `of_group` of `count`, and that `across` times.
  Dispatch& spread(std::int64_t count, std::int64_t of_group, std::int64_t across, std::uint32_t size, std::int64_t work_of_group) {
    group_size = size;
    rows.items = count;
    rows.of_group = of_group;
    rows.across = across;
    groups = groups_of(rows.count);
    work = groups * static_cast<std::uint64_t>(work_of_group);
    return *this;
  }
};

}  // namespace modelc::vulkan
