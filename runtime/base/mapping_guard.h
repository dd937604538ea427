// Mapped files whose bytes go away (cut short by another program, a disk that fails, a share that vanishes): the
// access becomes zeros and a flag instead of the end of the program.
#pragma once

#include <cstddef>

namespace modelc {

// Watches one mapping while it lives. The first one installs a handler of SIGBUS for the whole program; a signal that
// concerns no watched mapping goes to the handler that was there before. Movable.
class MappingGuard {
 public:
  MappingGuard() = default;
  MappingGuard(const void* begin, std::size_t size);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  ~MappingGuard();

  // True once bytes were asked for that were no longer there: from then on what is read from the mapping means nothing.
  bool lost() const;

 private:
  void* range_ = nullptr;
};

}  // namespace modelc
