// Custom operations by the shaders that come with them. Such a shader sees its tensors from their first element on, set 0 holding
// the inputs and then the results; its push constants are sizes, which are one more buffer behind the tensors where they do not fit;
// constant 0 is the size of a workgroup.
#include <algorithm>
#include <string_view>

#include "runtime/base/strings.h"
#include "runtime/vulkan/shaders.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

struct Feature {
  std::string_view name;
  std::uint32_t bit;
};
constexpr Feature features[] = {{"float16", needs_float16},
                                {"float64", needs_float64},
                                {"int8", needs_int8},
                                {"int16", needs_int16},
                                {"int64", needs_int64},
                                {"storage8", needs_storage8},
                                {"storage16", needs_storage16},
                                {"subgroup_arithmetic", needs_lane_sums},
                                {"subgroup_shuffle", needs_lane_shuffles}};

// Why a device cannot run it that way; empty: it can.
std::string obstacle(const CustomDispatch& way, std::size_t bindings, const DevicePlan& plan, const DeviceDescription& d) {
  for (const std::string_view needed : split(way.shader.needs, ',')) {
    const auto known = std::find_if(std::begin(features), std::end(features), [&](const Feature& f) { return f.name == needed; });
    if (!needed.empty() && (known == std::end(features) || (plan.features & known->bit) == 0))
      return "the device has no " + std::string(needed);
  }
  const auto most = static_cast<std::int64_t>(std::min(d.max_group_size, d.max_group_x));
  if (way.local_size > most)
    return "a workgroup has at most " + grouped(most) + " invocations, and " + grouped(way.local_size) + " are wanted";
  const std::int64_t groups[] = {way.x, way.y, way.z};
  for (std::size_t i = 0; i < 3; ++i)
    if (groups[i] > static_cast<std::int64_t>(plan.max_groups[i]))
      return grouped(groups[i]) + " workgroups are wanted, and the device has " + grouped(std::uint64_t{plan.max_groups[i]});
  if (bindings > plan.max_bindings)
    return "it sees " + std::to_string(bindings) + " tensors, and the device lets it see " + std::to_string(plan.max_bindings);
  return {};
}

}  // namespace

bool VulkanDevice::custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t> sizes,
                          std::span<const CustomDispatch> ways, const HostKernel*) {
  std::string why;
  const bool in_buffer = sizes.size() > Dispatch::max_words;
  const std::size_t tensors = inputs.size() + outs.size() + (in_buffer ? 1 : 0);
  const auto large = [&](const Tensor& t) { return static_cast<std::uint64_t>(t.size()) > c_->plan.binding_bytes; };
  if (std::any_of(inputs.begin(), inputs.end(), large) || std::any_of(outs.begin(), outs.end(), large))
    why = "a tensor is larger than what a shader sees, " + grouped(c_->plan.binding_bytes) + " bytes";
  if (std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n > 0xFFFFFFFFLL; })) why = "a size does not fit 32 bits";
  const CustomDispatch* way = nullptr;
  if (why.empty())
    for (const CustomDispatch& w : ways) {
      const std::string reason = obstacle(w, tensors, c_->plan, c_->description);
      if (reason.empty()) way = &w;
      if (way != nullptr) break;
      if (why.empty()) why = reason;
    }
  if (way == nullptr) {
    if (!ways.empty()) by_formula_.emplace(ways.front().shader.op, why);   // one without shaders brings C++ alone, for the CPU
    return false;
  }
  if (way->x == 0 || way->y == 0 || way->z == 0) return true;

  Dispatch d;
  d.shader = {way->shader.op, way->shader.code, way->shader.bytes, 0};
  d.offsets = false;
  d.group_size = static_cast<std::uint32_t>(way->local_size);
  d.shape = {static_cast<std::uint32_t>(way->x), static_cast<std::uint32_t>(way->y), static_cast<std::uint32_t>(way->z)};
  d.groups = static_cast<std::uint64_t>(way->x) * static_cast<std::uint64_t>(way->y) * static_cast<std::uint64_t>(way->z);
  d.work = d.groups * d.group_size;
  std::size_t copies = 0;
  Tensor told;
  if (in_buffer) {
    std::vector<std::uint32_t> words(sizes.begin(), sizes.end());
    told = scratch(copies++, DType::i32, {static_cast<std::int64_t>(words.size())});
    if (!told) return true;                                // out of memory, which is kept
    recorder_->upload(std::as_bytes(std::span(words)), told);
  } else {
    for (const std::int64_t n : sizes) d.push(n);
  }
  // What begins between two places where a binding may begin goes by a copy that does not.
  const auto placed = [&](const Tensor& t) { return recorder_->begins_binding(t) ? t : scratch(copies++, t.dtype, t.shape); };
  for (const Tensor& t : inputs) {
    const Tensor seen = placed(t);
    if (!seen) return true;                                // out of memory, which is kept
    if (seen.buffer != t.buffer) recorder_->copy(t, seen, t.size());
    d.read(seen);
  }
  std::vector<std::pair<Tensor, Tensor>> back;
  for (const Tensor& t : outs) {
    const Tensor seen = placed(t);
    if (!seen) return true;
    if (seen.buffer != t.buffer) back.emplace_back(seen, t);
    d.write(seen);
  }
  if (in_buffer) d.read(told);
  run(d);
  for (const auto& [from, to] : back) recorder_->copy(from, to, to.size());
  ++custom_runs_;
  return true;
}

}  // namespace modelc::vulkan
