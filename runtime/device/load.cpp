// Loading: which tensor each weight is (checkpoint/mapping.h decides), its bytes, the constants, and bind().
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/adapter.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/weight_data.h"
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

class Loader {
 public:
  Loader(ModelImpl& impl, std::shared_ptr<const CheckpointIndex> index, const Mapping& mapping, const AdapterMerge& merge,
         const LoadOptions& options, LoadReport& report)
      : impl_(impl),
        index_(index),
        mapping_(mapping),
        merge_(merge),
        data_(index, options.no_mmap ? FileAccess::read : FileAccess::map),
        report_(report) {}

  // Weight i of the tree.
  Status place(std::size_t i, const NamedParameter& p) {
    const WeightSource& source = mapping_.sources[i];
    Weight& w = *p.weight;
    ++report_.weights;
    if (source.kind == WeightSource::Kind::default_value && merge_.changes(i))
      return Error{"adapter", p.name + ": an adapter changes it, and the checkpoint has no such weight", {}, {}};
    if (source.kind == WeightSource::Kind::default_value) {
      w.source = "default " + shortest(*w.spec.default_value);
      return set_values(w, std::vector<float>(static_cast<std::size_t>(w.spec.shape.count()),
                                              static_cast<float>(*w.spec.default_value)));
    }
    count(source);
    w.source = source.kind == WeightSource::Kind::alias ? "alias of " + index_->tensors()[source.parts[0].tensor].name
                                                        : describe(*index_, source);
    const TensorShape shape(w.spec.shape.axes().begin(), w.spec.shape.axes().end());
    if (source.own) {
      auto note = compare_alias(data_, mapping_, source, p.name, shape);
      if (!note) return std::move(note.error());
      report_.notes.push_back(std::move(*note));
    }
    if (!merge_.changes(i)) return bind(w, source, shape);
    w.source += ", with an adapter";
    auto base = read_weight(data_, mapping_, source, shape);
    if (!base) return std::move(base.error());
    auto made = merge_.apply(i, *base);
    if (!made) return std::move(made.error());
    if (made->encoding != base->encoding) ++widened_[base->encoding];
    WeightSource merged;
    merged.kind = WeightSource::Kind::given;
    auto value = WeightValue::of(made->encoding, shape, made->bytes);
    if (!value) return std::move(value.error());
    merged.value = std::move(*value);
    return bind(w, merged, shape);
  }

  // What of the files' encodings no kernel reads.
  void note_decoded() {
    for (const auto& [encoding, n] : decoded_)
      report_.notes.push_back(counted(n, "weight") + " stored as " + std::string(name(encoding)) +
                              ", which no kernel reads yet: decoded to f32 in memory");
    for (const auto& [encoding, n] : widened_)
      report_.notes.push_back(counted(n, "weight") + " stored as " + std::string(name(encoding)) + " and changed by an adapter: f32 in memory");
  }

 private:
  void count(const WeightSource& source) {
    if (source.value) {
      report_.parameters += element_count(source.value->shape()).value_or(0);
      report_.bytes += static_cast<std::int64_t>(source.value->bytes().size());
    }
    for (const WeightPart& part : source.parts)
      for (std::size_t t : part.coded.empty() ? std::vector<std::size_t>{part.tensor} : part.coded) {
        if (!seen_.insert(t).second) continue;
        const TensorInfo& info = index_->tensors()[t];
        report_.parameters += info.elements();
        report_.bytes += static_cast<std::int64_t>(info.size);
      }
  }

