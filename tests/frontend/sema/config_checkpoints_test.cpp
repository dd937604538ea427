// The configurations of published checkpoints against the library's and the example's configs.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

struct Llama : Session {
  Llama() : Session("import llama\nimport nn.rope\nimport nn.quantization") {
    import_path(MODELC_SOURCE_DIR "/stdlib").import_path(MODELC_SOURCE_DIR "/examples/llama");
  }
};

// As published, without a theta: the format's first version left it to the code.
constexpr std::string_view llama_2_7b = R"({
  "_name_or_path": "meta-llama/Llama-2-7b-hf",
  "architectures": ["LlamaForCausalLM"],
  "bos_token_id": 1,
  "eos_token_id": 2,
  "hidden_act": "silu",
  "hidden_size": 4096,
  "initializer_range": 0.02,
  "intermediate_size": 11008,
  "max_position_embeddings": 4096,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 32,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "tie_word_embeddings": false,
  "torch_dtype": "float16",
  "transformers_version": "4.31.0.dev0",
  "use_cache": true,
  "vocab_size": 32000
})";

constexpr std::string_view llama_3_2_1b = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "eos_token_id": 128001,
  "head_dim": 64,
  "hidden_act": "silu",
  "hidden_size": 2048,
  "initializer_range": 0.02,
  "intermediate_size": 8192,
  "max_position_embeddings": 131072,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 16,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {
    "factor": 32.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"
  },
  "rope_theta": 500000.0,
  "tie_word_embeddings": true,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.45.0.dev0",
  "use_cache": true,
  "vocab_size": 128256
})";

constexpr std::string_view smollm2_135m = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 0,
  "eos_token_id": 0,
  "hidden_act": "silu",
  "hidden_size": 576,
  "initializer_range": 0.041666666666666664,
  "intermediate_size": 1536,
  "is_llama_config": true,
  "max_position_embeddings": 8192,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 9,
  "num_hidden_layers": 30,
  "num_key_value_heads": 3,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_interleaved": false,
  "rope_scaling": null,
  "rope_theta": 100000,
  "tie_word_embeddings": true,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.40.1",
  "use_cache": true,
  "vocab_size": 49152
})";

constexpr std::string_view tinyllama = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "bos_token_id": 1,
  "eos_token_id": 2,
  "hidden_act": "silu",
  "hidden_size": 2048,
  "initializer_range": 0.02,
  "intermediate_size": 5632,
  "max_position_embeddings": 2048,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 22,
  "num_key_value_heads": 4,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "rope_theta": 10000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.35.0",
  "use_cache": true,
  "vocab_size": 32000
})";

}  // namespace

TEST_CASE("Llama 3.2 1B") {
  Llama s;
  const Value c = s.bind("LlamaConfig", llama_3_2_1b);
  INFO(s.messages());
  REQUIRE_FALSE(c.is_error());
  CHECK(field_text(c, "hidden_size") == "2048");
  CHECK(field_text(c, "head_dim") == "64");
  CHECK(field_text(c, "num_key_value_heads") == "8");
  CHECK(field_text(c, "rope_theta") == "500000.0");
  CHECK(field_text(c, "rope_scaling") == "RopeScaling \"llama3\"");
  const auto& scaling = *c.as_config().find("rope_scaling")->value.as_variant().fields;
  CHECK(show(scaling.find("factor")->value) == "32.0");
  CHECK(formula_origins(scaling.find("original_max_position_embeddings")->value.formula()) ==
        std::vector<std::string>{"original_max_position_embeddings = 8192 from config.json:24"});
  CHECK(field_text(c, "tie_word_embeddings") == "true");
  CHECK(field_text(c, "quantization_config") == "none");
}

TEST_CASE("SmolLM2 135M") {
  Llama s;
  const Value c = s.bind("LlamaConfig", smollm2_135m);
  INFO(s.messages());
  REQUIRE_FALSE(c.is_error());
  CHECK(field_text(c, "head_dim") == "64");
  CHECK(field_text(c, "rope_theta") == "100000.0");
  CHECK(field_text(c, "rope_scaling") == "none");
  CHECK(formula_origins(c.as_config().find("head_dim")->value.formula()) ==
        std::vector<std::string>{"head_dim = hidden_size / num_attention_heads = 64 by default", "hidden_size = 576 from config.json:8",
                                 "num_attention_heads = 9 from config.json:15"});
}

