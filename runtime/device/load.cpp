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
  DType dtype = DType::f32;
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
      fill(w, static_cast<float>(*w.spec.default_value));
      w.source = "default " + shortest(*w.spec.default_value);
      return {};
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
    const auto dtype = dtype_of(s.info->encoding);
    if (!dtype || bits(*dtype) < 8)
      return Error{"encoding", s.info->name + " is stored as " + std::string(name(s.info->encoding)) +
                   ", which is not carried out", {}, {}};
    s.dtype = *dtype;
    auto bytes = data_.bytes(*s.info);
    if (!bytes) return std::move(bytes.error());
    s.bytes = std::move(*bytes);
    if (seen_.insert(tensor).second) {
      report_.parameters += s.info->elements();
      report_.bytes += static_cast<std::int64_t>(s.info->size);
    }
    return s;
  }

  // The file as a buffer; imported once.
  Result<const Buffer*> file_buffer(const std::shared_ptr<const MappedFile>& file) {
    const auto known = imported_.find(file.get());
    if (known != imported_.end()) return known->second;
    file->will_need(0, file->size());
    auto buffer = impl_.device->import(file->bytes());
    if (!buffer) return std::move(buffer.error());
    impl_.files.push_back(file);
    impl_.buffers.push_back(*buffer);
    imported_.emplace(file.get(), *buffer);
    return *buffer;
  }

  static void set_block(Weight& w) {
    w.block.encoding = w.tensor.dtype;
    w.block.rows = w.spec.shape[0];
    w.block.row_bytes = w.block.rows > 0 ? w.tensor.size() / w.block.rows : 0;
    w.block.data = w.tensor;
  }

  void fill(Weight& w, float value) {
    w.tensor = own_tensor(impl_, DType::f32, w.spec.shape);
    const std::vector<float> values(static_cast<std::size_t>(w.tensor.count()), value);
    impl_.device->write(std::as_bytes(std::span(values)), w.tensor);
    if (w.spec.role != WeightRole::vector) set_block(w);
  }

  Status bind(Weight& w, const Stored& s) {
    const bool kernels_read_it = s.dtype == DType::f32 || s.dtype == DType::f16 || s.dtype == DType::bf16;
    if (w.spec.role != WeightRole::vector && kernels_read_it) {
      auto buffer = file_buffer(s.bytes.owner);
      if (!buffer) return std::move(buffer.error());
      w.tensor = {*buffer, s.bytes.data - s.bytes.owner->data(), s.dtype, w.spec.shape};
      set_block(w);
      return {};
    }
    if (!is_float(s.dtype))
      return Error{"encoding", s.info->name + " is stored as " + std::string(name(s.dtype)) +
                   "; weights of whole numbers are not carried out", {}, {}};
    auto values = data_.read_f32(*s.info);
    if (!values) return std::move(values.error());
    w.tensor = own_tensor(impl_, DType::f32, w.spec.shape);
    impl_.device->write(std::as_bytes(std::span(*values)), w.tensor);
    if (w.spec.role != WeightRole::vector) set_block(w);
    return {};
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
      bool equal = own.dtype == target.dtype && std::memcmp(x.data(), y.data(), x.size()) == 0;
      if (!equal && own.dtype != target.dtype && convert_to_f32(own.dtype, x.data(), a) &&
          convert_to_f32(target.dtype, y.data(), b))
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
  std::map<const MappedFile*, const Buffer*> imported_;
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

  for (const EntryDesc& desc : entries()) {
    Entry entry{&desc, {}, {}};
    for (const auto& [ports, out] : {std::pair{&desc.inputs, &entry.inputs}, std::pair{&desc.outputs, &entry.outputs}})
      for (const PortDesc& port : *ports) {
        auto axes = parse_axes(port.shape);
        if (!axes) return Error{axes.error().kind, std::string(name()) + "." + desc.name + ", " + port.name + ": " +
                                axes.error().message, {}, axes.error().help};
        out->push_back({&port, std::move(*axes)});
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
