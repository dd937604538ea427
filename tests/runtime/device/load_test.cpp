// Loading: what a checkpoint that does not fit is told, and where weights come from.
#include <chrono>
#include <fstream>

#include "runtime/encoding/convert.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

Error refused(const std::function<void(std::vector<NamedValues>&)>& change, const LoadOptions& options = {}) {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights(), change);
  auto llama = handwritten::Llama::load(folder.path(), options);
  REQUIRE_FALSE(llama.ok());
  return llama.error();
}

void rename_weight(std::vector<NamedValues>& w, const std::string& from, const std::string& to) { weight_called(w, from).name = to; }

}  // namespace

TEST_CASE("a report of figures, and the source of each weight") {
  const auto llama = random_llama();
  const LoadReport& r = llama->load_report();
  CHECK(r.weights == 23);                                  // 2 · (7 matrices, 2 norms, 1 factors) + 3
  CHECK(r.parameters == 2 * (64 * 32 * 2 + 32 * 32 * 2 + 3 * 48 * 32 + 2 * 32) + 2 * 64 * 32 + 32);
  CHECK(r.bytes == 4 * r.parameters);
  CHECK(r.seconds >= 0);
  CHECK(llama->lm_head.weight.source == "model.safetensors: lm_head.weight");
  CHECK(llama->model.layers[1].self_attn.rope.factors.source == "default 1");
  CHECK(llama->model.layers[0].self_attn.q_proj.weight.matrix.blocks[0].encoding == Encoding::f32);
}

TEST_CASE("one error lists everything that is wrong: missing, unexpected, mis-shaped") {
  const Error e = refused([](auto& w) {
    rename_weight(w, "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.upproj.weight");
    weight_called(w, "model.norm.weight").shape = {4, 8};
    w.push_back({"extra.bias", {3}, {1, 2, 3}});
  });
  CHECK(e.kind == "checkpoint");
  const std::string text = e.text();
  CAPTURE(text);
  CHECK(contains(text, "4 problems"));
  CHECK(contains(text, "model.layers.1.mlp.up_proj.weight: the checkpoint has no such tensor"));
  CHECK(contains(text, "did you mean model.layers.1.mlp.upproj.weight"));
  CHECK(contains(text, "model.layers.1.mlp.upproj.weight: no weight of the model asks for this tensor"));
  CHECK(contains(text, "extra.bias"));
  CHECK(contains(text,
                 "model.norm.weight: shape [4, 8] in model.safetensors, expected [c.hidden_size] = [32]; "
                 "declared at llama.model:81:5; hidden_size = 32 from config.json:11"));
}

TEST_CASE("a wrong shape says the formula, the numbers and where each came from") {
  const Error e = refused([](auto& w) {
    for (const char* layer : {"0", "1"}) {
      NamedValues& q = weight_called(w, "model.layers." + std::string(layer) + ".self_attn.q_proj.weight");
      q.shape = {32, 64};
    }
  });
  const std::string text = e.text();
  CAPTURE(text);
  CHECK(contains(text, "1 problem\n"));
  CHECK(contains(text,
                 "model.layers.{0,1}.self_attn.q_proj.weight, 2 weights: shape [32, 64] in model.safetensors, expected "
                 "[heads * d, c.hidden_size] = [4 * 16, 32]; declared at llama.model:39:5; "
                 "heads = num_attention_heads = 4 from config.json:17"));
}

TEST_CASE("extra tensors are allowed when strict is off, missing ones never") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights(), [](auto& w) { w.push_back({"extra.bias", {3}, {1, 2, 3}}); });
  CHECK_FALSE(handwritten::Llama::load(folder.path()).ok());
  const auto llama = load_llama(folder.path(), {.strict = false});
  REQUIRE(llama->load_report().notes.size() == 1);
  CHECK(contains(llama->load_report().notes[0], "extra.bias"));
  const Error e = refused([](auto& w) { w.pop_back(); }, {.strict = false});
  CHECK(contains(e.text(), "lm_head.weight: the checkpoint has no such tensor"));
}

