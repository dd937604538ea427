// Llama: llama.model with config.json. Written by modelc 0.1.0 (here: by hand, as modelc writes it).
#include "tests/runtime/device/handwritten_llama.h"

namespace handwritten {

using modelc::Batch;
using modelc::MapArgs;
using modelc::MapKernel;
using modelc::Step;
using modelc::Tensor;
namespace math = modelc::math;

namespace {

// ---- fused elementwise expressions --------------------------------------------------------------------------------

// silu(gate_proj) * up_proj
constexpr MapKernel silu_mul = {"silu_mul", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                  modelc::map_rows<2>(a, begin, end,
                                                      [](float gate_proj, float up_proj) { return math::silu(gate_proj) * up_proj; });
                                }};

// h + mlp
constexpr MapKernel add = {"add", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                             modelc::map_rows<2>(a, begin, end, [](float h, float mlp) { return h + mlp; });
                           }};

// 1 / theta ^ (arange * 2.0 / size)
constexpr MapKernel rope_freqs = {"rope_freqs", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                    modelc::map_rows<1>(a, begin, end,
                                                        [](float arange) { return 1.0F / math::pow(10000.0F, arange * 2.0F / 16.0F); });
                                  }};

// cos(p * (freqs / factors)) * magnitude
constexpr MapKernel rope_cos = {"rope_cos", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                  modelc::map_rows<3>(a, begin, end,
                                                      [](float p, float freqs, float factors) { return math::cos(p * (freqs / factors)); });
                                }};

// sin(p * (freqs / factors)) * magnitude
constexpr MapKernel rope_sin = {"rope_sin", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                  modelc::map_rows<3>(a, begin, end,
                                                      [](float p, float freqs, float factors) { return math::sin(p * (freqs / factors)); });
                                }};

// ---- buffers of each function: pieces of the arena, given back when it ends ----------------------------------------

// name  bytes a token  written by, last read by
// q     256            q_proj      attend
// k     128            k_proj      append
// v     128            v_proj      append
// y     256            attend      o_proj
struct LlamaAttentionBuffers : Step::Frame {
  explicit LlamaAttentionBuffers(Step& s) : Frame(s, 768 * s.tokens()) {}
  Tensor q = f32(0, {tokens(), 4, 16});
  Tensor k = f32(256 * tokens(), {tokens(), 2, 16});
  Tensor v = f32(384 * tokens(), {tokens(), 2, 16});
  Tensor y = f32(512 * tokens(), {tokens(), 4, 16});
};

// name  bytes a token  written by, last read by
// gated 192            silu_mul    down_proj
struct GatedMLPBuffers : Step::Frame {
  explicit GatedMLPBuffers(Step& s) : Frame(s, 192 * s.tokens()) {}
  Tensor gated = f32(0, {tokens(), 48});
};

// name                      bytes a token  written by                last read by
// input_layernorm           128            input_layernorm           self_attn
// self_attn                 128            self_attn                 h
// h                         128            h                         add
// post_attention_layernorm  128            post_attention_layernorm  mlp           where input_layernorm was
// mlp                       128            mlp                       add           where self_attn was
struct LlamaLayerBuffers : Step::Frame {
  explicit LlamaLayerBuffers(Step& s) : Frame(s, 384 * s.tokens()) {}
  Tensor input_layernorm = f32(0, {tokens(), 32});
  Tensor self_attn = f32(128 * tokens(), {tokens(), 32});
  Tensor h = f32(256 * tokens(), {tokens(), 32});
  Tensor post_attention_layernorm = f32(0, {tokens(), 32});
  Tensor mlp = f32(128 * tokens(), {tokens(), 32});
};

// name  bytes a token  written by            last read by
// h     128            embed_tokens, layers  norm
struct LlamaBackboneBuffers : Step::Frame {
  explicit LlamaBackboneBuffers(Step& s) : Frame(s, 128 * s.tokens()) {}
  Tensor h = f32(0, {tokens(), 32});
};

// name   bytes           written by  last read by
// model  128 a token     model       take
// take   128 an output   take        lm_head
struct LlamaBuffers : Step::Frame {
  explicit LlamaBuffers(Step& s) : Frame(s, 128 * s.tokens() + 128 * s.outputs()) {}
  Tensor model = f32(0, {tokens(), 32});
  Tensor take = f32(128 * tokens(), {outputs(), 32});
};

// ---- what calls and checkpoints are checked against ---------------------------------------------------------------

const std::array<modelc::EntryDesc, 1> entry_table = {{
    {.name = "forward",
     .inputs = {{.name = "input_ids", .dtype = modelc::DType::i32, .shape = "[tokens]", .index_bound = 64}},
     .outputs = {{.name = "logits", .dtype = modelc::DType::f32, .shape = "[outputs, 64]"}},
     .at = modelc::CallAt::batch,
     .advances = true},
}};

