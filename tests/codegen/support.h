// Model texts to plans, for the tests of this folder.
#pragma once

#include <memory>
#include <string>

#include "codegen/lower/lower.h"
#include "frontend/graph/graph.h"

namespace modelc::test {

// The graph of a model text with a configuration as JSON; fails the test with the messages when something is wrong.
std::shared_ptr<const graph::Module> graph_of(const std::string& text, const std::string& config);

// A Llama of the library's modules with these keys changed: R"({"num_hidden_layers": 5})".
std::shared_ptr<const graph::Module> llama_graph(const std::string& changes = "{}");

}  // namespace modelc::test