TEST_CASE("the head missing while the config says that it is not tied: both facts and the ways out") {
  const std::string text = refused([](auto& w) { w.pop_back(); }).text();
  CAPTURE(text);
  CHECK(contains(text,
                 "`alias lm_head.weight = model.embed_tokens.weight when c.tie_word_embeddings` does not hold: "
                 "tie_word_embeddings = false from config.json:24"));
  CHECK(contains(text, "--set tie_word_embeddings=true"));
}

TEST_CASE("ignored tensors are noted") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights(), [](auto& w) {
    for (const char* layer : {"0", "1"})
      w.push_back({"model.layers." + std::string(layer) + ".self_attn.rotary_emb.inv_freq", {8}, std::vector<float>(8)});
  });
  const auto llama = load_llama(folder.path());
  REQUIRE(llama->load_report().notes.size() == 1);
  CHECK(contains(llama->load_report().notes[0], "model.layers.{0,1}.self_attn.rotary_emb.inv_freq, 2 tensors"));
}

TEST_CASE("a declared dtype is demanded, or cast") {
  const auto with_factors = [](const TemporaryFolder& folder, float value) {
    SafetensorsWriter writer;
    for (const NamedValues& w : random_weights()) REQUIRE(writer.add_f32(w.name, w.shape, w.values).ok());
    const std::vector<std::uint16_t> bits(8, bf16_from_f32(value));
    for (const char* layer : {"0", "1"})
      REQUIRE(writer.add("model.layers." + std::string(layer) + ".self_attn.rope.factors", DType::bf16, {8}, std::as_bytes(std::span(bits)))
                  .ok());
    REQUIRE(writer.write(folder / "model.safetensors").ok());
  };
  const TemporaryFolder one, two;
  with_factors(one, 1.0F);
  with_factors(two, 2.0F);
  auto refused_cast = handwritten::Llama::load(one.path());
  REQUIRE_FALSE(refused_cast.ok());
  CHECK(contains(refused_cast.error().text(), "stored as bf16 in model.safetensors, declared as f32"));
  CHECK(contains(refused_cast.error().text(), "--auto-cast"));
  const auto ids = random_tokens(9);
  const auto plain = logits_in_pieces(*random_llama(), ids, {9});
  CHECK(logits_in_pieces(*load_llama(one.path(), {.auto_cast = true}), ids, {9}) == plain);
  CHECK(largest_difference(logits_in_pieces(*load_llama(two.path(), {.auto_cast = true}), ids, {9}), plain) > 1e-3F);
}

TEST_CASE("values of a step are shared by layers whose inputs are equal, and only by those") {
  const auto with_factors = [](float first, float second) {
    const TemporaryFolder folder;
    write_checkpoint(folder, random_weights(), [&](auto& w) {
      w.push_back({"model.layers.0.self_attn.rope.factors", {8}, std::vector<float>(8, first)});
      w.push_back({"model.layers.1.self_attn.rope.factors", {8}, std::vector<float>(8, second)});
    });
    return load_llama(folder.path());
  };
  const auto shared = with_factors(1, 1), apart = with_factors(1, 2);
  const auto& same = shared->model.layers;
  const auto& other = apart->model.layers;
  CHECK(same[0].self_attn.once.rope_cos.index == same[1].self_attn.once.rope_cos.index);
  CHECK(same[0].self_attn.once.rope_cos.index != same[0].self_attn.once.rope_sin.index);
  CHECK(other[0].self_attn.once.rope_cos.index != other[1].self_attn.once.rope_cos.index);
  CHECK(same[0].self_attn.rope.freqs.tensor.buffer == same[1].self_attn.rope.freqs.tensor.buffer);
  const auto ids = random_tokens(9);
  CHECK(largest_difference(logits_in_pieces(*shared, ids, {9}), logits_in_pieces(*apart, ids, {9})) > 1e-3F);
}

