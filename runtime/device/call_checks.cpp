#include "runtime/device/call_checks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/base/strings.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {

Error call_error(const std::string& where, std::string kind, const std::string& message, std::string help) {
  return {std::move(kind), where + ": " + message, {}, std::move(help)};
}

namespace {

// One call's view of check_batch's arguments.
struct BatchCheck {
  const Batch& at;
  const std::string& where;
  const State* state;
  std::int64_t context;

  Error wrong(const std::string& what) const { return call_error(where, "batch", "the batch " + what, "make it with Batch::make"); }

  Status fields() const {
    const auto tokens = static_cast<std::size_t>(at.tokens()), batch = static_cast<std::size_t>(at.batch());
    if (tokens == 0 || batch == 0) return wrong("is empty");
    if (at.lengths.size() != tokens || at.sequence.size() != tokens || at.last.size() != batch || at.starts.size() != batch + 1)
      return wrong("has fields of unequal length");
    if (at.starts[0] != 0 || static_cast<std::size_t>(at.starts[batch]) != tokens) return wrong("does not cover its tokens");
    for (std::int32_t r : at.outputs)
      if (r < 0 || static_cast<std::size_t>(r) >= tokens)
        return wrong("asks for the result of row " + std::to_string(r) + " of " + std::to_string(tokens));
    return {};
  }

  Status segment(std::size_t s) const {
    const std::int32_t begin = at.starts[s], end = at.starts[s + 1], slot = at.slots[s];
    if (begin < 0 || begin >= end || static_cast<std::int64_t>(end) > at.tokens() || at.last[s] != end - 1)
      return wrong("has a segment without rows");
    std::int64_t held = 0;
    if (state != nullptr) {
      if (slot < 0 || slot >= state->sequences())
        return wrong("names sequence " + std::to_string(slot) + " of a state with " + std::to_string(state->sequences()));
      for (std::size_t other = 0; other < s; ++other)
        if (at.slots[other] == slot) return wrong("names sequence " + std::to_string(slot) + " twice");
      held = state->length(slot);
    }
    const std::int64_t position = at.positions[static_cast<std::size_t>(begin)], length = held + (end - begin);
    if (position != held)
      return call_error(where, "batch",
                        "the batch goes on at position " + std::to_string(position) + " of sequence " + std::to_string(slot) +
                            ", which holds " + std::to_string(held),
                        "make a batch for each call, after the one before it");
    const std::int64_t most = state != nullptr ? state->capacity() : context;
    if (most > 0 && length > most)
      return call_error(where, "context",
                        "sequence " + std::to_string(slot) + " would hold " + grouped(length) + " positions, of " + grouped(most));
    for (std::int32_t r = begin; r < end; ++r) {
      const auto row = static_cast<std::size_t>(r);
      if (at.positions[row] != held + (r - begin) || at.lengths[row] != length || static_cast<std::size_t>(at.sequence[row]) != s)
        return wrong("is not in order at row " + std::to_string(r));
    }
    return {};
  }
};

}  // namespace

Status check_batch(const Batch& at, const std::string& where, const State* state, std::int64_t context) {
  const BatchCheck check{at, where, state, context};
  if (Status s = check.fields(); !s) return s;
  for (std::size_t i = 0; i < at.slots.size(); ++i)
    if (Status s = check.segment(i); !s) return s;
  return {};
}

Status check_sequences(const Sequences& at, const std::string& where, const State* state) {
  const auto wrong = [&](const std::string& what) { return call_error(where, "batch", what, "make them with Sequences::make"); };
  if (at.slots.empty()) return wrong("no sequences are named");
  for (std::size_t i = 0; i < at.slots.size(); ++i) {
    if (state != nullptr && (at.slots[i] < 0 || at.slots[i] >= state->sequences()))
      return wrong("sequence " + std::to_string(at.slots[i]) + " is named, of a state with " + std::to_string(state->sequences()));
    for (std::size_t k = 0; k < i; ++k)
      if (at.slots[k] == at.slots[i]) return wrong("sequence " + std::to_string(at.slots[i]) + " is named twice");
  }
  return {};
}

PortChecker::PortChecker(std::string where, std::span<const AxisDesc> axes, StepAt at) : where_(std::move(where)), axes_(axes) {
  const auto fix = [&](int axis, std::int64_t n) {
    sizes_.size[static_cast<std::size_t>(axis)] = n;
    bound_ |= std::uint32_t{1} << axis;
  };
  if (at.batch != nullptr) {
    fix(tokens_axis, at.batch->tokens());
    fix(outputs_axis, static_cast<std::int64_t>(at.batch->outputs.size()));
  }
  if (at.sequences != nullptr) fix(batch_axis, at.sequences->batch());
}

Status PortChecker::set(int axis, std::int64_t n) {
  const AxisDesc& a = axes_[static_cast<std::size_t>(axis)];
  const std::int64_t by = std::max<std::int64_t>(a.by, 1);
  if (n < a.lo || (a.hi > 0 && n > a.hi) || n % by != 0) {
    std::string range = "from " + std::to_string(a.lo) + (a.hi > 0 ? " to " + std::to_string(a.hi) : " on");
    if (by > 1) range += ", a multiple of " + std::to_string(by);
    return call_error(where_, "argument-shape", std::string(a.name) + " is " + std::to_string(n) + ", expected " + range);
  }
  sizes_.size[static_cast<std::size_t>(axis)] = n;
  bound_ |= std::uint32_t{1} << axis;
  return {};
}

