// Nothing of a graph is lost in its text: each field of what sema makes of the example is compared after reading it back.
#include <doctest/doctest.h>

#include "frontend/graph/printer.h"
#include "frontend/graph/reader.h"
#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

void same(const graph::Where& a, const graph::Where& b) {
  CHECK(a.file == b.file);
  CHECK(a.line == b.line);
  CHECK(a.column == b.column);
}

}  // namespace

TEST_CASE("every field of a graph survives printing and reading") {
  const std::string source = text_of_file(MODELC_SOURCE_DIR "/examples/llama/llama.model");
  Model m(source.substr(source.find("language 1") + 10));
  m.config(text_of_file(MODELC_SOURCE_DIR "/examples/llama/fixtures/llama-tied/config.json"));
  const graph::Module& a = m.good().graph;
  const std::string text = graph::print(a);
  const auto read = graph::read(text);
  REQUIRE(read);
  const graph::Module& b = *read;
  CHECK(graph::print(b) == text);
  CHECK(b.name == a.name);
  CHECK(b.file == a.file);
  CHECK(b.context == a.context);
  REQUIRE(b.config.size() == a.config.size());
  for (std::size_t i = 0; i < a.config.size(); ++i) {
    CHECK(b.config[i].name == a.config[i].name);
    CHECK(b.config[i].type == a.config[i].type);
    CHECK(b.config[i].value == a.config[i].value);
  }
  bool numbers = false, origins = false;
  REQUIRE(b.classes.size() == a.classes.size());
  for (std::size_t c = 0; c < a.classes.size(); ++c) {
    const graph::Class &x = a.classes[c], &y = b.classes[c];
    CAPTURE(x.name);
    CHECK(y.name == x.name);
    CHECK(y.definition == x.definition);
    CHECK(y.arguments == x.arguments);
    CHECK(y.leaf == x.leaf);
    CHECK(y.order == x.order);
    same(y.where, x.where);
    REQUIRE(y.weights.size() == x.weights.size());
    for (std::size_t i = 0; i < x.weights.size(); ++i) {
      const graph::WeightDecl &v = x.weights[i], &w = y.weights[i];
      numbers = numbers || !v.shape_numbers.empty();
      origins = origins || !v.origins.empty();
      CHECK(w.name == v.name);
      CHECK(w.path == v.path);
      CHECK(w.shape_text == v.shape_text);
      CHECK(w.shape_numbers == v.shape_numbers);
      CHECK(w.origins == v.origins);
      CHECK(w.required_dtype == v.required_dtype);
      CHECK(w.role == v.role);
      CHECK(w.default_value == v.default_value);
      same(w.where, v.where);
    }
    REQUIRE(y.functions.size() == x.functions.size());
    for (std::size_t i = 0; i < x.functions.size(); ++i) {
      CHECK(y.functions[i].signature == x.functions[i].signature);
      CHECK(y.functions[i].result_names == x.functions[i].result_names);
      CHECK(y.functions[i].values.size() == x.functions[i].values.size());
      same(y.functions[i].where, x.functions[i].where);
    }
  }
  CHECK(numbers);
  CHECK(origins);
  REQUIRE(b.checkpoints.size() == a.checkpoints.size());
  for (std::size_t i = 0; i < a.checkpoints.size(); ++i) {
    CHECK(b.checkpoints[i].aliases.size() == a.checkpoints[i].aliases.size());
    CHECK(b.checkpoints[i].ignores.size() == a.checkpoints[i].ignores.size());
  }
}
