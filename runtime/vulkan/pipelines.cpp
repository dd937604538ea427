#include "runtime/vulkan/pipelines.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/atomic_file.h"

namespace modelc::vulkan {
namespace {

// ---- the file: "modelcVK", the format's version, driver, length, checksum, then the driver's bytes

struct Head {
  char magic[8];
  std::uint32_t format, vendor, device, driver_version;
  std::uint8_t uuid[16];
  std::uint64_t bytes, checksum;
};

std::uint64_t checksum(std::span<const std::byte> bytes) {            // FNV-1a
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const std::byte b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3ULL;
  return h;
}

Head head_for(const DeviceDescription& d, std::span<const std::byte> data) {
  Head h{};
  std::memcpy(h.magic, "modelcVK", 8);
  h.format = 1;
  h.vendor = d.vendor;
  h.device = d.device;
  h.driver_version = d.driver_version;
  std::copy(d.cache_uuid.begin(), d.cache_uuid.end(), h.uuid);
  h.bytes = data.size();
  h.checksum = checksum(data);
  return h;
}

constexpr std::size_t largest_cache = std::size_t{256} << 20;

// Where caches of compiled models lie, too; empty where there is no place.
std::string cache_file(const DeviceDescription& d) {
  std::string folder;
  const auto from = [&](const char* variable, const char* below) {
    const char* v = std::getenv(variable);
    if (folder.empty() && v != nullptr && *v != '\0') folder = std::string(v) + below;
  };
  from("MODELC_CACHE", "");
  from("XDG_CACHE_HOME", "/modelc");
  from("HOME", "/.cache/modelc");
  if (folder.empty()) return {};
  char name[64];
  std::snprintf(name, sizeof name, "/vulkan-%08x-%08x-%08x.pipelines", d.vendor, d.device, d.driver_version);
  return folder + name;
}

}  // namespace

std::vector<std::byte> pack_cache(const DeviceDescription& d, std::span<const std::byte> data) {
  const Head h = head_for(d, data);
  std::vector<std::byte> file(sizeof h + data.size());
  std::memcpy(file.data(), &h, sizeof h);
  if (!data.empty()) std::memcpy(file.data() + sizeof h, data.data(), data.size());
  return file;
}

std::optional<std::vector<std::byte>> unpack_cache(const DeviceDescription& d, std::span<const std::byte> file) {
  if (file.size() < sizeof(Head)) return std::nullopt;
  const auto data = file.subspan(sizeof(Head));
  const Head wanted = head_for(d, data);
  if (std::memcmp(&wanted, file.data(), sizeof wanted) != 0) return std::nullopt;
  return std::vector<std::byte>(data.begin(), data.end());
}

Pipelines::Pipelines(const Context& c) : c_(c) {
  std::vector<std::byte> initial;
  std::error_code none;                                    // a pipe that somebody put there would be waited for
  if (const std::string path = cache_file(c.description); !path.empty() && std::filesystem::is_regular_file(path, none)) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const auto size = file ? static_cast<std::int64_t>(file.tellg()) : -1;
    if (size > 0 && size < static_cast<std::int64_t>(largest_cache)) {
      std::vector<std::byte> all(static_cast<std::size_t>(size));
      file.seekg(0);
      if (file.read(reinterpret_cast<char*>(all.data()), size))
        if (auto data = unpack_cache(c.description, all)) initial = std::move(*data);
    }
  }
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = initial.size();
  info.pInitialData = initial.data();
  if (c.f.CreatePipelineCache(c.device, &info, nullptr, &cache_) != VK_SUCCESS) cache_ = VK_NULL_HANDLE;
  loaded_ = initial.size();
}

