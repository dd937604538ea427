#include "runtime/device/binder.h"

#include <algorithm>
#include <cassert>

namespace modelc {

Tensor own_tensor(Residence& here, DType dtype, Shape shape) {
  Tensor t{nullptr, 0, dtype, shape};
  auto buffer = here.device->allocate(std::max<std::int64_t>(t.size(), 1));
  if (!buffer) throw StepFailure{std::move(buffer.error())};
  here.buffers.push_back(*buffer);
  t.buffer = *buffer;
  return t;
}

void ModelBinder::bind(Module& module) {
  module_ = &module;
  here_.device->enter(module.member());
  module.bind(*this);
}

Matrix ModelBinder::pack(std::initializer_list<const Weight*> weights, std::initializer_list<const Weight*> biases) {
  assert(biases.size() == 0 || biases.size() == weights.size());
  Matrix m;
  m.mode = here_.mode;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = *weights.begin()[i];
    if (const Weight& other = **weights.begin(); other.member != w.member)
      throw StepFailure{{"placement",
                         module_->qualified_name() + " computes one product with weights on several devices",
                         {other.source + ": on " + here_.device->member(other.member).description(),
                          w.source + ": on " + here_.device->member(w.member).description()},
                         "place " + module_->qualified_name() + " as a whole"}};
    assert(w && w.spec.role != WeightRole::vector);
    assert(m.blocks.empty() || m.columns == w.matrix.columns);
    m.columns = w.matrix.columns;
    const Weight* bias = i < biases.size() ? biases.begin()[i] : nullptr;
    assert(bias == nullptr || !*bias || (bias->tensor.dtype == DType::f32 && bias->tensor.count() == w.matrix.rows()));
    for (RowBlock block : w.matrix.blocks) {
      block.result = static_cast<int>(i);
      if (bias != nullptr && *bias) {
        block.bias = bias->tensor;
        block.bias.offset += block.first * bytes(DType::f32);
        block.bias.shape = {block.rows};
      }
      m.blocks.push_back(block);
    }
  }
  if (Status s = here_.device->prepare(m, MatrixUse::product); !s) throw StepFailure{std::move(s.error())};
  return m;
}

Const ModelBinder::constant(const char* key, Shape shape, const std::function<void(Step&, const Tensor& out)>& init) {
  const auto known = constants_.find(key);
  if (known != constants_.end()) {
    assert(known->second.tensor.shape == shape);
    return known->second;
  }
  const Const c{own_tensor(here_, DType::f32, shape)};
  Step step(here_.memory, {}, {}, nullptr, nullptr, nullptr);
  init(step, c.tensor);
  constants_.emplace(key, c);
  return c;
}

StepValue ModelBinder::step_value(const char* key, std::initializer_list<const Tensor*> inputs) {
  std::string full = key;
  for (const Tensor* t : inputs) {
    assert(*t);
    std::string bytes(static_cast<std::size_t>(t->size()), '\0');
    if (Status s = here_.device->read(*t, std::as_writable_bytes(std::span(bytes))); !s) throw StepFailure{std::move(s.error())};
    full += '\n' + std::string(name(t->dtype)) + t->shape.text() + bytes;
  }
  const auto [at, fresh] = step_values_.emplace(std::move(full), StepValue{static_cast<int>(step_values_.size())});
  static_cast<void>(fresh);
  return at->second;
}

}  // namespace modelc
