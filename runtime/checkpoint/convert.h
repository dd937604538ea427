// A checkpoint's tensors as another format, or another encoding, has them: from the file to the model by one format's
// rules, from the model to the file by the other's. One group of tensors is in memory at a time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/checkpoint_rules.h"
#include "runtime/abi/quantize_rule.h"
#include "runtime/base/thread_team.h"
#include "runtime/checkpoint/file_layout.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc {

struct ConvertOptions {
  CheckpointFormat to = CheckpointFormat::gguf;
  // Of matrices (of every tensor, in safetensors); none: as stored, and f32 where the format does not hold that.
  std::optional<Encoding> encoding = {};
  // The model's `quantize` block. With `follow` all its lines decide; without, only those of `never below` bound `encoding`.
  std::vector<QuantizeRule> rules = {};
  bool follow = false;
  // Tensors of the source that a former conversion widened to f32: narrowed again where every value fits.
  std::map<std::string, Encoding> widened = {};
  // Tensors that are made of no weight: values of the model's consts that the rules have the file hold (Ignore::made_of).
  struct Made {
    std::string name;
    TensorShape shape;
    std::vector<float> values;
  };
  std::vector<Made> made = {};
  FileAccess access = FileAccess::map;
  int threads = 0;                                         // 0: one a core
};

// The rules by which an encoding is chosen:
//   · what is no rows of a product or a table (MappingWeight::plain, and rank 1 and 0) is never packed: in GGUF it is f32, in
//     safetensors as stored, or the plain `encoding`; where the weight declares its type, that;
//   · what is no real number stays as it is;
//   · blocks lie in rows. Where a row is not whole blocks of 256, the encoding of 32 with no fewer bits is taken (q2_k and
//     q3_k: q4_0, q4_k: q5_0, q5_k: q5_1, q6_k: q8_0, iq4_xs: iq4_nl, tq: q4_0); where it is not whole blocks of 32, f16;
//   · in safetensors what is packed becomes f32, which holds every value exactly.
struct ConvertedTensor {
  std::string name;
  Encoding encoding = Encoding::f32;
  TensorShape shape;
};

class Conversion {
 public:
  // `mapping` is of these weights on the source, without problems; `target` are the rules of the format to write. Kinds
  // of errors: "layout" where the rules do not fit the weights, or ignore the tensor that one would become, "encoding" for what
  // the format does not hold, "alias-conflict", those of reading.
  static Result<Conversion> plan(std::shared_ptr<const CheckpointIndex> source, std::vector<MappingWeight> weights, Mapping mapping,
                                 const MappingRules& target, ConvertOptions options);

  // In the order in which they are to be written.
  const std::vector<ConvertedTensor>& tensors() const { return tensors_; }
  // Those that were narrower and became f32 because the format has its vectors so, with their former encoding.
  const std::map<std::string, Encoding>& widened() const { return widened_; }
  // What is not as it was, a line each: "bf16 -> q8_0: blk.{0..1}.ffn_up.weight, 2 tensors".
  const std::vector<std::string>& notes() const { return notes_; }
  // The bytes of tensor i; they stand until the next call. Cheapest in order. "not-finite" where a packed encoding would
  // have to hold an infinity or a NaN.
  Result<std::span<const std::byte>> bytes(std::size_t i);

 private:
  Conversion() = default;
  Result<std::vector<HostArray>> group(std::size_t g);
  Result<HostArray> encoded(HostArray x, const ConvertedTensor& t);
  Status restore();

  struct Place {
    std::size_t group = 0, at = 0;
  };         // of a made tensor: no group, the index in options_.made
  static constexpr std::size_t no_group = static_cast<std::size_t>(-1);
  HostArray made(std::size_t at) const;
  std::shared_ptr<const CheckpointIndex> source_;
  std::vector<MappingWeight> weights_;
  Mapping mapping_;
  ConvertOptions options_;
  std::vector<FileGroup> groups_;
  std::vector<ConvertedTensor> tensors_;
  std::vector<Place> places_;                              // of the tensors
  std::vector<std::size_t> last_;                          // of each group the last tensor that is written
  std::map<std::string, Encoding> widened_;
  std::vector<std::string> notes_;
  std::unique_ptr<CheckpointData> data_;
  std::unique_ptr<ThreadTeam> team_;
  std::optional<std::size_t> held_;                        // the group in memory
  std::vector<HostArray> arrays_;
  HostArray out_;
};

}  // namespace modelc
