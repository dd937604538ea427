#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "frontend/source/source.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "frontend/source/utf8.h"

using namespace modelc;
using source::FileId;
using source::Position;
using source::SourceManager;
using source::Span;

namespace {

// A file that lives as long as the test.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& text)
      : path(std::filesystem::temp_directory_path() / ("modelc-source-test-" + std::to_string(++count) + ".model")) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::filesystem::path path;
  static inline int count = 0;
};

}  // namespace

TEST_CASE("lines and columns count from one, columns in code points") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "ab\nπx…y\r\n\nend");
  CHECK(sources.line_count(f) == 4);
  CHECK(sources.position(f, 0) == Position{1, 1});
  CHECK(sources.position(f, 2) == Position{1, 3});   // the line break belongs to its line
  CHECK(sources.position(f, 3) == Position{2, 1});
  CHECK(sources.position(f, 5) == Position{2, 2});   // π has two bytes
  CHECK(sources.position(f, 9) == Position{2, 4});   // … has three
  CHECK(sources.line_text(f, 1) == "ab");
  CHECK(sources.line_text(f, 2) == "πx…y");          // without \r
  CHECK(sources.line_text(f, 3) == "");
  CHECK(sources.line_text(f, 4) == "end");
  CHECK(sources.line_text(f, 5) == "");
  CHECK(sources.line_text(f, 0) == "");
  CHECK(sources.position(f, 9999) == Position{4, 4});
}

TEST_CASE("an empty text has one empty line") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "");
  CHECK(sources.line_count(f) == 1);
  CHECK(sources.position(f, 0) == Position{1, 1});
  CHECK(sources.line_text(f, 1) == "");
}

TEST_CASE("texts and names stay where they are as files are added") {
  SourceManager sources;
  const FileId first = sources.add("nn/first.model", "first");
  const std::string_view text = sources.text(first);
  for (int i = 0; i < 1000; ++i) sources.add("f" + std::to_string(i), "x");
  CHECK(text == "first");
  CHECK(text.data() == sources.text(first).data());
  CHECK(sources.display_name(first) == "nn/first.model");
  CHECK(sources.find("nn/first.model") == first);
  CHECK_FALSE(sources.find("nothing").has_value());
  CHECK(sources.place({first, 2, 3}) == "nn/first.model:1:3");
  CHECK(sources.text(Span{first, 1, 3}) == "ir");
}

TEST_CASE("spans join and know whether they are any") {
  const FileId f{0};
  CHECK_FALSE(Span{}.valid());
  CHECK(source::join({f, 2, 4}, {f, 6, 9}) == Span{f, 2, 9});
  CHECK(source::join({}, {f, 6, 9}) == Span{f, 6, 9});
  CHECK(source::join({f, 6, 9}, {}) == Span{f, 6, 9});
}

TEST_CASE("a file is loaded with its display name and its real path") {
  const TemporaryFile file("language 1\n");
  SourceManager sources;
  const Result<FileId> id = sources.load(file.path, "llama.model");
  REQUIRE(id.ok());
  CHECK(sources.text(*id) == "language 1\n");
  CHECK(sources.display_name(*id) == "llama.model");
  CHECK(sources.real_path(*id) == file.path);
}

TEST_CASE("what cannot be loaded is an error with a kind") {
  SourceManager sources;
  const Result<FileId> missing = sources.load("/nowhere/at/all.model", "all.model");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind == "source-not-found");
  const Result<FileId> folder = sources.load(std::filesystem::temp_directory_path(), "folder");
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().kind == "source-unreadable");
  CHECK(sources.size() == 0);
}

TEST_CASE("a file beyond the limit is refused, one at the limit is not") {
  SourceManager sources;
  const TemporaryFile fits(std::string(source::max_file_bytes, ' '));
  CHECK(sources.load(fits.path, "fits").ok());
  const TemporaryFile large(std::string(source::max_file_bytes + 1, ' '));
  const Result<FileId> id = sources.load(large.path, "large");
  REQUIRE_FALSE(id.ok());
  CHECK(id.error().kind == "source-too-large");
}

TEST_CASE("UTF-8 is checked strictly") {
  auto problem = [](std::string_view text) { return source::find_text_problem(text); };
  CHECK_FALSE(problem("plain π … 😀").has_value());
  CHECK_FALSE(problem("").has_value());
  struct Case {
    std::string text;
    std::uint32_t at;
  };
  const Case bad[] = {
      {"ab\xFFz", 2},              // never a byte of UTF-8
      {"\x80", 0},                 // a continuation by itself
      {"a\xC3", 1},                // cut off
      {"\xC0\xAF", 0},             // overlong
      {"\xE0\x80\x80", 0},         // overlong
      {"\xED\xA0\x80", 0},         // a surrogate
      {"\xF4\x90\x80\x80", 0},     // beyond U+10FFFF
      {"\xF0\x9F\x98", 0},         // cut off
  };
  for (const Case& c : bad) {
    CAPTURE(c.text);
    const auto p = problem(c.text);
    REQUIRE(p.has_value());
    CHECK(p->kind == source::TextProblem::Kind::not_utf8);
    CHECK(p->begin == c.at);
  }
  const auto nul = problem(std::string_view("a\0b", 3));
  REQUIRE(nul.has_value());
  CHECK(nul->kind == source::TextProblem::Kind::nul);
  CHECK(nul->begin == 1);
}

TEST_CASE("code points are counted, bad bytes as one each") {
  CHECK(source::count_code_points("aπ…😀") == 4);
  CHECK(source::count_code_points("\xFF\xFE") == 2);
  CHECK(source::decode_utf8("😀", 0).code_point == 0x1F600);
  CHECK(source::display_width('a') == 1);
  CHECK(source::display_width(0x4E2D) == 2);
  CHECK(source::display_width(0x0301) == 0);
}
