// Each case is a wrong source and the messages that it gives.
#include <doctest/doctest.h>

#include <string>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/parser.h"
#include "golden.h"

using namespace modelc;

TEST_CASE("messages for wrong sources") {
  for (const Golden& one : golden_cases("errors")) {
    source::SourceManager sources;
    diag::Sink sink;
    const auto tree = syntax::parse(sources.add("case.model", one.source), sources, sink);
    CAPTURE(one.path.string());
    CHECK(tree == nullptr);
    CHECK(sink.has_errors());
    check_golden(one, diag::render(sink, sources));
  }
}

TEST_CASE("an expression by itself is one, and nothing more") {
  auto errors = [](const std::string& text) {
    source::SourceManager sources;
    diag::Sink sink;
    const auto tree = syntax::parse_expr(sources.add("--root", text), sources, sink);
    CHECK((tree == nullptr) == sink.has_errors());
    return diag::render(sink, sources);
  };
  CHECK(errors("Linear(5, 10)").empty());
  CHECK(errors("Linear(5, 10) // and no more").empty());
  CHECK(errors("Linear(5, 10").find("error[E0111]") == 0);
  CHECK(errors("").find("error[E0110]: expected an expression, found the end of the file") == 0);
  CHECK(errors("5 6").find("error[E0110]: expected the end of the file after `5`, found the number `6`") == 0);
  CHECK(errors("Linear(5,, 10)").find("error[E0110]: expected an expression after `,`, found `,`") == 0);
  CHECK(errors("a\xFF").find("error[E0104]") == 0);
}
