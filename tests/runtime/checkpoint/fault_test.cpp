// Disks and file systems that fail in the middle: each read, map and write of this program goes through the functions below,
// which fail as they are told. What comes out is an error that names the file, never a signal, a hang or half a file.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/checkpoint/gguf/writer.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;

namespace {

// What the next calls do.
struct Faults {
  int read_errno = 0;                                      // of every read, after `good_reads` that work
  int good_reads = 1 << 30;
  std::size_t longest_read = SIZE_MAX;                     // short reads: so many bytes a call
  bool interrupted = false;                                // every second read is interrupted by a signal
  int map_errno = 0;
  int write_errno = 0;                                     // once `room` bytes were written
  std::size_t room = SIZE_MAX;
  std::size_t longest_write = SIZE_MAX;
  int sync_errno = 0;
  long reads = 0;
};
Faults faults;
struct With {
  explicit With(const Faults& f) { faults = f; }
  ~With() { faults = {}; }
};

template <class F> F real(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

ssize_t read_or_fail(ssize_t (*next)(int, void*, size_t, off_t), int fd, void* to, size_t n, off_t at) {
  ++faults.reads;
  if (faults.interrupted && faults.reads % 2 == 1) return errno = EINTR, -1;
  if (faults.read_errno != 0 && faults.good_reads-- <= 0) return errno = faults.read_errno, -1;
  return next(fd, to, std::min(n, faults.longest_read), at);
}

}  // namespace

extern "C" {
ssize_t pread(int fd, void* to, size_t n, off_t at) {
  static const auto next = real<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return read_or_fail(next, fd, to, n, at);
}
ssize_t pread64(int fd, void* to, size_t n, off_t at) {
  static const auto next = real<ssize_t (*)(int, void*, size_t, off_t)>("pread64");
  return read_or_fail(next, fd, to, n, at);
}
void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) noexcept {
  static const auto next = real<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  if (faults.map_errno != 0 && fd >= 0) return errno = faults.map_errno, MAP_FAILED;
  return next(at, n, protection, flags, fd, offset);
}
ssize_t write(int fd, const void* from, size_t n) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (faults.write_errno == 0 && faults.longest_write == SIZE_MAX) return next(fd, from, n);
  if (faults.write_errno != 0 && faults.room == 0) return errno = faults.write_errno, -1;
  const ssize_t done = next(fd, from, std::min({n, faults.longest_write, faults.room}));
  if (done > 0 && faults.room != SIZE_MAX) faults.room -= static_cast<std::size_t>(done);
  return done;
}
int fsync(int fd) {
  static const auto next = real<int (*)(int)>("fsync");
  if (faults.sync_errno != 0) return errno = faults.sync_errno, -1;
  return next(fd);
}
}

namespace {

// A safetensors and a GGUF with the same tensor.
std::vector<std::string> write_both(const test::TemporaryFolder& folder, const std::vector<float>& values) {
  SafetensorsWriter writer;
  const auto n = static_cast<std::int64_t>(values.size());
  REQUIRE(writer.add_f32("a", {n}, values).ok());
  REQUIRE(writer.write(folder / "model.safetensors").ok());
  std::string gguf = "GGUF";
  const auto put = [&](std::uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) gguf += static_cast<char>(v >> (8 * i) & 0xff);
  };
  const auto text = [&](std::string_view s) { put(s.size(), 8), gguf += s; };
  put(3, 4), put(1, 8), put(1, 8);
  text("general.architecture"), put(8, 4), text("tiny");
  text("a"), put(1, 4), put(values.size(), 8), put(0, 4), put(0, 8);
  gguf.resize((gguf.size() + 31) / 32 * 32);
  gguf.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  folder.write("model.gguf", gguf);
  return {folder / "model.safetensors", folder / "model.gguf"};
}

std::vector<float> counting(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return v;
}

// Opens and reads the tensor: its values, or the error.
Result<std::vector<float>> load(const std::string& path, FileAccess access) {
  auto index = open_checkpoint(path);
  if (!index) return std::move(index.error());
  CheckpointData data(std::make_shared<const CheckpointIndex>(std::move(*index)), access);
  return data.read_f32(*data.index().find("a"));
}

}  // namespace

TEST_CASE("short reads and reads that signals interrupt give the whole file") {
  const test::TemporaryFolder folder;
  const std::vector<float> values = counting(5000);
  for (const std::string& path : write_both(folder, values))
    for (const Faults& f : {Faults{.longest_read = 1}, Faults{.longest_read = 7}, Faults{.longest_read = 4096, .interrupted = true}}) {
      const With with(f);
      CAPTURE(path);
      auto read = load(path, FileAccess::read);
      REQUIRE_MESSAGE(read, read.error().text());
      CHECK(*read == values);
      CHECK(faults.reads > 2);
    }
}

TEST_CASE("a disk that fails at any read is an error that names the file and the byte") {
  const test::TemporaryFolder folder;
  const std::vector<float> values = counting(5000);
  for (const std::string& path : write_both(folder, values)) {
    bool through = false;
    for (int good = 0; good < 60 && !through; ++good) {
      const With with(Faults{.read_errno = EIO, .good_reads = good, .longest_read = 1000});
      CAPTURE(path);
      CAPTURE(good);
      auto read = load(path, FileAccess::read);
      through = read.ok();
      if (through) {
        CHECK(*read == values);
        continue;
      }
      CHECK(read.error().kind == "cannot-read");
      CHECK(read.error().message.find("Input/output error") != std::string::npos);
      CHECK(read.error().message.find(std::filesystem::path(path).filename().string()) != std::string::npos);
    }
    CHECK(through);
  }
}

