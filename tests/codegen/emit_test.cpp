// Names and escapes: whatever stands in a model file, the C++ stays C++.
#include <doctest/doctest.h>

#include "codegen/emit/cpp/namer.h"
#include "codegen/emit/cpp/text.h"
#include "codegen/emit/emit.h"
#include "tests/codegen/support.h"

using namespace modelc;

TEST_CASE("identifiers") {
  CHECK(emit::identifier("q_proj") == "q_proj");
  CHECK(emit::identifier("class") == "class_");
  CHECK(emit::identifier("layers.0") == "layers_0");
  CHECK(emit::identifier("0") == "n0");
  CHECK(emit::identifier("_x") == "n_x");
  CHECK(emit::identifier("a__b") == "a_b");
  CHECK(emit::identifier("größe") == "gr_e");
  CHECK(emit::identifier("") == "n");
  CHECK(emit::snake_case("LlamaAttention") == "llama_attention");
  CHECK(emit::snake_case("GatedMLP") == "gated_mlp");
  CHECK(emit::snake_case("MLP") == "mlp");
  emit::Scope scope({"x"});
  CHECK(scope.unique("x") == "x_2");
  CHECK(scope.unique("x") == "x_3");
  CHECK(scope.unique("y") == "y");
}

TEST_CASE("string literals") {
  CHECK(emit::string_literal("a\"b\\c") == R"("a\"b\\c")");
  CHECK(emit::string_literal("line\nnext") == "\"line\\nnext\"");
  CHECK(emit::string_literal(std::string("\0"
                                         "1",
                                         2)) == "\"\\0001\"");
  CHECK(emit::string_literal("?\?=") == "\"?\\?=\"");
  CHECK(emit::string_literal("ä") == "\"\\303\\244\"");
}

TEST_CASE("comments") {
  CHECK(emit::comment_text("a\n  b\tc") == "a b c");
  CHECK(emit::comment_text("ends with \\") == "ends with");
  CHECK(emit::comment_text("*/ // ") == "*/ //");
  CHECK(emit::comment_text("abcdef", 3) == "abc...");
}

TEST_CASE("numbers read back exactly") {
  CHECK(emit::float_literal(1) == "1.0F");
  CHECK(emit::float_literal(1e-5) == "1e-05F");
  CHECK(emit::float_literal(0.1) == "0.1F");
  CHECK(emit::double_literal(0.1) == "0.1");
  CHECK(std::stod(emit::double_literal(1.0 / 3)) == 1.0 / 3);
}

TEST_CASE("long lists are broken at 120 columns") {
  std::vector<std::string> items(40, "item");
  const std::string s = emit::wrapped("call(", items, ");");
  for (std::size_t at = 0; at < s.size();) {
    const std::size_t end = std::min(s.find('\n', at), s.size());
    CHECK(end - at <= 120);
    at = end + 1;
  }
  CHECK(s.find("\n     item") != std::string::npos);
}

TEST_CASE("names that are C++'s, or the generated code's own, stay apart") {
  const std::string text =
      "language 1\nimport nn.linear\nimport nn.norm\nconfig C { class, size: dim }\n"
      "module Step(n: dim) {\n  s: Linear(n, n)\n  b: Linear(n, n)\n  product: Linear(n, n)\n  once: RMSNorm(n, eps: 1e-5)\n"
      "  forward(x: [tokens, n]) -> [tokens, n] {\n    let int = s(x) + x\n    let result = b(once(int))\n    return product(result)\n  "
      "}\n}\n"
      "model Tensor(c: C) {\n  template: Step(c.size)\n  param this: [c.class, c.size]\n"
      "  forward(operator: index(c.class)[tokens], at: Batch) -> float: f32[outputs, c.size] {\n"
      "    return take(template(take(this, operator)), at.outputs)\n  }\n}\n";
  const lower::Lowered l = lower::lower(test::graph_of(text, R"({"class": 8, "size": 4})"));
  REQUIRE(l.failures.empty());
  const auto files = emit::cpp(l.program, {.file = "odd", .class_name = "Tensor", .name_space = "odd", .version = "1"});
  REQUIRE(files.size() == 2);
  CHECK(files[0].text.find("Step_2 template_") != std::string::npos);
  CHECK(files[0].text.find("modelc::Weight this_") != std::string::npos);
  CHECK(files[1].text.find("\"template\"") != std::string::npos);          // the checkpoint's name stays
  CHECK(files[1].text.find("\"this\"") != std::string::npos);
}

