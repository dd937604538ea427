// Loading: which tensor each weight is (checkpoint/mapping.h decides), its bytes, the constants, and bind().
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/encoding/convert.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/device/binder.h"
#include "runtime/device/port_dims.h"

namespace modelc {
namespace {

// Text lines, one an entry.
std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  if (*text != '\0')
    for (std::string_view line : split(text, '\n')) lines.emplace_back(line);
  return lines;
}

MappingWeight mapping_weight(const NamedParameter& p) {
  const WeightSpec& spec = p.weight->spec;
  MappingWeight w;
  w.name = p.name;
  w.shape.assign(spec.shape.axes().begin(), spec.shape.axes().end());
  w.formula = spec.formula;
  w.numbers = spec.numbers;
  w.where = spec.where;
  w.origins = lines_of(spec.origins);
  w.dtype = spec.dtype;
  w.has_default = spec.default_value.has_value();
  return w;
}

MappingRules mapping_rules(const CheckpointRulesData& data) {
  MappingRules rules;
  for (const auto& a : data.aliases) rules.aliases.push_back({a.weight, a.target, a.when, a.because});
  for (const char* p : data.ignores) rules.ignores.emplace_back(p);
  for (const auto& r : data.renames) rules.renames.push_back({r.file, r.model});
  return rules;
}

// A tensor whose bytes are at hand.
struct Stored {
  const TensorInfo* info = nullptr;
  TensorBytes bytes;
};

class Loader {
 public:
  Loader(ModelImpl& impl, std::shared_ptr<const CheckpointIndex> index, const LoadOptions& options, LoadReport& report)
      : impl_(impl),
        index_(index),
        data_(index, options.no_mmap ? FileAccess::read : FileAccess::map),
        report_(report) {}

  Status place(const NamedParameter& p, const WeightSource& source) {
    Weight& w = *p.weight;
    ++report_.weights;
    if (source.kind == WeightSource::Kind::default_value) {
      w.source = "default " + shortest(*w.spec.default_value);
      return set_values(w, std::vector<float>(static_cast<std::size_t>(w.spec.shape.count()),
                                              static_cast<float>(*w.spec.default_value)));
    }
    auto stored = open(source.tensor);
    if (!stored) return std::move(stored.error());
    const std::string& file = index_->file_of(*stored->info).label;
    w.source = file + ": " + stored->info->name;
    if (source.kind == WeightSource::Kind::alias) {
      w.source = "alias of " + stored->info->name;
      if (source.compare_alias) {
        auto own = open(source.own_tensor);
        if (!own) return std::move(own.error());
        if (Status s = compare(p.name, *own, *stored); !s) return s;
      }
    }
    return bind(w, *stored);
  }

 private:
  Result<Stored> open(std::size_t tensor) {
    Stored s;
    s.info = &index_->tensors()[tensor];
    auto bytes = data_.bytes(*s.info);
    if (!bytes) return std::move(bytes.error());
    s.bytes = std::move(*bytes);
    if (seen_.insert(tensor).second) {
      report_.parameters += s.info->elements();
      report_.bytes += static_cast<std::int64_t>(s.info->size);
    }
    return s;
  }

  // A tensor's bytes on the device; placed once, however many weights are it.
  Result<const Buffer*> placed(const Stored& s) {
    const auto known = placed_.find(s.info);
    if (known != placed_.end()) return known->second;
    const auto at = static_cast<std::uint64_t>(s.bytes.data - s.bytes.owner->data());
    auto buffer = impl_.device->place(s.bytes.owner, at, static_cast<std::int64_t>(s.bytes.size));
    if (!buffer) return std::move(buffer.error());
    impl_.buffers.push_back(*buffer);
    placed_.emplace(s.info, *buffer);
    return *buffer;
  }

  // Makes `buffer` the rows of w, a matrix or a table.
  Status set_rows(Weight& w, Encoding encoding, const Buffer* buffer) {
    const Shape& shape = w.spec.shape;
    w.matrix.columns = shape.rank() > 1 ? shape[-1] : 1;
    RowBlock block;
    block.encoding = encoding;
    block.rows = 1;
    for (int i = 0; i < std::max(shape.rank() - 1, 1); ++i) block.rows *= shape[i];
    const std::int64_t row[] = {w.matrix.columns};
    block.row_bytes = stored_bytes(encoding, row).value_or(0);
    block.data = {buffer, 0, DType::u8, {block.rows * block.row_bytes}};
    w.matrix.blocks = {block};
    if (w.spec.role != WeightRole::table) return {};       // matrices are prepared when they are packed
    return impl_.device->prepare(w.matrix, MatrixUse::rows);
  }

  Status set_values(Weight& w, std::span<const float> values) {
    const Tensor t = own_tensor(impl_, DType::f32, w.spec.shape);
    impl_.device->write(std::as_bytes(values), t);
    if (w.spec.role != WeightRole::vector) return set_rows(w, Encoding::f32, t.buffer);
    w.tensor = t;
    return {};
  }

