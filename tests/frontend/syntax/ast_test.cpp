// What the tree holds: places, comments, literals, precedence.
#include "frontend/syntax/ast.h"

#include <doctest/doctest.h>

#include <string>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"

using namespace modelc;

namespace {

struct Parsed {
  source::SourceManager sources;
  diag::Sink sink;
  std::unique_ptr<ast::File> file;

  explicit Parsed(const std::string& text) {
    file = syntax::parse(sources.add("text.model", text), sources, sink);
    REQUIRE_MESSAGE(file != nullptr, diag::render(sink, sources));
  }
  std::string text(source::Span span) const { return std::string(sources.text(span)); }
};

struct ParsedExpr {
  source::SourceManager sources;
  diag::Sink sink;
  ast::ExprPtr expr;

  explicit ParsedExpr(const std::string& text) {
    expr = syntax::parse_expr(sources.add("expr", text), sources, sink);
    REQUIRE_MESSAGE(expr != nullptr, diag::render(sink, sources));
  }
  std::string text(source::Span span) const { return std::string(sources.text(span)); }
};

// Whether both texts are the same expression.
bool same(const std::string& a, const std::string& b) { return syntax::dump(*ParsedExpr(a).expr) == syntax::dump(*ParsedExpr(b).expr); }

}  // namespace

TEST_CASE("how tightly operators bind") {
  CHECK(same("a + b * c", "a + (b * c)"));
  CHECK(same("a - b - c", "(a - b) - c"));
  CHECK(same("a / b * c", "(a / b) * c"));
  CHECK(same("a ^ b ^ c", "a ^ (b ^ c)"));
  CHECK(same("-a ^ b", "-(a ^ b)"));
  CHECK(same("a ^ -b", "a ^ (-b)"));
  CHECK(same("a * -b + c", "(a * (-b)) + c"));
  CHECK(same("-x as f32", "(-x) as f32"));
  CHECK(same("x * y as f32", "x * (y as f32)"));
  CHECK(same("q(x) as [a, b] + c", "(q(x) as [a, b]) + c"));
  CHECK(same("a + b == c % d", "(a + b) == (c % d)"));
  CHECK(same("a == b is true", "(a == b) is true"));
  CHECK(same("not a in b", "not (a in b)"));
  CHECK(same("not a == b and c", "(not (a == b)) and c"));
  CHECK(same("a or b and c", "a or (b and c)"));
  CHECK(same("a ?? b or c", "a ?? (b or c)"));
  CHECK(same("a ?? b ?? c", "(a ?? b) ?? c"));
  CHECK(same("a if b else c if d else e", "a if b else (c if d else e)"));
  CHECK(same("a + b if c else d", "(a + b) if c else d"));
  CHECK(same("a if b ?? c else d", "a if (b ?? c) else d"));
  CHECK(same("fn(x) = x + 1 if y else z", "fn(x) = ((x + 1) if y else z)"));
  CHECK(same("f(x).y[0](z)", "((f(x)).y)[0](z)"));
  CHECK_FALSE(same("a + b * c", "(a + b) * c"));
  CHECK_FALSE(same("a ^ b ^ c", "(a ^ b) ^ c"));
}

TEST_CASE("places of expressions") {
  const ParsedExpr p("  (a + b) * f(x, y: 2)[0, ..]");
  const auto& product = ast::as<ast::BinaryExpr>(*p.expr);
  CHECK(p.text(product.span) == "(a + b) * f(x, y: 2)[0, ..]");
  CHECK(p.text(product.op_span) == "*");
  CHECK(product.left->parens);
  CHECK(p.text(product.left->span) == "a + b");
  const auto& index = ast::as<ast::IndexExpr>(*product.right);
  CHECK(p.text(index.span) == "f(x, y: 2)[0, ..]");
  REQUIRE(index.slices.size() == 2);
  CHECK(p.text(index.slices[0].span) == "0");
  CHECK(index.slices[1].kind == ast::SliceKind::whole);
  const auto& call = ast::as<ast::CallExpr>(*index.object);
  CHECK(p.text(call.span) == "f(x, y: 2)");
  CHECK(p.text(call.args.span) == "(x, y: 2)");
  REQUIRE(call.args.items.size() == 2);
  CHECK(p.text(call.args.items[1].span) == "y: 2");
  CHECK(call.args.items[1].name->text == "y");
  CHECK(p.text(call.args.items[1].name->span) == "y");
}

