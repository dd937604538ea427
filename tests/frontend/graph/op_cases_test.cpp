// Every operation against what PyTorch and transformers give for it (op_cases.json, made by op_cases.py), through the
// whole of this folder: the text is read, printed, verified and evaluated.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/verifier.h"
#include "runtime/base/json.h"
#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

namespace {

const Json& cases() {
  static const JsonFile file = [] {
    Result<JsonFile> f = read_json_file(MODELC_SOURCE_DIR "/tests/frontend/graph/op_cases.json");
    REQUIRE(f.ok());
    return std::move(*f);
  }();
  return file.root;
}

const JsonArray& list(const Json& of, std::string_view key) {
  const Json* j = of.find(key);
  REQUIRE(j != nullptr);
  REQUIRE(j->is_array());
  return *j->as_array();
}
std::string string(const Json& of, std::string_view key) { return *of.find(key)->as_string(); }

eval::Array array_of(const Json& j) {
  eval::Array a;
  a.dtype = *dtype_from_name(string(j, "dtype"));
  for (const Json& d : list(j, "shape")) a.shape.push_back(*d.as_int());
  for (const Json& v : list(j, "data")) {
    if (is_float(a.dtype)) a.reals.push_back(static_cast<float>(*v.as_double()));
    else a.integers.push_back(*v.as_int());
  }
  return a;
}

// Half a unit in the last place of f32 for the result's own rounding, and as much for that of the expected number.
bool near(float got, float wanted, double tolerance) {
  if (std::isinf(wanted) || std::isinf(got)) return got == wanted;
  return std::abs(double{got} - wanted) <= tolerance * std::max(1.0, std::abs(double{wanted}));
}

void compare(const eval::Array& got, const eval::Array& wanted, double tolerance) {
  CHECK(got.dtype == wanted.dtype);
  CHECK(got.shape == wanted.shape);
  CHECK(got.integers == wanted.integers);
  REQUIRE(got.reals.size() == wanted.reals.size());
  for (std::size_t i = 0; i < got.reals.size(); ++i) {
    CAPTURE(i);
    CAPTURE(got.reals[i]);
    CAPTURE(wanted.reals[i]);
    CHECK(near(got.reals[i], wanted.reals[i], tolerance));
  }
}

void check_case(const Json& c) {
  const Module m = parsed(string(c, "graph"));
  for (const std::string& fault : verify(m)) FAIL_CHECK(fault);
  CHECK(print(parsed(print(m))) == print(m));
  const double tolerance = c.find("tolerance") != nullptr ? *c.find("tolerance")->as_double() : 1.3e-7;
  eval::Evaluator e(m, no_weights);
  for (const Json& run : list(c, "runs")) {
    std::map<std::string, eval::Input> inputs;
    for (const JsonMember& input : *run.find("inputs")->as_object()) inputs.emplace(input.key, array_of(input.value));
    if (run.find("segments") != nullptr) {
      std::vector<eval::Evaluator::Next> next;
      for (const Json& s : list(run, "segments")) next.push_back({*(*s.as_array())[0].as_int(), *(*s.as_array())[1].as_int()});
      Result<eval::Batch> batch = e.batch(next, eval::Outputs::all);
      REQUIRE(batch.ok());
      inputs.emplace("at", *batch);
    }
    if (run.find("sequences") != nullptr) {
      std::vector<std::int64_t> slots;
      for (const Json& s : list(run, "sequences")) slots.push_back(*s.as_int());
      inputs.emplace("at", e.sequences(std::move(slots)));
    }
    auto got = e.run(run.find("function") != nullptr ? string(run, "function") : "forward", inputs);
    if (!got) FAIL(got.error().text());
    const JsonArray& wanted = list(run, "outputs");
    REQUIRE(got->size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) compare((*got)[i].value, array_of(wanted[i]), tolerance);
  }
}

}  // namespace

TEST_CASE("operations agree with PyTorch and transformers") {
  for (const Json& c : list(cases(), "cases")) {
    INFO(string(c, "name"));
    check_case(c);
  }
}

TEST_CASE("every operation that is carried out has a case") {
  std::set<std::string> covered;
  for (const Json& c : list(cases(), "cases"))
    for (const Json& op : list(c, "ops")) covered.insert(*op.as_string());
  for (const OpInfo& row : op_table()) {
    if (!carried_out(row)) continue;
    INFO(std::string(row.name));
    CHECK(covered.contains(std::string(row.name)));
    CHECK((eval::reference_of(row.kind) != nullptr));
  }
}

}  // namespace modelc::graph::test