  Status bind(Weight& w, const Stored& s) {
    const Encoding encoding = s.info->encoding;
    const MatrixUse use = w.spec.role == WeightRole::table ? MatrixUse::rows : MatrixUse::product;
    if (w.spec.role != WeightRole::vector && impl_.device->reads(encoding, use)) {
      auto buffer = placed(s);
      if (!buffer) return std::move(buffer.error());
      return set_rows(w, encoding, *buffer);
    }
    const auto dtype = dtype_of(encoding);
    if (!dtype)
      return Error{"encoding", s.info->name + " is stored as " + std::string(name(encoding)) +
                   ", which is not carried out", {}, {}};
    if (!is_float(*dtype))
      return Error{"encoding", s.info->name + " is stored as " + std::string(name(*dtype)) +
                   "; weights of whole numbers are not carried out", {}, {}};
    auto values = data_.read_f32(*s.info);
    if (!values) return std::move(values.error());
    return set_values(w, *values);
  }

  // An alias whose own tensor is in the file too: all rows must be equal, as numbers.
  Status compare(const std::string& weight, const Stored& own, const Stored& target) {
    const std::int64_t rows = own.info->shape.empty() ? 1 : own.info->shape[0];
    if (rows == 0) return {};
    const auto row_of = [&](const Stored& s, std::int64_t r) {
      const std::size_t n = s.bytes.size / static_cast<std::size_t>(rows);
      return std::span(s.bytes.data + static_cast<std::size_t>(r) * n, n);
    };
    const auto width = static_cast<std::size_t>(own.info->elements() / rows);
    std::vector<float> a(width), b(width);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto x = row_of(own, r), y = row_of(target, r);
      const auto one = dtype_of(own.info->encoding), other = dtype_of(target.info->encoding);
      bool equal = own.info->encoding == target.info->encoding && std::memcmp(x.data(), y.data(), x.size()) == 0;
      if (!equal && one != other && one && other && convert_to_f32(*one, x.data(), a) &&
          convert_to_f32(*other, y.data(), b))
        equal = std::memcmp(a.data(), b.data(), width * sizeof(float)) == 0;
      if (equal) continue;
      Error e;
      e.kind = "alias-conflict";
      e.message = own.info->name + " differs from " + target.info->name + ", of which " + weight +
                  " is an alias: first in row " + std::to_string(r);
      e.notes = {own.info->name + " in " + index_->file_of(*own.info).label,
                 target.info->name + " in " + index_->file_of(*target.info).label};
      e.help = "if the two are one, take " + own.info->name +
               " out of the checkpoint; if not, turn the alias off in the config";
      return e;
    }
    report_.notes.push_back(own.info->name + " is there beside its alias " + target.info->name + ", and equal to it");
    return {};
  }

  ModelImpl& impl_;
  std::shared_ptr<const CheckpointIndex> index_;
  CheckpointData data_;
  LoadReport& report_;
  std::map<const TensorInfo*, const Buffer*> placed_;
  std::set<std::size_t> seen_;
};

Result<std::shared_ptr<Device>> device_for(const LoadOptions& options) {
  if (options.device) return options.device;
  auto device = open_cpu(options.cpu);
  if (!device) return std::move(device.error());
  return std::shared_ptr<Device>(std::move(*device));
}

}  // namespace

Status Model::load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules,
                           const LoadOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto device = device_for(options);
  if (!device) return std::move(device.error());
  device_ = *device;
  impl_ = std::make_unique<ModelImpl>(device_);
  report_ = {};

  const std::span<const AxisDesc> axes = this->axes();
  if (axes.size() > StepSizes::max_axes)
    return Error{"axis", std::string(name()) + " has " + std::to_string(axes.size()) + " run-time axes; " +
                 std::to_string(StepSizes::max_axes) + " are carried out", {}, {}};
  for (const EntryDesc& desc : entries()) {
    Entry entry{&desc, {}, {}};
    for (const auto& [ports, out] : {std::pair{&desc.inputs, &entry.inputs}, std::pair{&desc.outputs, &entry.outputs}})
      for (const PortDesc& port : *ports) {
        auto dims = parse_port_shape(port.shape, axes);
        if (!dims) return Error{dims.error().kind, std::string(name()) + "." + desc.name + ", " + port.name + ": " +
                                dims.error().message, {}, dims.error().help};
        out->push_back({&port, std::move(*dims)});
      }
    impl_->entries.push_back(std::move(entry));
  }

  const ModuleTree tree(*this);
  impl_->states = tree.states();
  std::vector<MappingWeight> weights;
  for (const NamedParameter& p : tree.weights()) weights.push_back(mapping_weight(p));
  const Mapping mapping = map_weights(weights, mapping_rules(rules), checkpoint, {options.strict, options.auto_cast});
  if (!mapping.problems.empty()) return as_error(mapping);
  report_.notes = mapping.notes;

  try {
    Loader loader(*impl_, std::make_shared<const CheckpointIndex>(checkpoint), options, report_);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (Status s = loader.place(tree.weights()[i], mapping.sources[i]); !s) return s;
    ModelBinder binder(*impl_);
    for (Module* m : tree.bottom_up()) m->bind(binder);
  } catch (StepFailure& f) {
    return std::move(f.error);
  } catch (const std::bad_alloc&) {
    return Error{"out-of-memory", "no memory is left for the weights", {}, {}};
  }
  if (Status s = device_->finish(); !s) return s;
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

}  // namespace modelc
