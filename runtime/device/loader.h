// The weights of one load: made of a checkpoint by all threads and placed on the device, or mapped from a pack; and the
// pack that is written of them. Private to this folder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/thread_team.h"
#include "runtime/checkpoint/adapter.h"
#include "runtime/checkpoint/pack.h"
#include "runtime/checkpoint/weight_data.h"
#include "runtime/device/model_impl.h"

namespace modelc {

class Loader {
 public:
  // `weights`: of the tree, in the mapping's order. All references outlive the loader.
  Loader(Residence& here, std::shared_ptr<const CheckpointIndex> index, const std::vector<NamedParameter>& weights, const Mapping& mapping,
         const AdapterMerge& merge, const LoadOptions& options, LoadReport& report);

  // All weights, or those that `which` says.
  Status from_checkpoint(const std::vector<bool>* which = nullptr);
  // "pack-format" where the pack's blocks are not those of these weights on this device. Nothing is placed before.
  Status fits(const Pack& pack) const;
  Status from_pack(const Pack& pack);                      // of one that fits
  // After from_checkpoint().
  Status write_pack(const std::string& path, const PackKey& key);

 private:
  // What had to be made of a weight; neither: it is used where it lies in the file.
  struct Made {
    std::optional<HostArray> rows;                         // in an encoding that kernels read
    std::optional<std::vector<float>> values;
    std::string note;                                      // of an alias that was compared
    std::optional<Encoding> decoded, widened;              // from an encoding that no kernel reads; by an adapter
  };
  bool stays(std::size_t i) const;
  bool reads(const Weight& w, Encoding encoding) const;    // kernels of the weight's device
  std::int64_t bytes_to_make(std::size_t i) const;         // 0: nothing
  Result<Made> make(std::size_t i);                        // from several threads
  Status make_of(const WeightSource& source, const Weight& w, Made& made);
  Status place(std::size_t i, Made made);
  void describe_weight(std::size_t i);
  void count(const WeightSource& source);
  void say_progress(std::size_t done);
  void note_decoded();

  // Rows [first, first + rows) of a tensor in a buffer of its own: all, unless the device has no buffer so large.
  struct Piece {
    std::int64_t first, rows;
    const Buffer* buffer;
  };
  std::int64_t rows_of_buffer(const Weight& w, std::int64_t row_bytes) const;
  Result<std::span<const Piece>> placed(const TensorInfo& info, const Weight& w);
  Result<const Buffer*> placed(const PackBlock& block, const Pack& pack);
  const Buffer* keep(const Buffer* buffer, const std::shared_ptr<const MappedFile>& file);
  Status set_blocks(Weight& w, std::vector<RowBlock> blocks);
  Status set_rows(Weight& w, Encoding encoding, std::span<const std::byte> bytes);
  Status set_values(Weight& w, std::span<const float> values);

  Residence& here_;
  std::shared_ptr<const CheckpointIndex> index_;
  const std::vector<NamedParameter>& weights_;
  const Mapping& mapping_;
  const AdapterMerge& merge_;
  const LoadOptions& options_;
  CheckpointData data_;
  LoadReport& report_;
  std::unique_ptr<ThreadTeam> team_;                       // started for the first weights that are worth it
  std::map<std::pair<const TensorInfo*, int>, std::vector<Piece>> placed_;   // by tensor and member of the device
  std::map<const Buffer*, PackBlock> origin_;              // where in the files what was placed begins
  std::map<std::tuple<std::int64_t, std::uint64_t, std::int64_t>, const Buffer*> packed_;  // by file (-1: the pack), range
  std::set<std::size_t> seen_;
  std::vector<std::string> notes_;                         // of what was found in the bytes; a pack keeps them
  std::map<Encoding, std::uint64_t> decoded_;              // weights, by what no kernel reads
  std::map<Encoding, std::uint64_t> widened_;              // weights that an adapter changed, by how they were packed
};

}  // namespace modelc
