// Any bytes as a .gguf file: header and metadata, and the tensors of one that is accepted.
#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/checkpoint/open.h"
#include "tests/fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelc;
  static const fuzz::MemoryFile file;
  file.set(data, size);
  for (const bool lenient : {false, true}) {
    auto header = read_gguf_header(file.path(), {.label = "x.gguf", .allow_trailing = lenient});
    if (!header) {
      fuzz::check_error(header.error());
      if (header.error().kind != "trailing-bytes") return 0;
      fuzz::require(!lenient, "trailing bytes are refused where they are allowed");
      continue;
    }
    // Every value by its key, and a copy of each with the same text.
    const Metadata& m = header->metadata;
    MetadataBuilder again;
    for (std::size_t i = 0; i < m.size(); ++i) {
      const auto found = m.find(m.key(i));
      fuzz::require(found.has_value(), "a key that is not found", std::string(m.key(i)));
      const MetadataValue value = m.value(i);
      fuzz::require(is_utf8(value.text()) && value.text(1 << 20) == found->text(1 << 20), "two texts of a value");
      static_cast<void>(value.as_bool());
      static_cast<void>(value.as_int());
      static_cast<void>(value.as_uint());
      static_cast<void>(value.as_double());
      again.add_value(m.key(i), value);
    }
    const Metadata copy = again.build();
    fuzz::require(copy.bytes().size() == m.bytes().size(), "a copy of the metadata has another size");

    CheckpointIndex index;
    index.format = CheckpointFormat::gguf;
    index.notes = header->notes;
    index.metadata = m;
    const Status added = index.add(std::move(header->file), std::move(header->tensors));
    fuzz::require(added.ok(), "tensors of one file that cannot be added");
    fuzz::read_tensors(std::move(index));
    return 0;
  }
  return 0;
}
