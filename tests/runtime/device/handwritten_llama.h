// Llama: llama.model with config.json. Written by modelc 0.1.0 (here: by hand, as modelc writes it).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/modelc.h"

static_assert(modelc::generated_code_version == 3, "llama.h is of another modelc: build it again with this one's");

namespace handwritten {

// The values of config.json that the model was built for.
struct LlamaConfig {
  static constexpr std::int64_t vocab_size = 64;
  static constexpr std::int64_t hidden_size = 32;
  static constexpr std::int64_t intermediate_size = 48;
  static constexpr std::int64_t num_attention_heads = 4;
  static constexpr std::int64_t num_hidden_layers = 2;
  static constexpr std::int64_t num_key_value_heads = 2;
  static constexpr std::int64_t head_dim = 16;
  static constexpr std::int64_t max_position_embeddings = 64;
  static constexpr double rms_norm_eps = 1e-05;
  static constexpr double rope_theta = 10000.0;
  static constexpr bool tie_word_embeddings = false;
};

// nn/linear.model:5
struct Linear : modelc::Module {
  modelc::Weight weight;

  explicit Linear(const modelc::WeightSpec& weight_spec) : weight{weight_spec} {}
  const char* type_name() const override { return "Linear"; }
  void members(modelc::MemberVisitor& v) override { v.weight("weight", weight); }
};

// nn/norm.model:6
struct RMSNorm : modelc::Module {
  modelc::Weight weight;

  explicit RMSNorm(const modelc::WeightSpec& weight_spec) : weight{weight_spec} {}
  const char* type_name() const override { return "RMSNorm"; }
  void members(modelc::MemberVisitor& v) override { v.weight("weight", weight); }
};

// nn/embedding.model:5
struct Embedding : modelc::Module {
  modelc::Weight weight;

  explicit Embedding(const modelc::WeightSpec& weight_spec) : weight{weight_spec} {}
  const char* type_name() const override { return "Embedding"; }
  void members(modelc::MemberVisitor& v) override { v.weight("weight", weight); }
};

// nn/rope.model:47
struct RotaryEmbedding : modelc::Module {
  modelc::Weight factors;                                  // [8] = 1.0
  modelc::Const freqs;                                     // [8]

  explicit RotaryEmbedding(const modelc::WeightSpec& factors_spec) : factors{factors_spec} {}
  const char* type_name() const override { return "RotaryEmbedding"; }
  void members(modelc::MemberVisitor& v) override { v.weight("factors", factors); }
  void bind(modelc::Binder& b) override;
};

// llama.model:34
struct LlamaAttention : modelc::Module {
  Linear q_proj{{.shape = {64, 32},
                 .formula = "[heads * d, c.hidden_size]",
                 .numbers = "[4 * 16, 32]",
                 .where = "llama.model:39:5",
                 .role = modelc::WeightRole::matrix,
                 .origins = "heads = num_attention_heads = 4 from config.json:17\n"
                            "d = head_dim = 16 from config.json:9\n"
                            "hidden_size = 32 from config.json:11"}};
  Linear k_proj{{.shape = {32, 32},
                 .formula = "[kv_heads * d, c.hidden_size]",
                 .numbers = "[2 * 16, 32]",
                 .where = "llama.model:40:5",
                 .role = modelc::WeightRole::matrix,
                 .origins = "kv_heads = num_key_value_heads = 2 from config.json:19\n"
                            "d = head_dim = 16 from config.json:9\n"
                            "hidden_size = 32 from config.json:11"}};
  Linear v_proj{{.shape = {32, 32},
                 .formula = "[kv_heads * d, c.hidden_size]",
                 .numbers = "[2 * 16, 32]",
                 .where = "llama.model:41:5",
                 .role = modelc::WeightRole::matrix,
                 .origins = "kv_heads = num_key_value_heads = 2 from config.json:19\n"
                            "d = head_dim = 16 from config.json:9\n"
                            "hidden_size = 32 from config.json:11"}};
  Linear o_proj{{.shape = {32, 64},
                 .formula = "[c.hidden_size, heads * d]",
                 .numbers = "[32, 4 * 16]",
                 .where = "llama.model:42:5",
                 .role = modelc::WeightRole::matrix,
                 .origins = "hidden_size = 32 from config.json:11\n"
                            "heads = num_attention_heads = 4 from config.json:17\n"
                            "d = head_dim = 16 from config.json:9"}};
  RotaryEmbedding rope{{.shape = {8},
                        .formula = "[size / 2]",
                        .numbers = "[16 / 2]",
                        .where = "nn/rope.model:63:5",
                        .dtype = modelc::DType::f32,
                        .default_value = 1.0,
                        .origins = "size = head_dim = 16 from config.json:9"}};
  modelc::StateSlot cache{.kind = modelc::StateSlot::Kind::kv_cache, .sizes = {2, 16, 16}};  // heads, dim, value_dim

  // Products by their weights: those on one input are one.
  struct {
    modelc::Matrix qkv_proj;                               // rows of q_proj, k_proj, v_proj
    modelc::Matrix o_proj;
  } product;
  // Values that depend on the batch alone, computed once a step.
  struct {
    modelc::StepValue rope_cos;                            // [tokens, 8]
    modelc::StepValue rope_sin;                            // [tokens, 8]
  } once;

