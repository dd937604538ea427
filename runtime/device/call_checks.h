// What a call of a model checks before it runs: the batch, and every argument against its entry. Private to this
// folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/device/model.h"

namespace modelc {

// An entry's shapes, parsed when the model is loaded: an axis is a number or a run-time axis.
struct PortAxis {
  enum class Kind : std::uint8_t { number, tokens, outputs, batch } kind = Kind::number;
  std::int64_t number = 0;
};
struct Port {
  const PortDesc* desc = nullptr;
  std::vector<PortAxis> axes;
};
struct Entry {
  const EntryDesc* desc = nullptr;
  std::vector<Port> inputs, outputs;
};
// "[outputs, 64]"; an axis that is neither a number nor tokens, outputs or batch is an error ("axis").
Result<std::vector<PortAxis>> parse_axes(const char* shape);

// "Llama.forward: message"
Error call_error(const std::string& where, std::string kind, const std::string& message, std::string help = {});

// A batch may have been made or changed by hand: it must be as Batch::make would make it now. `context` 0: no bound.
Status check_batch(const Batch& at, const std::string& where, const State* state, std::int64_t context);

// Checks inputs one after another; sizes of run-time axes come from the batch, or else from the first input that has
// one.
class PortChecker {
 public:
  PortChecker(std::string where, const Batch* at);
  // dtype, shape, bytes, index range. What was left out must have a default.
  Status check(const Port& port, const HostView& given);
  // With the axes as they are bound by now.
  Shape shape_of(const Port& port) const;
  StepSizes sizes() const;

 private:
  struct Size { bool bound = false; std::int64_t n = 0; };
  const Size& size(PortAxis::Kind kind) const { return sizes_[static_cast<std::size_t>(kind)]; }
  std::int64_t size_of(const PortAxis& a) const { return a.kind == PortAxis::Kind::number ? a.number : size(a.kind).n; }
  bool fits(const PortAxis& a, std::int64_t n);
  std::string expected(const Port& port) const;
  Status check_range(const Port& port, const HostView& given) const;

  std::string where_;
  Size sizes_[4];                                          // by PortAxis::Kind
};

}  // namespace modelc
