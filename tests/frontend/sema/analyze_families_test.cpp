// The examples with the configurations of published checkpoints, and the number of parameters that these have.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

std::string example(const std::string& name) {
  const std::string text = text_of_file(MODELC_SOURCE_DIR "/examples/" + name + "/" + name + ".model");
  return text.substr(text.find("language 1") + 10);
}

// The example with what it builds on beside it, as the folders lie.
Model family(const std::string& name, const std::string& config) {
  Model m(example(name));
  for (const char* base : {"llama", "qwen3"}) {
    const std::string base_name(base);
    if (base_name != name) m.file(base_name + "/" + base_name + ".model", example(base_name));
  }
  m.config(config);
  return m;
}

// "full" in place i where (i + 1) % pattern == 0.
std::string layer_types(int layers, int pattern) {
  std::string s;
  for (int i = 0; i < layers; ++i)
    s += std::string(i == 0 ? "" : ", ") + ((i + 1) % pattern == 0 ? "\"full_attention\"" : "\"sliding_attention\"");
  return "[" + s + "]";
}

}  // namespace

TEST_CASE("Qwen3-0.6B") {
  Model m = family("qwen3", R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
    "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
    "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
    "use_sliding_window": false, "vocab_size": 151936})");
  CHECK(parameters(m.good().graph) == 596'049'920);
  CHECK(has(m.part("Qwen3Attention"), "child q_norm: RMSNorm"));
}

TEST_CASE("gemma-3-270m") {
  Model m = family("gemma3_text", R"({"_sliding_window_pattern": 6, "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": false, "attention_dropout": 0.0, "attn_logit_softcapping": null, "bos_token_id": 2, "eos_token_id": 1,
    "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 640,
    "initializer_range": 0.02, "intermediate_size": 2048, "layer_types": )" +
                                      layer_types(18, 6) + R"(,
    "max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 18,
    "num_key_value_heads": 1, "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000.0, "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": 512,
    "torch_dtype": "bfloat16", "transformers_version": "4.55.0.dev0", "use_bidirectional_attention": false,
    "use_cache": true, "vocab_size": 262144})");
  CHECK(parameters(m.good().graph) == 268'098'176);
}

TEST_CASE("gemma-3-1b, whose file gives no layer types") {
  Model m = family("gemma3_text", R"({"architectures": ["Gemma3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": [1, 106], "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152, "initializer_range": 0.02, "intermediate_size": 6912, "max_position_embeddings": 32768,
    "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
    "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
    "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "use_cache": true, "vocab_size": 262144})");
  CHECK(parameters(m.good().graph) == 999'885'952);
}

TEST_CASE("Apertus-8B") {
  Model m = family("apertus", R"({"architectures": ["ApertusForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 68, "hidden_act": "xielu", "hidden_dropout": 0.0,
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 21504, "max_position_embeddings": 65536,
    "mlp_bias": false, "model_type": "apertus", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "pad_token_id": 3, "post_norm": false, "qk_norm": true, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3", "type": "llama3"}, "rope_theta": 12000000,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.56.0.dev0", "use_cache": true,
    "vocab_size": 131072})");
  CHECK(parameters(m.good().graph) == 8'053'338'176);
}

TEST_CASE("Qwen3-30B-A3B") {
  Model m = family("qwen3_moe", R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
    "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
    "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": false,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
    "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
  CHECK(parameters(m.good().graph) == 30'532'122'624);
  CHECK(has(m.part("SoftmaxRouter"), "weight weight: f32[128, 2048]"));
}

TEST_CASE("gpt-oss-20b, its experts in MXFP4") {
  std::string types = layer_types(24, 2);
  Model m = family("gpt_oss", R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true,
    "attention_dropout": 0.0, "eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu",
    "hidden_size": 2880, "initial_context_length": 4096, "initializer_range": 0.02, "intermediate_size": 2880,
    "layer_types": )" + types + R"(, "max_position_embeddings": 131072, "model_type": "gpt_oss",
    "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
    "num_local_experts": 32, "output_router_logits": false, "pad_token_id": 199999,
    "quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
    "model.embed_tokens", "lm_head"], "quant_method": "mxfp4"}, "rms_norm_eps": 1e-05,
    "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
    "rope_type": "yarn", "truncate": false}, "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128,
    "swiglu_limit": 7.0, "tie_word_embeddings": false, "transformers_version": "4.55.0.dev0", "use_cache": true,
    "vocab_size": 201088})");
  CHECK(parameters(m.good().graph) == 20'914'757'184);
}
