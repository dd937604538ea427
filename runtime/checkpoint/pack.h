// A packed checkpoint: what a load makes of a model's weights (transforms, casts, decoding), made once and kept in one file
// beside the checkpoint, for a load to map. What a device uses as the checkpoint stores it is not copied: the pack says
// where it lies.
//
//   64 bytes     "MODELCPK", version of this form (u32), zeros
//   data         blocks of rows, each at a multiple of 64 bytes
//   directory    JSON: what it was made of (PackKey), and for each weight its blocks: encoding, rows, bytes of a row, where
//   40 bytes     offset and size of the directory (u64), hash of the directory (2 · u64), "PACKDIR1"
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/encoding.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/mapping.h"

namespace modelc {

// What a pack was made of. A pack with another key is of another checkpoint, another model, or another layout.
struct PackKey {
  std::string model;                                       // "Llama"
  std::string layout;                                      // Device::layout()
  std::string plan;                                        // hash of every weight's name, shape and source
  std::string program;                                     // version of the runtime
  struct Source {
    std::string file;                                      // its name
    std::uint64_t size = 0;
    std::int64_t modified = 0;                             // nanoseconds since 1970
    std::string header;                                    // hash of its header
    std::string all = {};                                  // hash of every byte, where that was asked for; else ""
  };
  std::vector<Source> sources;
};

// Reads the headers of the checkpoint's files, and with `full` every byte of them. "pack-memory" for a checkpoint that lies
// in no file; else kinds of ReadFile.
Result<PackKey> pack_key(std::string model, std::string layout, const CheckpointIndex& checkpoint,
                         const std::vector<MappingWeight>& weights, const Mapping& mapping, bool full);

struct PackBlock {
  Encoding encoding = Encoding::f32;
  std::int64_t rows = 0, row_bytes = 0;
  std::optional<std::uint32_t> source = {};                // which of the checkpoint's files it lies in; none: the pack
  std::uint64_t offset = 0;                                // in that file
};
struct PackWeight {
  std::string name;
  std::vector<PackBlock> blocks;
};

// Where the pack of a checkpoint lies: in its folder, or beside its (first) file. "DIR/llama.rows.pack".
std::string pack_path(const CheckpointIndex& checkpoint, const std::string& model, const std::string& layout);

// Writes a pack, weight by weight, in the model's order.
class PackWriter {
 public:
  static Result<PackWriter> create(const std::string& path);
  PackWriter(PackWriter&&) noexcept;
  ~PackWriter();
  void begin(std::string weight);
  // A block of the weight that was begun last: bytes of the pack, or of one of the checkpoint's files. The same `identity`
  // (not null) twice is written once.
  Status add(PackBlock block, std::span<const std::byte> bytes, const void* identity = nullptr);
  void refer(const PackBlock& block);
  // Writes the directory, and puts the file in its place: whole, or not at all. `notes`: what the load had to say.
  Status commit(const PackKey& key, const std::vector<std::string>& notes);

 private:
  struct State;
  explicit PackWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Pack {
 public:
  // The pack at `path`, if it is one of this key. Kinds of errors: "no-such-file"; "pack-format" for what is no pack, is
  // damaged or says what cannot be; "pack-stale" when the checkpoint has changed since, "pack-foreign" when it is of another
  // model, version or layout: each says how. A pack that holds hashes of all bytes is good for files whose times alone
  // differ: then every byte is hashed. A key that holds them asks for it: then so are the pack's own.
  static Result<Pack> open(const std::string& path, const PackKey& key, const CheckpointIndex& checkpoint,
                           FileAccess access = FileAccess::map);
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::vector<PackWeight>& weights() const { return weights_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // A pack that does not fit the weights of its own key: "pack-format".
  Error unfit(const std::string& why) const;

 private:
  Pack() = default;
  std::shared_ptr<const MappedFile> file_;
  std::vector<PackWeight> weights_;
  std::vector<std::string> notes_;
};

}  // namespace modelc
