#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "runtime/base/atomic_file.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;
namespace fs = std::filesystem;

namespace {

// No file may grow beyond `bytes`: the nearest to a full disk that needs no disk.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("a file is there whole") {
  test::TemporaryFolder folder;
  for (Flush flush : {Flush::disk, Flush::none}) {
    REQUIRE(write_file(folder / "a", "first", flush).ok());
    CHECK(test::slurp(folder / "a") == "first");
    REQUIRE(write_file(folder / "a", "", flush).ok());
    CHECK(test::slurp(folder / "a").empty());
    CHECK(folder.count() == 1);
  }
}

TEST_CASE("without commit nothing changes and nothing remains") {
  test::TemporaryFolder folder;
  bool unnamed = false;
  folder.write("a", "old");
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "a");
    REQUIRE(file.ok());
    REQUIRE(file->write("new text").ok());
    CHECK(test::slurp(folder / "a") == "old");
    unnamed = folder.count() == 1;  // 2 on a file system without files that have no name
    AtomicFile moved = *std::move(file);
  }
  CHECK(test::slurp(folder / "a") == "old");
  CHECK(folder.count() == 1);
  // Of a program that is killed in the middle.
  if (!unnamed) return;
  const pid_t child = ::fork();
  if (child == 0) {
    Result<AtomicFile> file = AtomicFile::create(folder / "a");
    ::_exit(file && file->write("new text") ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(test::slurp(folder / "a") == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("a full disk leaves nothing half-written") {
  test::TemporaryFolder folder;
  folder.write("a", "old");
  const std::string large(100'000, 'x');
  {
    const SizeLimit limit(10'000);
    const Status s = write_file(folder / "a", large);
    REQUIRE_FALSE(s.ok());
    CHECK(s.error().kind == "cannot-write");
    CHECK(s.error().message == "cannot write \"" + (folder / "a") + "\": File too large");
    CHECK_FALSE(write_file(folder / "b", large).ok());
  }
  CHECK(test::slurp(folder / "a") == "old");
  CHECK(folder.count() == 1);
  // The device that is always full: written in place, as no device can be replaced.
  if (fs::exists("/dev/full")) {
    const Status s = write_file("/dev/full", "x");
    REQUIRE_FALSE(s.ok());
    CHECK(s.error().message == "cannot write \"/dev/full\": No space left on device");
    CHECK_FALSE(s.error().help.empty());
    CHECK(fs::is_character_file("/dev/full"));
  }
  CHECK(write_file("/dev/null", "x").ok());
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("places that cannot be written") {
  test::TemporaryFolder folder;
  const Status absent = write_file(folder / "none/a", "x");
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().message == "cannot write \"" + (folder / "none/a") + "\": No such file or directory");
  CHECK(absent.error().help.find(folder / "none") != std::string::npos);
  CHECK(write_file(folder.path(), "x").error().message.ends_with(": Is a directory"));
  CHECK_FALSE(write_file("", "x").ok());
  CHECK_FALSE(write_file(folder / std::string(300, 'n'), "x").ok());
  // A superuser may write everywhere.
  if (geteuid() != 0) {
    fs::create_directory(folder / "locked");
    fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    CHECK(write_file(folder / "locked/a", "x").error().message.ends_with(": Permission denied"));
    fs::permissions(folder / "locked", fs::perms::owner_all);
    folder.write("read-only", "x");
    fs::permissions(folder / "read-only", fs::perms::owner_read);
    CHECK(write_file(folder / "read-only", "y").error().message.ends_with(": Permission denied"));
  }
}

TEST_CASE("permissions and links stay") {
  test::TemporaryFolder folder;
  folder.write("real/a", "old");
  fs::permissions(folder / "real/a", fs::perms(0640));
  fs::create_symlink("real/a", folder / "link");
  REQUIRE(write_file(folder / "link", "new").ok());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(test::slurp(folder / "real/a") == "new");
  CHECK(fs::status(folder / "real/a").permissions() == fs::perms(0640));
  const mode_t mask = umask(022);
  REQUIRE(write_file(folder / "fresh", "x").ok());
  umask(mask);
  CHECK(fs::status(folder / "fresh").permissions() == fs::perms(0644));
  CHECK(write_file(folder / std::string(255, 'n'), "x").ok());
}

TEST_CASE("an unchanged file keeps its time") {
  test::TemporaryFolder folder;
  CHECK(*write_file_if_changed(folder / "a", "text") == Written::changed);
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder / "a", past);
  const auto before = fs::last_write_time(folder / "a");
  CHECK(*write_file_if_changed(folder / "a", "text") == Written::same);
  CHECK(fs::last_write_time(folder / "a") == before);
  CHECK(*write_file_if_changed(folder / "a", "tex2") == Written::changed);
  CHECK(fs::last_write_time(folder / "a") != before);
  CHECK(test::slurp(folder / "a") == "tex2");
}

TEST_CASE("folders are made") {
  test::TemporaryFolder folder;
  CHECK(make_folders(folder / "a/b/c").ok());
  CHECK(make_folders(folder / "a/b/c/").ok());
  folder.write("file", "x");
  CHECK(make_folders(folder / "file").error().kind == "cannot-write");
  CHECK(make_folders(folder / "file/below").error().message.find("file/below") != std::string::npos);
}