TEST_CASE("places are bytes, behind letters of several too") {
  const Parsed p("language 1 // πππ\n/// …\naxis frames: 2..3000 by 2\n");
  const auto& axis = ast::as<ast::AxisDecl>(*p.file->decls.at(0));
  CHECK(p.text(axis.span) == "axis frames: 2..3000 by 2");
  CHECK(p.text(axis.name.span) == "frames");
  CHECK(p.text(axis.range.span) == "2..3000");
  CHECK(p.sources.position(axis.name.span.file, axis.name.span.begin) == source::Position{3, 6});
}

TEST_CASE("every item has its place and its name's") {
  const Parsed p(
      "language 1\nimport nn.linear as l\n"
      "module A(c: C) extends B(c) {\n"
      "  override param w at x.y: f32[n] = 1.0 if c.z\n"
      "  state s: KVCache(1, 2)\n"
      "  override forward(x: [n]) -> y: [n] { return x }\n"
      "}\n");
  CHECK(p.text(p.file->imports[0].span) == "import nn.linear as l");
  CHECK(p.file->imports[0].path.text() == "nn.linear");
  CHECK(p.file->imports[0].alias->text == "l");
  const auto& m = ast::as<ast::ModuleDecl>(*p.file->decls[0]);
  CHECK(p.text(m.name.span) == "A");
  CHECK(p.text(m.base->span) == "B");
  CHECK(p.text(m.base_args->span) == "(c)");
  const auto& w = ast::as<ast::ParamMember>(*m.members[0]);
  CHECK(p.text(w.span) == "override param w at x.y: f32[n] = 1.0 if c.z");
  CHECK(p.text(*w.override_) == "override");
  CHECK(p.text(w.at->span) == "at x.y");
  CHECK(w.at->path.text == "x.y");
  CHECK(p.text(w.type->span) == "f32[n]");
  CHECK(p.text(w.default_value->span) == "1.0");
  CHECK(p.text(w.condition->span) == "c.z");
  CHECK_FALSE(ast::as<ast::StateMember>(*m.members[1]).override_.has_value());
  const auto& f = ast::as<ast::MethodMember>(*m.members[2]);
  CHECK(f.signature.is_forward);
  CHECK(p.text(f.signature.name.span) == "forward");
  CHECK(p.text(f.signature.span) == "forward(x: [n]) -> y: [n]");
  CHECK(p.text(f.body.span) == "{ return x }");
  CHECK(f.signature.result->at(0).name->text == "y");
}

TEST_CASE("documentation is the /// lines before a declaration") {
  const Parsed p(
      "language 1\n"
      "/// Of the module.\n///\n///  Two blanks: one stays.\n// not this\nmodule A() { // nor this\n"
      "    /// Of the child.\n"
      "    a: B()   /// behind text: documents nothing\n"
      "    b: B()\n"
      "    //// four are no documentation\n"
      "    c: B()\n"
      "}\n"
      "fn f(x) = x\n");
  const auto& m = ast::as<ast::ModuleDecl>(*p.file->decls[0]);
  CHECK(m.doc == "Of the module.\n\n Two blanks: one stays.");
  CHECK(m.members[0]->doc == "Of the child.");
  CHECK(m.members[1]->doc.empty());
  CHECK(m.members[2]->doc.empty());
  CHECK(p.file->decls[1]->doc.empty());
}

TEST_CASE("literals") {
  auto literal = [](const std::string& text) {
    const ParsedExpr p(text);
    return ast::as<ast::LiteralExpr>(*p.expr).value;
  };
  CHECK(literal("1_000_000").integer == 1000000);
  CHECK(literal("1_000_000").text == "1_000_000");
  CHECK(literal("9223372036854775807").integer == 9223372036854775807);
  CHECK(literal("007").integer == 7);
  CHECK(literal("1e-5").floating == 1e-5);
  CHECK(literal("2.5E+3").floating == 2500.0);
  CHECK(literal("0.1").kind == ast::LiteralKind::floating);
  CHECK(literal("true").boolean);
  CHECK(literal("none").kind == ast::LiteralKind::none);
  CHECK(literal(R"("a\"b\\c\n\t\r\u{3c0}\u{1F600}")").text == "a\"b\\c\n\t\rπ😀");
  CHECK(literal(R"("plain π")").text == "plain π");
  CHECK(literal(R"("")").text.empty());
}

