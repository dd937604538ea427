#include "runtime/device/call_checks.h"

#include <array>
#include <cassert>

#include "runtime/base/strings.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {

Result<std::vector<PortAxis>> parse_axes(const char* shape) {
  const std::string_view text = trim(shape);
  std::vector<PortAxis> axes;
  assert(text.size() >= 2 && text.front() == '[' && text.back() == ']');
  const std::string_view inner = trim(text.substr(1, text.size() - 2));
  if (inner.empty()) return axes;
  for (std::string_view part : split(inner, ',')) {
    const std::string_view axis = trim(part);
    if (axis == "tokens") axes.push_back({PortAxis::Kind::tokens, 0});
    else if (axis == "outputs") axes.push_back({PortAxis::Kind::outputs, 0});
    else if (axis == "batch") axes.push_back({PortAxis::Kind::batch, 0});
    else if (auto n = parse_int(axis)) axes.push_back({PortAxis::Kind::number, *n});
    else
      return Error{
          "axis", "the axis " + quote(axis) + " is not carried out: tokens, outputs, batch and numbers are", {}, {}};
  }
  if (axes.size() > Shape::max_rank)
    return Error{"axis", "a shape of more than " + std::to_string(Shape::max_rank) + " axes", {}, {}};
  return axes;
}

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

  Error wrong(const std::string& what) const {
    return call_error(where, "batch", "the batch " + what, "make it with Batch::make");
  }

  Status fields() const {
    const auto tokens = static_cast<std::size_t>(at.tokens()), batch = static_cast<std::size_t>(at.batch());
    if (tokens == 0 || batch == 0) return wrong("is empty");
    if (at.lengths.size() != tokens || at.sequence.size() != tokens || at.last.size() != batch ||
        at.starts.size() != batch + 1)
      return wrong("has fields of unequal length");
    if (at.starts[0] != 0 || static_cast<std::size_t>(at.starts[batch]) != tokens)
      return wrong("does not cover its tokens");
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
        return wrong("names sequence " + std::to_string(slot) + " of a state with " +
                     std::to_string(state->sequences()));
      for (std::size_t other = 0; other < s; ++other)
        if (at.slots[other] == slot) return wrong("names sequence " + std::to_string(slot) + " twice");
      held = state->length(slot);
    }
    const std::int64_t position = at.positions[static_cast<std::size_t>(begin)], length = held + (end - begin);
    if (position != held)
      return call_error(where, "batch", "the batch goes on at position " + std::to_string(position) + " of sequence " +
                        std::to_string(slot) + ", which holds " + std::to_string(held),
                        "make a batch for each call, after the one before it");
    const std::int64_t most = state != nullptr ? state->capacity() : context;
    if (most > 0 && length > most)
      return call_error(where, "context", "sequence " + std::to_string(slot) + " would hold " + grouped(length) +
                        " positions, of " + grouped(most));
    for (std::int32_t r = begin; r < end; ++r) {
      const auto row = static_cast<std::size_t>(r);
      if (at.positions[row] != held + (r - begin) || at.lengths[row] != length ||
          static_cast<std::size_t>(at.sequence[row]) != s)
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

PortChecker::PortChecker(std::string where, const Batch* at) : where_(std::move(where)) {
  if (at == nullptr) return;
  sizes_[static_cast<std::size_t>(PortAxis::Kind::tokens)] = {true, at->tokens()};
  sizes_[static_cast<std::size_t>(PortAxis::Kind::outputs)] = {true, static_cast<std::int64_t>(at->outputs.size())};
  sizes_[static_cast<std::size_t>(PortAxis::Kind::batch)] = {true, at->batch()};
}

Status PortChecker::check(const Port& port, const HostView& given) {
  const std::string name = port.desc->name;
  if (!given.given) {
    if (port.desc->default_value) return {};
    return call_error(where_, "argument-name", "the input " + name + " is missing");
  }
  if (given.dtype != port.desc->dtype)
    return call_error(where_, "argument-dtype", name + " is " + std::string(modelc::name(given.dtype)) + ", expected " +
                      std::string(modelc::name(port.desc->dtype)));
  bool same = given.shape.rank() == static_cast<int>(port.axes.size());
  for (std::size_t i = 0; same && i < port.axes.size(); ++i)
    same = fits(port.axes[i], given.shape[static_cast<int>(i)]);
  if (!same) {
    std::string message = name + " has shape " + given.shape.text() + ", expected " + port.desc->shape;
    if (const std::string numbers = expected(port); numbers != port.desc->shape) message += " = " + numbers;
    return call_error(where_, "argument-shape", message);
  }
  const std::int64_t size = given.shape.count() * bytes(given.dtype);
  if (static_cast<std::int64_t>(given.data.size()) != size)
    return call_error(where_, "argument-shape",
                      name + " comes with " + grouped(static_cast<std::uint64_t>(given.data.size())) +
                          " bytes; its shape " + given.shape.text() + " takes " + grouped(size));
  return check_range(port, given);
}

Shape PortChecker::shape_of(const Port& port) const {
  std::array<std::int64_t, Shape::max_rank> axes{};
  for (std::size_t i = 0; i < port.axes.size(); ++i) axes[i] = size_of(port.axes[i]);
  return Shape(std::span<const std::int64_t>(axes.data(), port.axes.size()));
}

StepSizes PortChecker::sizes() const {
  return {size(PortAxis::Kind::tokens).n, size(PortAxis::Kind::outputs).n, size(PortAxis::Kind::batch).n};
}

bool PortChecker::fits(const PortAxis& a, std::int64_t n) {
  Size& s = sizes_[static_cast<std::size_t>(a.kind)];
  if (a.kind != PortAxis::Kind::number && !s.bound) s = {true, n};
  return size_of(a) == n;
}

std::string PortChecker::expected(const Port& port) const {
  std::string s = "[";
  for (std::size_t i = 0; i < port.axes.size(); ++i) {
    const PortAxis& a = port.axes[i];
    const bool open = a.kind != PortAxis::Kind::number && !size(a.kind).bound;
    s += (i > 0 ? ", " : "") + (open ? std::string("any") : std::to_string(size_of(a)));
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
      return call_error(where_, "argument-range", std::string(port.desc->name) + " holds " + std::to_string(values[i]) +
                        " at " + std::to_string(i) + ", outside of 0.." + std::to_string(bound - 1));
  return {};
}

}  // namespace modelc
