// Bytes as a file that readers open by its path, without a disk: Linux.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/base/result.h"
#include "runtime/base/strings.h"

namespace modelc::fuzz {

// What must hold, whatever the input.
inline void require(bool holds, const char* what, const std::string& detail = {}) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n%s\n", what, detail.c_str());
  std::abort();
}

// A refusal has a kind and a text that a terminal can show.
inline void check_error(const Error& e) {
  require(!e.kind.empty() && !e.message.empty(), "an error without kind or text", e.text());
  require(is_utf8(e.text()), "an error that is not text", e.text());
  require(e.text().size() < 100'000, "an error of unbounded length");
}

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    require(fd_ >= 0, "no memory file");
  }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  const std::string& path() const { return path_; }
  void set(const std::uint8_t* data, std::size_t size) const {
    const bool written = ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size);
    require(written, "the memory file cannot be written");
  }

 private:
  int fd_;
  std::string path_;
};

}  // namespace modelc::fuzz