TEST_CASE("where mapping fails --no-mmap is the way out, and works") {
  const test::TemporaryFolder folder;
  const std::vector<float> values = counting(100);
  for (const std::string& path : write_both(folder, values))
    for (const int why : {ENODEV, ENOMEM, EACCES}) {
      const With with(Faults{.map_errno = why});
      const auto mapped = load(path, FileAccess::map);
      REQUIRE_FALSE(mapped.ok());
      CHECK(mapped.error().kind == "cannot-map");
      CHECK(mapped.error().help.find("--no-mmap") != std::string::npos);
      const auto read = load(path, FileAccess::read);
      REQUIRE(read.ok());
      CHECK(*read == values);
    }
}

TEST_CASE("a full disk, a failing one and short writes: the whole file or none, and the old one stays") {
  const test::TemporaryFolder folder;
  const std::vector<float> values = counting(3000);
  const auto write_it = [&](const std::string& path) -> Status {
    SafetensorsWriter writer;
    if (Status s = writer.add_f32("a", {3000}, values); !s) return s;
    return writer.write(path);
  };
  folder.write("out.safetensors", "what was there");
  for (const int why : {ENOSPC, EDQUOT, EIO})
    for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{90}, std::size_t{4096}, std::size_t{12'000}}) {
      CAPTURE(room);
      Status s;
      {
        const With with(Faults{.write_errno = why, .room = room});
        s = write_it(folder / "out.safetensors");
      }
      REQUIRE_FALSE(s.ok());
      CHECK(s.error().kind == "cannot-write");
      CHECK(s.error().message.find("out.safetensors") != std::string::npos);
      CHECK(test::slurp(folder / "out.safetensors") == "what was there");
      CHECK(folder.count() == 1);
    }
  {
    const With with(Faults{.sync_errno = EIO});
    CHECK(write_it(folder / "out.safetensors").error().kind == "cannot-write");
  }
  CHECK(folder.count() == 1);
  {
    const With with(Faults{.longest_write = 13});
    REQUIRE(write_it(folder / "out.safetensors").ok());
  }
  CHECK(*load(folder / "out.safetensors", FileAccess::read) == values);
}

TEST_CASE("a file that goes, shrinks or is replaced between its header and its bytes") {
  for (const FileAccess access : {FileAccess::map, FileAccess::read}) {
    const test::TemporaryFolder folder;
    folder.write("model-00001-of-00002.safetensors", test::safetensors_of(std::vector<std::string>{"a"}));
    folder.write("model-00002-of-00002.safetensors", test::safetensors_of(std::vector<std::string>{"b"}));
    const auto open = [&] { return std::make_shared<const CheckpointIndex>(*open_checkpoint(folder.path())); };
    {
      CheckpointData data(open(), access);
      REQUIRE(data.bytes("a").ok());
      std::filesystem::remove(folder / "model-00002-of-00002.safetensors");
      const Error gone = data.bytes("b").error();
      CHECK(gone.kind == "no-such-file");
      CHECK(gone.message.find("model-00002-of-00002.safetensors") != std::string::npos);
      CHECK(data.bytes("a").ok());                         // what is open stays readable
    }
    const std::string second = test::safetensors_of(std::vector<std::string>{"b"});
    folder.write("model-00002-of-00002.safetensors", second);
    {
      CheckpointData data(open(), access);
      folder.write("model-00002-of-00002.safetensors", std::string_view(second).substr(0, second.size() - 2));
      CHECK(data.bytes("b").error().kind == "file-shrunk");
    }
    folder.write("model-00002-of-00002.safetensors", second);
    {
      CheckpointData data(open(), access);
      std::filesystem::rename(folder / "model-00002-of-00002.safetensors", folder / "old");
      folder.write("model-00002-of-00002.safetensors", second);
      CHECK(data.bytes("b").error().kind == "file-changed");
    }
  }
}

TEST_CASE("a file that shrinks while several threads read its mapping is an error in each, and no signal") {
  const test::TemporaryFolder folder;
  const std::vector<float> values = counting(1 << 18);
  for (const std::string& path : write_both(folder, values)) {
    auto index = open_checkpoint(path);
    REQUIRE(index.ok());
    CheckpointData data(std::make_shared<const CheckpointIndex>(std::move(*index)));
    const TensorBytes mapped = *data.bytes("a");
    REQUIRE(truncate(path.c_str(), 5000) == 0);
    std::vector<std::thread> readers;
    std::vector<int> shrunk(4);
    for (std::size_t t = 0; t < shrunk.size(); ++t)
      readers.emplace_back([&, t] {
        const auto read = data.read_f32(*data.index().find("a"));
        shrunk[t] = !read.ok() && read.error().kind == "file-shrunk";
      });
    for (std::thread& r : readers) r.join();
    for (int s : shrunk) CHECK(s == 1);
    CHECK_FALSE(mapped.owner->intact().ok());
  }
}
