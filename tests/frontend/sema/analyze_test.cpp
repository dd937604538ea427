// The whole front end: with and without a configuration, one module alone, the examples.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

std::string example(const std::string& name) {
  const std::string text = text_of_file(MODELC_SOURCE_DIR "/examples/" + name + "/" + name + ".model");
  return text.substr(text.find("language 1") + 10);
}
std::string fixture(const std::string& path) { return text_of_file(MODELC_SOURCE_DIR "/examples/" + path + "/config.json"); }

}  // namespace

TEST_CASE("without a configuration a right file gives no message and no program") {
  for (const char* name : {"llama", "qwen2"}) {
    Model m(example(name));
    CHECK_FALSE(m.program().has_value());
    CHECK(m.messages().empty());
  }
}

TEST_CASE("without a configuration names, arguments and members are checked all the same") {
  const auto codes = [](std::string_view members) { return Model(around("d: dim", members)).codes(); };
  CHECK(codes("p: Linaer(c.d, c.d)  forward(x: [tokens, c.d]) { return p(x) }") == "E0301");
  CHECK(codes("p: Linear(c.d)  forward(x: [tokens, c.d]) { return p(x) }") == "E0313");
  CHECK(codes("p: Linear(c.d, c.d, bias: true)  forward(x: [tokens, c.d]) { return p(x) }") == "E0313");
  CHECK(codes("p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return p(x, x) }") == "E0313");
  CHECK(codes("p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return p(x) + p.wieght }") == "E0315");
  CHECK(codes("forward(x: [tokens, c.d]) { return rms_norm(x, esp: 1e-5) }") == "E0313");
  CHECK(codes("forward(x: [tokns, c.d]) { return x }") == "E0301");
  CHECK(codes("forward(x: Bacth) { return x }").find("E0329") == 0);
  CHECK(codes("fn f(a) = a + b  forward(x: [tokens, c.d]) { return f(x) }") == "E0301");
  CHECK(codes("fn f(a) = a  forward(x: [tokens, c.d]) { return f(x, x) }") == "E0313");
  CHECK(codes("p: Linear(c.d, c.d) if flag  forward(x: [tokens, c.d]) { return p(x) }") == "E0301");
  CHECK(codes("require x  forward(y: [tokens, c.d]) { return y }") == "E0301");
  CHECK(codes("p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return x }") == "W0340");
}

TEST_CASE("text that no instance reaches is checked too") {
  Model m(around("d: dim",
                 "p: Linear(c.d, c.d)  q: Linaer(c.d, c.d) if false  forward(x: [tokens, c.d]) { return q(x) if false else p(x) }",
                 "module Never(n: dim) { q: Linear(n, m)  forward(x: [tokens, n]) { return q(x) } }"));
  CHECK(m.config(R"({"d": 4})").codes() == "E0301 E0301");
}

TEST_CASE("mistakes in the configuration, in definitions and in bodies come in one run") {
  Model m(around("d: dim  e: int", "let read = c.e  p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return p(x) + y }"));
  m.config(R"({"d": 4, "f": 1})");
  CHECK(m.codes() == "E0301 E0204 E0201");
}

TEST_CASE("E0353: no model, two models") {
  CHECK(Model("module A() { forward(x: [...]) { return x } }").config("{}").codes() == "E0353");
  CHECK(Model("config C { }\nmodel A(c: C) { forward(x: [...]) { return x } }\nmodel B(c: C) { forward(x: [...]) { "
              "return x } }")
            .config("{}")
            .codes() == "E0353");
  CHECK(Model("module A() { forward(x: [...]) { return x } }").root("3").codes() == "E0353");
  CHECK(Model("module A() { forward(x: [...]) { return x } }").root("A").codes() == "E0353");
}

TEST_CASE("E0314: a model's parameter that nothing gives a value") {
  CHECK(Model("config C { }\nmodel A(c: C, n: int) { forward(x: [...]) { return x * n } }").config("{}").codes() == "E0314");
  Model("config C { }\nmodel A(c: C, n: int = 3) { forward(x: [...]) { return x * n } }").config("{}").good();
}