Pipelines::~Pipelines() {
  if (cache_ != VK_NULL_HANDLE) {
    std::size_t n = 0;
    const std::string path = cache_file(c_.description);
    // A cache saves time and nothing else: what cannot be written is not missed.
    if (!path.empty() && c_.f.GetPipelineCacheData(c_.device, cache_, &n, nullptr) == VK_SUCCESS && n > loaded_ && n < largest_cache) {
      std::vector<std::byte> data(n);
      if (c_.f.GetPipelineCacheData(c_.device, cache_, &n, data.data()) == VK_SUCCESS) {
        data.resize(n);
        const std::vector<std::byte> file = pack_cache(c_.description, data);
        std::error_code none;                              // what somebody else put there stays, and is not waited for
        const bool ours = !std::filesystem::exists(path, none) || std::filesystem::is_regular_file(path, none);
        if (ours && make_folders(path.substr(0, path.rfind('/'))))
          (void)write_file(path, {reinterpret_cast<const char*>(file.data()), file.size()}, Flush::none).ok();
      }
    }
    c_.f.DestroyPipelineCache(c_.device, cache_, nullptr);
  }
  for (const auto& [key, p] : pipelines_) c_.f.DestroyPipeline(c_.device, p, nullptr);
  for (const auto& [code, m] : modules_) c_.f.DestroyShaderModule(c_.device, m, nullptr);
  for (const auto& [n, l] : layouts_) {
    c_.f.DestroyPipelineLayout(c_.device, l.pipeline, nullptr);
    c_.f.DestroyDescriptorSetLayout(c_.device, l.set, nullptr);
  }
}

Result<Pipelines::Layout> Pipelines::layout(std::size_t bindings) {
  if (const auto known = layouts_.find(bindings); known != layouts_.end()) return known->second;
  std::vector<VkDescriptorSetLayoutBinding> all(bindings);
  for (std::size_t i = 0; i < bindings; ++i)
    all[i] = {static_cast<std::uint32_t>(i), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = static_cast<std::uint32_t>(bindings);
  set.pBindings = all.data();
  Layout l;
  if (const VkResult r = c_.f.CreateDescriptorSetLayout(c_.device, &set, nullptr, &l.set); r != VK_SUCCESS)
    return c_.failed(r, "a layout of bindings");
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, Dispatch::max_words * 4};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &l.set;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  if (const VkResult r = c_.f.CreatePipelineLayout(c_.device, &info, nullptr, &l.pipeline); r != VK_SUCCESS) {
    c_.f.DestroyDescriptorSetLayout(c_.device, l.set, nullptr);
    return c_.failed(r, "a layout of a pipeline");
  }
  layouts_.emplace(bindings, l);
  return l;
}

Result<VkPipeline> Pipelines::pipeline(const Dispatch& d) {
  Key key{d.shader.code, d.group_size, d.subgroup, d.constants};
  if (const auto known = pipelines_.find(key); known != pipelines_.end()) return known->second;
  const std::string name = std::string("the shader ") + d.shader.name;
  auto l = layout(d.bindings.size());
  if (!l) return std::move(l.error());
  auto module = modules_.find(d.shader.code);
  if (module == modules_.end()) {
    std::vector<std::uint32_t> words(d.shader.bytes / 4);              // a literal is aligned to nothing
    std::memcpy(words.data(), d.shader.code, words.size() * 4);
    VkShaderModuleCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = words.size() * 4;
    info.pCode = words.data();
    VkShaderModule m = VK_NULL_HANDLE;
    if (const VkResult r = c_.f.CreateShaderModule(c_.device, &info, nullptr, &m); r != VK_SUCCESS) return c_.failed(r, name);
    module = modules_.emplace(d.shader.code, m).first;
  }
  std::vector<std::uint32_t> values = {d.group_size};
  values.insert(values.end(), d.constants.begin(), d.constants.end());
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < values.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo constants = {static_cast<std::uint32_t>(entries.size()), entries.data(), values.size() * 4, values.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo lanes{};
  lanes.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  lanes.requiredSubgroupSize = d.subgroup;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module->second;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  if (d.subgroup > 0) {
    info.stage.pNext = &lanes;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  info.layout = l->pipeline;
  VkPipeline p = VK_NULL_HANDLE;
  if (const VkResult r = c_.f.CreateComputePipelines(c_.device, cache_, 1, &info, nullptr, &p); r != VK_SUCCESS) return c_.failed(r, name);
  pipelines_.emplace(std::move(key), p);
  return p;
}

}  // namespace modelc::vulkan
