// A GGUF file's metadata as a configuration, by the model's block.
#include <doctest/doctest.h>

#include "frontend/diagnostics/render.h"
#include "frontend/sema/analyze.h"
#include "frontend/sema/conversion.h"
#include "modules_support.h"
#include "runtime/base/metadata.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

struct Made {
  std::string tree, messages;
};

// `lines` stand in the config block of a model of architecture "some".
Made made(std::string_view lines, const Metadata& values, std::string_view block = "checkpoint gguf \"some\"", std::string_view base = "") {
  source::SourceManager sources;
  diag::Sink sink;
  const std::string text = "language 1\nconfig C { d: dim  x: int?  e: float? }\n" + std::string(base) + "model M(c: C)" +
                           (base.empty() ? "" : " extends B(c)") + " { forward(t: [tokens, c.d]) { return t } " + std::string(block) +
                           " { config { " + std::string(lines) + " } } }";
  const auto file = sources.add("main.model", text);
  const auto imports = sema::load_imports(sources, file, {}, sink);
  Made out;
  if (imports) {
    const auto tree = sema::config_of_metadata(*imports, {values, [](std::string_view t) { return t == "output.weight"; }, "x.gguf"}, sink);
    if (tree) out.tree = dump(*tree);
  }
  out.messages = diag::render(sink, sources);
  return out;
}

Metadata some() {
  MetadataBuilder b;
  b.add_string("general.architecture", "some");
  b.add_u32("some.embedding_length", 32);
  b.add_u32("some.heads", 4);
  b.add_f32("some.eps", 1e-5F);
  const std::vector<std::string> tokens = {"a", "b", "c"};
  b.add_strings("tokenizer.ggml.tokens", tokens);
  return b.build();
}
const std::string rest = " ignore arch.embedding_length, arch.heads, arch.eps";

}  // namespace

TEST_CASE("keys, arch, has, len, ??, arithmetic; an absent key stays absent") {
  const auto tree = [](const std::string& lines) {
    const Made m = made(lines + rest, some());
    INFO(m.messages);
    CHECK(m.messages == "");
    return m.tree;
  };
  CHECK(tree("d = arch.embedding_length") == R"({"d":32})");
  CHECK(tree("d = some.embedding_length") == R"({"d":32})");
  CHECK(tree("d = len(tokenizer.ggml.tokens)") == R"({"d":3})");
  CHECK(tree("d = arch.embedding_length / arch.heads  x = arch.gone") == R"({"d":8})");
  CHECK(tree("d = arch.gone ?? arch.heads") == R"({"d":4})");
  CHECK(tree("d = arch.gone * 2 ?? 7") == R"({"d":7})");
  CHECK(tree("e = arch.eps") == R"({"e":1e-05})");          // as config.json would say it
  CHECK(tree("x.y.z = 1  x.y.w = \"t\"") == R"({"x":{"y":{"z":1,"w":"t"}}})");
  CHECK(tree("a = has(output.weight)  b = not has(\"other\")") == R"({"a":true,"b":true})");
  CHECK(tree("x = 1 if arch.heads == 4 else 2  y = arch.heads < 3 or arch.heads > 3") == R"({"x":1,"y":true})");
  CHECK(tree("x = [arch.heads, 2 ^ 3]  y = -arch.heads  z = float(arch.heads) / 3 > 1") == R"({"x":[4,8.0],"y":-4,"z":true})");
}

TEST_CASE("a derived model's line replaces its base's, and the rest joins") {
  const Made m = made("d = 5", some(), "checkpoint gguf",
                      "module B(c: C) { entry e(t: [tokens, c.d]) { return t } checkpoint gguf \"some\" { config { d = arch.heads  x = 1" +
                          rest + " } } }\n");
  INFO(m.messages);
  CHECK(m.tree == R"({"d":5,"x":1})");
}

TEST_CASE("lines with a condition: reading takes the first that the file answers, writing those whose condition holds") {
  const std::string lines =
      "d = arch.embedding_length  x = arch.heads  e = arch.eps  x = modelc.x when c.d == 7  e = modelc.e when c.d == 7";
  const Metadata base = some();
  MetadataBuilder both;
  for (std::size_t i = 0; i < base.size(); ++i) both.add_value(base.key(i), base.value(i));
  CHECK(made(lines, some()).tree == R"({"d":32,"x":4,"e":1e-05})");
  both.add_u32("modelc.x", 9);
  CHECK(made(lines, both.build()).tree == R"({"x":9,"d":32,"e":1e-05})");

  const auto keys = [&](const char* config) {
    source::SourceManager sources;
    diag::Sink sink;
    const auto file =
        sources.add("main.model",
                    "language 1\nconfig C { d: dim  x: int?  e: float? }\nmodel M(c: C) { forward(t: [tokens, c.d]) { return t } "
                    "checkpoint gguf \"some\" { config { " +
                        lines + " } } }");
    const auto imports = sema::load_imports(sources, file, {}, sink);
    REQUIRE(imports);
    sema::ConfigInput input;
    input.name = "config.json";
    input.tree = *parse_json(config);
    const auto metadata = sema::metadata_of_config(sources, *imports, input, sink);
    CHECK_MESSAGE(metadata, diag::render(sink, sources));
    std::string out;
    if (metadata)
      for (const auto& item : metadata->items) out += (out.empty() ? "" : " ") + item.key + "=" + dump(item.value);
    return out;
  };
  CHECK(keys(R"({"d": 7, "x": 1, "e": 2.5})") == "modelc.x=1 modelc.e=2.5 some.embedding_length=7");
  CHECK(keys(R"({"d": 8, "x": 1, "e": 2.5})") == "some.embedding_length=8 some.heads=1 some.eps=2.5");
}

TEST_CASE("E0408: another architecture; E0406: unread keys, no block, what gives no value") {
  const Made other = made("d = 1" + rest, some(), "checkpoint gguf \"another\"");
  CHECK(has(other.messages, "E0408"));
  CHECK(has(other.messages, "architecture `another`, and x.gguf is of \"some\""));
  const Made unread = made("d = arch.heads", some());
  CHECK(has(unread.messages, "E0406"));
  CHECK(has(unread.messages, "x.gguf has 2 keys that no line reads"));
  CHECK(has(unread.messages, "some.embedding_length = 32"));
  CHECK(has(unread.messages, "`ignore arch.embedding_length`"));
  CHECK(has(made("d = 1" + rest, some(), "checkpoint safetensors").messages, "does not say how to make its configuration"));
  for (const char* line :
       {"d = arch.embedding_length / 5", "d = arch.eps + \"a\"", "d = arch.heads / 0", "d = 1 if arch.heads else 2", "d = len(arch.heads)",
        "d = strange(1)", "d = arch.heads and true", "d = not arch.heads", "d = 9223372036854775807 + arch.heads"}) {
    CAPTURE(std::string(line));
    CHECK(has(made(line + rest, some()).messages, "this gives no value from the metadata of x.gguf"));
  }
}
