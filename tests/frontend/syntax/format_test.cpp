// The formatter: what it sets and what it leaves, on small texts; and on every model file, as written and with its
// blanks and line breaks changed at random, that the tree and the comments stay and that a second run changes nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/format.h"
#include "frontend/syntax/parser.h"
#include "golden.h"

using namespace modelc;

namespace {

std::optional<std::string> formatted(const std::string& text, std::size_t columns, std::string& errors) {
  source::SourceManager sources;
  diag::Sink sink;
  auto result = syntax::format(sources.add("text.model", text), sources, sink, {.columns = columns});
  errors = diag::render(sink, sources);
  return result;
}

std::string tree_of(const std::string& text) {
  source::SourceManager sources;
  diag::Sink sink;
  const auto tree = syntax::parse(sources.add("text.model", text), sources, sink);
  return tree ? syntax::dump(*tree) : diag::render(sink, sources);
}

// The texts of all comments, sorted: one behind a long line goes before it.
std::vector<std::string> comments_of(const std::string& text) {
  std::vector<std::string> out;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\') ++i;
      else if (text[i] == '"') in_string = false;
    } else if (text[i] == '"') {
      in_string = true;
    } else if (text.compare(i, 2, "//") == 0) {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      std::string one = text.substr(i, end - i);
      while (!one.empty() && (one.back() == ' ' || one.back() == '\r')) one.pop_back();
      out.push_back(one);
      i = end;
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string check_format(const std::string& text, std::size_t columns = 120) {
  std::string errors;
  CAPTURE(text);
  const auto once = formatted(text, columns, errors);
  REQUIRE_MESSAGE(once.has_value(), errors);
  CHECK(errors.empty());
  CAPTURE(*once);
  REQUIRE(tree_of(*once) == tree_of(text));
  REQUIRE(comments_of(*once) == comments_of(text));
  const auto twice = formatted(*once, columns, errors);
  REQUIRE(twice.has_value());
  REQUIRE(*twice == *once);
  CHECK(once->find(" \n") == std::string::npos);
  CHECK(once->find("\n\n\n") == std::string::npos);
  CHECK(once->back() == '\n');
  return *once;
}

void check_is(const std::string& text, const std::string& expected, std::size_t columns = 120) {
  CHECK(check_format(text, columns) == expected);
}

std::vector<std::string> all_models() {
  std::vector<std::string> models;
  for (const char* folder : {"tests/frontend", "stdlib", "examples"}) {
    for (const auto& path : files_below(folder, ".model")) models.push_back(read_file(path));
  }
  REQUIRE(models.size() >= 24);
  return models;
}

}  // namespace

TEST_CASE("blanks between words") {
  check_is("language 1 fn f ( x,y )=x*-y+ x [ .. , 0 ..2 by 2 ]^ 2", "language 1  fn f(x, y) = x * -y + x[.., 0..2 by 2] ^ 2\n");
  check_is("language   1\nmodule A(c:C,n : dim=4){\nparam w at a . b : f32 [ n , 2 ]=1.0 if c . x\nx : Lin ( y )\n}\n",
           "language 1\nmodule A(c: C, n: dim = 4) {\n    param w at a.b: f32[n, 2] = 1.0 if c.x\n    x: Lin(y)\n}\n");
}

TEST_CASE("empty lines and the end of the file") {
  check_is("\n\nlanguage 1\n\n\n\naxis a: 2..3   \n\n", "language 1\n\naxis a: 2..3\n");
  check_is("language 1\r\naxis a: 2..\r\n", "language 1\naxis a: 2..\n");
}

TEST_CASE("indents and comments") {
  check_is(R"(language 1
   // before
module A() {
  // in it
   param w: [4]   // behind
         // goes nowhere
 forward(x: [4])  -> [4]{ return x+
 w }
   // at the end
})",
           R"(language 1
// before
module A() {
    // in it
    param w: [4]  // behind
    // goes nowhere
    forward(x: [4]) -> [4] { return x +
            w }
    // at the end
}
)");
}

