#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>

#include "runtime/base/mapped_file.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

TEST_CASE("a file is mapped or read") {
  test::TemporaryFolder folder;
  const std::string path = folder.write("data", "0123456789");
  for (FileAccess access : {FileAccess::map, FileAccess::read}) {
    Result<MappedFile> file = MappedFile::open(path, access);
    REQUIRE(file.ok());
    CHECK(file->text() == "0123456789");
    CHECK(file->mapped() == (access == FileAccess::map));
    file->will_need(3, 100);
    file->will_need(100, 1);
    MappedFile moved = *std::move(file);
    CHECK(moved.text() == "0123456789");
    CHECK(file->size() == 0);
    moved = std::move(*MappedFile::open(folder.write("other", "abc"), access));
    CHECK(moved.text() == "abc");
    const auto shared = std::make_shared<const MappedFile>(std::move(moved));
    CHECK(shared->text() == "abc");
  }
}

TEST_CASE("an empty file is no error") {
  test::TemporaryFolder folder;
  for (FileAccess access : {FileAccess::map, FileAccess::read}) {
    const Result<MappedFile> file = MappedFile::open(folder.write("empty", ""), access);
    REQUIRE(file.ok());
    CHECK(file->size() == 0);
    CHECK(file->text().empty());
  }
}

TEST_CASE("what cannot be opened says why") {
  test::TemporaryFolder folder;
  const auto kind = [](const std::string& path) { return MappedFile::open(path).error().kind; };
  CHECK(kind(folder / "none") == "no-such-file");
  CHECK(MappedFile::open(folder / "none").error().message == "cannot open \"" + (folder / "none") + "\": No such file or directory");
  CHECK(kind(folder.path()) == "not-a-file");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(kind(folder / "pipe") == "not-a-file");
  CHECK(kind(std::string("a\0b", 3)) == "cannot-open");
  std::filesystem::create_symlink("blob", folder / "link");
  const Result<MappedFile> link = MappedFile::open(folder / "link");
  REQUIRE_FALSE(link.ok());
  CHECK(link.error().kind == "no-such-file");
  CHECK(link.error().message.find("link to \"blob\"") != std::string::npos);
  CHECK(kind(folder.write("file", "x") + "/below") == "no-such-file");
}

TEST_CASE("a file that changes its size is noticed") {
  test::TemporaryFolder folder;
  const std::string path = folder.write("data", "0123456789");
  for (FileAccess access : {FileAccess::map, FileAccess::read}) {
    REQUIRE(truncate(path.c_str(), 10) == 0);
    const Result<ReadFile> file = ReadFile::open(path);
    REQUIRE(file.ok());
    REQUIRE(truncate(path.c_str(), 4) == 0);
    CHECK(MappedFile::from(*file, access).error().kind == "file-shrunk");
    std::array<std::byte, 10> bytes;
    CHECK(file->read_at(0, bytes).error().kind == "file-shrunk");
    CHECK(file->read_at(0, std::span(bytes).first(4)).ok());
    REQUIRE(truncate(path.c_str(), 11) == 0);
    CHECK(MappedFile::from(*file, access).error().kind == "file-grown");
  }
}

TEST_CASE("a text is read up to a limit") {
  test::TemporaryFolder folder;
  const std::string path = folder.write("text", "0123456789");
  CHECK(*read_text_file(path, 10) == "0123456789");
  CHECK(read_text_file(path, 9).error().kind == "file-too-large");
}
