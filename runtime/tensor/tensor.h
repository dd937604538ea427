// A tensor: a typed, shaped, contiguous view of a piece of a device buffer. It owns nothing and is cheap to copy;
// whoever made the buffer (a model's weights, a step's arena, a state) keeps it alive.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/abi/dtype.h"

namespace modelc {

class Device;                                              // runtime/device/device.h

// Up to six axes, outermost first; rank 0 is one number.
class Shape {
 public:
  static constexpr int max_rank = 6;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> axes) {
    assert(axes.size() <= max_rank);
    for (std::int64_t a : axes) axes_[static_cast<std::size_t>(rank_++)] = a;
  }
  explicit Shape(std::span<const std::int64_t> axes) {
    assert(axes.size() <= max_rank);
    for (std::int64_t a : axes) axes_[static_cast<std::size_t>(rank_++)] = a;
  }
  int rank() const { return rank_; }
  std::int64_t operator[](int i) const {                   // negative counts from the last axis
    assert(i < rank_ && i >= -rank_);
    return axes_[static_cast<std::size_t>(i < 0 ? rank_ + i : i)];
  }
  std::int64_t count() const {                             // 1 for rank 0
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= axes_[static_cast<std::size_t>(i)];
    return n;
  }
  std::span<const std::int64_t> axes() const { return {axes_.data(), static_cast<std::size_t>(rank_)}; }
  std::string text() const {                               // "[24, 64]"
    std::string s = "[";
    for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(axes_[static_cast<std::size_t>(i)]);
    return s + "]";
  }
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.axes_[static_cast<std::size_t>(i)] != b.axes_[static_cast<std::size_t>(i)]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, max_rank> axes_{};
  int rank_ = 0;
};

// A piece of memory of a device. `host` is its address where the host can read it (always on the CPU), else null.
struct Buffer {
  std::byte* host = nullptr;
  std::int64_t size = 0;                                   // bytes
  std::uint64_t handle = 0;                                // the device's own name for it
  const Device* owner = nullptr;                           // whose memory it is
};

struct Tensor {
  const Buffer* buffer = nullptr;
  std::int64_t offset = 0;                                 // bytes into the buffer
  DType dtype = DType::f32;
  Shape shape;

  explicit operator bool() const { return buffer != nullptr; }        // false: an absent optional
  std::int64_t count() const { return shape.count(); }
  std::int64_t size() const { return shape.count() * bytes(dtype); }
  // The same elements under another shape of the same count.
  Tensor as(Shape s) const {
    assert(s.count() == shape.count());
    Tensor t = *this;
    t.shape = s;
    return t;
  }
  template <class T> T* host() const { return buffer && buffer->host ? reinterpret_cast<T*>(buffer->host + offset) : nullptr; }
};

}  // namespace modelc