Status PortChecker::bind(std::span<const Port> ports, std::span<const HostView> given) {
  for (const bool computed : {false, true})
    for (std::size_t p = 0; p < ports.size(); ++p) {
      const Port& port = ports[p];
      if (!given[p].given || given[p].shape.rank() != static_cast<int>(port.dims.size())) continue;
      for (std::size_t i = 0; i < port.dims.size(); ++i) {
        const PortDim& dim = port.dims[i];
        const std::uint32_t open = dim.axes() & ~bound_;
        if (open == 0 || (open & (open - 1)) != 0 || dim.axis().has_value() == computed) continue;
        const int axis = std::countr_zero(open);
        const std::int64_t n = given[p].shape[static_cast<int>(i)];
        const auto size = computed ? solve(dim, n, axis, axes_[static_cast<std::size_t>(axis)], sizes_) : n;
        if (!size)
          return call_error(where_, "argument-shape",
                            std::string(port.desc->name) + " has shape " + given[p].shape.text() + ", expected " + port.desc->shape +
                                ": no size of " + axes_[static_cast<std::size_t>(axis)].name + " gives " + dim.text() + " = " +
                                std::to_string(n));
        if (Status s = set(axis, *size); !s) return s;
      }
    }
  return {};
}

Status PortChecker::check_bound(const Entry& entry) const {
  for (const auto* ports : {&entry.inputs, &entry.outputs})
    for (const Port& port : *ports)
      for (const PortDim& dim : port.dims) {
        if (!bound(dim))
          return call_error(where_, "axis",
                            "no input says how long " +
                                std::string(axes_[static_cast<std::size_t>(std::countr_zero(dim.axes() & ~bound_))].name) + " is, in " +
                                port.desc->name + ": " + port.desc->shape);
        const auto n = dim.value(sizes_);
        if (!n || *n < 0) return call_error(where_, "argument-shape", std::string(port.desc->name) + " has no size " + dim.text());
      }
  return {};
}

Status PortChecker::check(const Port& port, const HostView& given) const {
  const std::string name = port.desc->name;
  if (!given.given) {
    if (port.desc->default_value) return {};
    return call_error(where_, "argument-name", "the input " + name + " is missing");
  }
  if (given.dtype != port.desc->dtype)
    return call_error(where_, "argument-dtype",
                      name + " is " + std::string(modelc::name(given.dtype)) + ", expected " + std::string(modelc::name(port.desc->dtype)));
  bool same = given.shape.rank() == static_cast<int>(port.dims.size());
  for (std::size_t i = 0; same && i < port.dims.size(); ++i)
    same = bound(port.dims[i]) && port.dims[i].value(sizes_) == given.shape[static_cast<int>(i)];
  if (!same) {
    std::string message = name + " has shape " + given.shape.text() + ", expected " + port.desc->shape;
    if (const std::string numbers = expected(port); numbers != port.desc->shape) message += " = " + numbers;
    return call_error(where_, "argument-shape", message);
  }
  const std::int64_t size = given.shape.count() * bytes(given.dtype);
  if (static_cast<std::int64_t>(given.data.size()) != size)
    return call_error(where_, "argument-shape",
                      name + " comes with " + grouped(static_cast<std::uint64_t>(given.data.size())) + " bytes; its shape " +
                          given.shape.text() + " takes " + grouped(size));
  return check_range(port, given);
}

Shape PortChecker::shape_of(const Port& port) const {
  std::array<std::int64_t, Shape::max_rank> axes{};
  for (std::size_t i = 0; i < port.dims.size(); ++i) axes[i] = port.dims[i].value(sizes_).value_or(0);
  return Shape(std::span<const std::int64_t>(axes.data(), port.dims.size()));
}

std::string PortChecker::expected(const Port& port) const {
  std::string s = "[";
  for (std::size_t i = 0; i < port.dims.size(); ++i) {
    const auto n = bound(port.dims[i]) ? port.dims[i].value(sizes_) : std::nullopt;
    s += (i > 0 ? ", " : "") + (n ? std::to_string(*n) : std::string("any"));
  }
  return s + "]";
}

Status PortChecker::check_range(const Port& port, const HostView& given) const {
  const std::int64_t bound = port.desc->index_bound;
  if (bound <= 0 || given.dtype != DType::i32) return {};
  const auto* values = reinterpret_cast<const std::int32_t*>(given.data.data());
  const std::int64_t n = given.shape.count();
  for (std::int64_t i = 0; i < n; ++i)
    if (values[i] < 0 || values[i] >= bound)
      return call_error(where_, "argument-range",
                        std::string(port.desc->name) + " holds " + std::to_string(values[i]) + " at " + std::to_string(i) +
                            ", outside of 0.." + std::to_string(bound - 1));
  return {};
}

}  // namespace modelc
