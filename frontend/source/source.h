// Source texts: files are named by id, places by byte spans. Lines and columns are worked out only when one is shown.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace modelc::source {

// A text in a SourceManager. A default-made id names none.
struct FileId {
  std::uint32_t value = std::numeric_limits<std::uint32_t>::max();

  bool valid() const { return value != std::numeric_limits<std::uint32_t>::max(); }
  auto operator<=>(const FileId&) const = default;
};

// Bytes [begin, end) of one file. Without a file it is no place at all: what was made and not read.
struct Span {
  FileId file;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool valid() const { return file.valid(); }
  std::uint32_t size() const { return end - begin; }
  auto operator<=>(const Span&) const = default;
};

// From the start of `first` to the end of `last`, which stand in one file in this order.
Span join(Span first, Span last);

// A place as it is shown: both from 1, the column in code points.
struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  auto operator<=>(const Position&) const = default;
};

// A text longer than this is refused before it is read.
inline constexpr std::uint64_t max_file_bytes = 4u << 20;

// The first thing in `text` that no source may hold: a NUL byte or bytes that are not UTF-8.
struct TextProblem {
  enum class Kind { not_utf8, nul };
  Kind kind;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
std::optional<TextProblem> find_text_problem(std::string_view text);

// The code points of `text`; a byte that is no UTF-8 counts as one.
std::size_t count_code_points(std::string_view text);

// Owns all texts. Ids and the texts behind them stay valid for its life; texts never change.
class SourceManager {
 public:
  SourceManager() = default;
  SourceManager(const SourceManager&) = delete;
  SourceManager& operator=(const SourceManager&) = delete;

  // A text from memory. `display_name` is how messages name it, as imported ("llama.model", "nn/attention.model") and
  // never as typed on a command line. The bytes are taken as they are: the parser refuses bad ones with their place.
  FileId add(std::string display_name, std::string text, std::filesystem::path real_path = {});

  // A file from disk. Errors: "source-not-found", "source-unreadable", "source-too-large".
  Result<FileId> load(const std::filesystem::path& real_path, std::string display_name);

  // The file that was added with this display name, if any.
  std::optional<FileId> find(std::string_view display_name) const;

  std::size_t size() const { return files_.size(); }
  std::string_view text(FileId file) const;
  std::string_view text(Span span) const;
  const std::string& display_name(FileId file) const;
  // Empty for a text from memory that was given none.
  const std::filesystem::path& real_path(FileId file) const;

  // Where the byte `offset` stands; an offset past the end is the end.
  Position position(FileId file, std::uint32_t offset) const;
  std::uint32_t line_count(FileId file) const;
  // Line `line` (from 1) without its line break; empty when there is no such line.
  std::string_view line_text(FileId file, std::uint32_t line) const;
  // The offset of the first byte of line `line` (from 1).
  std::uint32_t line_begin(FileId file, std::uint32_t line) const;
  // "llama.model:42:5"
  std::string place(Span span) const;

 private:
  struct File {
    std::string display_name;
    std::filesystem::path real_path;
    std::string text;
    std::vector<std::uint32_t> line_begins;  // offset of each line's first byte
  };
  const File& file(FileId id) const;

  std::deque<File> files_;  // a deque, so that text views stay valid as files are added
};

}  // namespace modelc::source
