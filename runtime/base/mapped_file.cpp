#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/base/strings.h"

namespace modelc {
namespace {

// No access needs more than a cache line's alignment of what is read into memory.
constexpr std::align_val_t read_alignment{64};

std::string reason(int number) { return std::generic_category().message(number); }

// Whether pages here and there between the offsets are all in memory: of what a page cache holds whole, advice would still
// walk every page, a quarter of a second for 2.5 GB. The kernel says so only of files that are the caller's own.
bool resident(const std::byte* data, std::size_t begin, std::size_t end, std::size_t page) {
  constexpr std::size_t samples = 8;
  const std::size_t pages = (end - begin + page - 1) / page;
  for (std::size_t i = 0; i < std::min(samples, pages); ++i) {
    const std::size_t at = begin + (pages <= samples ? i : i * (pages - 1) / (samples - 1)) * page;
    unsigned char state = 0;
    if (::mincore(const_cast<std::byte*>(data) + at, 1, &state) != 0 || (state & 1) == 0) return false;
  }
  return true;
}

Error size_changed(const std::string& path, std::uint64_t before, std::uint64_t now) {
  return Error{now < before ? "file-shrunk" : "file-grown",
               printable(path) + " had " + grouped(before) + " bytes when it was opened and now has " + grouped(now),
               {},
               "let the program that writes it finish, then load again"};
}

}  // namespace

Result<ReadFile> ReadFile::open(const std::string& path) {
  const auto refuse = [&](const char* kind, std::string why, std::string help = {}) {
    return Error{kind, "cannot open " + quote(path) + ": " + std::move(why), {}, std::move(help)};
  };
  if (path.find('\0') != std::string::npos) return refuse("cannot-open", "the path holds a zero byte");
  // O_NONBLOCK: a pipe without a writer would otherwise hold the program.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int number = errno;
    struct stat link {};
    if (number == ENOENT && ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      std::string target(4096, '\0');
      const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
      target.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
      return refuse("no-such-file", "it is a link to " + quote(target) + ", which does not exist",
                    "a download that was interrupted leaves such links; download the file again");
    }
    return refuse(number == ENOENT || number == ENOTDIR ? "no-such-file" : "cannot-open", reason(number));
  }
  ReadFile file;
  file.fd_ = fd;
  file.path_ = path;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return refuse("cannot-open", reason(errno));
  if (S_ISDIR(status.st_mode)) return refuse("not-a-file", "it is a folder");
  if (!S_ISREG(status.st_mode)) return refuse("not-a-file", "it is not a regular file");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  file.device_ = static_cast<std::uint64_t>(status.st_dev);
  file.inode_ = static_cast<std::uint64_t>(status.st_ino);
  file.modified_ = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return file;
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      device_(other.device_),
      inode_(other.inode_),
      modified_(other.modified_) {}

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  size_ = other.size_;
  device_ = other.device_;
  inode_ = other.inode_;
  modified_ = other.modified_;
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::uint64_t> ReadFile::current_size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return Error{"cannot-read", "cannot read " + quote(path_) + ": " + reason(errno), {}, {}};
  return static_cast<std::uint64_t>(status.st_size);
}