TEST_CASE("a misspelt type of a model's parameter is one message") {
  CHECK(Model("config Cfg { n: int = 3 }\nmodel A(c: Cgf) { forward(x: [...]) { return x * c.n } }").config("{}").codes() == "E0329");
}

TEST_CASE("the context bounds positions; it is a number") {
  CHECK(Model(around("d: dim", "context c.d  forward(at: Batch) { return at.positions }")).config(R"({"d": 4})").good().graph.context == 4);
  CHECK(Model(around("d: dim", "context \"a\"  forward(x: [tokens, c.d]) { return x }")).config(R"({"d": 4})").codes() == "E0314");
}

TEST_CASE("a module alone as the root, with and without a configuration") {
  Model linear("import nn.linear");
  linear.root("Linear(5, 10)");
  CHECK(linear.good().graph.name == "Linear");
  CHECK(has(linear.part("Linear"), "forward forward(%x: f32[tokens, 5])"));
  CHECK_FALSE(has(linear.part("Linear"), "leaf"));
  CHECK(has(linear.part("Linear"), "shape \"[10, 5]\""));

  Model layer(example("llama"));
  layer.config(fixture("llama/fixtures/llama-tiny")).root("LlamaAttention(c)");
  CHECK(layer.good().graph.name == "LlamaAttention");
  CHECK(layer.good().graph.context == 64);
  CHECK(Model("import nn.linear").root("Linear(5)").codes() == "E0313");
  CHECK(Model("import nn.linear").root("Linear(5, ").codes().find("E01") == 0);
}

TEST_CASE("a field that nothing reads is said, but not when only one module is taken") {
  const std::string text = around("d: dim  e: dim", "p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return p(x) }");
  CHECK(Model(text).config(R"({"d": 4, "e": 3})").codes() == "E0212");
  CHECK(Model(text).config(R"({"d": 4, "e": 3})").root("Linear(c.d, 2)").codes().empty());
}

TEST_CASE("the graph knows the configuration's numbers, the program its files and tests") {
  Model m(example("llama"));
  m.config(fixture("llama/fixtures/llama-tiny"));
  const sema::Program& program = m.good();
  CHECK(program.graph.name == "Llama");
  CHECK(program.graph.file == "main.model");
  CHECK(program.graph.context == 64);
  bool eps = false;
  for (const auto& fact : program.graph.config)
    eps = eps || (fact.name == "rms_norm_eps" && fact.type == "float" && std::get<double>(fact.value) == 1e-5);
  CHECK(eps);
  CHECK(program.tests.size() == 4);
  CHECK(program.files.size() == 7);
}

TEST_CASE("the resolved text of a program") {
  Model m(around("d: dim  n: int",
                 "context 7  emb: Embedding(9, c.d)  layers: [Linear(c.d, c.d) for i in 0..c.n]  state s: KVCache(1, c.d)\n"
                 "forward(x: index(9)[tokens]) -> y: [tokens, c.d] { let h = emb(x)  for l in layers { h = l(h) }  return h }\n"
                 "entry keep(x: [tokens, 1, c.d], at: Batch) { s.append(x, x, at) }\n"
                 "checkpoint safetensors { alias layers.1.weight = layers.0.weight  ignore **.old  wte = emb }"));
  m.config(R"({"d": 4, "n": 3})");
  const std::string& text = m.good().resolved;
  for (const char* line :
       {"model M    // main.model\n", "  context 7\n", "    d: dim = 4\n", "  leaf Embedding(count: 9, size: 4, scale: 1.0)",
        "    param weight: [9, d] = [9, 4] table", "    layers: [Linear × 3]", "    state s: KVCache(1, 4, 4)",
        "    forward(x: index(9)[tokens]) -> y: f32[tokens, 4]", "    entry keep(x: f32[tokens, 1, 4], at: Batch)",
        "    alias layers.1.weight = layers.0.weight", "    ignore **.old", "    wte = emb", "  weights: 4 tensors, 84 elements\n",
        "    layers.2.weight: [4, 4]\n"}) {
    CAPTURE(std::string(line));
    CHECK(has(text, line));
  }
}

