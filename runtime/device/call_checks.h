// What a call of a model checks before it runs: the batch, and every argument against its entry. Private to this
// folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/device/model.h"
#include "runtime/device/port_dims.h"

namespace modelc {

// An entry, its shapes parsed when the model is loaded.
struct Port {
  const PortDesc* desc = nullptr;
  std::vector<PortDim> dims;
};
struct Entry {
  const EntryDesc* desc = nullptr;
  std::vector<Port> inputs, outputs;
};

// "Llama.forward: message"
Error call_error(const std::string& where, std::string kind, const std::string& message, std::string help = {});

// A batch may have been made or changed by hand: it must be as Batch::make would make it now. `context` 0: no bound.
Status check_batch(const Batch& at, const std::string& where, const State* state, std::int64_t context);

Status check_sequences(const Sequences& at, const std::string& where, const State* state);

// Binds the run-time axes and checks the inputs. Sizes come from the batch; or from the first input that has the axis
// alone; or else from one whose size is computed from it.
class PortChecker {
 public:
  PortChecker(std::string where, std::span<const AxisDesc> axes, StepAt at);
  // Fails when a size lies outside of its axis's range.
  Status bind(std::span<const Port> ports, std::span<const HostView> given);
  // dtype, shape, bytes, index range. What was left out must have a default.
  Status check(const Port& port, const HostView& given) const;
  // Every axis that the entry's ports need has a size.
  Status check_bound(const Entry& entry) const;
  Shape shape_of(const Port& port) const;
  const StepSizes& sizes() const { return sizes_; }

 private:
  bool bound(const PortDim& dim) const { return (dim.axes() & ~bound_) == 0; }
  Status set(int axis, std::int64_t n);
  std::string expected(const Port& port) const;
  Status check_range(const Port& port, const HostView& given) const;

  std::string where_;
  std::span<const AxisDesc> axes_;
  StepSizes sizes_;
  std::uint32_t bound_ = 0;                                // bit i: axis i has a size
};

}  // namespace modelc
