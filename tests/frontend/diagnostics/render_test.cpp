#include "frontend/diagnostics/render.h"

#include <doctest/doctest.h>

#include <string>

using namespace modelc;
using diag::Sink;
using source::FileId;
using source::SourceManager;
using source::Span;

namespace {

constexpr diag::Code shape_differs{"E0312", "shape_differs", "shape differs", "for tests"};
constexpr diag::Code doubt{"W0000", "doubt", "a doubt", "for tests"};

Span find(const SourceManager& sources, FileId file, std::string_view text) {
  const auto at = static_cast<std::uint32_t>(sources.text(file).find(text));
  return {file, at, at + static_cast<std::uint32_t>(text.size())};
}

}  // namespace

TEST_CASE("a message as the interface shows it") {
  SourceManager sources;
  const FileId f = sources.add("llama.model", "one\ntwo\n    q_proj: Linear(c.hidden_size, heads * d, has_bias: c.attention_bias)\n");
  Sink sink;
  sink.error(shape_differs, find(sources, f, "q_proj"), "shape of `layers.1.self_attn.q_proj.weight` differs")
      .mark("expected [heads * d, hidden_size] = [4 * 16, 40]")
      .note("found [64, 32] in model-00001-of-00002.safetensors")
      .note("hidden_size = 40 from config.json: hidden_size")
      .help("check that the checkpoint belongs to this configuration");
  CHECK(diag::render(sink, sources) ==
        "error[E0312]: shape of `layers.1.self_attn.q_proj.weight` differs\n"
        "  --> llama.model:3:5\n"
        "3 |     q_proj: Linear(c.hidden_size, heads * d, has_bias: c.attention_bias)\n"
        "  |     ^^^^^^ expected [heads * d, hidden_size] = [4 * 16, 40]\n"
        "  found [64, 32] in model-00001-of-00002.safetensors\n"
        "  hidden_size = 40 from config.json: hidden_size\n"
        "  help: check that the checkpoint belongs to this configuration\n");
}

TEST_CASE("labels on the same line stand below the mark, others have a place") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "let width = 3\nuse(widht, 4)\n");
  const FileId g = sources.add("nn/b.model", "\n\n\n\n\n\n\n\n\nfn use(x)\n");
  Sink sink;
  sink.error(shape_differs, find(sources, f, "widht"), "wrong")
      .label(find(sources, f, "use"), "called here")
      .label(find(sources, f, "width"), "declared here")
      .label(find(sources, g, "use"), "this is meant");
  CHECK(diag::render(sink.diagnostics()[0], sources) ==
        "error[E0312]: wrong\n"
        "  --> a.model:2:5\n"
        "2 | use(widht, 4)\n"
        "  |     ^^^^^\n"
        "  | --- called here\n"
        "  --> a.model:1:5\n"
        "1 | let width = 3\n"
        "  |     ----- declared here\n"
        "  --> nn/b.model:10:4\n"
        "10 | fn use(x)\n"
        "   |    --- this is meant\n");
}

TEST_CASE("a message without a source place names what it is about") {
  SourceManager sources;
  Sink sink;
  sink.error(shape_differs, "config.json", "no `rope_theta`").note("looked for at rope_parameters.rope_theta");
  CHECK(diag::render(sink, sources) ==
        "error[E0312]: no `rope_theta`\n"
        "  --> config.json\n"
        "  looked for at rope_parameters.rope_theta\n");
}

TEST_CASE("marks stand under what they mark, whatever stands before it") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "\tπ… 中 \x01 bad\tgood");
  Sink sink;
  sink.error(shape_differs, find(sources, f, "bad"), "wrong");
  // A tab stays, a wide letter takes two columns, a control character is shown as four.
  CHECK(diag::render(sink, sources) ==
        "error[E0312]: wrong\n"
        "  --> a.model:1:9\n"
        "1 | \tπ… 中 \\x01 bad\tgood\n"
        "  | \t           ^^^\n");
}