TEST_CASE("the same input gives the same bytes") {
  const auto text = [] {
    Model m(example("qwen2"));
    m.config(fixture("qwen2/fixtures/qwen2-tiny"));
    return m.graph() + m.good().resolved;
  };
  CHECK(text() == text());
}

TEST_CASE("every module of the standard library is right as it is written") {
  std::string imports;
  for (const char* name :
       {"attention", "config", "conv", "embedding", "interfaces", "linear", "mlp", "moe", "norm", "quantization", "rope", "transformer"})
    imports += "import nn." + std::string(name) + "\n";
  CHECK(Model(imports).messages().empty());
}

TEST_CASE("composed from the library: the file of the language's first page") {
  Model m(R"(
import nn.attention
import nn.config
import nn.linear
import nn.mlp
import nn.norm
import nn.rope
import nn.transformer
config Tiny extends TransformersConfig { vocab, size, inner, heads: dim   layers, longest_text: int   theta, eps: float   act: string }
model TinyLm(c: Tiny) {
    context c.longest_text
    fn norm()  = RMSNorm(c.size, eps: c.eps)
    fn layer(i) = DecoderLayer(c.size, norm: norm(),
        mixer: Attention(c.size, c.heads, c.heads, 8, window: 4 if i % 2 == 0 else none, head_norm: RMSNorm(8, eps: c.eps), softcap: 30.0, has_sinks: true,
                         rotary: RotaryEmbedding(8, theta: c.theta, pairs: "adjacent", max_positions: c.longest_text)),
        ff: GatedMLP(c.size, c.inner, act: c.act))
    model:   Decoder(c.vocab, c.size, blocks: [layer(i) for i in 0..c.layers], final_norm: norm(), scale: sqrt(c.size))
    lm_head: Linear(c.size, c.vocab)
    forward(input_ids: index(c.vocab)[tokens], at: Batch) -> logits: f32[outputs, c.vocab] { return lm_head(take(model(input_ids, at), at.outputs)) }
})");
  m.config(
      R"({"vocab": 50, "size": 16, "inner": 24, "heads": 2, "layers": 5, "longest_text": 32, "theta": 100.0, "eps": 1e-5, "act": "gelu"})");
  CHECK(has(m.part("Decoder"), "children layers: [DecoderLayer, DecoderLayer_2, DecoderLayer, DecoderLayer_2, DecoderLayer]"));
  CHECK(has(m.part("Attention"), "] window 4"));
  CHECK_FALSE(has(m.part("Attention_2"), "] window"));
  CHECK(has(m.part("Attention"), "softcap: 30.0, window: 4"));
}

