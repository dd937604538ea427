// A checkpoint in several files: the index that says which file holds which tensor, and numbered file names without
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/checkpoint/index.h"

namespace modelc {

// What model.safetensors.index.json says.
struct ShardMap {
  std::string name;                                            // of the index file, as messages call it
  std::string path;
  std::vector<std::string> files;                              // in the order of their names; relative to the folder
  std::vector<std::pair<std::string, std::uint32_t>> tensors;  // name and position in `files`, in the order of the index
  std::optional<std::uint64_t> total_size;
};

// Reads the index and checks that its files lie in the folder: every entry a relative path that does not leave it
// ("path-escape"), every file there ("missing-shard", which lists the absent ones). Other kinds: "index-json".
// Links within the folder may lead anywhere: the hub's cache consists of them.
Result<ShardMap> read_shard_map(const std::string& folder, const std::string& name);

// Compares the index with the files' headers, both ways. A tensor that the index places in a file that does not hold it
// ("index-missing-tensor", "index-wrong-shard") and one that the index does not mention ("index-extra-tensor") are
// errors; a wrong total_size is a note in `opened`, as many published indexes have one.
Status check_shards(const ShardMap& map, CheckpointIndex& opened);

// "model-00002-of-00005.safetensors" is number 2 of 5 of "model"; the same with .gguf.
struct ShardNumber {
  std::string stem;
  std::uint64_t number = 0, of = 0;
};
std::optional<ShardNumber> shard_number(std::string_view file_name);

// Of a folder's .safetensors without an index: the one numbered set, whole ("missing-shard" where parts are absent,
// "ambiguous-checkpoint" where there are several sets); empty where none is numbered.
Result<std::vector<std::string>> numbered_shards(const std::vector<std::string>& names);

}  // namespace modelc
