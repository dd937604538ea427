// Text to tree to text to tree: the models of the field, the standard library, and random trees.
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"
#include "golden.h"

using namespace modelc;

namespace {

std::unique_ptr<ast::File> parse(const std::string& text, std::string& errors) {
  source::SourceManager sources;
  diag::Sink sink;
  auto tree = syntax::parse(sources.add("text.model", text), sources, sink);
  errors = diag::render(sink, sources);
  return tree;
}

void check_round_trip(const std::string& text) {
  std::string errors;
  const auto tree = parse(text, errors);
  REQUIRE_MESSAGE(tree != nullptr, errors);
  CHECK(errors.empty());
  const std::string printed = syntax::print(*tree);
  const auto again = parse(printed, errors);
  CAPTURE(printed);
  REQUIRE_MESSAGE(again != nullptr, errors);
  CHECK(syntax::dump(*again) == syntax::dump(*tree));
  CHECK(syntax::print(*again) == printed);
  for (std::size_t begin = 0; begin < printed.size();) {
    const std::size_t end = printed.find('\n', begin);
    const std::string line = printed.substr(begin, end - begin);
    CAPTURE(line);
    CHECK((source::count_code_points(line) <= 120 || line.find("///") != std::string::npos));
    begin = end + 1;
  }
}

}  // namespace

TEST_CASE("every model file parses, and printing keeps what it says") {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"tests/frontend/syntax/cases/models", "stdlib", "examples"}) {
    for (auto& f : files_below(folder, ".model")) files.push_back(f);
  }
  CHECK(files.size() >= 24);
  for (const auto& path : files) {
    SUBCASE(path.filename().string().c_str()) { check_round_trip(read_file(path)); }
  }
}

TEST_CASE("the examples in grammar/README.md parse") {
  const std::string text = read_file(std::filesystem::path(MODELC_SOURCE_DIR) / "grammar/README.md");
  const std::string fence = "```model\n";
  int blocks = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    std::string block = text.substr(begin, text.find("```", begin) - begin);
    if (block.rfind("language", 0) != 0) block = "language 1\n" + block;
    check_round_trip(block);
    ++blocks;
  }
  CHECK(blocks >= 8);
}

TEST_CASE("the canonical layout") {
  for (const Golden& one : golden_cases("print")) {
    std::string errors;
    const auto tree = parse(one.source, errors);
    REQUIRE_MESSAGE(tree != nullptr, one.path.string(), "\n", errors);
    check_golden(one, syntax::print(*tree));
    check_round_trip(one.source);
  }
}

TEST_CASE("the tree as text") {
  for (const Golden& one : golden_cases("dump")) {
    std::string errors;
    const auto tree = parse(one.source, errors);
    REQUIRE_MESSAGE(tree != nullptr, one.path.string(), "\n", errors);
    check_golden(one, syntax::dump(*tree));
  }
}

// --- Random expressions ---------------------------------------------------------------------------------------------

namespace {

// Trees of every kind of expression in every place, without marks of parentheses: the printer must put those that are
// needed, since another tree is read back otherwise.
struct Generator {
  std::mt19937 random;

  std::size_t below(std::size_t n) { return random() % n; }

  ast::Name name() {
    static const char* const names[] = {"a", "b", "tokens", "config", "value", "by_head", "_", "at", "same"};
    return {names[below(std::size(names))], {}};
  }

  ast::Literal literal() {
    ast::Literal l;
    switch (below(5)) {
      case 0:
        l.kind = ast::LiteralKind::string;
        l.text = below(2) == 0 ? "yarn" : "a \"b\" \\ \n π \x01";
        break;
      case 1:
        l.kind = ast::LiteralKind::integer;
        l.integer = static_cast<std::int64_t>(below(1000));
        break;
      case 2:
        l.kind = ast::LiteralKind::floating;
        l.floating = static_cast<double>(below(1000)) / 8e3;
        break;
      case 3:
        l.kind = ast::LiteralKind::boolean;
        l.boolean = below(2) == 0;
        break;
      default: break;
    }
    return l;
  }

  template <class T> static std::unique_ptr<T> node() { return std::make_unique<T>(); }

  ast::Shape shape(int depth) {
    ast::Shape s;
    for (std::size_t i = below(3); i > 0; --i) {
      ast::Axis a;
      a.ellipsis = below(4) == 0;
      if (!a.ellipsis) a.size = expr(depth - 1);
      s.axes.push_back(std::move(a));
    }
    return s;
  }

  ast::CastType cast_type(int depth) {
    ast::CastType t;
    switch (below(4)) {
      case 0:
        t.is_index = true;
        if (below(2) == 0) t.bound = expr(depth - 1);
        if (below(2) == 0) t.shape = shape(depth);
        break;
      case 1: t.dtype = ast::Name{"f32", {}}; break;
      case 2: t.dtype = ast::Name{"f32", {}}; [[fallthrough]];
      default: t.shape = shape(depth); break;
    }
    return t;
  }