TEST_CASE("configurations as they are published, with the number of parameters that their cards give") {
  Model llama(example("llama"));
  llama.config(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
    "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": true,
    "vocab_size": 128256})");
  CHECK(parameters(llama.good().graph) == 1'235'814'400);

  Model smol(example("llama"));
  smol.config(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666,
    "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true,
    "vocab_size": 49152})");
  CHECK(parameters(smol.good().graph) == 134'515'008);

  Model qwen(example("qwen2"));
  qwen.config(R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
    "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false,
    "vocab_size": 151936})");
  CHECK(parameters(qwen.good().graph) == 494'032'768);

  // The conversion of state-spaces/mamba2-130m, and Mamba-Codestral-7B.
  Model mamba(example("mamba2"));
  mamba.config(R"({"architectures": ["Mamba2ForCausalLM"], "bos_token_id": 0, "chunk_size": 256, "conv_kernel": 4,
    "eos_token_id": 0, "expand": 2, "head_dim": 64, "hidden_act": "silu", "hidden_size": 768,
    "initializer_range": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "mamba2", "n_groups": 1,
    "norm_before_gate": false, "num_heads": 24, "num_hidden_layers": 24, "pad_token_id": 0,
    "rescale_prenorm_residual": false, "residual_in_fp32": true, "rms_norm": true, "state_size": 128,
    "tie_word_embeddings": true, "time_step_floor": 0.0001, "time_step_limit": [0.0, Infinity], "time_step_max": 0.1,
    "time_step_min": 0.001, "time_step_rank": 48, "torch_dtype": "float32", "transformers_version": "4.44.0.dev0",
    "use_bias": false, "use_cache": true, "use_conv_bias": true, "vocab_size": 50288})");
  CHECK(parameters(mamba.good().graph) == 128'989'632);

  Model codestral(example("mamba2"));
  codestral.config(R"({"architectures": ["Mamba2ForCausalLM"], "bos_token_id": 0, "chunk_size": 256, "conv_kernel": 4,
    "eos_token_id": 0, "expand": 2, "head_dim": 64, "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "mamba2", "n_groups": 8,
    "norm_before_gate": true, "num_heads": 128, "num_hidden_layers": 64, "pad_token_id": 0,
    "rescale_prenorm_residual": false, "residual_in_fp32": true, "rms_norm": true, "state_size": 128,
    "tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_init_scheme": "random",
    "time_step_limit": [0.0, Infinity], "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 256,
    "time_step_scale": 1.0, "torch_dtype": "bfloat16", "transformers_version": "4.44.0.dev0", "use_bias": false,
    "use_cache": true, "use_conv_bias": true, "vocab_size": 32768})");
  CHECK(parameters(codestral.good().graph) == 7'285'403'648);

  // DeepSeek-V3 without its layer of multi-token prediction: 671,026,404,352 and the routers' 58 · 256 biases.
  Model deepseek(example("deepseek_v3"));
  deepseek.config(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config",
    "AutoModel": "modeling_deepseek.DeepseekV3Model", "AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM"},
    "aux_loss_alpha": 0.001, "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1, "first_k_dense_replace": 3,
    "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048,
    "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
    "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1, "pretraining_tp": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3",
    "quant_method": "fp8", "weight_block_size": [128, 128]}, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32,
    "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
    "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "seq_aux": true,
    "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
    "transformers_version": "4.33.1", "use_cache": true, "v_head_dim": 128, "vocab_size": 129280})");
  CHECK(parameters(deepseek.good().graph) == 671'026'404'352 + 58 * 256);

  // Kimi-K2, the same model in another shape: one group, 384 experts, one dense layer.
  Model kimi(example("deepseek_v3"));
  kimi.config(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "aux_loss_alpha": 0.001, "bos_token_id": 163584, "eos_token_id": 163585, "ep_size": 1, "first_k_dense_replace": 1,
    "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 131072, "model_type": "kimi_k2", "moe_intermediate_size": 2048,
    "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1, "norm_topk_prob": true,
    "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 64,
    "num_nextn_predict_layers": 0, "pretraining_tp": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3",
    "quant_method": "fp8", "weight_block_size": [128, 128]}, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 1.0,
    "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
    "type": "yarn"}, "rope_theta": 50000.0, "routed_scaling_factor": 2.827, "scoring_func": "sigmoid", "seq_aux": true,
    "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
    "transformers_version": "4.48.3", "use_cache": true, "v_head_dim": 128, "vocab_size": 163840})");
  CHECK(parameters(kimi.good().graph) == 1'026'408'209'408 + 60 * 384);

  // Qwen3-Next-80B-A3B.
  Model next(example("qwen3_next"));
  next.config(R"({"architectures": ["Qwen3NextForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "full_attention_interval": 4,
    "head_dim": 256, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_next",
    "moe_intermediate_size": 512, "norm_topk_prob": true, "num_attention_heads": 16, "num_experts": 512,
    "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2, "output_router_logits": false,
    "partial_rotary_factor": 0.25, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000000,
    "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 512, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "transformers_version": "4.57.0.dev0", "use_cache": true, "vocab_size": 151936})");
  CHECK(parameters(next.good().graph) == 79'674'391'296);
}