TEST_CASE("a span of several lines is marked on its first, an empty one by a point") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "ab {\n  c\n}\n");
  Sink sink;
  sink.error(shape_differs, Span{f, 3, 10}, "all of this");
  sink.error(shape_differs, Span{f, 4, 4}, "after this");
  CHECK(diag::render(sink, sources) ==
        "error[E0312]: all of this\n  --> a.model:1:4\n1 | ab {\n  |    ^\n\n"
        "error[E0312]: after this\n  --> a.model:1:5\n1 | ab {\n  |     ^\n");
}

TEST_CASE("a long line is cut around its mark") {
  SourceManager sources;
  const FileId f = sources.add("a.model", std::string(100000, 'x') + "bad" + std::string(100000, 'y'));
  Sink sink;
  sink.error(shape_differs, find(sources, f, "bad"), "wrong");
  const std::string text = diag::render(sink, sources);
  CHECK(text.size() < 600);
  CHECK(text.find("xxxbadyyy") != std::string::npos);
  CHECK(text.find("^^^\n") != std::string::npos);
}

TEST_CASE("what files hold cannot steer the terminal") {
  SourceManager sources;
  const FileId f = sources.add("a\x1b[2J.model", "x\x1b[31m\xFFy");
  Sink sink;
  sink.error(shape_differs, Span{f, 0, 1},
             "found \x1b[0m\xC2\x9B"
             "1m")
      .note("two\nlines");
  const std::string text = diag::render(sink, sources);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\\x1b") != std::string::npos);
  CHECK(text.find("\\x9b") != std::string::npos);
  CHECK(text.find("\xFF") == std::string::npos);
  CHECK(text.find("  two\n    lines\n") != std::string::npos);
}

TEST_CASE("colour only when asked") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "x");
  Sink sink;
  sink.error(shape_differs, Span{f, 0, 1}, "wrong").help("right");
  CHECK(diag::render(sink, sources).find('\x1b') == std::string::npos);
  CHECK(diag::render(sink, sources, {.colour = true}).find("\x1b[1;31merror[E0312]\x1b[0m") == 0);
}

TEST_CASE("twenty are shown and the rest is counted, errors before warnings") {
  SourceManager sources;
  Sink sink;
  sink.warning(doubt, "w", "a warning");
  for (int i = 0; i < 22; ++i) sink.error(shape_differs, "f" + std::to_string(i), "wrong");
  const std::string text = diag::render(sink, sources);
  CHECK(text.find("a warning") == std::string::npos);
  CHECK(text.find("--> f19\n") != std::string::npos);
  CHECK(text.find("--> f20\n") == std::string::npos);
  CHECK(text.find("\n2 more errors not shown\n\n1 more warning not shown\n") != std::string::npos);
  CHECK(diag::render(sink, sources, {.limit = 0}).find("--> f21\n") != std::string::npos);
}

TEST_CASE("JSON has one object a line, whole") {
  SourceManager sources;
  const FileId f = sources.add("a.model", "let π = \"x\"\n");
  Sink sink;
  sink.error(shape_differs, find(sources, f, "π"), "a \"quoted\"\nmessage\x01\\")
      .mark("here")
      .label(find(sources, f, "let"), "there")
      .note("a note")
      .help("a way");
  sink.warning(doubt, "config.json", "hm");
  CHECK(diag::render_json(sink, sources) ==
        R"({"code":"E0312","severity":"error","message":"a \"quoted\"\nmessage\u0001\\","file":"a.model",)"
        R"("line":1,"column":5,"end":{"line":1,"column":6},"label":"here",)"
        R"("notes":["a.model:1:1: there","a note"],"help":"a way"})"
        "\n"
        R"({"code":"W0000","severity":"warning","message":"hm","file":"config.json",)"
        R"("line":null,"column":null,"end":null,"label":"","notes":[],"help":""})"
        "\n");
}
