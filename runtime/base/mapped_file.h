// Files read as bytes: by position, or as one span that is mapped or read into memory. POSIX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/mapping_guard.h"
#include "runtime/base/result.h"

namespace modelc {

// An open regular file, read by position. Movable; closes itself.
class ReadFile {
 public:
  // Kinds of errors: "no-such-file", "not-a-file" (a folder, a pipe), "cannot-open".
  static Result<ReadFile> open(const std::string& path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  ~ReadFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  // The size now; "cannot-read" where the system does not say.
  Result<std::uint64_t> current_size() const;
  // Fills `into` from `offset`; fewer bytes in the file is an error ("file-shrunk"), as is a failing disk
  // ("cannot-read").
  Status read_at(std::uint64_t offset, std::span<std::byte> into) const;
  int descriptor() const { return fd_; }
  // Device and inode: two paths with the same identity are one file.
  std::uint64_t device() const { return device_; }
  std::uint64_t inode() const { return inode_; }
  // Nanoseconds since 1970 of the last change of its bytes, when it was opened.
  std::int64_t modified() const { return modified_; }

 private:
  ReadFile() = default;
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0, device_ = 0, inode_ = 0;
  std::int64_t modified_ = 0;
};

enum class FileAccess : std::uint8_t { map, read };  // `read` is --no-mmap: file systems that map badly or not at all

// The bytes of a whole file. Movable; hold it in a shared_ptr to share it. Where another program cuts a mapped file
// short while it is in use, its bytes become zeros and intact() an error: ask it after the bytes were used.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path, FileAccess access = FileAccess::map);
  // Maps or reads a file that is open. Its size must still be `file.size()` ("file-shrunk", "file-grown").
  static Result<MappedFile> from(const ReadFile& file, FileAccess access = FileAccess::map);
  // A copy of bytes that were in no file, with a name to call them by ("out-of-memory").
  static Result<MappedFile> of(std::span<const std::byte> bytes, std::string name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  bool mapped() const { return mapped_; }
  // "file-shrunk" once bytes were asked for that had gone from the file; what was computed since means nothing.
  Status intact() const;
  // Tells the system that the range will be read soon. Without effect on what was read into memory, or lies in memory.
  void will_need(std::size_t offset, std::size_t size) const;

 private:
  MappedFile() = default;
  void release();
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
  bool residency_known_ = false;                           // whether the kernel tells which pages are in memory
  MappingGuard guard_;
};

// The whole text of a file of at most `max_bytes` ("file-too-large" beyond).
Result<std::string> read_text_file(const std::string& path, std::uint64_t max_bytes = 256u << 20);

}  // namespace modelc