  ast::ExprPtr expr(int depth) {
    if (depth <= 0) {
      if (below(2) == 0) {
        auto e = node<ast::NameExpr>();
        e->name = name();
        return e;
      }
      auto e = node<ast::LiteralExpr>();
      e->value = literal();
      return e;
    }
    switch (below(14)) {
      case 0: {
        auto e = node<ast::TupleExpr>();
        for (int i = 0; i < 2; ++i) e->items.push_back(expr(depth - 1));
        return e;
      }
      case 1: {
        auto e = node<ast::UnaryExpr>();
        e->op = below(2) == 0 ? ast::UnaryOp::negate : ast::UnaryOp::not_;
        e->operand = expr(depth - 1);
        return e;
      }
      case 2: {
        auto e = node<ast::CastExpr>();
        e->operand = expr(depth - 1);
        e->type = cast_type(depth);
        return e;
      }
      case 3: {
        auto e = node<ast::IsExpr>();
        e->operand = expr(depth - 1);
        e->negated = below(2) == 0;
        e->literal = literal();
        return e;
      }
      case 4: {
        auto e = node<ast::ConditionalExpr>();
        e->value = expr(depth - 1);
        e->condition = expr(depth - 1);
        e->otherwise = expr(depth - 1);
        return e;
      }
      case 5: {
        auto e = node<ast::FunctionExpr>();
        for (std::size_t i = below(3); i > 0; --i) e->params.push_back(name());
        e->body = expr(depth - 1);
        return e;
      }
      case 6: {
        auto e = node<ast::CallExpr>();
        e->callee = expr(depth - 1);
        for (std::size_t i = below(3); i > 0; --i) {
          ast::Arg a;
          if (below(2) == 0) a.name = name();
          a.value = expr(depth - 1);
          e->args.items.push_back(std::move(a));
        }
        return e;
      }
      case 7: {
        auto e = node<ast::MemberExpr>();
        e->object = expr(depth - 1);
        e->name = name();
        return e;
      }
      case 8: {
        auto e = node<ast::IndexExpr>();
        e->object = expr(depth - 1);
        for (std::size_t i = below(2) + 1; i > 0; --i) {
          ast::Slice s;
          s.kind = static_cast<ast::SliceKind>(below(4));
          if (s.kind == ast::SliceKind::index || s.kind == ast::SliceKind::range) s.low = expr(depth - 1);
          if (s.kind == ast::SliceKind::range) {
            s.high = expr(depth - 1);
            if (below(2) == 0) s.step = expr(depth - 1);
          }
          e->slices.push_back(std::move(s));
        }
        return e;
      }
      case 9: {
        auto e = node<ast::ListExpr>();
        for (std::size_t i = below(3); i > 0; --i) e->items.push_back(expr(depth - 1));
        return e;
      }
      case 10: {
        auto e = node<ast::ComprehensionExpr>();
        e->element = expr(depth - 1);
        e->variable = name();
        if (below(2) == 0) {
          e->range.emplace();
          e->range->low = expr(depth - 1);
          if (below(2) == 0) e->range->high = expr(depth - 1);
        } else {
          e->source = expr(depth - 1);
        }
        if (below(2) == 0) e->condition = expr(depth - 1);
        return e;
      }
      case 11: {
        auto e = node<ast::MatchExpr>();
        e->subject = expr(depth - 1);
        for (std::size_t i = below(2) + 1; i > 0; --i) {
          ast::Arm a;
          a.wildcard = below(3) == 0;
          if (!a.wildcard) {
            for (std::size_t k = below(2) + 1; k > 0; --k) a.literals.push_back(literal());
            if (below(2) == 0) a.binding = name();
          }
          a.value = expr(depth - 1);
          e->arms.push_back(std::move(a));
        }
        return e;
      }
      default: {
        auto e = node<ast::BinaryExpr>();
        e->op = static_cast<ast::BinaryOp>(below(16));
        e->left = expr(depth - 1);
        e->right = expr(depth - 1);
        return e;
      }
    }
  }
};

}  // namespace

TEST_CASE("printed expressions are read back as they were") {
  Generator g{std::mt19937(20240611)};
  for (int i = 0; i < 2000; ++i) {
    const ast::ExprPtr e = g.expr(1 + i % 4);
    const std::string printed = syntax::print(*e);
    source::SourceManager sources;
    diag::Sink sink;
    const ast::ExprPtr again = syntax::parse_expr(sources.add("expr", printed), sources, sink);
    CAPTURE(printed);
    REQUIRE_MESSAGE(again != nullptr, diag::render(sink, sources));
    REQUIRE(syntax::dump(*again) == syntax::dump(*e));
  }
}
