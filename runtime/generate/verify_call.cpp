#include "runtime/generate/verify_call.h"

#include <algorithm>
#include <map>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc {

Result<HostTensor> read_port(CheckpointData& data, const TensorInfo& t, const PortDesc& port, const std::string& path) {
  if (t.shape.size() > Shape::max_rank)
    return Error{"expected", path + ": " + t.name + " has shape " + shape_text(t.shape) + ", expected " + port.shape, {}, {}};
  const Shape shape{std::span<const std::int64_t>(t.shape)};
  if (port.dtype == DType::f32) {
    auto values = data.read_f32(t);
    if (!values) return std::move(values.error());
    return HostTensor::of(std::span<const float>(*values), shape);
  }
  auto values = data.read_i64(t);
  if (!values) return std::move(values.error());
  std::vector<std::int32_t> whole;
  for (const std::int64_t v : *values) {
    if (v < INT32_MIN || v > INT32_MAX)
      return Error{"expected", path + ": " + t.name + " holds " + std::to_string(v) + ": out of range", {}, {}};
    whole.push_back(static_cast<std::int32_t>(v));
  }
  HostTensor in = HostTensor::of(std::span<const std::int32_t>(whole), shape);
  if (port.dtype != DType::boolean) return in;
  in.dtype = DType::boolean;
  in.data.clear();
  for (const std::int32_t v : whole) in.data.push_back(static_cast<std::byte>(v != 0));
  return in;
}

std::vector<float> numbers_of(const HostTensor& t) {
  if (t.dtype == DType::f32) return {t.as<float>().begin(), t.as<float>().end()};
  if (t.dtype == DType::i32) return {t.as<std::int32_t>().begin(), t.as<std::int32_t>().end()};
  std::vector<float> values;
  for (const std::byte b : t.data) values.push_back(static_cast<float>(b));
  return values;
}

Result<std::vector<float>> numbers_of(CheckpointData& data, const TensorInfo& t) {
  const auto dtype = dtype_of(t.encoding);
  if (!dtype || is_float(*dtype)) return data.read_f32(t);
  auto values = data.read_i64(t);
  if (!values) return std::move(values.error());
  return std::vector<float>(values->begin(), values->end());
}

namespace {

class Caller {
 public:
  Caller(Model& model, const EntryDesc& entry, const std::string& path, std::shared_ptr<const CheckpointIndex> index,
         const VerifyOptions& options)
      : model_(model), entry_(entry), path_(path), options_(options), index_(std::move(index)), data_(index_) {}

  Result<VerifyReport> run() {
    if (auto s = read_inputs(); !s) return std::move(s.error());
    if (auto s = read_mask(); !s) return std::move(s.error());
    auto outputs = model_.call(entry_.name, nullptr, inputs_);
    if (!outputs) return std::move(outputs.error());
    VerifyReport report;
    report.sequences = sequences_;
    report.rows = kept_rows();
    for (const PortDesc& p : entry_.outputs) {
      const TensorInfo* t = index_->find(p.name);
      if (!t) continue;
      used_.push_back(p.name);
      const HostTensor& found = outputs->at(p.name);
      const std::vector<float> numbers = numbers_of(found);
      auto d = difference(*t, found.shape, numbers);
      if (!d) return std::move(d.error());
      d->output = true;
      report.differences.push_back(std::move(*d));
    }
    if (auto s = stages(report); !s) return std::move(s.error());
    if (report.differences.empty()) return problem("holds nothing to compare: no output and no stage");
    report.passed = std::all_of(report.differences.begin(), report.differences.end(), [](const auto& d) { return d.within; });
    return report;
  }

 private:
  Error problem(const std::string& message, std::string help = "") const {
    return Error{"expected", path_ + ": " + message, {}, std::move(help)};
  }

  Status read_inputs() {
    for (const PortDesc& p : entry_.inputs) {
      const TensorInfo* t = index_->find(p.name);
      if (!t) {
        if (p.default_value) continue;
        return problem("holds no input " + std::string(p.name) + " " + p.shape);
      }
      if (!t->shape.empty()) sequences_ = t->shape[0];
      auto in = read_port(data_, *t, p, path_);
      if (!in) return std::move(in.error());
      inputs_[p.name] = std::move(*in);
    }
    return {};
  }