TEST_CASE("encodings that no kernel reads are refused; f64 is narrowed") {
  const auto head_as = [](const TemporaryFolder& folder, DType dtype) {
    SafetensorsWriter writer;
    for (const NamedValues& w : random_weights()) {
      if (w.name != "lm_head.weight") {
        REQUIRE(writer.add_f32(w.name, w.shape, w.values).ok());
        continue;
      }
      std::vector<double> wide(w.values.begin(), w.values.end());
      const auto bytes = std::as_bytes(std::span(wide)).first(w.values.size() * static_cast<std::size_t>(modelc::bytes(dtype)));
      REQUIRE(writer.add(w.name, dtype, w.shape, bytes).ok());
    }
    REQUIRE(writer.write(folder / "model.safetensors").ok());
  };
  const TemporaryFolder wide, whole;
  head_as(wide, DType::f64);
  head_as(whole, DType::i32);
  const auto ids = random_tokens(5);
  CHECK(logits_in_pieces(*load_llama(wide.path()), ids, {5}) == logits_in_pieces(*random_llama(), ids, {5}));
  auto refused_whole = handwritten::Llama::load(whole.path());
  REQUIRE_FALSE(refused_whole.ok());
  CHECK(contains(refused_whole.error().text(), "lm_head.weight: stored as i32 in model.safetensors, which stands for no real numbers"));
}

TEST_CASE("no checkpoint, and options that cannot be had") {
  const TemporaryFolder folder;
  CHECK_FALSE(handwritten::Llama::load(folder / "nothing").ok());
  write_checkpoint(folder, random_weights());
  auto wrong = handwritten::Llama::load(folder.path(), {.cpu = {1, "sse9"}});
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().kind == "isa-unknown");
}

TEST_CASE("models share a device") {
  auto device = open_cpu({2, ""});
  REQUIRE(device.ok());
  const LoadOptions options = {.device = std::shared_ptr<Device>(std::move(*device))};
  auto one = random_llama(options);
  const auto two = random_llama(options);
  const auto ids = random_tokens(6);
  const auto a = logits_in_pieces(*one, ids, {6});
  one.reset();
  CHECK(logits_in_pieces(*two, ids, {6}) == a);
}

TEST_CASE("the factory loads the same model") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  auto index = good(open_checkpoint(folder.path()));
  auto model = handwritten::llama_factory.load(index, {});
  REQUIRE(model.ok());
  CHECK(std::string((*model)->name()) == "Llama");
  CHECK((*model)->vocabulary() == 64);
  CHECK((*model)->context() == 64);
}

namespace {

// A table and a head that an alias makes one: y = head(take(embed, ids)).
struct Pair : Module {
  Weight weight;
  explicit Pair(const WeightSpec& spec) : weight{spec} {}
  const char* type_name() const override { return "Pair"; }
  void members(MemberVisitor& v) override { v.weight("weight", weight); }
};
class Tied final : public Model {
 public:
  Pair embed{{.shape = {6, 4}, .role = WeightRole::table}};
  Pair head{{.shape = {6, 4}, .role = WeightRole::matrix}};

  static Result<std::unique_ptr<Tied>> load(const std::string& path) {
    auto index = open_checkpoint(path);
    if (!index) return index.error();
    auto tied = std::make_unique<Tied>();
    const CheckpointRulesData rules = {.aliases = {{.weight = "head.weight", .target = "embed.weight"}}};
    if (auto s = tied->load_weights(*index, rules, {}); !s) return s.error();
    return tied;
  }
  const char* type_name() const override { return "Tied"; }
  std::span<const EntryDesc> entries() const override { return {}; }
  std::int64_t context() const override { return 8; }
  std::int64_t arena_bytes(const StepSizes&) const override { return 0; }
  void members(MemberVisitor& v) override {
    v.child("embed", embed);
    v.child("head", head);
  }