  // A tensor's bytes on the device; placed once, however many weights are it or rows of it.
  Result<const Buffer*> placed(const TensorInfo& info) {
    const auto known = placed_.find(&info);
    if (known != placed_.end()) return known->second;
    auto bytes = data_.bytes(info);
    if (!bytes) return std::move(bytes.error());
    const auto at = bytes->size > 0 ? static_cast<std::uint64_t>(bytes->data - bytes->owner->data()) : 0;
    auto buffer = impl_.device->place(bytes->owner, at, static_cast<std::int64_t>(bytes->size));
    if (!buffer) return std::move(buffer.error());
    impl_.buffers.push_back(*buffer);
    if (std::find(impl_.files.begin(), impl_.files.end(), bytes->owner) == impl_.files.end())
      impl_.files.push_back(bytes->owner);
    placed_.emplace(&info, *buffer);
    return *buffer;
  }

  static RowBlock block_of(Encoding encoding, std::int64_t rows, std::int64_t columns, const Buffer* buffer, std::int64_t offset) {
    const std::int64_t row[] = {columns};
    RowBlock block;
    block.encoding = encoding;
    block.rows = rows;
    block.row_bytes = stored_bytes(encoding, row).value_or(0);
    block.data = {buffer, offset, DType::u8, {rows * block.row_bytes}};
    return block;
  }

  // Makes the blocks, one below the other, the rows of w, a matrix or a table.
  Status set_blocks(Weight& w, std::vector<RowBlock> blocks) {
    const Shape& shape = w.spec.shape;
    w.matrix.columns = shape.rank() > 1 ? shape[-1] : 1;
    std::int64_t first = 0;
    for (RowBlock& b : blocks) {
      b.first = first;
      first += b.rows;
    }
    w.matrix.blocks = std::move(blocks);
    w.matrix.mode = impl_.mode;
    if (w.spec.role != WeightRole::table) return {};       // matrices are prepared when they are packed
    return impl_.device->prepare(w.matrix, MatrixUse::rows);
  }

  // Makes `buffer` the rows of w.
  Status set_rows(Weight& w, Encoding encoding, const Buffer* buffer) {
    const Shape& shape = w.spec.shape;
    std::int64_t rows = 1;
    for (int i = 0; i < std::max(shape.rank() - 1, 1); ++i) rows *= shape[i];
    return set_blocks(w, {block_of(encoding, rows, shape.rank() > 1 ? shape[-1] : 1, buffer, 0)});
  }

  Status set_values(Weight& w, std::span<const float> values) {
    const Tensor t = own_tensor(impl_, DType::f32, w.spec.shape);
    impl_.device->write(std::as_bytes(values), t);
    if (w.spec.role != WeightRole::vector) return set_rows(w, Encoding::f32, t.buffer);
    w.tensor = t;
    return {};
  }

  Status bind(Weight& w, const WeightSource& source, const TensorShape& shape) {
    const MatrixUse use = w.spec.role == WeightRole::table ? MatrixUse::rows : MatrixUse::product;
    if (w.spec.role != WeightRole::vector) {
      bool stays = source.as_stored();
      for (const WeightPart& p : source.parts) stays = stays && impl_.device->reads(index_->tensors()[p.tensor].encoding, use);
      if (stays) {
        std::vector<RowBlock> blocks;
        const std::int64_t columns = shape.size() > 1 ? shape.back() : 1;
        for (const WeightPart& p : source.parts) {
          const TensorInfo& info = index_->tensors()[p.tensor];
          auto buffer = placed(info);
          if (!buffer) return std::move(buffer.error());
          const std::int64_t rows = info.shape.empty() ? 1 : info.shape[0];
          const std::int64_t row = rows > 0 ? static_cast<std::int64_t>(info.size) / rows : 0;
          const std::int64_t width = rows > 0 ? info.elements() / rows : 0;
          blocks.push_back(block_of(info.encoding, columns > 0 ? p.rows * width / columns : 0, columns, *buffer, p.first * row));
        }
        return set_blocks(w, std::move(blocks));
      }
      auto made = read_weight(data_, mapping_, source, shape);
      if (!made) return std::move(made.error());
      if (impl_.device->reads(made->encoding, use)) {
        const Tensor t = own_tensor(impl_, DType::u8, {static_cast<std::int64_t>(made->bytes.size())});
        impl_.device->write(made->bytes, t);
        return set_rows(w, made->encoding, t.buffer);
      }
      if (block_elements(made->encoding) > 1) ++decoded_[made->encoding];
    }
    auto values = read_weight_f32(data_, mapping_, source, shape);
    if (!values) return std::move(values.error());
    return set_values(w, *values);
  }

