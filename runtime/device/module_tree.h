// The tree of a model's modules, walked once when it is loaded: gives every module its name and every state its number.
#pragma once

#include <string>
#include <vector>

#include "runtime/device/module.h"

namespace modelc {

class ModuleTree {
 public:
  struct NamedState {
    std::string name;
    StateSlot* slot;
    Module* of;
  };

  // The modules stay where they are as long as the tree is used.
  explicit ModuleTree(Module& root);

  const std::vector<Module*>& bottom_up() const { return bottom_up_; }      // children before their parents
  const std::vector<NamedParameter>& weights() const { return weights_; }   // in declared order, depth first
  const std::vector<NamedState>& states() const { return states_; }
  // Whose weight weights()[i] is.
  Module& owner(std::size_t i) const { return *owners_[i]; }

 private:
  class Walker;
  std::vector<Module*> bottom_up_;
  std::vector<NamedParameter> weights_;
  std::vector<Module*> owners_;
  std::vector<NamedState> states_;
};

}  // namespace modelc
