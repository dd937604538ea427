#include "codegen/driver/fit.h"

#include <algorithm>

namespace modelc::driver {
namespace {

std::int64_t sum(const std::vector<Held>& all) {
  std::int64_t bytes = 0;
  for (const Held& h : all) bytes += h.bytes;
  return bytes;
}

}  // namespace

std::int64_t bytes_of_first(const HeldModel& model, std::int64_t elements) {
  std::int64_t bytes = model.activations;
  for (const auto* all : {&model.weights, &model.caches})
    for (const Held& h : *all)
      if (!h.elements.empty() && h.elements.front() < elements) bytes += h.bytes;
  return bytes;
}

std::int64_t bytes_without_first(const HeldModel& model, std::int64_t elements) {
  std::int64_t bytes = model.activations;
  for (const auto* all : {&model.weights, &model.caches})
    for (const Held& h : *all)
      if (h.rest || (!h.elements.empty() && h.elements.back() >= elements)) bytes += h.bytes;
  return bytes;
}

std::uint64_t kept_free(std::uint64_t memory) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  return std::clamp(memory / 16, 64 * mib, 2048 * mib);
}

std::int64_t room_of(std::uint64_t memory, std::uint64_t free) {
  const std::uint64_t kept = kept_free(memory);
  return free > kept ? static_cast<std::int64_t>(std::min<std::uint64_t>(free - kept, INT64_MAX)) : 0;
}

Fit what_fits(const HeldModel& model, const ModelList& list, const std::string& device, std::int64_t room) {
  Fit fit;
  fit.weights = sum(model.weights);
  fit.caches = sum(model.caches);
  fit.activations = model.activations;
  if (fit.total() <= room) {
    fit.kind = Fit::Kind::whole;
    fit.taken = fit.total();
    fit.place = device;
    return fit;
  }
  if (device == "cpu" || list.name.empty()) return fit;
  // Each element that is added takes something: the most that fit are the last that do.
  while (fit.elements < list.elements && bytes_of_first(model, fit.elements + 1) <= room) ++fit.elements;
  if (fit.elements == 0) return fit;
  fit.kind = Fit::Kind::part;
  fit.taken = bytes_of_first(model, fit.elements);
  fit.left = bytes_without_first(model, fit.elements) - model.activations;
  fit.place = list.name + "[0.." + std::to_string(fit.elements) + "]=" + device + ",cpu";
  return fit;
}

}  // namespace modelc::driver
