#include "frontend/syntax/format.h"

#include "frontend/syntax/build.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/formatter.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/reading.h"

namespace modelc::syntax {

namespace {

// One round; none for a text that does not parse.
std::optional<std::string> once(const std::string& text, std::size_t columns, bool align) {
  source::SourceManager sources;
  diag::Sink sink;
  Tokens tokens(sources.add("text.model", text), sources);
  if (!tokens.read(sink)) return std::nullopt;
  std::optional<SyntaxError> error;
  using Result = std::optional<std::string>;
  return read<Result>(
      tokens, [](grammar::ModelParser& parser) { return parser.file(); },
      [&](grammar::ModelParser::FileContext& file) -> Result { return lay_out(pieces_of(tokens, file), columns, align); }, error);
}

// Rounds until nothing changes; none when that does not come.
std::optional<std::string> settled(std::string text, std::size_t columns, bool align) {
  constexpr int most_rounds = 12;
  for (int i = 0; i < most_rounds; ++i) {
    auto next = once(text, columns, align);
    if (!next) return std::nullopt;
    if (*next == text) return text;
    text = std::move(*next);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> format(source::FileId file, const source::SourceManager& sources, diag::Sink& sink,
                                  const FormatOptions& options) {
  const auto tree = parse(file, sources, sink);
  if (tree == nullptr) return std::nullopt;
  const std::string text(sources.text(file));
  auto result = settled(text, options.columns, true);
  // Columns that get into each other's way are given up: without any, nothing moves twice.
  if (!result) result = settled(text, options.columns, false);
  if (result) {
    source::SourceManager own;
    diag::Sink ignored;
    const auto again = parse(own.add("text.model", *result), own, ignored);
    if (again != nullptr && dump(*again) == dump(*tree)) return result;
  }
  sink.error(diag::code::not_formatted, source::Span{file, 0, 0}, "this file cannot be formatted without changing what it says")
      .help("a line break that is a lone carriage return, or a `///` comment behind other text, may be in the way");
  return std::nullopt;
}

}  // namespace modelc::syntax
