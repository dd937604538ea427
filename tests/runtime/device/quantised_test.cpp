// A model whose checkpoint holds quantised rows: bound where they lie, mixed encodings inside one packed product, a table
// of blocks; its logits are those of the same numbers in f32, to the bit.
#include <fstream>

#include "tests/runtime/cpu/kernel_support.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

// Both checkpoints: rows as stored, and what they decode to.
struct Written {
  CheckpointIndex stored;
  std::vector<NamedValues> decoded;
};

Written write_stored(const TemporaryFolder& folder, const std::map<std::string, Encoding>& encodings) {
  Written w;
  Random random(3);
  std::vector<TensorInfo> tensors;
  std::string bytes = "x";                                 // so that nothing is aligned
  for (NamedValues v : random_weights()) {
    TensorInfo t;
    t.name = v.name;
    t.shape = v.shape;
    for (const auto& [part, encoding] : encodings)
      if (contains(v.name, part)) t.encoding = encoding;
    const StoredRows rows = block_elements(t.encoding) > 1 ? random_blocks(t.encoding, static_cast<std::int64_t>(v.values.size()), random)
                                                           : store_as(Encoding::f32, v.values);
    v.values = rows.values;
    t.offset = bytes.size();
    t.size = rows.bytes.size();
    bytes.append(reinterpret_cast<const char*>(rows.bytes.data()), rows.bytes.size());
    tensors.push_back(t);
    w.decoded.push_back(std::move(v));
  }
  std::ofstream(folder / "stored.bin", std::ios::binary) << bytes;
  CheckpointFile file;
  file.path = folder / "stored.bin";
  file.label = "stored.bin";
  file.size = bytes.size();
  const Status s = w.stored.add(file, tensors);
  if (!s) FAIL(s.error().text());
  return w;
}

std::vector<float> logits_of(handwritten::Llama& llama, const std::vector<std::int64_t>& pieces) {
  return logits_in_pieces(llama, random_tokens(11), pieces);
}

}  // namespace

TEST_CASE("quantised rows stay as they are, and compute as the numbers that they stand for") {
  const TemporaryFolder folder, plain;
  const Written w = write_stored(folder, {{"q_proj", Encoding::q4_1},
                                          {"k_proj", Encoding::q8_0},
                                          {"v_proj", Encoding::q5_0},
                                          {"o_proj", Encoding::q4_0},
                                          {"gate_proj", Encoding::q5_1},
                                          {"up_proj", Encoding::q8_0},
                                          {"embed_tokens", Encoding::q4_0},
                                          {"lm_head", Encoding::q8_0}});
  write_checkpoint(plain, w.decoded);
  for (const cpu::Kernels* k : cpu::available_kernels())
    for (const bool no_mmap : {false, true}) {
      CAPTURE(k->isa);
      LoadOptions options{.no_mmap = no_mmap, .cpu = {2, k->isa}};
      auto stored = good(handwritten::Llama::load(w.stored, options));
      const auto& attention = stored->model.layers[1].self_attn;
      REQUIRE(attention.product.qkv_proj.blocks.size() == 3);
      CHECK(attention.product.qkv_proj.blocks[0].encoding == Encoding::q4_1);
      CHECK(attention.product.qkv_proj.blocks[1].encoding == Encoding::q8_0);
      CHECK(attention.product.qkv_proj.blocks[2].encoding == Encoding::q5_0);
      CHECK(stored->load_report().notes.empty());
      const auto expected = logits_of(*load_llama(plain.path(), options), {11});
      CHECK(logits_of(*stored, {11}) == expected);
      CHECK(logits_of(*stored, {7, 1, 1, 2}) == expected);
    }
}

TEST_CASE("what no kernel reads is decoded when it is loaded, and said") {
  const TemporaryFolder folder, plain;
  const Written w = write_stored(folder, {{"q_proj", Encoding::iq4_nl}, {"embed_tokens", Encoding::iq4_nl}});
  write_checkpoint(plain, w.decoded);
  auto stored = good(handwritten::Llama::load(w.stored, {.cpu = {1, "portable"}}));
  CHECK(stored->load_report().notes ==
        std::vector<std::string>{"3 weights stored as iq4_nl, which no kernel reads yet: decoded to f32 in memory"});
  CHECK(logits_of(*stored, {11}) == logits_of(*load_llama(plain.path(), {.cpu = {1, "portable"}}), {11}));
}