TEST_CASE("every function begins with whose it is, and no name in a model hides that") {
  const std::string text =
      "language 1\nimport nn.linear\nconfig C { class, size: dim }\n"
      "module Half(n: dim) {\n  on: Linear(n, n)\n  member: Linear(n, n)\n  to: Linear(n, n)\n"
      "  forward(x: [tokens, n]) -> [tokens, n] {\n    return member(to(on(x)))\n  }\n"
      "  entry again(x: [tokens, n]) -> [tokens, n] {\n    return member(x)\n  }\n}\n"
      "model Whole(c: C) {\n  placement: Half(c.size)\n  param table: [c.class, c.size]\n"
      "  forward(on: index(c.class)[tokens], at: Batch) -> float: f32[outputs, c.size] {\n"
      "    return take(placement.again(placement(take(table, on))), at.outputs)\n  }\n"
      "  entry encode(x: [tokens, c.size]) -> y: [tokens, c.size] {\n    return placement(x)\n  }\n}\n";
  const lower::Lowered l = lower::lower(test::graph_of(text, R"({"class": 8, "size": 4})"));
  REQUIRE(l.failures.empty());
  const auto files = emit::cpp(l.program, {.file = "odd", .class_name = "Whole", .name_space = "odd", .version = "1"});
  std::size_t functions = 0, heads = 0, said = 0;
  for (const plan::Class& c : l.program.classes)
    for (const plan::Function& f : c.functions) functions += f.kind != graph::FunctionKind::init ? 1 : 0;
  for (std::size_t at = 0; (at = files[1].text.find(") const {\n  const Step::On on(s, *this);\n", at)) != std::string::npos; ++at) ++heads;
  for (std::size_t at = 0; (at = files[1].text.find("Step::On", at)) != std::string::npos; ++at) ++said;
  CHECK(functions >= 4);
  CHECK(heads == functions);
  CHECK(said == functions);
  for (const char* hidden : {" on{{", " member{{", " to{{", " placement;", "& on,"})
    CHECK_MESSAGE(files[0].text.find(hidden) == std::string::npos, std::string(hidden));
}

TEST_CASE("place is data of the class: a line each, nothing where there is none") {
  const auto files = [](const std::string& place) {
    const std::string text =
        "language 1\nimport nn.linear\nconfig C { class, size: dim }\n"
        "model Whole(c: C) {\n  layers: [Linear(c.size, c.size) for i in 0..4]\n  param table: [c.class, c.size]\n"
        "  forward(ids: index(c.class)[tokens], at: Batch) -> float: f32[outputs, c.size] {\n    let h = take(table, ids)\n"
        "    for l in layers { h = l(h) }\n    return take(h, at.outputs)\n  }\n" +
        place + "}\n";
    const lower::Lowered l = lower::lower(test::graph_of(text, R"({"class": 8, "size": 4})"));
    REQUIRE(l.failures.empty());
    return emit::cpp(l.program, {.file = "whole", .class_name = "Whole", .name_space = "whole", .version = "1"});
  };
  const auto placed = files("place { layers[1..c.size - 1]: gpu(1)  layers[3..]: cpu(0)\n \"**\": gpu(0) }");
  CHECK(placed[0].text.find("std::vector<modelc::PlaceRule> placement() const override;") != std::string::npos);
  CHECK(placed[1].text.find("std::vector<modelc::PlaceRule> Whole::placement() const {\n"
                            "  return {\n"
                            "      {.pattern = \"layers\", .first = 1, .end = 3, .device = \"vulkan:1\", .where = \"test.model:12:9\"},\n"
                            "      {.pattern = \"layers\", .first = 3, .device = \"cpu\", .where = \"test.model:12:40\"},\n"
                            "      {.pattern = \"**\", .device = \"vulkan:0\", .where = \"test.model:13:2\"},\n"
                            "  };\n}\n") != std::string::npos);
  for (const auto& file : files("")) CHECK(file.text.find("placement") == std::string::npos);
}

TEST_CASE("run-time axes of a model's own, whole numbers that stay whole, sizes computed from axes") {
  const std::string text =
      "language 1\nimport nn.linear\naxis frames: 2..3000 by 2\nconfig C { size: dim }\n"
      "model Ear(c: C) {\n  proj: Linear(c.size, c.size)\n  param places: [64, c.size]\n"
      "  forward(x: [frames, c.size], place: index(32)[frames]) -> y: f32[frames, c.size] {\n"
      "    let next = place + place\n    return proj(x) + take(places, next as index(64))\n  }\n}\n";
  const lower::Lowered l = lower::lower(test::graph_of(text, R"({"size": 8})"));
  for (const lower::Failure& f : l.failures) FAIL_CHECK(f.message);
  REQUIRE(l.failures.empty());
  const auto files = emit::cpp(l.program, {.file = "ear", .class_name = "Ear", .name_space = "ear", .version = "1"});
  const std::string& source = files[1].text;
  CAPTURE(source);
  for (const char* part : {"constexpr int frames = 4;", "{.name = \"frames\", .lo = 2, .hi = 3000, .by = 2}", "s.axis(axes::frames)",
                           "modelc::map_typed<std::int32_t, std::int32_t>", ".at = modelc::CallAt::none, .advances = false", "i32("})
    CHECK_MESSAGE(source.find(part) != std::string::npos, part);
}
