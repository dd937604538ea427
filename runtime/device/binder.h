// What bind() functions of a model being loaded speak to. Private to this folder.
#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "runtime/device/model_impl.h"

namespace modelc {

class ModelBinder final : public Binder {
 public:
  explicit ModelBinder(Residence& here) : here_(here) {}

  Matrix pack(std::initializer_list<const Weight*> weights, std::initializer_list<const Weight*> biases) override;
  Const constant(const char* key, Shape shape, const std::function<void(Step&, const Tensor& out)>& init) override;
  StepValue step_value(const char* key, std::initializer_list<const Tensor*> inputs) override;
  // Binds a module: what it computes and packs is on its device.
  void bind(Module& module);

 private:
  Residence& here_;
  const Module* module_ = nullptr;                         // that is being bound
  std::map<std::string, Const> constants_;
  std::map<std::string, StepValue> step_values_;           // by key and the inputs' bytes
};

// A buffer of the model's own for this tensor; StepFailure when there is no memory.
Tensor own_tensor(Residence& here, DType dtype, Shape shape);

}  // namespace modelc
