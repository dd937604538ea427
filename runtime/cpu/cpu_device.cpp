#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/cpu/isa.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {

Result<std::unique_ptr<Device>> open_cpu(const CpuOptions& options) {
  auto kernels = cpu::choose_kernels(options.isa);
  if (!kernels) return std::move(kernels.error());
  if (options.threads < 0)
    return Error{"threads",
                 "cannot run with " + std::to_string(options.threads) + " threads",
                 {},
                 "give a number from 1, or 0 for one per processor"};
  return std::unique_ptr<Device>(std::make_unique<cpu::CpuDevice>(**kernels, options));
}

namespace cpu {
namespace {

std::int64_t rows_of(const Tensor& t) { return t.shape.rank() == 0 ? 1 : t.count() / std::max<std::int64_t>(t.shape[-1], 1); }
std::int64_t width_of(const Tensor& t) { return t.shape.rank() == 0 ? 1 : t.shape[-1]; }

}  // namespace

CpuDevice::CpuDevice(const Kernels& kernels, const CpuOptions& options)
    : kernels_(kernels), team_(options.threads), largest_buffer_(options.largest_buffer) {
  scratch_.resize(static_cast<std::size_t>(team_.size()));
}

std::string CpuDevice::description() const {
  return "CPU, " + counted(static_cast<std::uint64_t>(team_.size()), "thread") + ", " + kernels_.isa;
}

Result<const Buffer*> CpuDevice::allocate(std::int64_t size) {
  if (size > largest_buffer_)
    return Error{"tensor-size", "a tensor of " + grouped(size) + " bytes; a buffer has at most " + grouped(largest_buffer_), {}, {}};
  return buffers_.allocate(size);
}

Result<const Buffer*> CpuDevice::place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) {
  if (size < 0 || at > file->size() || static_cast<std::uint64_t>(size) > file->size() - at)
    return Error{"file-shrunk",
                 file->path() + " has " + grouped(static_cast<std::uint64_t>(file->size())) + " bytes, and no " + grouped(size) +
                     " of them from " + grouped(at) + " on",
                 {},
                 {}};
  if (size > largest_buffer_)
    return Error{"tensor-size", "a tensor of " + grouped(size) + " bytes; a buffer has at most " + grouped(largest_buffer_), {}, {}};
  file->will_need(at, static_cast<std::size_t>(size));
  return buffers_.adopt(std::move(file), at, size);
}

Status CpuDevice::read(const Tensor& t, std::span<std::byte> to) {
  assert(static_cast<std::int64_t>(to.size()) == t.size());
  if (!to.empty()) std::memcpy(to.data(), t.host<std::byte>(), to.size());
  return {};
}

void CpuDevice::write(std::span<const std::byte> from, const Tensor& t) {
  assert(static_cast<std::int64_t>(from.size()) == t.size());
  if (!from.empty()) std::memcpy(t.host<std::byte>(), from.data(), from.size());
}

namespace {

// Rows that a model computes may lie anywhere; a call that would read beyond its table fails.
void check_rows(const std::int32_t* index, std::int64_t count, std::int64_t bound) {
  for (std::int64_t i = 0; i < count; ++i)
    if (index[i] < 0 || index[i] >= bound)
      throw StepFailure{{"index-range",
                         "row " + std::to_string(index[i]) + " is taken of " + grouped(bound),
                         {},
                         "the model computes an index that its own type does not allow"}};
}

}  // namespace

bool CpuDevice::reads(Encoding encoding, MatrixUse) const { return stored(encoding).has_value(); }

Status CpuDevice::prepare(Matrix&, MatrixUse) { return {}; }

void CpuDevice::take(const Matrix& table, const Tensor& rows, float scale, const Tensor& out) {
  assert(table.results() == 1 && rows.dtype == DType::i32);
  const std::int64_t n = table.columns;
  assert(out.count() == rows.count() * n);
  const std::int32_t* index = rows.host<std::int32_t>();
  float* to = out.host<float>();
  check_rows(index, rows.count(), table.rows());
  spread_rows(rows.count(), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::size_t b = 0;
      while (b + 1 < table.blocks.size() && index[r] >= table.blocks[b + 1].first) ++b;
      const RowBlock& block = table.blocks[b];
      const std::int64_t row = index[r] - block.first;
      assert(row >= 0 && row < block.rows);
      kernels_.convert(*stored(block.encoding), block.data.host<std::byte>() + row * block.row_bytes, n, scale, to + r * n);
    }
  });
}

