// The tensors of cases/NAME.safetensors.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc::test {

class EncodingCases {
 public:
  explicit EncodingCases(const std::string& name) : data_(open(name)) {}
  bool has(const std::string& tensor) const { return data_.index().find(tensor) != nullptr; }
  std::vector<std::byte> bytes(const std::string& tensor) {
    const Result<TensorBytes> b = data_.bytes(tensor);
    REQUIRE(b.ok());
    return {b->data, b->data + b->size};
  }
  template <class T> std::vector<T> numbers(const std::string& tensor) {
    const std::vector<std::byte> b = bytes(tensor);
    std::vector<T> out(b.size() / sizeof(T));
    std::memcpy(out.data(), b.data(), b.size());
    return out;
  }

 private:
  static std::shared_ptr<const CheckpointIndex> open(const std::string& name) {
    Result<CheckpointIndex> r = open_checkpoint(std::string(MODELC_SOURCE_DIR) + "/tests/runtime/encoding/cases/" + name + ".safetensors");
    REQUIRE(r.ok());
    return std::make_shared<CheckpointIndex>(*std::move(r));
  }
  CheckpointData data_;
};

}  // namespace modelc::test