TEST_CASE("TinyLlama 1.1B") {
  Llama s;
  const Value c = s.bind("LlamaConfig", tinyllama);
  INFO(s.messages());
  REQUIRE_FALSE(c.is_error());
  CHECK(field_text(c, "num_key_value_heads") == "4");
  CHECK(field_text(c, "head_dim") == "64");
}

TEST_CASE("Llama 2 7B says no theta, and none is guessed") {
  Llama s;
  CHECK(s.bind("LlamaConfig", llama_2_7b).is_error());
  CHECK(s.codes() == "E0204");
  CHECK(holds(s.messages(), "rope_theta"));
  CHECK(holds(s.messages(), "--set rope_theta="));
  Llama set;
  const Value c = set.bind("LlamaConfig", llama_2_7b, {{"rope_theta", 10000}});
  INFO(set.messages());
  REQUIRE_FALSE(c.is_error());
  CHECK(field_text(c, "rope_theta") == "10000.0");
  CHECK(field_text(c, "head_dim") == "128");
}

TEST_CASE("the newer form of the same files") {
  std::string text(smollm2_135m);
  const auto replace = [&](std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
  replace("\"rope_scaling\": null,", "\"rope_parameters\": {\"rope_theta\": 100000, \"rope_type\": \"default\"},");
  replace("\"rope_theta\": 100000,\n  \"tie", "\"tie");
  replace("\"torch_dtype\"", "\"dtype\"");
  Llama s;
  const Value c = s.bind("LlamaConfig", text);
  INFO(s.messages());
  REQUIRE_FALSE(c.is_error());
  CHECK(field_text(c, "rope_theta") == "100000.0");
  CHECK(field_text(c, "rope_scaling") == "RopeScaling \"default\"");
}

TEST_CASE("what another architecture writes is refused by name, all of it in one run") {
  std::string text(tinyllama);
  const auto replace = [&](std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
  replace("\"llama\"", "\"qwen2\"");
  replace("\"rope_scaling\": null,", "\"rope_scaling\": {\"factor\": 8.0}, \"sliding_window\": 4096, \"use_qk_norm\": true,");
  replace("\"num_key_value_heads\": 4", "\"num_key_value_heads\": null, \"head_dim\": null");
  Llama s;
  CHECK(s.bind("LlamaConfig", text).is_error());
  CHECK(s.codes() == "E0408 E0208 E0202 E0201");
}

TEST_CASE("tiny: head_dim that is not hidden / heads, given, null, and not to be worked out") {
  constexpr std::string_view tiny =
      R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 30, "intermediate_size": 48,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5, "rope_theta": 1e4, "hidden_act": "silu", "head_dim": 16})";
  Llama s;
  CHECK(field_text(s.bind("LlamaConfig", tiny), "head_dim") == "16");
  Llama none;
  CHECK(none.bind("LlamaConfig", tiny, {{"head_dim", Json()}}).is_error());
  CHECK(none.codes() == "E0308");
  Llama huge;
  CHECK(huge.bind("LlamaConfig", tiny, {{"num_hidden_layers", 2000000000}}).is_error());
  CHECK(huge.codes() == "E0205");
}

TEST_CASE("the library's rope formulas on numbers") {
  Llama s;
  CHECK(s.eval("mscale(4.0, 1.0)", {}).as_real() == doctest::Approx(1.1386294361119891));
  CHECK(s.eval("mscale(1.0, 1.0)", {}).as_real() == doctest::Approx(1));
  CHECK(s.eval("yarn_bound(10000.0, 64, 4096, 32.0)", {}).as_real() == doctest::Approx(10.47224).epsilon(1e-6));
  CHECK(show(s.eval("stored(none)")) == "plain");
  CHECK(s.codes() == "");
}
