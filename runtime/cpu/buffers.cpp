#include "runtime/cpu/buffers.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdlib>
#include <new>

#include "runtime/base/strings.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t mapped_from = 1 << 20;              // bytes; smaller buffers come from the heap
constexpr std::size_t alignment = 64;

std::size_t rounded(std::int64_t size) { return (static_cast<std::size_t>(size) + alignment - 1) / alignment * alignment; }

}  // namespace

Buffers::~Buffers() {
  for (auto& entry : owned_) release(*entry.second);
}

const Buffer* Buffers::keep(std::byte* memory, std::int64_t size, Kind kind, std::shared_ptr<const MappedFile> file) {
  auto owned = std::make_unique<Owned>(Owned{{memory, size, 0, owner_}, kind, std::move(file)});
  const Buffer* key = &owned->buffer;
  const std::lock_guard guard(lock_);
  owned_.emplace(key, std::move(owned));
  return key;
}

Result<const Buffer*> Buffers::allocate(std::int64_t size) {
  assert(size >= 0);
  void* p = nullptr;
  const Kind kind = size >= mapped_from ? Kind::mapped : Kind::heap;
  if (kind == Kind::mapped) {
    p = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) p = nullptr;
  } else {
    p = std::aligned_alloc(alignment, rounded(size == 0 ? 1 : size));
  }
  if (p == nullptr) return Error{"out-of-memory", "the CPU device cannot get " + human_bytes(static_cast<std::uint64_t>(size)), {}, {}};
  return keep(static_cast<std::byte*>(p), size, kind);
}

const Buffer* Buffers::adopt(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) {
  // Kernels only read a file's bytes; the mapping behind them is read-only besides.
  auto* memory = const_cast<std::byte*>(file->data()) + at;
  return keep(memory, size, Kind::adopted, std::move(file));
}

void Buffers::release(Owned& owned) {
  if (owned.kind == Kind::heap) std::free(owned.buffer.host);
  else if (owned.kind == Kind::mapped) ::munmap(owned.buffer.host, static_cast<std::size_t>(owned.buffer.size));
}

void Buffers::free(const Buffer* buffer) {
  if (buffer == nullptr) return;
  const std::lock_guard guard(lock_);
  const auto at = owned_.find(buffer);
  assert(at != owned_.end());
  if (at == owned_.end()) return;
  release(*at->second);
  owned_.erase(at);
}

void Scratch::Free::operator()(float* p) const { std::free(p); }

float* Scratch::at_least(std::int64_t count) {
  if (count > count_) {
    data_.reset();
    data_.reset(static_cast<float*>(std::aligned_alloc(alignment, rounded(count * 4))));
    if (!data_) throw std::bad_alloc();
    count_ = count;
  }
  return data_.get();
}

}  // namespace modelc::cpu
