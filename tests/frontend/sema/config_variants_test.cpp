// Variants in a config: one case by tag, each a closed config; the rope_scaling of both generations of config.json.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

constexpr std::string_view rope = R"(
variant Scaling by rope_type | type {
    "default" | "none" { }
    "linear"           { factor: float }
    "yarn"             { factor: float    beta: float = 32.0    original: int? from original_max_position_embeddings
                         ignore truncate }
    "longrope" | "su"  { short_factor: list[float]    long_factor: list[float]
                         require len(short_factor) == len(long_factor) }
}
config C {
    theta:   float    from rope_parameters.rope_theta | rope_theta
    scaling: Scaling? from rope_parameters | rope_scaling
}
)";

std::string errors(std::string_view json, std::vector<ConfigInput::Override> overrides = {}) {
  Session s(rope);
  return s.bind_errors("C", json, std::move(overrides));
}

std::string scaling_of(std::string_view json) {
  Session s(rope);
  const Value c = s.bind("C", json);
  return c.is_error() ? s.codes() : field_text(c, "scaling");
}

}  // namespace

TEST_CASE("the case is told by the tag, under either key and any of its names") {
  CHECK(scaling_of(R"({"rope_theta": 1e4})") == "none");
  CHECK(scaling_of(R"({"rope_theta": 1e4, "rope_scaling": null})") == "none");
  CHECK(scaling_of(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2}})") == "Scaling \"linear\"");
  CHECK(scaling_of(R"({"rope_theta": 1e4, "rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 2}})") ==
        "Scaling \"linear\"");
  CHECK(scaling_of(R"({"rope_theta": 1e4, "rope_scaling": {"type": "su", "short_factor": [1], "long_factor": [2]}})") == "Scaling \"su\"");
  CHECK(scaling_of(R"({"rope_theta": 1e4, "rope_scaling": {"type": "su", "rope_type": "longrope", "short_factor": [1],
                       "long_factor": [2]}})") == "Scaling \"longrope\"");
}

TEST_CASE("the newer spelling holds theta in the same object") {
  CHECK(scaling_of(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}})") == "Scaling \"default\"");
  CHECK(scaling_of(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 4}})") == "Scaling \"linear\"");
  CHECK(holds(errors(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "default", "partial": 0.5}})"),
              "nothing in Scaling \"default\" binds `rope_parameters.partial` = 0.5"));
  CHECK(holds(errors(R"({"rope_parameters": {"rope_theta": 1e4}})"), "E0208"));
}

TEST_CASE("both spellings must agree, case and fields") {
  CHECK(errors(R"({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2},
                   "rope_scaling": {"type": "linear", "factor": 2.0}})") == "");
  const std::string factor = errors(
      "{\"rope_theta\": 1e4,\n"
      "\"rope_parameters\": {\"rope_theta\": 1e4, \"rope_type\": \"linear\", \"factor\": 2},\n"
      "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}}");
  CHECK(holds(factor, "E0206"));
  CHECK(holds(factor, "in config.json:2"));
  CHECK(holds(factor, "in config.json:3"));
  CHECK(holds(errors(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"},
                         "rope_scaling": {"type": "linear", "factor": 4}})"),
              "E0206"));
}

TEST_CASE("no tag and an unknown tag are errors that list the cases") {
  const std::string none = errors("{\"rope_theta\": 1e4,\n\"rope_scaling\": {\"factor\": 8.0}}");
  CHECK(holds(none, "E0208"));
  CHECK(holds(none, "config.json:2"));
  CHECK(holds(none, "it has no `rope_scaling.rope_type` and `rope_scaling.type`"));
  const std::string unknown = errors("{\"rope_theta\": 1e4, \"rope_scaling\": {\n\"type\": \"linaer\", \"factor\": 8.0}}");
  CHECK(holds(unknown, "E0209"));
  CHECK(holds(unknown, "`rope_scaling.type` is \"linaer\", which is no case of Scaling"));
  CHECK(holds(unknown, "did you mean `linear`?"));
  CHECK(holds(unknown, "\"longrope\""));
  CHECK(holds(errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": 3}})"), "E0209"));
  const std::string twice = errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2}})");
  CHECK(holds(twice, "E0206"));
  CHECK(holds(twice, "the case of Scaling is given twice and differently"));
  CHECK(holds(errors(R"({"rope_theta": 1e4, "rope_scaling": "linear"})"), "a string: expected `Scaling"));
  // One problem, one message: the keys of an object without a known case cannot be judged.
  Session s(rope);
  s.bind("C", R"({"rope_theta": 1e4, "rope_scaling": {"type": "no", "other": 8.0}})");
  CHECK(s.codes() == "E0209");
}

TEST_CASE("a case is a closed config") {
  CHECK(holds(errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear"}})"),
              "`rope_scaling.factor` is missing in `rope_scaling` of config.json"));
  const std::string stray = errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2, "beta": 1}})");
  CHECK(holds(stray, "nothing in Scaling \"linear\" binds `rope_scaling.beta` = 1"));
  CHECK(errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 2, "truncate": true,
                   "original_max_position_embeddings": 16}})") == "");
  CHECK(holds(errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": "su", "short_factor": [1], "long_factor": [1, 2]}})"), "E0207"));
  CHECK(holds(errors(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": "2"}})"),
              "`rope_scaling.factor` is \"2\", a string"));
  CHECK(errors(R"({"rope_theta": 1e4, "rope_scaling": {"factor": 2}})", {{"rope_scaling.type", "linear"}}) == "");
}

TEST_CASE("one object may hold several, and what is between them is judged") {
  constexpr std::string_view text = R"(
      variant Scaling by rope_type { "default" { } "linear" { factor: float } }
      config C {
          theta:       float    from rope_parameters.full.rope_theta | rope_theta
          scaling:     Scaling? from rope_parameters.full | rope_scaling
          local_theta: float    from rope_parameters.sliding.rope_theta | rope_local_base_freq
          local_type:  "default" from rope_parameters.sliding.rope_type = "default"
      })";
  const auto codes = [&](std::string_view json) {
    Session s(text);
    s.bind("C", json);
    return s.codes();
  };
  CHECK(codes(R"({"rope_theta": 1e6, "rope_local_base_freq": 1e4})") == "");
  CHECK(codes(R"({"rope_parameters": {"full": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8},
                                      "sliding": {"rope_theta": 1e4, "rope_type": "default"}}})") == "");
  CHECK(codes(R"({"rope_parameters": {"full": {"rope_theta": 1e6, "rope_type": "default"},
                                      "sliding": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2}}})") == "E0210 E0201");
  CHECK(codes(R"({"rope_parameters": {"full": {"rope_theta": 1e6, "rope_type": "default"}, "other": {},
                                      "sliding": {"rope_theta": 1e4}}})") == "E0201");
}

TEST_CASE("wrong variants") {
  const auto codes = [](std::string_view text) {
    Session s(text);
    s.bind("C", R"({"v": {"t": "a"}})");
    return s.codes();
  };
  CHECK(codes("variant V by t { \"a\" { } \"a\" { } } config C { v: V }") == "E0214");
  CHECK(codes("variant V by t { \"a\" { x: itn } } config C { v: V }") == "E0329");
  CHECK(codes("variant V by t { \"a\" { x: int x: int } } config C { v: V }") == "E0214");
  CHECK(codes("variant V by t { \"a\" { } } config C { v: V }") == "");
  CHECK(codes("variant V by t { \"a\" { } } config C { v: V? = none }") == "");
}
