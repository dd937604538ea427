// The memory of the CPU device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/base/mapped_file.h"
#include "runtime/base/result.h"
#include "runtime/tensor/tensor.h"

namespace modelc::cpu {

// Owns buffers; from several threads.
class Buffers {
 public:
  explicit Buffers(const Device* owner = nullptr) : owner_(owner) {}
  Buffers(const Buffers&) = delete;
  ~Buffers();

  // `size` bytes, aligned to 64. A large buffer is zero and takes memory page by page as it is touched.
  // "out-of-memory".
  Result<const Buffer*> allocate(std::int64_t size);
  // Bytes of a file, which lives as long as the buffer. The caller has checked that they lie in it.
  const Buffer* adopt(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size);
  void free(const Buffer* buffer);

 private:
  enum class Kind : std::uint8_t { heap, mapped, adopted };
  struct Owned {
    Buffer buffer;
    Kind kind;
    std::shared_ptr<const MappedFile> file;
  };
  const Buffer* keep(std::byte* memory, std::int64_t size, Kind kind, std::shared_ptr<const MappedFile> file = {});
  static void release(Owned& owned);
  const Device* owner_;
  std::mutex lock_;
  std::unordered_map<const Buffer*, std::unique_ptr<Owned>> owned_;
};

// Floats aligned to 64 bytes that grow and are never copied: scratch.
class Scratch {
 public:
  // At least `count` floats; what was in them is lost when it grows.
  float* at_least(std::int64_t count);

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float, Free> data_;
  std::int64_t count_ = 0;
};

}  // namespace modelc::cpu
