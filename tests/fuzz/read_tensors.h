// What is done with an index that a reader accepted: everything that needs no model.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/checkpoint/inspect.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/fuzz/memory_file.h"

namespace modelc::fuzz {

// Shows the index, and reads every byte and value that its tensors are said to have.
inline void read_tensors(CheckpointIndex&& opened) {
  const auto index = std::make_shared<const CheckpointIndex>(std::move(opened));
  require(is_utf8(inspect_text(*index)) && is_utf8(inspect_json(*index)), "an inspection that is not text");
  CheckpointData data(index);
  volatile std::uint8_t sum = 0;
  for (const TensorInfo& t : index->tensors()) {
    require(index->find(t.name) == &t, "a tensor that is not found by its name", t.name);
    require(t.offset <= index->file_of(t).size && t.size <= index->file_of(t).size - t.offset, "a tensor beyond its file", t.name);
    require(stored_bytes(t.encoding, t.shape) == static_cast<std::int64_t>(t.size), "a size that the shape has not", t.name);
    const auto bytes = data.bytes(t);
    require(bytes.ok(), "the bytes of an accepted tensor are refused", bytes ? std::string() : bytes.error().text());
    for (const std::byte b : bytes->bytes()) sum = static_cast<std::uint8_t>(sum + std::to_integer<std::uint8_t>(b));
    if (const auto values = data.read_f32(t)) {
      require(static_cast<std::int64_t>(values->size()) == t.elements(), "values that are not as many as the shape says", t.name);
    } else {
      check_error(values.error());
    }
    if (const auto values = data.read_i64(t); !values) check_error(values.error());
  }
}

}  // namespace modelc::fuzz