TEST_CASE("columns that the input has stay, others are not made") {
  check_is(R"(language 1
module A(c: C) {
  let heads    = c.heads // one
  let kv_heads = c.kv
  let d        = 4
  let e = 1
}
)",
           R"(language 1
module A(c: C) {
    let heads    = c.heads // one
    let kv_heads = c.kv
    let d        = 4
    let e = 1
}
)");
  // The widest word sets the column.
  check_is("language 1\nmodule A() {\n    a:      B()\n    longer: B()\n    c:      B(1)   // x\n    d:      B()    // y\n}\n",
           "language 1\nmodule A() {\n    a:      B()\n    longer: B()\n    c:      B(1)   // x\n    d:      B()    // y\n}\n");
  check_is("language 1\nmodule A() {\n    a:           B()\n    longer:      B()\n}\n",
           "language 1\nmodule A() {\n    a:      B()\n    longer: B()\n}\n");
}

TEST_CASE("a continued line keeps its place below a word") {
  check_is(R"(language 1
module A(c: C) {
  rope: Rotary(c.size, theta:   c.theta,
               scaling: c.scaling)
  mlp: MLP(
      c.size)
}
)",
           R"(language 1
module A(c: C) {
    rope: Rotary(c.size, theta: c.theta,
                 scaling: c.scaling)
    mlp: MLP(
        c.size)
}
)");
}

TEST_CASE("long lines are broken in the least nested brackets, and comments go before them") {
  check_is(R"(language 1
module A(c: C) {
    layer: Decoder(c.hidden_size, norm(c.hidden_size, 4), mixer: Attention(c.hidden_size, c.heads)) // which layer
}
)",
           R"(language 1
module A(c: C) {
    // which layer
    layer: Decoder(c.hidden_size, norm(c.hidden_size, 4),
            mixer: Attention(c.hidden_size, c.heads))
}
)",
           60);
  const std::string word(130, 'x');
  check_is("language 1\naxis " + word + ": 2..3\n", "language 1\naxis " + word + ": 2..3\n");
}

TEST_CASE("a file with errors is none to format") {
  std::string errors;
  CHECK_FALSE(formatted("language 1\nmodule A( {\n}\n", 100, errors).has_value());
  CHECK(errors.find("E0111") != std::string::npos);
  // A line feed in the place of the carriage return would make the comment the axis's documentation.
  CHECK_FALSE(formatted("language 1\r/// x\naxis a: 2..3\n", 100, errors).has_value());
  CHECK(errors.find("E0116") != std::string::npos);
}

TEST_CASE("every model file") {
  for (const std::string& text : all_models()) {
    check_format(text);
    // A line is longer only where it cannot be broken: a comment, or one word.
    const std::string narrow = check_format(text, 60);
    for (std::size_t begin = 0; begin < narrow.size();) {
      const std::size_t end = narrow.find('\n', begin);
      const std::string line = narrow.substr(begin, end - begin);
      CAPTURE(line);
      const std::size_t code = std::min(line.find("//"), line.size());
      CHECK(source::count_code_points(line.substr(0, code)) <= 90);
      begin = end + 1;
    }
  }
}

TEST_CASE("blanks and line breaks at random change neither tree nor comments") {
  std::mt19937 random(29);
  const std::vector<std::string> models = all_models();
  for (int i = 0; i < 60; ++i) {
    const std::string& text = models[random() % models.size()];
    std::string changed;
    bool in_string = false, in_comment = false;
    for (std::size_t k = 0; k < text.size(); ++k) {
      const char c = text[k];
      if (in_comment) {
        in_comment = c != '\n';
      } else if (in_string) {
        if (c == '\\') changed += text[k++];
        else if (c == '"') in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (text.compare(k, 2, "//") == 0) {
        in_comment = true;
      } else if (c == ' ') {
        // A `///` must stay on a line of its own, or behind text: line breaks only where none follows.
        const std::size_t next = text.find_first_not_of(" \n", k);
        const bool comment = next != std::string::npos && text.compare(next, 2, "//") == 0;
        switch (random() % 8) {
          case 0: changed += comment ? " " : "\n"; continue;
          case 1: changed += "  "; continue;
          case 2: changed += std::string(random() % 9, ' ') + " "; continue;
          case 3: changed += comment ? "   " : "\n\n\n  "; continue;
          case 4: changed += "\t "; continue;
          default: break;
        }
      }
      changed += text[k];
    }
    REQUIRE(tree_of(changed) == tree_of(text));
    check_format(changed, 40 + random() % 80);
  }
}
