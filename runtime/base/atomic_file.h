// Writing a file so that it is there whole or not at all: written beside its place, then renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace modelc {

// disk: waits until the disk has the bytes, so that they survive a loss of power. none: for what can be made again,
// such as generated sources, where waiting for the disk would cost more than writing. Whole or not at all holds for
// both while the system runs.
enum class Flush : std::uint8_t { disk, none };

// A file being written. Without commit() nothing remains of it. Movable.
class AtomicFile {
 public:
  // Creates the temporary file in the folder of `path` (which must exist). An existing file keeps its permissions; a
  // symbolic link is followed, so that its target is replaced; a device or a pipe is written to at once. Kind of
  // errors, here and below: "cannot-write", with the path and the system's reason.
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  // Appends. After an error (a full disk, a quota) the temporary file is gone and only destruction is of use.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  // Closes the file and puts it in its place.
  Status commit(Flush flush = Flush::disk);

 private:
  AtomicFile() = default;
  void discard();
  std::string path_, target_, temporary_;
  int fd_ = -1;
  bool unnamed_ = false;  // has its temporary name only at the end
};

Status write_file(const std::string& path, std::string_view text, Flush flush = Flush::disk);

enum class Written : std::uint8_t { changed, same };
// Leaves a file that holds these bytes already as it is, with its time, so that builds do not run again.
Result<Written> write_file_if_changed(const std::string& path, std::string_view text, Flush flush = Flush::none);

// Creates the folder and those above it. Kinds: "cannot-write".
Status make_folders(const std::string& path);

}  // namespace modelc
