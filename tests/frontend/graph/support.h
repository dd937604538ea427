// What the tests of this folder share: graphs from a few lines of text, and running them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/graph.h"

namespace modelc::graph::test {

// A module of one class T with one function forward(inputs) { body }, its axes the prelude's. The body ends with a
// return; `members` stands before the function.
std::string module_text(std::string_view inputs, std::string_view body, std::string_view members = "");

// Reads a text that must be right as a text.
Module parsed(std::string_view text);

// The faults that the verifier finds in a text, joined by newlines.
std::string faults_of(std::string_view text);

// Runs forward of a module_text and gives its results; everything must go well.
std::vector<eval::Array> outputs_of(std::string_view text, const std::map<std::string, eval::Input>& inputs);
// The single result of one operation: value("%x: f32[3]", "f32[3]", "neg(%x)", {{"x", …}}).
eval::Array value(std::string_view inputs, std::string_view type, std::string_view op, const std::map<std::string, eval::Input>& in);
// The error of a run that must fail.
Error run_error(std::string_view text, const std::map<std::string, eval::Input>& inputs);

// No weights at all.
std::optional<std::vector<float>> no_weights(const std::string& name, const WeightDecl& decl);
// Numbers in -1..1 that depend on the name and the place alone.
std::optional<std::vector<float>> made_up_weights(const std::string& name, const WeightDecl& decl, const DimTable& dims);

// The hand-written module of tiny_decoder.graph: two classes of layers, caches, grouped heads, a window.
std::string tiny_decoder_text();

// Largest absolute difference; infinite where the counts differ.
double distance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace modelc::graph::test
