#include "runtime/device/binder.h"

#include <algorithm>
#include <cassert>

namespace modelc {

Tensor own_tensor(ModelImpl& impl, DType dtype, Shape shape) {
  Tensor t{nullptr, 0, dtype, shape};
  auto buffer = impl.device->allocate(std::max<std::int64_t>(t.size(), 1));
  if (!buffer) throw StepFailure{std::move(buffer.error())};
  impl.buffers.push_back(*buffer);
  t.buffer = *buffer;
  return t;
}

Matrix ModelBinder::pack(std::initializer_list<const Weight*> weights, std::initializer_list<const Weight*> biases) {
  assert(biases.size() == 0 || biases.size() == weights.size());
  Matrix m;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = *weights.begin()[i];
    assert(w && w.spec.role != WeightRole::vector && w.spec.shape.rank() == 2);
    assert(m.blocks.empty() || m.columns == w.spec.shape[1]);
    m.columns = w.spec.shape[1];
    m.blocks.push_back(w.block);
    const Weight* bias = i < biases.size() ? biases.begin()[i] : nullptr;
    if (bias != nullptr && *bias) {
      assert(bias->tensor.dtype == DType::f32 && bias->tensor.count() == w.block.rows);
      m.blocks.back().bias = bias->tensor;
    }
  }
  return m;
}

Const ModelBinder::constant(const char* key, Shape shape, const std::function<void(Step&, const Tensor& out)>& init) {
  const auto known = constants_.find(key);
  if (known != constants_.end()) {
    assert(known->second.tensor.shape == shape);
    return known->second;
  }
  const Const c{own_tensor(impl_, DType::f32, shape)};
  Step step(impl_.memory, {}, {}, nullptr, nullptr, nullptr);
  init(step, c.tensor);
  constants_.emplace(key, c);
  return c;
}

StepValue ModelBinder::step_value(const char* key, std::initializer_list<const Tensor*> inputs) {
  std::string full = key;
  for (const Tensor* t : inputs) {
    assert(*t);
    std::string bytes(static_cast<std::size_t>(t->size()), '\0');
    impl_.device->read(*t, std::as_writable_bytes(std::span(bytes)));
    full += '\n' + std::string(name(t->dtype)) + t->shape.text() + bytes;
  }
  const auto [at, fresh] = step_values_.emplace(std::move(full), StepValue{static_cast<int>(step_values_.size())});
  static_cast<void>(fresh);
  return at->second;
}

}  // namespace modelc