TEST_CASE("patterns of tensor names") {
  const Parsed p(
      "language 1 module A() { checkpoint safetensors {\n"
      "  model.layers.{i}.0.1.*.{rest*} = **.x\n  \"**.experts.*_proj\" = [a, b.c] via split(1)\n} }");
  const auto& c = ast::as<ast::CheckpointMember>(*ast::as<ast::ModuleDecl>(*p.file->decls[0]).members[0]);
  const auto& r = ast::as<ast::MapRule>(*c.rules[0]);
  const std::vector<ast::Seg>& segs = r.file.items[0].segs;
  REQUIRE(segs.size() == 7);
  CHECK(segs[0].kind == ast::SegKind::name);
  CHECK(segs[2].kind == ast::SegKind::index);
  CHECK(segs[2].text == "i");
  CHECK(p.text(segs[2].span) == "{i}");
  // `0.1` reads as one number and is two components.
  CHECK(segs[3].kind == ast::SegKind::integer);
  CHECK(p.text(segs[3].span) == "0");
  CHECK(segs[4].text == "1");
  CHECK(p.text(segs[4].span) == "1");
  CHECK(segs[5].kind == ast::SegKind::star);
  CHECK(segs[6].kind == ast::SegKind::rest);
  CHECK(segs[6].text == "rest");
  CHECK(r.file.items[0].text == "model.layers.{i}.0.1.*.{rest*}");
  CHECK(r.model.items[0].segs[0].kind == ast::SegKind::double_star);
  CHECK_FALSE(r.file.bracketed);
  const auto& s = ast::as<ast::MapRule>(*c.rules[1]);
  CHECK(s.file.items[0].quoted);
  CHECK(s.file.items[0].text == "**.experts.*_proj");
  CHECK(s.model.bracketed);
  CHECK(s.model.items.size() == 2);
}

TEST_CASE("words of the language may be names") {
  const Parsed p(
      "language 1\n"
      "config C { config, file, override, from, test: int   ignore: bool = value }\n"
      "module A(model: dim, at: Batch) { param: B(param: param)  override: C()  state: D() if state\n"
      "  forward(value: [n]) { let of = value  return of } }\n");
  const auto& c = ast::as<ast::ConfigDecl>(*p.file->decls[0]);
  CHECK(ast::as<ast::FieldItem>(*c.items[0]).names.size() == 5);
  CHECK(ast::as<ast::FieldItem>(*c.items[1]).names[0].text == "ignore");
  const auto& m = ast::as<ast::ModuleDecl>(*p.file->decls[1]);
  CHECK(ast::as<ast::ChildMember>(*m.members[0]).name.text == "param");
  CHECK(ast::as<ast::ChildMember>(*m.members[1]).name.text == "override");
  CHECK(ast::as<ast::ChildMember>(*m.members[2]).condition != nullptr);
}

TEST_CASE("a condition of a member and one of an expression") {
  const Parsed p(
      "language 1 module A() {\n"
      "  a: x if y else z\n  b: x if y\n  c: x if y else z if w\n  d: [x for i in l if y] if w\n"
      "  checkpoint s { a = b when x  [c, d] = e when y[0]  *.f = g }\n}");
  const auto& m = ast::as<ast::ModuleDecl>(*p.file->decls[0]);
  auto child = [&](std::size_t i) -> const ast::ChildMember& { return ast::as<ast::ChildMember>(*m.members[i]); };
  CHECK(child(0).condition == nullptr);
  CHECK(child(0).value->kind == ast::ExprKind::conditional);
  CHECK(child(1).value->kind == ast::ExprKind::name);
  REQUIRE(child(1).condition != nullptr);
  CHECK(child(2).value->kind == ast::ExprKind::conditional);
  REQUIRE(child(2).condition != nullptr);
  CHECK(p.text(child(2).condition->span) == "w");
  CHECK(ast::as<ast::ComprehensionExpr>(*child(3).value).condition != nullptr);
  // A rule may begin with what could go on with the expression before it.
  CHECK(ast::as<ast::CheckpointMember>(*m.members[4]).rules.size() == 3);
}

TEST_CASE("small things print by themselves") {
  CHECK(syntax::print(*ParsedExpr("f( a,b )[ ..,0 ]").expr) == "f(a, b)[.., 0]");
  CHECK(syntax::quote("a\"\\\n\x1f") == R"("a\"\\\n\u{1f}")");
  ast::Literal l;
  l.kind = ast::LiteralKind::floating;
  l.floating = 10000;
  CHECK(syntax::print(l) == "10000.0");
  l.floating = 1e-5;
  CHECK(syntax::print(l) == "1e-05");
  const Parsed p("language 1 module A() { param w: list[[..., n]?, 3]?  forward() { for l in m { h = l(h) } } }");
  const auto& m = ast::as<ast::ModuleDecl>(*p.file->decls[0]);
  CHECK(syntax::print(*ast::as<ast::ParamMember>(*m.members[0]).type) == "list[[..., n]?, 3]?");
  CHECK(syntax::print(*m.members[1]) == "forward() {\n    for l in m {\n        h = l(h)\n    }\n}\n");
}