  Status read_mask() {
    const TensorInfo* t = index_->find("attention_mask");
    if (!t || t->shape.size() != 2) return {};
    auto values = data_.read_i64(*t);
    if (!values) return std::move(values.error());
    mask_shape_ = t->shape;
    mask_ = std::move(*values);
    return {};
  }
  std::int64_t kept_rows() const {
    if (mask_.empty()) return sequences_;
    return std::count_if(mask_.begin(), mask_.end(), [](std::int64_t v) { return v != 0; });
  }

  // Of the rows that count.
  Result<Difference> difference(const TensorInfo& t, const Shape& shape, std::span<const float> found) {
    auto expected = numbers_of(data_, t);
    if (!expected) return std::move(expected.error());
    if (expected->size() != found.size())
      return problem(t.name + " has shape " + shape_text(t.shape) + ", but the model gives " + shape.text());
    std::vector<float> ours(found.begin(), found.end());
    const bool masked = t.shape.size() > 1 && !mask_.empty() && t.shape[0] == mask_shape_[0] && t.shape[1] == mask_shape_[1];
    if (masked) {
      const std::size_t width = ours.size() / mask_.size();
      std::size_t to = 0;
      for (std::size_t row = 0; row < mask_.size(); ++row) {
        if (mask_[row] == 0) continue;
        for (std::size_t i = 0; i < width; ++i, ++to) {
          ours[to] = ours[row * width + i];
          (*expected)[to] = (*expected)[row * width + i];
        }
      }
      ours.resize(to);
      expected->resize(to);
    }
    Difference d = compare(t.name, *expected, ours);
    d.within = d.max_abs <= options_.within;
    return d;
  }

  Status stages(VerifyReport& report) {
    std::map<std::string, const TensorInfo*, std::less<>> wanted;
    for (const TensorInfo& t : index_->tensors()) {
      const bool known = t.name == "attention_mask" || inputs_.count(t.name) > 0;
      if (!known && std::find(used_.begin(), used_.end(), t.name) == used_.end()) wanted.emplace(t.name, &t);
    }
    if (wanted.empty()) return {};
    struct Found {
      Shape shape;
      std::vector<float> values;
    };
    std::map<std::string, Found, std::less<>> found;
    std::vector<std::string> seen, order;
    const int hook = model_.add_layer_hook([&](const LayerValue& v) {
      const auto it = wanted.find(v.name);
      if (it == wanted.end()) {
        if (seen.size() < 100000) seen.emplace_back(v.name);
        return;
      }
      if (found.count(it->first) == 0) order.push_back(it->first);
      found[it->first] = {v.shape, {v.data.begin(), v.data.end()}};
    });
    auto out = model_.call(entry_.name, nullptr, inputs_);
    model_.remove_layer_hook(hook);
    if (!out) return std::move(out.error());
    for (const auto& [name, t] : wanted) {
      if (found.count(name) > 0) continue;
      const auto near = nearest(name, std::span<const std::string>(seen));
      return problem("stage " + quote(name) + " is no value of the model", near ? "did you mean " + *near + "?" : "");
    }
    for (const std::string& name : order) {
      const Found& f = found.at(name);
      auto d = difference(*wanted.at(name), f.shape, f.values);
      if (!d) return std::move(d.error());
      if (!d->within && !report.first_stage) report.first_stage = name;
      report.differences.push_back(std::move(*d));
    }
    return {};
  }

  Model& model_;
  const EntryDesc& entry_;
  std::string path_;
  VerifyOptions options_;
  std::shared_ptr<const CheckpointIndex> index_;
  CheckpointData data_;
  std::map<std::string, HostTensor> inputs_;
  std::vector<std::int64_t> mask_, mask_shape_;
  std::vector<std::string> used_;
  std::int64_t sequences_ = 1;
};

}  // namespace

Result<VerifyReport> verify_call(Model& model, const EntryDesc& entry, const std::string& path,
                                 std::shared_ptr<const CheckpointIndex> index, const VerifyOptions& options) {
  return Caller(model, entry, path, std::move(index), options).run();
}

}  // namespace modelc