 private:
  void run(int, Step&, std::span<const Tensor>, std::span<const Tensor>) const override {}
};

// embed as f32; head as `dtype` when it has one, with `change` added to element 4 · row.
Result<std::unique_ptr<Tied>> load_tied(std::optional<DType> dtype, float change = 0, std::size_t row = 0) {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>(i) / 4);
  REQUIRE(writer.add_f32("embed.weight", {6, 4}, values).ok());
  values[4 * row] += change;
  if (dtype == DType::f32) REQUIRE(writer.add_f32("head.weight", {6, 4}, values).ok());
  if (dtype == DType::bf16) {
    std::vector<std::uint16_t> bits;
    for (const float v : values) bits.push_back(bf16_from_f32(v));
    REQUIRE(writer.add("head.weight", DType::bf16, {6, 4}, std::as_bytes(std::span(bits))).ok());
  }
  REQUIRE(writer.write(folder / "model.safetensors").ok());
  return Tied::load(folder.path());
}

}  // namespace

TEST_CASE("a tied head: absent, there and equal, there and different") {
  auto absent = load_tied(std::nullopt);
  REQUIRE(absent.ok());
  CHECK((*absent)->head.weight.source == "alias of embed.weight");
  CHECK((*absent)->load_report().notes == std::vector<std::string>{"head.weight = alias of embed.weight"});
  CHECK((*absent)->load_report().parameters == 24);
  CHECK((*absent)->head.weight.matrix.blocks[0].data.buffer == (*absent)->embed.weight.matrix.blocks[0].data.buffer);

  for (const DType dtype : {DType::f32, DType::bf16}) {    // numbers are compared, not bytes
    auto equal = load_tied(dtype);
    REQUIRE(equal.ok());
    CHECK((*equal)->load_report().notes == std::vector<std::string>{"head.weight is there beside its alias embed.weight, and equal to it"});
    auto different = load_tied(dtype, 0.25F, 3);
    REQUIRE_FALSE(different.ok());
    CHECK(different.error().kind == "alias-conflict");
    CHECK(different.error().message == "head.weight differs from embed.weight, of which head.weight is an alias: first in row 3");
    CHECK(contains(different.error().help, "turn the alias off in the config"));
  }
}

TEST_CASE("weights that are larger than a buffer may be come in several, by rows, to the same bits") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  const auto ids = random_tokens(6);
  const auto run = [&](handwritten::Llama& llama) {
    auto state = good(llama.new_state({.sequences = 1, .capacity = 8}));
    std::vector<float> out;
    for (const std::int32_t id : ids) {
      const Segment one{0, 1};
      const Batch batch = good(Batch::make(*state, {&one, 1}, Outputs::all));
      const auto logits = good(llama.forward(*state, {&id, 1}, batch));
      out.insert(out.end(), logits.begin(), logits.end());
    }
    return out;
  };
  const auto whole = load_llama(folder.path());
  LoadOptions small;
  small.cpu.largest_buffer = 3000;                         // embed_tokens has 8,192 bytes: rows of 128, 23 to a buffer
  const auto llama = load_llama(folder.path(), small);
  const auto& rows = llama->model.embed_tokens.weight.matrix.blocks;
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].rows == 23);
  CHECK(rows[2].first == 46);
  CHECK(rows[2].rows == 18);
  CHECK(run(*llama) == run(*whole));
  // Those that are made (given, here in another type) as well as those that stay in the file.
  small.weights.emplace("model.embed_tokens.weight", good(WeightValue::of(std::vector<float>(64 * 32, 0.25F), TensorShape{64, 32})));
  const auto given = load_llama(folder.path(), small);
  CHECK(given->model.embed_tokens.weight.matrix.blocks.size() == 3);
  LoadOptions plain;
  plain.weights = small.weights;
  CHECK(run(*given) == run(*load_llama(folder.path(), plain)));
  // One row that no buffer holds is said, with its size.
  small.cpu.largest_buffer = 100;
  const auto none = handwritten::Llama::load(folder.path(), small);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == "tensor-size");
  CHECK(contains(none.error().text(), "128 bytes"));
}
