#include "frontend/diagnostics/diagnostics.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace modelc::diag {

namespace {
constexpr std::size_t dropped = static_cast<std::size_t>(-1);
}

Diagnostic* Builder::target() { return index_ == dropped ? nullptr : &sink_->diagnostics_[index_]; }

Builder& Builder::mark(std::string text) {
  if (Diagnostic* d = target()) d->primary_label = std::move(text);
  return *this;
}

Builder& Builder::label(source::Span span, std::string text) {
  if (Diagnostic* d = target()) {
    if (span.valid()) {
      d->labels.push_back({span, std::move(text)});
    } else {
      d->notes.push_back(std::move(text));
    }
  }
  return *this;
}

Builder& Builder::note(std::string text) {
  if (Diagnostic* d = target()) d->notes.push_back(std::move(text));
  return *this;
}

Builder& Builder::help(std::string text) {
  if (Diagnostic* d = target(); d && !text.empty()) d->help = std::move(text);
  return *this;
}

Builder& Builder::details(const Error& error) {
  if (Diagnostic* d = target()) d->notes.insert(d->notes.end(), error.notes.begin(), error.notes.end());
  return help(error.help);
}

Builder Sink::add(const Code& code, source::Span span, std::string place, std::string message) {
  if (!seen_.emplace(code.text, span, place, message).second) return {this, dropped};
  const Severity severity = code.severity();
  if (severity == Severity::error) ++error_count_;
  if (severity == Severity::warning) ++warning_count_;
  if (diagnostics_.size() >= max_kept) return {this, dropped};
  Diagnostic d;
  d.code = &code;
  d.severity = severity;
  d.message = std::move(message);
  d.primary = span;
  d.place = std::move(place);
  diagnostics_.push_back(std::move(d));
  return {this, diagnostics_.size() - 1};
}

Builder Sink::report(const Code& code, source::Span span, std::string message) { return add(code, span, {}, std::move(message)); }

Builder Sink::report(const Code& code, std::string place, std::string message) {
  return add(code, {}, std::move(place), std::move(message));
}

Builder Sink::error(const Code& code, source::Span span, std::string message) {
  assert(code.severity() == Severity::error);
  return report(code, span, std::move(message));
}

Builder Sink::error(const Code& code, std::string place, std::string message) {
  assert(code.severity() == Severity::error);
  return report(code, std::move(place), std::move(message));
}

Builder Sink::error(const Code& code, source::Span span, const Error& error) {
  return this->error(code, span, error.message).details(error);
}

Builder Sink::error(const Code& code, std::string place, const Error& error) {
  return this->error(code, std::move(place), error.message).details(error);
}

Builder Sink::warning(const Code& code, source::Span span, std::string message) {
  assert(code.severity() == Severity::warning);
  return report(code, span, std::move(message));
}

Builder Sink::warning(const Code& code, std::string place, std::string message) {
  assert(code.severity() == Severity::warning);
  return report(code, std::move(place), std::move(message));
}

Builder Sink::note(const Code& code, source::Span span, std::string message) {
  assert(code.severity() == Severity::note);
  return report(code, span, std::move(message));
}

Builder Sink::note(const Code& code, std::string place, std::string message) {
  assert(code.severity() == Severity::note);
  return report(code, std::move(place), std::move(message));
}

bool Sink::has(const Code& code) const {
  for (const Diagnostic& d : diagnostics_) {
    if (d.code->text == code.text) return true;
  }
  return false;
}

void Sink::clear() {
  diagnostics_.clear();
  seen_.clear();
  error_count_ = 0;
  warning_count_ = 0;
}

std::optional<source::FileId> load_source(source::SourceManager& sources, const std::filesystem::path& real_path, std::string display_name,
                                          Sink& sink, source::Span wanted_by) {
  std::string place = display_name;
  Result<source::FileId> file = sources.load(real_path, std::move(display_name));
  if (!file) {
    const Error& e = file.error();
    const Code& c = e.kind == "source-not-found"   ? code::source_not_found
                    : e.kind == "source-too-large" ? code::source_too_large
                                                   : code::source_unreadable;
    if (wanted_by.valid()) {
      sink.error(c, wanted_by, e);
    } else {
      sink.error(c, std::move(place), e);
    }
    return std::nullopt;
  }
  if (!check_text(*file, sources, sink)) return std::nullopt;
  return *file;
}

Builder error_in_text(Sink& sink, source::SourceManager& sources, const Code& code, const std::filesystem::path& path,
                      const std::string& name, const Error& error) {
  std::string_view rest = error.message;
  const auto number = [&](std::uint32_t& n) {
    std::size_t digits = 0;
    for (n = 0; digits < rest.size() && digits < 9 && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
      n = n * 10 + static_cast<std::uint32_t>(rest[digits] - '0');
    const bool good = digits != 0 && digits < rest.size() && rest[digits] == ':';
    if (good) rest.remove_prefix(digits + 1);
    return good;
  };
  std::uint32_t line = 0, column = 0;
  if (!rest.starts_with(name + ":")) return sink.error(code, path.string(), error);
  rest.remove_prefix(name.size() + 1);
  if (!number(line) || !number(column) || !rest.starts_with(" ")) return sink.error(code, path.string(), error);
  const Result<source::FileId> file = sources.load(path, name);
  if (!file || line == 0 || column == 0 || line > sources.line_count(*file)) return sink.error(code, path.string(), error);
  const auto size = static_cast<std::uint32_t>(sources.text(*file).size());
  const std::uint32_t begin = std::min(sources.line_begin(*file, line) + column - 1, size);
  // The word or the string that begins there.
  const std::string_view text = sources.text(*file);
  std::uint32_t end = std::min(begin + 1, size);
  if (begin < size && text[begin] == '"') {
    const std::size_t close = text.find_first_of("\"\n", end);
    if (close != std::string_view::npos && text[close] == '"') end = static_cast<std::uint32_t>(close + 1);
  }
  while (end < size && std::string_view(",]}[{:\" \t\r\n").find(text[end]) == std::string_view::npos &&
         std::string_view(",]}[{:\"").find(text[begin]) == std::string_view::npos)
    ++end;
  return sink.error(code, source::Span{*file, begin, end}, std::string(rest.substr(1))).details(error);
}

bool check_text(source::FileId file, const source::SourceManager& sources, Sink& sink) {
  const std::string_view text = sources.text(file);
  const auto problem = source::find_text_problem(text);
  if (!problem) return true;
  const source::Span span{file, problem->begin, problem->end};
  if (problem->kind == source::TextProblem::Kind::nul) {
    sink.error(code::nul_byte, span, "a NUL byte in the text")
        .note("a source is UTF-8 text")
        .help("is this the .model file? If so, remove the byte, or save the file as UTF-8 (it may be UTF-16)");
  } else {
    static constexpr char digits[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(text[problem->begin]);
    const std::string hex = {'0', 'x', digits[byte >> 4], digits[byte & 15]};
    sink.error(code::not_utf8, span, "the byte " + hex + " here is not UTF-8")
        .note("a source is UTF-8 text")
        .help("save the file as UTF-8");
  }
  return false;
}

}  // namespace modelc::diag