  const char* type_name() const override { return "LlamaAttention"; }
  void members(modelc::MemberVisitor& v) override;
  void bind(modelc::Binder& b) override;
  void forward(modelc::Step& s, const modelc::Tensor& x, const modelc::Batch& at, const modelc::Tensor& result) const;
};

// nn/mlp.model:15
struct GatedMLP : modelc::Module {
  Linear gate_proj{{.shape = {48, 32},
                    .formula = "[inner, size]",
                    .where = "nn/mlp.model:16:5",
                    .role = modelc::WeightRole::matrix,
                    .origins = "inner = intermediate_size = 48 from config.json:13\n"
                               "size = hidden_size = 32 from config.json:11"}};
  Linear up_proj{{.shape = {48, 32},
                  .formula = "[inner, size]",
                  .where = "nn/mlp.model:17:5",
                  .role = modelc::WeightRole::matrix,
                  .origins = "inner = intermediate_size = 48 from config.json:13\n"
                             "size = hidden_size = 32 from config.json:11"}};
  Linear down_proj{{.shape = {32, 48},
                    .formula = "[size, inner]",
                    .where = "nn/mlp.model:18:5",
                    .role = modelc::WeightRole::matrix,
                    .origins = "size = hidden_size = 32 from config.json:11\n"
                               "inner = intermediate_size = 48 from config.json:13"}};

  struct {
    modelc::Matrix gate_up_proj;                           // rows of gate_proj, up_proj
    modelc::Matrix down_proj;
  } product;

  const char* type_name() const override { return "GatedMLP"; }
  void members(modelc::MemberVisitor& v) override;
  void bind(modelc::Binder& b) override;
  void forward(modelc::Step& s, const modelc::Tensor& x, const modelc::Tensor& result) const;
};

// llama.model:64
struct LlamaLayer : modelc::Module {
  RMSNorm input_layernorm{
      {.shape = {32}, .formula = "[c.hidden_size]", .where = "llama.model:65:5", .origins = "hidden_size = 32 from config.json:11"}};
  LlamaAttention self_attn;
  RMSNorm post_attention_layernorm{
      {.shape = {32}, .formula = "[c.hidden_size]", .where = "llama.model:67:5", .origins = "hidden_size = 32 from config.json:11"}};
  GatedMLP mlp;

  const char* type_name() const override { return "LlamaLayer"; }
  void members(modelc::MemberVisitor& v) override;
  // `result` may be x: x is read for the last time before it is written.
  void forward(modelc::Step& s, const modelc::Tensor& x, const modelc::Batch& at, const modelc::Tensor& result) const;
};

// llama.model:78
struct LlamaBackbone : modelc::Module {
  Embedding embed_tokens{{.shape = {64, 32},
                          .formula = "[c.vocab_size, c.hidden_size]",
                          .where = "llama.model:79:5",
                          .role = modelc::WeightRole::table,
                          .origins = "vocab_size = 64 from config.json:28\n"
                                     "hidden_size = 32 from config.json:11"}};
  std::array<LlamaLayer, 2> layers;
  RMSNorm norm{
      {.shape = {32}, .formula = "[c.hidden_size]", .where = "llama.model:81:5", .origins = "hidden_size = 32 from config.json:11"}};

  const char* type_name() const override { return "LlamaBackbone"; }
  void members(modelc::MemberVisitor& v) override;
  void forward(modelc::Step& s, const modelc::Tensor& input_ids, const modelc::Batch& at, const modelc::Tensor& result) const;
};

// llama.model:90
class Llama final : public modelc::Model {
 public:
  LlamaBackbone model;
  Linear lm_head{{.shape = {64, 32},
                  .formula = "[c.vocab_size, c.hidden_size]",
                  .where = "llama.model:93:5",
                  .role = modelc::WeightRole::matrix,
                  .origins = "vocab_size = 64 from config.json:28\n"
                             "hidden_size = 32 from config.json:11"}};

  // From a folder, a .safetensors file, or headers already read. Everything that is wrong is in the one error.
  static modelc::Result<std::unique_ptr<Llama>> load(const std::string& path, const modelc::LoadOptions& options = {});
  static modelc::Result<std::unique_ptr<Llama>> load(const modelc::CheckpointIndex& checkpoint, const modelc::LoadOptions& options = {});

  // forward(input_ids: index(64)[tokens], at: Batch) -> logits: f32[outputs, 64]
  // The logits stay valid until the next call.
  modelc::Result<std::span<const float>> forward(modelc::State& state, std::span<const std::int32_t> input_ids, const modelc::Batch& at);

  const char* type_name() const override { return "Llama"; }
  std::span<const modelc::EntryDesc> entries() const override;
  std::int64_t context() const override { return 64; }
  std::int64_t arena_bytes(const modelc::StepSizes& s) const override;
  void members(modelc::MemberVisitor& v) override;
  void bind(modelc::Binder& b) override;

 private:
  struct {
    modelc::Matrix lm_head;
  } product;

  void forward(modelc::Step& s, const modelc::Tensor& input_ids, const modelc::Batch& at, const modelc::Tensor& logits) const;
  void run(int entry, modelc::Step& s, std::span<const modelc::Tensor> inputs, std::span<const modelc::Tensor> outputs) const override;
};

// For programs that know no architecture (modelc::main).
extern const modelc::ModelFactory llama_factory;

}  // namespace handwritten