const modelc::CheckpointRulesData rule_table = {
    .aliases = {{.weight = "lm_head.weight",
                 .target = "model.embed_tokens.weight",
                 .when = "c.tie_word_embeddings",
                 .because = "tie_word_embeddings = false from config.json:24"}},
    .ignores = {{"**.rotary_emb.inv_freq"}},
};

}  // namespace

// ---- RotaryEmbedding -----------------------------------------------------------------------------------------------

void RotaryEmbedding::bind(modelc::Binder& b) {
  freqs = b.constant("RotaryEmbedding.freqs", {8}, [](Step& s, const Tensor& result) {
    s.arange(result);
    s.map(rope_freqs, {result}, result);                   // 1 / powers(theta, size)
  });
}

// ---- LlamaAttention ------------------------------------------------------------------------------------------------

void LlamaAttention::members(modelc::MemberVisitor& v) {
  v.child("q_proj", q_proj);
  v.child("k_proj", k_proj);
  v.child("v_proj", v_proj);
  v.child("o_proj", o_proj);
  v.child("rope", rope);
  v.state("cache", cache);
}

void LlamaAttention::bind(modelc::Binder& b) {
  product.qkv_proj = b.pack({&q_proj.weight, &k_proj.weight, &v_proj.weight}, {});
  product.o_proj = b.pack({&o_proj.weight}, {});
  once.rope_cos = b.step_value("rope_cos", {&rope.freqs.tensor, &rope.factors.tensor});
  once.rope_sin = b.step_value("rope_sin", {&rope.freqs.tensor, &rope.factors.tensor});
}

// llama.model:47  forward(x: [tokens, c.hidden_size], at: Batch) -> [tokens, c.hidden_size]
//                 x [tokens, 32] -> [tokens, 32]
void LlamaAttention::forward(Step& s, const Tensor& x, const Batch& at, const Tensor& result) const {
  const Step::On on(s, *this);
  const LlamaAttentionBuffers b(s);

  const Tensor cos = s.once(once.rope_cos, {s.tokens(), 8}, [&](const Tensor& out) {
    s.map(rope_cos, {s.positions().as({s.tokens(), 1}), rope.freqs.tensor, rope.factors.tensor}, out);
  });
  const Tensor sin = s.once(once.rope_sin, {s.tokens(), 8}, [&](const Tensor& out) {
    s.map(rope_sin, {s.positions().as({s.tokens(), 1}), rope.freqs.tensor, rope.factors.tensor}, out);
  });

  // q_proj(x), k_proj(x), v_proj(x)
  s.linear(x, product.qkv_proj, {b.q, b.k, b.v});
  s.trace(q_proj, "", b.q);
  s.trace(k_proj, "", b.k);
  s.trace(v_proj, "", b.v);
  s.rope(b.q, cos, sin, modelc::Pairs::halves, b.q);       // rope(q_proj, at)
  s.trace(*this, "q", b.q);
  s.rope(b.k, cos, sin, modelc::Pairs::halves, b.k);       // rope(k_proj, at)
  s.trace(*this, "k", b.k);
  s.trace(*this, "v", b.v);
  s.append(cache, b.k, b.v, at);
  s.attend(b.q, cache, at, {.mask = modelc::Mask::causal, .scale = 0.25F}, b.y);
  s.trace(*this, "y", b.y);
  s.linear(b.y.as({s.tokens(), 64}), product.o_proj, {result});
  s.trace(o_proj, "", result);
}

// ---- GatedMLP ------------------------------------------------------------------------------------------------------

void GatedMLP::members(modelc::MemberVisitor& v) {
  v.child("gate_proj", gate_proj);
  v.child("up_proj", up_proj);
  v.child("down_proj", down_proj);
}

void GatedMLP::bind(modelc::Binder& b) {
  product.gate_up_proj = b.pack({&gate_proj.weight, &up_proj.weight}, {});
  product.down_proj = b.pack({&down_proj.weight}, {});
}

// nn/mlp.model:20  forward(x: [..., size]) -> [..., size]
//                  x [tokens, 32] -> [tokens, 32]
void GatedMLP::forward(Step& s, const Tensor& x, const Tensor& result) const {
  const Step::On on(s, *this);
  const GatedMLPBuffers b(s);

  // silu(gate_proj(x)) * up_proj(x)
  s.linear_map(x, product.gate_up_proj, silu_mul, b.gated, {this, {"gate_proj", "up_proj"}});
  s.linear(b.gated, product.down_proj, {result});
  s.trace(down_proj, "", result);
}

// ---- LlamaLayer ----------------------------------------------------------------------------------------------------

void LlamaLayer::members(modelc::MemberVisitor& v) {
  v.child("input_layernorm", input_layernorm);
  v.child("self_attn", self_attn);
  v.child("post_attention_layernorm", post_attention_layernorm);
  v.child("mlp", mlp);
}