  ModelImpl& impl_;
  std::shared_ptr<const CheckpointIndex> index_;
  const Mapping& mapping_;
  const AdapterMerge& merge_;
  CheckpointData data_;
  LoadReport& report_;
  std::map<const TensorInfo*, const Buffer*> placed_;
  std::set<std::size_t> seen_;
  std::map<Encoding, std::uint64_t> decoded_;              // weights, by what no kernel reads
  std::map<Encoding, std::uint64_t> widened_;              // weights that an adapter changed, by how they were packed
};

Result<std::shared_ptr<Device>> device_for(const LoadOptions& options) {
  if (options.device) return options.device;
  auto device = open_cpu(options.cpu);
  if (!device) return std::move(device.error());
  return std::shared_ptr<Device>(std::move(*device));
}

Result<AdapterMerge> open_adapters(const LoadOptions& options, const std::vector<MappingWeight>& weights, const MappingRules& rules,
                                   const Mapping& mapping) {
  if (options.adapters.empty()) return AdapterMerge();
  std::vector<Adapter> adapters;
  for (const std::string& folder : options.adapters) {
    auto adapter = Adapter::open(folder, options.no_mmap ? FileAccess::read : FileAccess::map);
    if (!adapter) return std::move(adapter.error());
    adapters.push_back(std::move(*adapter));
  }
  return AdapterMerge::bind(std::move(adapters), weights, rules, mapping);
}

}  // namespace

Status Model::load_weights(const CheckpointIndex& checkpoint, std::span<const CheckpointRulesData> rules,
                           const LoadOptions& options) {
  CheckpointIndex safetensors;                             // for the name of the format
  return load_weights(checkpoint, rules_for(rules, checkpoint), rules_for(rules, safetensors), options);
}

Status Model::load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules,
                           const LoadOptions& options) {
  return load_weights(checkpoint, rules, rules, options);
}

Status Model::load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules,
                           const CheckpointRulesData& adapter_rules, const LoadOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto device = device_for(options);
  if (!device) return std::move(device.error());
  if (options.mode == Mode::fast && !(*device)->has_fast_mode())
    return Error{"mode", "mode fast is not carried out on " + (*device)->description(), {}, "mode exact is, on every device"};
  device_ = *device;
  impl_ = std::make_unique<ModelImpl>(device_);
  impl_->mode = options.mode;
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
  const Mapping mapping = map_weights(weights, rules, checkpoint, {options.strict, options.auto_cast, &options.weights});
  if (!mapping.problems.empty()) return as_error(mapping);
  report_.notes = mapping.notes;
  auto merge = open_adapters(options, weights, adapter_rules, mapping);
  if (!merge) return std::move(merge.error());
  report_.notes.insert(report_.notes.end(), merge->notes().begin(), merge->notes().end());

  try {
    Loader loader(*impl_, std::make_shared<const CheckpointIndex>(checkpoint), mapping, *merge, options, report_);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (Status s = loader.place(i, tree.weights()[i]); !s) return s;
    loader.note_decoded();
    ModelBinder binder(*impl_);
    for (Module* m : tree.bottom_up()) m->bind(binder);
  } catch (StepFailure& f) {
    return std::move(f.error);
  } catch (const std::bad_alloc&) {
    return Error{"out-of-memory", "no memory is left for the weights", {}, {}};
  }
  if (Status s = device_->finish(); !s) return s;
  for (const auto& file : impl_->files)
    if (Status s = file->intact(); !s) return s;
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

}  // namespace modelc
