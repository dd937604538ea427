// What goes over a state token by token.
#include "runtime/device/step.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

[[noreturn]] void not_there(const char* operation) {
  throw StepFailure{{"vulkan-operation", std::string(operation) + " is not carried out by the Vulkan device yet", {}, "run it on the CPU"}};
}

}  // namespace

void VulkanDevice::causal_conv1d(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Batch&, const Tensor&) {
  not_there("causal_conv1d");
}
void VulkanDevice::ssd_scan(const ScanArgs&, const Tensor&, const Batch&, const Tensor&) { not_there("ssd_scan"); }
void VulkanDevice::gated_delta(const DeltaArgs&, const Tensor&, const Batch&, const Tensor&) { not_there("gated_delta"); }

}  // namespace modelc::vulkan
