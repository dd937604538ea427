// Elementwise expressions and copies.
#include <algorithm>
#include <bit>
#include <cassert>

#include "runtime/device/step.h"
#include "runtime/vulkan/cut.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

// A loop over axes that several tensors walk with strides of their own; neighbouring axes are joined where all allow it.
struct Axes {
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<std::int64_t>> strides;          // of each tensor, one an axis

  explicit Axes(std::size_t tensors) : strides(tensors) {}
  void add(std::int64_t size, const std::vector<std::int64_t>& step) {
    if (size == 1) return;
    bool joined = !sizes.empty();
    for (std::size_t i = 0; i < strides.size() && joined; ++i) joined = strides[i].back() == step[i] * size;
    if (joined) sizes.back() *= size;
    else sizes.push_back(size);
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (joined) strides[i].back() = step[i];
      else strides[i].push_back(step[i]);
    }
  }
  void finish() {
    if (!sizes.empty()) return;
    sizes.push_back(1);
    for (auto& s : strides) s.push_back(0);
  }
};

// What a block of places touches of a tensor.
void bind(Dispatch& d, const Tensor& t, const Walk& walk, const Places& block, bool written) {
  Tensor part = t;
  part.offset = walk.at;
  std::int64_t n = walk.bytes;
  for (std::size_t k = 0; k < block.count.size(); ++k) {
    part.offset += block.first[k] * walk.steps[k];
    n += (block.count[k] - 1) * walk.steps[k];
  }
  d.bind(part, n, true, written);
}

}  // namespace

void VulkanDevice::map(const MapKernel& f, std::span<const Tensor> inputs, const Tensor& out) {
  assert(inputs.size() <= MapArgs::max_inputs);
  if (out.count() == 0) return;
  if (f.shader.bytes == 0)
    return recorder_->fail(Error{
        "no-shader", std::string("the expression ") + f.name + " was built without a shader", {}, "build the model with --backend vulkan"});
  const int rank = out.shape.rank();
  Axes axes(inputs.size());
  std::vector<std::vector<std::int64_t>> strides(static_cast<std::size_t>(rank), std::vector<std::int64_t>(inputs.size(), 0));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::int64_t stride = 1;
    for (int k = 1; k <= inputs[i].shape.rank(); ++k) {    // axes are matched from the last one on
      const std::int64_t size = inputs[i].shape[-k];
      assert(size == out.shape[-k] || size == 1);
      strides[static_cast<std::size_t>(rank - k)][i] = size == 1 ? 0 : stride;
      stride *= size;
    }
  }
  for (int k = 0; k < rank; ++k) axes.add(out.shape[k], strides[static_cast<std::size_t>(k)]);
  axes.finish();

  // Each tensor's way over the axes: the result, then the inputs. The result lies together in every block.
  std::vector<Walk> walks = {{out.offset, bytes(out.dtype), std::vector<std::int64_t>(axes.sizes.size())}};
  std::int64_t step = bytes(out.dtype);
  for (std::size_t k = axes.sizes.size(); k-- > 0; step *= axes.sizes[k]) walks[0].steps[k] = step;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    walks.push_back({inputs[i].offset, bytes(inputs[i].dtype), axes.strides[i]});
    for (std::int64_t& s : walks.back().steps) s *= bytes(inputs[i].dtype);
  }
  // One element of each is always seen.
  for (const Places& block : cut(axes.sizes, walks, c_->plan, Order::outer_first)) {
    Dispatch d;
    d.shader = {f.name, f.shader.code, f.shader.bytes, 0};
    for (std::size_t i = 0; i < walks.size(); ++i) bind(d, i == 0 ? out : inputs[i - 1], walks[i], block, i == 0);
    // The count, the sizes of all axes but the first, then each input's strides.
    std::vector<std::uint32_t> arguments = {1};
    for (const std::int64_t n : block.count) arguments[0] *= static_cast<std::uint32_t>(n);
    for (std::size_t k = 1; k < axes.sizes.size(); ++k) arguments.push_back(static_cast<std::uint32_t>(block.count[k]));
    for (const auto& s : axes.strides)
      for (const std::int64_t stride : s) arguments.push_back(static_cast<std::uint32_t>(stride));
    const std::uint32_t count = arguments[0];
    const bool in_buffer = inputs.size() + 2 + arguments.size() > Dispatch::max_words;
    if (in_buffer) {
      const Tensor t = scratch(15, DType::i32, {static_cast<std::int64_t>(arguments.size())});
      if (!t) return;
      recorder_->upload(std::as_bytes(std::span(arguments)), t);
      d.read(t);
      d.arguments.push_back(count);
    } else {
      d.none();
      d.arguments = std::move(arguments);
    }
    d.constant(static_cast<std::uint32_t>(axes.sizes.size())).constant(in_buffer ? 1 : 0).constant(type_number(out.dtype));
    for (const Tensor& t : inputs) d.constant(type_number(t.dtype));
    run(d.each(count, c_->plan.elements_group));
  }
}

void VulkanDevice::copy(const Tensor& from, const Tensor& to) {
  assert(from.count() == to.count() && from.dtype == to.dtype);
  if (from.buffer == to.buffer && from.offset == to.offset) return;
  recorder_->copy(from, to, from.size());
}

void VulkanDevice::copy_strided(const Strided& from, const Strided& to) {
  const auto lying = [](const Strided& s, const Strided& shape) {      // `s`, which lies together, under another shape
    assert(s.contiguous() && s.count() == shape.count());
    Strided r = shape;
    r.tensor = s.tensor;
    r.offset = s.offset;
    std::int64_t stride = 1;
    for (int i = r.rank - 1; i >= 0; --i) {
      r.strides[static_cast<std::size_t>(i)] = stride;
      stride *= r.shape[static_cast<std::size_t>(i)];
    }
    return r;
  };
  const bool same = from.rank == to.rank && from.shape == to.shape;
  const Strided a = same || !from.contiguous() ? from : lying(from, to);
  const Strided b = same || from.contiguous() ? to : lying(to, from);
  if (a.count() == 0) return;
  Axes axes(2);
  for (int i = 0; i < a.rank; ++i) {
    const auto k = static_cast<std::size_t>(i);
    axes.add(a.shape[k], {a.strides[k], b.strides[k]});
  }
  axes.finish();
  const Strided* sides[] = {&a, &b};
  std::vector<Walk> walks;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = bytes(sides[i]->tensor.dtype);
    walks.push_back({sides[i]->tensor.offset + sides[i]->offset * size, size, axes.strides[i]});
    for (std::int64_t& s : walks.back().steps) s *= size;
  }
  for (const Places& block : cut(axes.sizes, walks, c_->plan, Order::any)) {
    Dispatch d = shader("strided");
    bind(d, from.tensor, walks[0], block, false);
    bind(d, to.tensor, walks[1], block, true);
    d.constant(static_cast<std::uint32_t>(axes.sizes.size())).constant(type_number(from.tensor.dtype));
    d.constant(type_number(to.tensor.dtype));
    std::int64_t count = 1;
    for (const std::int64_t n : block.count) count *= n;
    d.push(count);
    for (std::size_t k = 1; k < axes.sizes.size(); ++k) d.push(block.count[k]);
    for (const auto& s : axes.strides)
      for (const std::int64_t stride : s) d.push(stride);
    run(d.each(count, c_->plan.elements_group));
  }
}

void VulkanDevice::fill(double value, const Tensor& out) {
  recorder_->fill(out, out.dtype == DType::i32 ? static_cast<std::uint32_t>(static_cast<std::int32_t>(value))
                                               : std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}

}  // namespace modelc::vulkan
