// Sources that are large, deep or no text at all: refused with a message before they can hurt, and what is within the
// limits is taken.
#include <doctest/doctest.h>

#include <string>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"

using namespace modelc;

namespace {

std::string repeat(const std::string& text, std::size_t n) {
  std::string out;
  out.reserve(text.size() * n);
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

// The code of the first error, or "" with a tree.
std::string first_error(const std::string& text) {
  source::SourceManager sources;
  diag::Sink sink;
  const auto tree = syntax::parse(sources.add("text.model", text), sources, sink);
  CHECK((tree == nullptr) == sink.has_errors());
  if (tree == nullptr) {
    CHECK(diag::render(sink, sources).size() < 20000);
    return std::string(sink.diagnostics().front().code->text);
  }
  // Deep trees can be walked.
  CHECK_FALSE(syntax::print(*tree).empty());
  CHECK_FALSE(syntax::dump(*tree).empty());
  return "";
}

std::string function(const std::string& body) { return "language 1\nfn f(x) = " + body + "\n"; }

}  // namespace

TEST_CASE("nesting within the limits") {
  CHECK(first_error(function(repeat("(", 199) + "a" + repeat(")", 199))) == "");
  CHECK(first_error(function(repeat("[", 199) + "a" + repeat("]", 199))) == "");
  CHECK(first_error(function(repeat("f(b, ", 190) + "a" + repeat(")", 190))) == "");
  CHECK(first_error(function(repeat("match a { _ => ", 150) + "a" + repeat(" }", 150))) == "");
  CHECK(first_error(function(repeat("match ", 150) + "a" + repeat(" { _ => b }", 150))) == "");
  CHECK(first_error(function(repeat("-", 390) + "a")) == "");
  CHECK(first_error(function(repeat("not ", 390) + "a")) == "");
  CHECK(first_error(function(repeat("a ^ ", 390) + "a")) == "");
  CHECK(first_error(function(repeat("a + ", 390) + "a")) == "");
  CHECK(first_error(function(repeat("a if b else ", 190) + "a")) == "");
  CHECK(first_error(function(repeat("a if ", 150) + "b" + repeat(" else c", 150))) == "");
  CHECK(first_error(function(repeat("fn(x) = ", 120) + "a")) == "");
  CHECK(first_error(function("x" + repeat("[0][a..b, ...](y).z", 90))) == "");
  CHECK(first_error("language 1 config C { x: " + repeat("list[", 198) + "int" + repeat("]", 198) + " }") == "");
}

TEST_CASE("beyond them there is a message") {
  CHECK(first_error(function(repeat("(", 201) + "a" + repeat(")", 201))) == "E0112");
  CHECK(first_error(function(repeat("[", 50000) + "a" + repeat("]", 50000))) == "E0112");
  CHECK(first_error(function(repeat("-", 50000) + "a")) == "E0112");
  CHECK(first_error(function(repeat("not ", 50000) + "a")) == "E0112");
  CHECK(first_error(function(repeat("a ^ ", 50000) + "a")) == "E0112");
  CHECK(first_error(function(repeat("a + ", 50000) + "a")) == "E0112");
  CHECK(first_error(function(repeat("a if b else ", 40000) + "a")) == "E0112");
  CHECK(first_error(function(repeat("fn(x) = ", 30000) + "a")) == "E0112");
  CHECK(first_error(function(repeat("match ", 50000) + "a")) == "E0112");
  CHECK(first_error(function("a" + repeat(".b", 50000))) == "E0112");
  CHECK(first_error(function("a" + repeat("(b)", 50000))) == "E0112");
  CHECK(first_error(function("a" + repeat(" as f32", 50000))) == "E0112");
  CHECK(first_error(function("a" + repeat(" is none", 50000))) == "E0112");
}

TEST_CASE("long is not deep: lists, members, rules, arms one after the other") {
  CHECK(first_error(function("[" + repeat("-a.b + c(d), ", 2000) + "a]")) == "");
  CHECK(first_error("language 1\n" + repeat("fn f(x) = -x.a if not y else 3 ^ z\n", 1000)) == "");
  CHECK(first_error("language 1\nconfig C { " + repeat("a, b: dim = x * -y ", 1000) + "}") == "");
  CHECK(first_error("language 1\nmodule A() { " + repeat("a: b(c.d) if not e ", 1000) + "}") == "");
  const std::string module = "language 1\nmodule A() { ";
  CHECK(first_error(module + "forward() { " + repeat("x = f(-a.b) a.b(c) let y = not z ", 500) + "} }") == "");
  CHECK(first_error(module + "checkpoint s { " + repeat("a.{i}.c = [x, y.z] via t(1) when p is \"q\" ", 500) + "} }") == "");
  CHECK(first_error(function("match a { " + repeat("\"x\" | 1 as s => s.a + -b ", 1000) + "}")) == "");
  CHECK(first_error("language 1\n" + repeat("// comment ///\n/// doc\n", 20000)) == "");
}

TEST_CASE("size") {
  CHECK(first_error("language 1\n" + repeat("a ", syntax::max_tokens)) == "E0103");
  CHECK(first_error("language 1\n" + std::string(1 << 20, ' ') + "//" + std::string(1 << 20, 'x')) == "");
}

TEST_CASE("bytes") {
  using namespace std::string_literals;
  CHECK(first_error("") == "E0113");
  CHECK(first_error("\n\n") == "E0113");
  CHECK(first_error("language 1\n\0"s) == "E0105");
  CHECK(first_error("l\0a\0n\0g\0"s) == "E0105");
  CHECK(first_error("language 1 // \xFF") == "E0104");
  CHECK(first_error("\xFF\xFE") == "E0104");
  CHECK(first_error("\xEF\xBB\xBFlanguage 1\n") == "");  // a byte order mark
  CHECK(first_error("language 1 // no line break, π") == "");
}

TEST_CASE("line breaks of any kind mean nothing") {
  const std::string unix_text = "language 1\n/// doc\nconfig C { // a\n  a: int\n}\n";
  std::string dos, flat = "language 1 config C { a: int }";
  for (const char c : unix_text) dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  source::SourceManager sources;
  diag::Sink sink;
  const auto a = syntax::parse(sources.add("a", unix_text), sources, sink);
  const auto b = syntax::parse(sources.add("b", dos), sources, sink);
  const auto c = syntax::parse(sources.add("c", flat), sources, sink);
  REQUIRE((a != nullptr && b != nullptr && c != nullptr));
  CHECK(syntax::dump(*a) == syntax::dump(*b));
  CHECK(a->decls[0]->doc == "doc");
  CHECK(c->decls[0]->doc.empty());
  // Lines are counted alike.
  CHECK(sources.position(b->decls[0]->span.file, b->decls[0]->span.begin) == source::Position{3, 1});
}
