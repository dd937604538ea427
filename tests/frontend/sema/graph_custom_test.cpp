// Operations that a file declares: their reference is what they mean, their kernels are checked.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/diagnostics/render.h"
#include "frontend/graph/expand_custom.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/verifier.h"
#include "modules_support.h"

using namespace modelc::sema::test;
using namespace modelc;

namespace {

Model calling(const std::string& op, const std::string& call) {
  Model m(around("d: dim = 6  k: int = 3",
                 "param a: [1]  param s: []  let read = c.d + c.k  forward(x: [tokens, c.d]) { let u = a  let t = s  return " + call +
                     " + sum(u) * t }",
                 op));
  m.config("{}");
  return m;
}
std::string codes(const std::string& op, const std::string& call) { return calling(op, call).codes(); }

const std::string scaled = "op scaled(x: [..., n], gain: [1], s: []) -> [..., n] { reference x * gain + s ";

}  // namespace

TEST_CASE("the reference of an operation is expanded where it is called") {
  Model m = calling(scaled + "}", "scaled(x, a, s)");
  const std::string text = m.part("M");
  CHECK(has(text, "= mul(%x, "));
  CHECK(has(text, "source \"\"") == false);
  Model block =
      calling("op f(x: [..., n]) -> [..., n] { reference { let p = softplus(x)  return where(x > 0, p * count(x) , -p) } }", "f(x)");
  CHECK(block.codes() == "E0324");                                              // count(x) is a size of run time
  Model two = calling("op f(x: [..., n]) -> [..., n] { reference { let p = softplus(x)  return where(x > 0, p, -p) } }", "f(f(x))");
  const std::string body = two.part("M");
  const std::size_t once = body.find("= softplus(");
  REQUIRE(once != std::string::npos);
  CHECK(body.find("= softplus(", once + 1) != std::string::npos);
}

TEST_CASE("E0350: what is passed to an operation, and what its reference gives, is what it declares") {
  CHECK(codes(scaled + "}", "scaled(x, x, s)") == "E0350");
  CHECK(has(calling(scaled + "}", "scaled(x, x, s)").messages(), "the argument `gain` of the operation `scaled` does not fit"));
  CHECK(codes("op f(x: [..., n], y: [..., n, 2]) -> [..., n] { reference x }", "f(x, x)") == "E0350");
  CHECK(codes("op f(x: [..., n]) -> [n] { reference x }", "f(x)") == "E0350");
  CHECK(codes("op f(x: [..., n]) -> ([..., n], [..., n]) { reference x }", "f(x)") == "E0350");
  CHECK(codes(scaled + "}", "scaled(x, a)") == "E0313");
  CHECK(codes("op f(x: [..., n]) -> [..., n] { reference f(x) }", "f(x)") == "E0320");
}

TEST_CASE("names that shapes bind are sizes in the reference") {
  Model m = calling("op f(x: [..., n]) -> [..., n] { reference x + arange(n) * n }", "f(x)");
  CHECK(has(m.part("M"), "arange(count: 6)"));
  CHECK(has(m.part("M"), "literal(value: 6.0)"));
}

TEST_CASE("E0360: C++ that comes with a model file is refused") {
  Model m = calling(scaled + "cpu \"scaled.h\" }", "scaled(x, a, s)");
  CHECK(m.codes() == "E0360");
  CHECK(has(m.messages(), "`scaled`"));
  CHECK(has(m.messages(), "\"scaled.h\""));
  CHECK(has(m.messages(), "--allow-extension"));
  // An operation that nothing calls runs nothing.
  CHECK(codes(scaled + "cpu \"scaled.h\" }", "x") == "");
}

