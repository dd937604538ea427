// Random words, random bytes and model files with random damage: each gives a tree or a message, never a crash, and a
// tree survives printing. The same sequence in each run.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"
#include "golden.h"

using namespace modelc;

namespace {

// MODELC_FUZZ_ROUNDS=100 makes it a longer run.
int rounds(int usual) {
  const char* factor = std::getenv("MODELC_FUZZ_ROUNDS");
  return factor == nullptr ? usual : usual * std::max(1, std::atoi(factor));
}

void check(const std::string& text) {
  source::SourceManager sources;
  diag::Sink sink;
  const auto tree = syntax::parse(sources.add("fuzz.model", text), sources, sink);
  CAPTURE(text);
  REQUIRE((tree != nullptr) == !sink.has_errors());
  const std::string shown = diag::render(sink, sources) + diag::render_json(sink, sources);
  REQUIRE_FALSE(source::find_text_problem(shown).has_value());
  for (const diag::Diagnostic& d : sink.diagnostics()) {
    REQUIRE(d.primary.begin <= d.primary.end);
    REQUIRE(d.primary.end <= text.size());
    REQUIRE_FALSE(d.message.empty());
  }
  if (tree == nullptr) return;
  const std::string printed = syntax::print(*tree);
  const auto again = syntax::parse(sources.add("printed.model", printed), sources, sink);
  CAPTURE(printed);
  REQUIRE_MESSAGE(again != nullptr, diag::render(sink, sources));
  REQUIRE(syntax::dump(*again) == syntax::dump(*tree));
}

const char* const words[] = {
    "language",   "import",     "axis",      "config",   "file",     "extends",   "variant", "override", "from",      "require", "remove",
    "refuse",     "ignore",     "interface", "module",   "model",    "context",   "param",   "const",    "state",     "at",      "forward",
    "entry",      "checkpoint", "via",       "when",     "alias",    "encode",    "one_of",  "op",       "reference", "cpu",     "glsl",
    "local_size", "dispatch",   "requires",  "encoding", "of",       "part",      "value",   "policy",   "shard",     "over",    "quantize",
    "never",      "below",      "place",     "test",     "with",     "random",    "input",   "expect",   "within",    "error",   "same",
    "let",        "fn",         "for",       "in",       "return",   "match",     "if",      "else",     "as",        "is",      "not",
    "and",        "or",         "true",      "false",    "none",     "list",      "map",     "index",    "by",        "_",       "(",
    ")",          "[",          "]",         "{",        "}",        ",",         ":",       "=",        "=>",        "->",      "|",
    "?",          ".",          "..",        "...",      "^",        "-",         "+",       "*",        "**",        "/",       "%",
    "??",         "==",         "!=",        "<",        "<=",       ">",         ">=",      "a",        "b1",        "Xy",      "0",
    "12",         "1.5",        "1e-5",      "\"s\"",    "\"**.x\"", "/// doc\n", ";"};

}  // namespace

TEST_CASE("random words") {
  std::mt19937 random(7);
  for (int i = 0; i < rounds(1500); ++i) {
    std::string text = "language 1\n";
    for (std::size_t n = random() % 40; n > 0; --n) text += std::string(words[random() % std::size(words)]) + " ";
    check(text);
  }
}

TEST_CASE("random words in brackets that match") {
  std::mt19937 random(11);
  for (int i = 0; i < rounds(1500); ++i) {
    std::string text = "language 1 ";
    static const char* const heads[] = {"module A() { ",
                                        "config C { ",
                                        "fn f(x) { ",
                                        "fn f(x) = ",
                                        "test \"t\" { ",
                                        "module A() { checkpoint g { ",
                                        "op f(x: []) -> [] { reference ",
                                        "variant V by t { \"x\" { ",
                                        "encoding E of [n] { part p at \"q\": u8[] value "};
    const std::string head = heads[random() % std::size(heads)];
    std::string closers;
    for (const char c : head) {
      if (c == '{') closers += '}';
      if (c == '}') closers.pop_back();
    }
    text += head;
    for (std::size_t n = random() % 25; n > 0; --n) {
      const std::string word = words[random() % std::size(words)];
      if (word == ")" || word == "]" || word == "}") {
        if (closers.empty()) continue;
        text += closers.back();
        closers.pop_back();
      } else {
        if (word == "(") closers += ')';
        if (word == "[") closers += ']';
        if (word == "{") closers += '}';
        text += word;
      }
      text += " ";
    }
    while (!closers.empty()) {
      text += closers.back();
      closers.pop_back();
    }
    check(text);
  }
}

TEST_CASE("random bytes") {
  std::mt19937 random(13);
  for (int i = 0; i < rounds(500); ++i) {
    std::string text = random() % 2 == 0 ? "" : "language 1\n";
    for (std::size_t n = random() % 60; n > 0; --n) { text += static_cast<char>(random() % 4 == 0 ? random() : 32 + random() % 95); }
    check(text);
  }
}

TEST_CASE("damaged models") {
  std::vector<std::string> models;
  for (const char* folder : {"tests/frontend/syntax/cases/models", "stdlib"}) {
    for (const auto& path : files_below(folder, ".model")) models.push_back(read_file(path));
  }
  REQUIRE_FALSE(models.empty());
  std::mt19937 random(17);
  for (int i = 0; i < rounds(200); ++i) {
    std::string text = models[random() % models.size()];
    for (std::size_t n = 1 + random() % 3; n > 0 && text.size() > 20; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.erase(at, 1 + random() % 8); break;
        case 1: text.insert(at, std::string(" ") + words[random() % std::size(words)] + " "); break;
        case 2: text[at] = static_cast<char>(32 + random() % 95); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 60)); break;
      }
    }
    check(text);
  }
}
