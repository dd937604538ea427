// Any bytes as a .safetensors file: its header, and the tensors of one that is accepted.
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/reader.h"
#include "tests/fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelc;
  static const fuzz::MemoryFile file;
  file.set(data, size);
  for (const bool lenient : {false, true}) {
    auto header = read_safetensors_header(file.path(), {.label = "x.safetensors", .allow_trailing = lenient});
    if (!header) {
      fuzz::check_error(header.error());
      if (header.error().kind != "trailing-bytes") return 0;
      fuzz::require(!lenient, "trailing bytes are refused where they are allowed");
      continue;
    }
    CheckpointIndex index;
    index.notes = header->notes;
    const Status added = index.add(std::move(header->file), std::move(header->tensors));
    fuzz::require(added.ok(), "tensors of one file that cannot be added");
    fuzz::read_tensors(std::move(index));
    return 0;
  }
  return 0;
}