TEST_CASE("E0361: kernels are checked against what the language says of them") {
  const auto kernel = [](const std::string& text) { return codes(scaled + text + " }", "scaled(x, a, s)"); };
  const std::string whole = "glsl \"s.comp\" local_size 256 dispatch [ceil_div(count(x), 256)]";
  CHECK(kernel(whole) == "");
  CHECK(kernel(whole + " requires float16, storage16") == "");
  CHECK(kernel(whole + " when dtype(x) == f32") == "");
  CHECK(kernel("glsl \"s.comp\" local_size 256") == "E0361");
  CHECK(kernel("glsl \"s.comp\" local_size 2048 dispatch [n]") == "E0361");
  CHECK(kernel("glsl \"s.comp\" local_size count(x) dispatch [n]") == "E0361");
  CHECK(kernel("glsl \"s.comp\" dispatch [1, 1, 1, 1]") == "E0361");
  CHECK(kernel("glsl \"s.comp\" dispatch 3") == "E0361");
  CHECK(kernel("glsl \"s.comp\" dispatch [n, \"a\"]") == "E0361");
  CHECK(kernel("cpu \"s.h\" local_size 3") == "E0361");
  CHECK(kernel("glsl \"s.comp\" dispatch [m]") == "E0301");
  CHECK(kernel("glsl \"s.comp\" dispatch [n] when n") == "E0310");
  Model near = calling(scaled + whole + " requires flaot16 }", "scaled(x, a, s)");
  CHECK(near.codes() == "E0361");
  CHECK(has(near.messages(), "did you mean `float16`?"));
  // One whose condition fails is no variant here.
  CHECK(kernel("glsl \"s.comp\" dispatch 3 when dtype(x) == f16") == "");
}

TEST_CASE("a shader lies beside the model file, and is said to be for another backend") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("modelc_custom_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "m.model") << "language 1\n"
                                    << scaled
                                    << "glsl \"s.comp\" dispatch [n] }\nconfig C { d: dim }\nmodel M(c: C) { param a: [1]  param "
                                       "s: []  forward(x: [tokens, c.d]) { return scaled(x, a, s) } }\n";
  const auto run = [&](std::string& messages) {
    source::SourceManager sources;
    diag::Sink sink;
    const auto main = sources.load(folder / "m.model", "m.model");
    REQUIRE(main);
    sema::ConfigInput config;
    JsonObject values;
    values.set("d", Json(std::int64_t{4}));
    config.tree = Json(std::move(values));
    auto imports = sema::load_imports(sources, *main, {}, sink);
    REQUIRE(imports);
    auto program = sema::analyze(sources, imports, &config, {}, sink);
    messages = diag::render(sink, sources);
    return program;
  };
  std::string messages;
  CHECK_FALSE(run(messages).has_value());
  CHECK(has(messages, "E0361"));
  CHECK(has(messages, "looked for " + (folder / "s.comp").string()));
  std::ofstream(folder / "s.comp") << "#version 450\nvoid main() {}\n";
  const auto program = run(messages);
  REQUIRE(program.has_value());
  REQUIRE(program->notes.size() == 1);
  CHECK(has(program->notes[0], "the shader \"s.comp\" of `scaled` is for the vulkan backend"));
  // The call stays one operation, with its reference as a body; expanded it is what it would be without the shader.
  REQUIRE(program->graph.shaders.size() == 1);
  CHECK(program->graph.shaders[0].text == "#version 450\nvoid main() {}\n");
  CHECK(std::find(program->files.begin(), program->files.end(), (folder / "s.comp").string()) != program->files.end());
  const std::string apart = graph::print(program->graph);
  CHECK(has(apart, "= custom(%x, %1, %2) of scaled sizes [tokens, 4] shader 0 local 64 groups [4]"));
  CHECK(graph::verify(program->graph).empty());
  graph::Module expanded = program->graph;
  graph::expand_custom(expanded);
  CHECK(graph::verify(expanded).empty());
  const std::string inlined = graph::print(expanded);
  CHECK_FALSE(has(inlined, "= custom("));
  std::ofstream(folder / "m.model") << "language 1\n"
                                    << scaled
                                    << "}\nconfig C { d: dim }\nmodel M(c: C) { param a: [1]  param "
                                       "s: []  forward(x: [tokens, c.d]) { return scaled(x, a, s) } }\n";
  const auto plain = run(messages);
  REQUIRE(plain.has_value());
  const auto forward = [](const std::string& text) {
    std::string kept;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)                         // places differ
      if (line.find(" = ") != std::string::npos && line.find("shader") != 0) kept += line.substr(0, line.find(" source")) + "\n";
    return kept;
  };
  CHECK(forward(inlined) == forward(graph::print(plain->graph)));
  fs::remove_all(folder);
}
