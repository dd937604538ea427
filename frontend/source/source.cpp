#include "frontend/source/source.h"

#include <algorithm>
#include <cassert>
#include <fstream>
#include <system_error>

#include "frontend/source/utf8.h"

namespace modelc::source {

Utf8Char decode_utf8(std::string_view text, std::size_t offset) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  // Length and smallest code point of each lead byte's form; a smaller one would be overlong.
  std::uint32_t length = 0, least = 0, value = 0;
  if (first >= 0xC2 && first < 0xE0) {
    length = 2, least = 0x80, value = first & 0x1F;
  } else if (first >= 0xE0 && first < 0xF0) {
    length = 3, least = 0x800, value = first & 0x0F;
  } else if (first >= 0xF0 && first < 0xF5) {
    length = 4, least = 0x10000, value = first & 0x07;
  } else {
    return {first, 1, false};
  }
  if (text.size() - offset < length) return {first, 1, false};
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {first, 1, false};
    value = value << 6 | (byte(i) & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < least || value > 0x10FFFF || surrogate) return {first, 1, false};
  return {value, length, true};
}

int display_width(std::uint32_t c) {
  struct Block {
    std::uint32_t first, last;
  };
  // The blocks that text in this field uses; a letter outside them takes one column.
  static constexpr Block zero[] = {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};
  static constexpr Block wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xAC00, 0xD7A3},
                                   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6},
                                   {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  auto in = [c](const Block& b) { return c >= b.first && c <= b.last; };
  if (std::any_of(std::begin(zero), std::end(zero), in)) return 0;
  return std::any_of(std::begin(wide), std::end(wide), in) ? 2 : 1;
}

Span join(Span first, Span last) {
  if (!first.valid()) return last;
  if (!last.valid()) return first;
  assert(first.file == last.file);
  return {first.file, first.begin, std::max(first.end, last.end)};
}

std::optional<TextProblem> find_text_problem(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text, i);
    const auto at = static_cast<std::uint32_t>(i);
    if (!c.valid) return TextProblem{TextProblem::Kind::not_utf8, at, at + 1};
    if (c.code_point == 0) return TextProblem{TextProblem::Kind::nul, at, at + 1};
    i += c.length;
  }
  return std::nullopt;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < text.size(); i += decode_utf8(text, i).length) ++n;
  return n;
}

FileId SourceManager::add(std::string display_name, std::string text, std::filesystem::path real_path) {
  assert(text.size() <= std::numeric_limits<std::uint32_t>::max());
  File f{std::move(display_name), std::move(real_path), std::move(text), {0}};
  for (std::size_t i = 0; i < f.text.size(); ++i) {
    if (f.text[i] == '\n') f.line_begins.push_back(static_cast<std::uint32_t>(i + 1));
  }
  files_.push_back(std::move(f));
  return FileId{static_cast<std::uint32_t>(files_.size() - 1)};
}

Result<FileId> SourceManager::load(const std::filesystem::path& real_path, std::string display_name) {
  const std::string named = "`" + display_name + "`";
  std::error_code ec;
  const auto status = std::filesystem::status(real_path, ec);
  if (status.type() == std::filesystem::file_type::not_found) {
    return Error{"source-not-found", "there is no file " + named, {"looked for as " + real_path.string()}, ""};
  }
  if (ec || !std::filesystem::is_regular_file(status)) {
    return Error{"source-unreadable",
                 named + (ec ? " cannot be read: " + ec.message() : std::string(" is not a file")),
                 {"looked for as " + real_path.string()},
                 ""};
  }
  std::ifstream in(real_path, std::ios::binary);
  if (!in) {
    return Error{
        "source-unreadable", named + " cannot be opened", {"looked for as " + real_path.string()}, "check that the file may be read"};
  }
  // Read to the limit instead of asking for the size first: the file may grow meanwhile.
  std::string text;
  std::string buffer(64 << 10, '\0');
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_file_bytes) {
      return Error{"source-too-large",
                   named + " has more than the " + std::to_string(max_file_bytes >> 20) + " MiB that a source may have",
                   {"read from " + real_path.string()},
                   "is this the .model file, and not weights?"};
    }
  }
  if (in.bad()) { return Error{"source-unreadable", "reading " + named + " failed", {"read from " + real_path.string()}, ""}; }
  return add(std::move(display_name), std::move(text), real_path);
}

std::optional<FileId> SourceManager::find(std::string_view display_name) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].display_name == display_name) return FileId{static_cast<std::uint32_t>(i)};
  }
  return std::nullopt;
}

const SourceManager::File& SourceManager::file(FileId id) const {
  assert(id.value < files_.size());
  return files_[id.value];
}

std::string_view SourceManager::text(FileId id) const { return file(id).text; }

std::string_view SourceManager::text(Span span) const {
  const std::string_view all = file(span.file).text;
  assert(span.begin <= span.end && span.end <= all.size());
  return all.substr(span.begin, span.end - span.begin);
}

const std::string& SourceManager::display_name(FileId id) const { return file(id).display_name; }

const std::filesystem::path& SourceManager::real_path(FileId id) const { return file(id).real_path; }

Position SourceManager::position(FileId id, std::uint32_t offset) const {
  const File& f = file(id);
  offset = std::min(offset, static_cast<std::uint32_t>(f.text.size()));
  const auto next = std::upper_bound(f.line_begins.begin(), f.line_begins.end(), offset);
  const std::uint32_t begin = *(next - 1);
  const std::string_view before = std::string_view(f.text).substr(begin, offset - begin);
  return {static_cast<std::uint32_t>(next - f.line_begins.begin()), static_cast<std::uint32_t>(count_code_points(before) + 1)};
}

std::uint32_t SourceManager::line_count(FileId id) const { return static_cast<std::uint32_t>(file(id).line_begins.size()); }

std::uint32_t SourceManager::line_begin(FileId id, std::uint32_t line) const {
  const File& f = file(id);
  if (line == 0 || line > f.line_begins.size()) return static_cast<std::uint32_t>(f.text.size());
  return f.line_begins[line - 1];
}

std::string_view SourceManager::line_text(FileId id, std::uint32_t line) const {
  const File& f = file(id);
  if (line == 0 || line > f.line_begins.size()) return {};
  const std::size_t begin = f.line_begins[line - 1];
  const std::size_t end = line < f.line_begins.size() ? f.line_begins[line] : f.text.size();
  std::string_view text = std::string_view(f.text).substr(begin, end - begin);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string SourceManager::place(Span span) const {
  const Position p = position(span.file, span.begin);
  return display_name(span.file) + ":" + std::to_string(p.line) + ":" + std::to_string(p.column);
}

}  // namespace modelc::source
