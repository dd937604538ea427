#include "tests/frontend/graph/support.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "frontend/graph/reader.h"
#include "frontend/graph/verifier.h"

namespace modelc::graph::test {

std::string module_text(std::string_view inputs, std::string_view body, std::string_view members) {
  return "graph 1\nmodule T root T\naxis tokens: 1..\naxis outputs: 0..\naxis batch: 1..\naxis seq: 1..\nclass T: T "
         "{\n" +
         std::string(members) + "\nforward forward(" + std::string(inputs) + ") {\n" + std::string(body) + "\n}\n}\n";
}

Module parsed(std::string_view text) {
  Result<Module> m = read(text);
  if (!m) FAIL(m.error().text());
  return std::move(*m);
}

std::string faults_of(std::string_view text) {
  std::string all;
  for (const std::string& f : verify(parsed(text))) all += f + "\n";
  return all;
}

std::vector<eval::Array> outputs_of(std::string_view text, const std::map<std::string, eval::Input>& inputs) {
  const Module m = parsed(text);
  eval::Evaluator e(m, no_weights);
  auto out = e.run("forward", inputs);
  if (!out) FAIL(out.error().text());
  std::vector<eval::Array> values;
  for (eval::Output& o : *out) values.push_back(std::move(o.value));
  return values;
}

eval::Array value(std::string_view inputs, std::string_view type, std::string_view op, const std::map<std::string, eval::Input>& in) {
  const std::string body = "%result: " + std::string(type) + " = " + std::string(op) + "\nreturn %result";
  return outputs_of(module_text(inputs, body), in).at(0);
}

Error run_error(std::string_view text, const std::map<std::string, eval::Input>& inputs) {
  const Module m = parsed(text);
  eval::Evaluator e(m, no_weights);
  auto out = e.run("forward", inputs);
  REQUIRE_FALSE(out.ok());
  return out.error();
}

std::optional<std::vector<float>> no_weights(const std::string&, const WeightDecl&) { return std::nullopt; }

std::optional<std::vector<float>> made_up_weights(const std::string& name, const WeightDecl& decl, const DimTable& dims) {
  std::size_t n = 1;
  for (DimId d : decl.type.shape) n *= static_cast<std::size_t>(*dims.value(d));
  std::uint32_t state = 2166136261u;
  for (char c : name) state = (state ^ static_cast<unsigned char>(c)) * 16777619u;
  std::vector<float> data(n);
  for (float& v : data) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<double>(state) / 2147483648.0 - 1.0);
  }
  return data;
}

std::string tiny_decoder_text() {
  std::ifstream file(MODELC_SOURCE_DIR "/tests/frontend/graph/tiny_decoder.graph");
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - b[i]);
    if (!(d <= most)) most = std::isnan(d) ? INFINITY : d;
  }
  return most;
}

}  // namespace modelc::graph::test