Status ReadFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    if (offset + done > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
      return Error{"file-shrunk", printable(path_) + " has no byte " + grouped(offset + done), {}, {}};
    // Linux reads at most 2 GB a call.
    const std::size_t chunk = std::min(into.size() - done, std::size_t{1} << 30);
    const ssize_t n = ::pread(fd_, into.data() + done, chunk, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Error{"cannot-read", "cannot read " + quote(path_) + " at byte " + grouped(offset + done) + ": " + reason(errno), {}, {}};
    if (n == 0)
      return Error{"file-shrunk",
                   printable(path_) + " ends at byte " + grouped(offset + done) + ", before byte " + grouped(offset + into.size()) +
                       " that is to be read",
                   {},
                   "let the program that writes it finish, then load again"};
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<MappedFile> MappedFile::open(const std::string& path, FileAccess access) {
  Result<ReadFile> file = ReadFile::open(path);
  if (!file) return std::move(file.error());
  return from(*file, access);
}

Result<MappedFile> MappedFile::from(const ReadFile& file, FileAccess access) {
  const Result<std::uint64_t> now = file.current_size();
  if (!now) return now.error();
  if (*now != file.size()) return size_changed(file.path(), file.size(), *now);
  const Error too_large{
      "out-of-memory", "cannot hold " + quote(file.path()) + " in memory: it has " + grouped(file.size()) + " bytes", {}, {}};
  if (file.size() > std::numeric_limits<std::size_t>::max() / 2) return too_large;

  MappedFile m;
  m.path_ = file.path();
  m.size_ = static_cast<std::size_t>(file.size());
  if (m.size_ == 0) return m;
  if (access == FileAccess::map) {
    void* at = ::mmap(nullptr, m.size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (at == MAP_FAILED)
      return Error{
          "cannot-map", "cannot map " + quote(file.path()) + " into memory: " + reason(errno), {}, "--no-mmap reads the file instead"};
    m.data_ = static_cast<const std::byte*>(at);
    m.mapped_ = true;
    m.guard_ = MappingGuard(at, m.size_);
    struct stat status {};
    m.residency_known_ = ::fstat(file.descriptor(), &status) == 0 && (::geteuid() == 0 || status.st_uid == ::geteuid());
    return m;
  }
  auto* at = static_cast<std::byte*>(::operator new(m.size_, read_alignment, std::nothrow));
  if (!at) return too_large;
  m.data_ = at;
  if (Status read = file.read_at(0, {at, m.size_}); !read) return std::move(read.error());
  return m;
}

Result<MappedFile> MappedFile::of(std::span<const std::byte> bytes, std::string name) {
  MappedFile m;
  m.path_ = std::move(name);
  m.size_ = bytes.size();
  if (m.size_ == 0) return m;
  auto* at = static_cast<std::byte*>(::operator new(m.size_, read_alignment, std::nothrow));
  if (!at)
    return Error{"out-of-memory", "no memory is left for " + quote(m.path_) + " of " + counted(std::uint64_t{m.size_}, "byte"), {}, {}};
  std::memcpy(at, bytes.data(), m.size_);
  m.data_ = at;
  return m;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, false)),
      residency_known_(other.residency_known_),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  path_ = std::move(other.path_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, false);
  residency_known_ = other.residency_known_;
  guard_ = std::move(other.guard_);
  return *this;
}

MappedFile::~MappedFile() { release(); }

void MappedFile::release() {
  if (!data_) return;
  void* at = const_cast<std::byte*>(data_);
  if (mapped_) {
    guard_ = MappingGuard();  // before another mapping may lie there
    ::munmap(at, size_);
  } else {
    ::operator delete(at, read_alignment);
  }
  data_ = nullptr;
}

Status MappedFile::intact() const {
  if (!guard_.lost()) return {};
  return Error{"file-shrunk",
               quote(path_) + " was cut short, or went away with its disk, while its bytes were in use",
               {},
               "let the program that writes it finish, then load again; --no-mmap reads a file whole before it is used"};
}

void MappedFile::will_need(std::size_t offset, std::size_t size) const {
  if (!mapped_ || offset >= size_) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset / page * page;
  const std::size_t end = std::min(size_, offset + std::min(size, size_ - offset));
  if (residency_known_ && resident(data_, begin, end, page)) return;
  // Advice only: without it the pages are read when they are touched.
  (void)::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t max_bytes) {
  Result<ReadFile> file = ReadFile::open(path);
  if (!file) return std::move(file.error());
  if (file->size() > max_bytes)
    return Error{"file-too-large",
                 quote(path) + " has " + grouped(file->size()) + " bytes; at most " + grouped(max_bytes) + " are read of such a file",
                 {},
                 {}};
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  if (Status read = file->read_at(0, std::as_writable_bytes(std::span(text))); !read) return std::move(read.error());
  return text;
}

}  // namespace modelc
