#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"

namespace modelc {
namespace {

Error cannot_write(const std::string& path, int number) {
  std::string help;
  if (number == ENOSPC || number == EDQUOT) help = "free some space, or write to another disk; nothing was left behind";
  if (number == EACCES || number == EPERM || number == EROFS) help = "choose a place that you may write to, or change its permissions";
  return Error{"cannot-write", "cannot write " + quote(path) + ": " + std::generic_category().message(number), {}, std::move(help)};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// What `path` names once its links are followed, so that a link stays a link. The path itself where it is none.
std::string target_of(std::string path) {
  for (int links = 0; links < 40; ++links) {
    std::string to(PATH_MAX, '\0');
    const ssize_t n = ::readlink(path.c_str(), to.data(), to.size());
    if (n <= 0) break;
    to.resize(static_cast<std::size_t>(n));
    path = to.front() == '/' ? to : folder_of(path) + "/" + to;
  }
  return path;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.empty()) return Error{"cannot-write", "cannot write a file without a name", {}, {}};
  if (path.find('\0') != std::string::npos) return cannot_write(path, EINVAL);
  AtomicFile file;
  file.path_ = path;
  file.target_ = target_of(path);
  struct stat there {};
  const bool exists = ::stat(file.target_.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) return cannot_write(path, EISDIR);
  if (exists && ::access(file.target_.c_str(), W_OK) != 0) return cannot_write(path, errno);
  if (exists && !S_ISREG(there.st_mode)) {
    // A device or a pipe cannot be replaced: what is written goes there at once.
    file.fd_ = ::open(file.target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return cannot_write(path, errno);
    return file;
  }
  const std::size_t slash = file.target_.rfind('/');
  const std::string base = slash == std::string::npos ? file.target_ : file.target_.substr(slash + 1);
  static std::atomic<unsigned> counter{0};
  // Without a name where the system can do that: then nothing stays even of a program that is killed.
  if (::access("/proc/self/fd", X_OK) == 0) file.fd_ = ::open(folder_of(file.target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  file.unnamed_ = file.fd_ >= 0;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    // 200 bytes of the name leave room for the rest within the 255 that file systems allow.
    file.temporary_ = folder_of(file.target_) + "/." + base.substr(0, 200) + "." + std::to_string(::getpid()) + "-" +
                      std::to_string(counter.fetch_add(1)) + ".tmp";
    if (file.unnamed_) break;
    file.fd_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd_ >= 0 || errno != EEXIST) break;
  }
  if (file.fd_ < 0) {
    const int number = errno;
    file.temporary_.clear();
    Error error = cannot_write(path, number);
    if (number == ENOENT) error.help = "the folder " + quote(folder_of(file.target_)) + " does not exist; create it first";
    return error;
  }
  if (exists) (void)::fchmod(file.fd_, there.st_mode & 07777);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)),
      unnamed_(other.unnamed_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  target_ = std::move(other.target_);
  temporary_ = std::exchange(other.temporary_, std::string());
  fd_ = std::exchange(other.fd_, -1);
  unnamed_ = other.unnamed_;
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty() && !unnamed_) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int number = errno;
      discard();
      return cannot_write(path_, number);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status AtomicFile::write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }

Status AtomicFile::commit(Flush flush) {
  const auto fail = [&](int number) {
    discard();
    return Status(cannot_write(path_, number));
  };
  if (fd_ < 0) return fail(EBADF);
  if (temporary_.empty()) {  // written in place
    const int closed = ::close(std::exchange(fd_, -1));
    return closed == 0 || errno == EINTR ? Status() : Status(cannot_write(path_, errno));
  }
  if (flush == Flush::disk && ::fsync(fd_) != 0) return fail(errno);
  if (unnamed_) {
    // A link cannot replace a file, so it gets its temporary name for the moment.
    const std::string self = "/proc/self/fd/" + std::to_string(fd_);
    int linked = -1;
    for (int attempt = 0; attempt < 1000; ++attempt) {
      linked = ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW);
      if (linked == 0 || errno != EEXIST) break;
      temporary_ += "~";  // left by a program of the same number
    }
    if (linked != 0) return fail(errno);
    unnamed_ = false;
  }
  // Network file systems tell of a full disk no earlier than here.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return fail(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return fail(errno);
  temporary_.clear();
  if (flush == Flush::disk) {
    // The file is whole and in its place by now; not every file system flushes a folder, so the answer is not looked
    // at.
    const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      (void)::fsync(folder);
      ::close(folder);
    }
  }
  return {};
}

Status write_file(const std::string& path, std::string_view text, Flush flush) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return std::move(file.error());
  if (Status s = file->write(text); !s) return s;
  return file->commit(flush);
}

Result<Written> write_file_if_changed(const std::string& path, std::string_view text, Flush flush) {
  if (const Result<ReadFile> there = ReadFile::open(path); there && there->size() == text.size()) {
    const Result<MappedFile> bytes = MappedFile::from(*there, FileAccess::read);
    if (bytes && bytes->text() == text) return Written::same;
  }
  if (Status s = write_file(path, text, flush); !s) return std::move(s.error());
  return Written::changed;
}

Status make_folders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!code && std::filesystem::is_directory(path, code)) return {};
  return cannot_write(path, code ? code.value() : ENOTDIR);
}

}  // namespace modelc