void CpuDevice::take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) {
  assert(x.shape.rank() >= 1 && rows.dtype == DType::i32);
  const std::int64_t held = x.shape[0];
  const std::int64_t n = held > 0 ? x.count() / held : 0;
  assert(out.count() == rows.count() * n);
  const std::int32_t* index = rows.host<std::int32_t>();
  const float* from = x.host<float>();
  float* to = out.host<float>();
  check_rows(index, rows.count(), held);
  spread_rows(rows.count(), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::memcpy(to + r * n, from + index[r] * n, static_cast<std::size_t>(n) * sizeof(float));
    }
  });
}

void CpuDevice::rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) {
  const std::int64_t n = width_of(x);
  assert(out.count() == x.count() && (!w || w.count() == n));
  const float* from = x.host<float>();
  const float* weight = w.host<float>();
  float* to = out.host<float>();
  spread_rows(rows_of(x), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) kernels_.rms_norm(from + r * n, weight, args.eps, args.offset, n, to + r * n);
  });
}

void CpuDevice::add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum,
                             const Tensor& out) {
  const std::int64_t n = width_of(x);
  assert(y.count() == x.count() && sum.count() == x.count() && out.count() == x.count() && (!w || w.count() == n));
  const float* a = x.host<float>();
  const float* b = y.host<float>();
  const float* weight = w.host<float>();
  float* s = sum.host<float>();
  float* to = out.host<float>();
  spread_rows(rows_of(x), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      kernels_.add_rms_norm(a + r * n, b + r * n, weight, args.eps, args.offset, n, s + r * n, to + r * n);
  });
}

void CpuDevice::layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) {
  const std::int64_t n = width_of(x);
  assert(out.count() == x.count() && (!w || w.count() == n) && (!b || b.count() == n));
  const float* from = x.host<float>();
  const float* weight = w.host<float>();
  const float* bias = b.host<float>();
  float* to = out.host<float>();
  spread_rows(rows_of(x), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) kernels_.layer_norm(from + r * n, weight, bias, args.eps, n, to + r * n);
  });
}

void CpuDevice::rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) {
  assert(x.shape.rank() >= 2 && cos.shape.rank() == 2 && cos.shape == sin.shape && cos.shape[0] == x.shape[0]);
  const std::int64_t tokens = x.shape[0], d = x.shape[-1], half = cos.shape[1];
  assert(2 * half <= d && out.count() == x.count());
  if (tokens == 0 || d == 0) return;
  const std::int64_t width = x.count() / tokens;
  const float* from = x.host<float>();
  const float* c = cos.host<float>();
  const float* s = sin.host<float>();
  float* to = out.host<float>();
  spread_rows(tokens, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      kernels_.rope(from + t * width, c + t * half, s + t * half, width / d, d, half, pairs == Pairs::adjacent, to + t * width);
  });
}

void CpuDevice::map(const MapKernel& f, std::span<const Tensor> inputs, const Tensor& out) {
  assert(inputs.size() <= MapArgs::max_inputs);
  MapArgs a;
  a.shape = out.shape;
  a.out = out.host<std::byte>();
  a.out_dtype = out.dtype;
  a.inputs = static_cast<int>(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    assert(t.shape.rank() <= out.shape.rank());
    a.input[i].data = t.host<std::byte>();
    a.input[i].dtype = t.dtype;
    std::int64_t stride = 1;
    for (int k = 1; k <= t.shape.rank(); ++k) {            // axes are matched from the last one on
      const std::int64_t size = t.shape[-k];
      assert(size == out.shape[-k] || size == 1);
      a.input[i].strides[static_cast<std::size_t>(out.shape.rank() - k)] = size == 1 ? 0 : stride;
      stride *= size;
    }
  }
  if (out.count() == 0) return;
  spread_rows(rows_of(out), width_of(out), [&](std::int64_t begin, std::int64_t end) { f.cpu(a, begin, end); });
}

bool CpuDevice::custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t>,
                       std::span<const CustomDispatch>, const HostKernel* host) {
  if (host == nullptr || outs.empty()) return false;
  std::vector<OpTensor> tensors;
  for (const auto& list : {inputs, outs})
    for (const Tensor& t : list) tensors.push_back({t.host<std::byte>(), t.shape});
  if (outs[0].count() == 0) return true;
  spread_rows(rows_of(outs[0]), width_of(outs[0]), [&](std::int64_t begin, std::int64_t end) {
    OpContext at{begin, end};
    host->run(at, tensors);
  });
  return true;
}

void CpuDevice::copy(const Tensor& from, const Tensor& to) {
  assert(from.count() == to.count() && from.dtype == to.dtype);
  if (from.count() > 0 && from.host<std::byte>() != to.host<std::byte>())
    std::memmove(to.host<std::byte>(), from.host<std::byte>(), static_cast<std::size_t>(from.size()));
}

}  // namespace cpu
}  // namespace modelc
