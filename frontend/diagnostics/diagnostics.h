// Messages to the user: made where the mistake is found, collected in a Sink, shown at the end (render.h).
//
//   sink.error(code::unknown_name, name.span, "no name `hiden_size` here")
//       .label(decl.span, "`c` is declared here")
//       .note("...")
//       .help("did you mean `hidden_size`?");
//
// A message says what was found and what was expected, marks the narrowest wrong text, labels the other places, and
// says what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "frontend/diagnostics/codes.h"
#include "frontend/source/source.h"
#include "runtime/base/result.h"

namespace modelc::diag {

struct Label {
  source::Span span;
  std::string text;
};

struct Diagnostic {
  const Code* code = nullptr;
  Severity severity = Severity::error;
  std::string message;
  source::Span primary;        // invalid when the mistake is not in a source text: then `place` says where
  std::string place;           // "config.json", "model-00001-of-00002.safetensors", or empty
  std::string primary_label;   // stands behind the ^^^^
  std::vector<Label> labels;   // other places
  std::vector<std::string> notes;
  std::string help;
};

class Sink;

// Adds to the message just made. It may be kept no longer than the full expression.
class Builder {
 public:
  // Text behind the marks under the primary span.
  Builder& mark(std::string text);
  // Another place and what is to be said of it. An invalid span makes it a note.
  Builder& label(source::Span span, std::string text);
  Builder& note(std::string text);
  Builder& help(std::string text);
  // Notes and help of a failed Result.
  Builder& details(const Error& error);

 private:
  friend class Sink;
  Builder(Sink* sink, std::size_t index) : sink_(sink), index_(index) {}
  Diagnostic* target();

  Sink* sink_;
  std::size_t index_;
};

// Collects messages in the order in which they are made, so that no effect stands before its cause. A mistake is said
// once: the same code, place and message a second time is dropped.
class Sink {
 public:
  // The severity is the code's own; `error`, `warning` and `note` only say which is meant and assert it.
  Builder report(const Code& code, source::Span span, std::string message);
  Builder report(const Code& code, std::string place, std::string message);

  Builder error(const Code& code, source::Span span, std::string message);
  Builder error(const Code& code, std::string place, std::string message);
  // A failed Result as a message at `span` or `place`, with its notes and help.
  Builder error(const Code& code, source::Span span, const Error& error);
  Builder error(const Code& code, std::string place, const Error& error);
  Builder warning(const Code& code, source::Span span, std::string message);
  Builder warning(const Code& code, std::string place, std::string message);
  Builder note(const Code& code, source::Span span, std::string message);
  Builder note(const Code& code, std::string place, std::string message);

  bool has_errors() const { return error_count_ != 0; }
  // All messages made, those beyond `max_kept` included.
  std::size_t error_count() const { return error_count_; }
  std::size_t warning_count() const { return warning_count_; }
  // At most `max_kept`.
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool has(const Code& code) const;
  void clear();

  static constexpr std::size_t max_kept = 1000;

 private:
  friend class Builder;
  Builder add(const Code& code, source::Span span, std::string place, std::string message);

  std::vector<Diagnostic> diagnostics_;
  std::set<std::tuple<std::string_view, source::Span, std::string, std::string>> seen_;
  std::size_t error_count_ = 0;
  std::size_t warning_count_ = 0;
};

// The candidate nearest to `name` in spelling, for "did you mean": nothing when none is near (a third of the letters,
// at least one, may differ; letter case and `_` against `-` differ less). The first of equals wins.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

// "did you mean `hidden_size`?", or "" without a near candidate: ready for Builder::help.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// Loads a file into `sources` and says what is wrong when that fails or when its bytes are not text (then it has an id
// all the same in `sources`, but none is returned). `wanted_by` is the import or other text that asks for it, if any.
std::optional<source::FileId> load_source(source::SourceManager& sources, const std::filesystem::path& real_path, std::string display_name,
                                          Sink& sink, source::Span wanted_by = {});

// A text that could not be read as what it should be, whose error begins "NAME:LINE:COLUMN: " (the column in bytes, as the
// readers of JSON and YAML say it): with the line and a mark, where the file can be loaded into `sources`.
Builder error_in_text(Sink& sink, source::SourceManager& sources, const Code& code, const std::filesystem::path& path,
                      const std::string& name, const Error& error);

// Reports NUL bytes and bytes that are not UTF-8; true when there are none.
bool check_text(source::FileId file, const source::SourceManager& sources, Sink& sink);

}  // namespace modelc::diag