// llama.model:70  forward(x: [tokens, c.hidden_size], at: Batch) -> [tokens, c.hidden_size]
//                 x [tokens, 32] -> [tokens, 32]
void LlamaLayer::forward(Step& s, const Tensor& x, const Batch& at, const Tensor& result) const {
  const Step::On on(s, *this);
  const LlamaLayerBuffers b(s);

  s.rms_norm(x, input_layernorm.weight.tensor, {.eps = 1e-05F}, b.input_layernorm);
  s.trace(input_layernorm, "", b.input_layernorm);
  self_attn.forward(s, b.input_layernorm, at, b.self_attn);
  s.trace(self_attn, "", b.self_attn);
  // h = x + self_attn; post_attention_layernorm(h)
  s.add_rms_norm(x, b.self_attn, post_attention_layernorm.weight.tensor, {.eps = 1e-05F}, b.h, b.post_attention_layernorm);
  s.trace(*this, "h", b.h);
  s.trace(post_attention_layernorm, "", b.post_attention_layernorm);
  mlp.forward(s, b.post_attention_layernorm, b.mlp);
  s.trace(mlp, "", b.mlp);
  s.map(add, {b.h, b.mlp}, result);                        // h + mlp
}

// ---- LlamaBackbone -------------------------------------------------------------------------------------------------

void LlamaBackbone::members(modelc::MemberVisitor& v) {
  v.child("embed_tokens", embed_tokens);
  for (std::size_t i = 0; i < layers.size(); ++i) v.element("layers", static_cast<std::int64_t>(i), layers[i]);
  v.child("norm", norm);
}

// llama.model:83  forward(input_ids: index(c.vocab_size)[tokens], at: Batch) -> [tokens, c.hidden_size]
//                 input_ids [tokens] -> [tokens, 32]
void LlamaBackbone::forward(Step& s, const Tensor& input_ids, const Batch& at, const Tensor& result) const {
  const Step::On on(s, *this);
  const LlamaBackboneBuffers b(s);

  s.take(embed_tokens.weight, input_ids, 1.0F, b.h);       // embed_tokens(input_ids)
  s.trace(embed_tokens, "", b.h);
  for (const LlamaLayer& layer : layers) {
    layer.forward(s, b.h, at, b.h);                        // h = layer(h, at), in place
    s.trace(layer, "", b.h);
  }
  s.trace(*this, "h", b.h);
  s.rms_norm(b.h, norm.weight.tensor, {.eps = 1e-05F}, result);
  s.trace(norm, "", result);
}

// ---- Llama ---------------------------------------------------------------------------------------------------------

void Llama::members(modelc::MemberVisitor& v) {
  v.child("model", model);
  v.child("lm_head", lm_head);
}

void Llama::bind(modelc::Binder& b) { product.lm_head = b.pack({&lm_head.weight}, {}); }

// llama.model:95  forward(input_ids: index(c.vocab_size)[tokens], at: Batch) -> logits: f32[outputs, c.vocab_size]
//                 input_ids [tokens] -> logits [outputs, 64]
void Llama::forward(Step& s, const Tensor& input_ids, const Batch& at, const Tensor& logits) const {
  const Step::On on(s, *this);
  const LlamaBuffers b(s);

  model.forward(s, input_ids, at, b.model);
  s.trace(model, "", b.model);
  s.take_rows(b.model, s.output_rows(), b.take);           // take(model, at.outputs)
  s.linear(b.take, product.lm_head, {logits});
  s.trace(lm_head, "", logits);
  s.trace(*this, "logits", logits);
}

// ---- the seam to the runtime ---------------------------------------------------------------------------------------

modelc::Result<std::unique_ptr<Llama>> Llama::load(const std::string& path, const modelc::LoadOptions& options) {
  auto checkpoint = modelc::open_checkpoint(path);
  if (!checkpoint) return std::move(checkpoint.error());
  return load(*checkpoint, options);
}

modelc::Result<std::unique_ptr<Llama>> Llama::load(const modelc::CheckpointIndex& checkpoint, const modelc::LoadOptions& options) {
  auto llama = std::make_unique<Llama>();
  if (auto status = llama->load_weights(checkpoint, rule_table, options); !status) return std::move(status.error());
  return llama;
}

modelc::Result<std::span<const float>> Llama::forward(modelc::State& state, std::span<const std::int32_t> input_ids, const Batch& at) {
  return logits(state, at, input_ids);
}

std::span<const modelc::EntryDesc> Llama::entries() const { return entry_table; }

// Peak, in bytes: Llama 128 t + 128 o, LlamaBackbone 128 t, LlamaLayer 384 t, LlamaAttention 768 t.
std::int64_t Llama::arena_bytes(const modelc::StepSizes& s) const { return 1408 * s.tokens() + 128 * s.outputs(); }

void Llama::run(int entry, Step& s, std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
  switch (entry) {
    case 0: return forward(s, inputs[0], s.at(), outputs[0]);
    default: break;
  }
}

const modelc::ModelFactory llama_factory = modelc::factory_of<Llama>("Llama", "llama.model", "0.1.0");

}  // namespace handwritten
