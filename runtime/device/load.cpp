// Loading: which tensor each weight is (checkpoint/mapping.h decides), its bytes, the constants, and bind().
#include <chrono>
#include <filesystem>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/adapter.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/pack.h"
#include "runtime/device/binder.h"
#include "runtime/device/loader.h"
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

// Whether the checkpoint lies in files, beside which a pack can lie.
bool in_files(const CheckpointIndex& checkpoint) {
  for (const CheckpointFile& f : checkpoint.files())
    if (f.memory) return false;
  return !checkpoint.files().empty();
}

// From the pack beside the checkpoint where there is one of it, else from the checkpoint, and writes the pack if asked to.
// A pack that is not used is never passed over in silence.
Status load_packed(Loader& loader, const char* model, const Device& device, const CheckpointIndex& checkpoint,
                   const std::vector<MappingWeight>& weights, const Mapping& mapping, const LoadOptions& options, LoadReport& report) {
  const bool write = options.pack == PackUse::write, changed = !options.weights.empty() || !options.adapters.empty();
  if (write && changed)
    return Error{"pack-changed", "weights that are given or changed by an adapter are not packed", {}, "pack the checkpoint alone"};
  if (options.pack == PackUse::none || (!write && !in_files(checkpoint))) return loader.from_checkpoint();
  const std::string path = pack_path(checkpoint, model, device.layout());
  std::error_code failed;
  const bool there = std::filesystem::exists(path, failed);
  if (!write && !there) return loader.from_checkpoint();
  if (changed) {
    report.notes.push_back(quote(path) + " is not used: weights are given or changed by an adapter");
    return loader.from_checkpoint();
  }
  auto key = pack_key(model, device.layout(), checkpoint, weights, mapping, options.pack_hash);
  if (!key) return std::move(key.error());
  if (there) {
    auto pack = Pack::open(path, *key, checkpoint, options.no_mmap ? FileAccess::read : FileAccess::map);
    const Status fits = pack ? loader.fits(*pack) : Status(pack.error());
    if (fits) {
      report.pack = path;
      return loader.from_pack(*pack);
    }
    report.notes.push_back(fits.error().message +
                           (write ? "; it is written again" : ": weights are loaded from the checkpoint (" + fits.error().help + ")"));
  }
  if (Status s = loader.from_checkpoint(); !s || !write) return s;
  if (Status s = loader.write_pack(path, *key); !s) return s;
  report.pack = path;
  report.pack_written = true;
  return {};
}

}  // namespace

Status Model::load_weights(const CheckpointIndex& checkpoint, std::span<const CheckpointRulesData> rules, const LoadOptions& options) {
  CheckpointIndex safetensors;                             // for the name of the format
  return load_weights(checkpoint, rules_for(rules, checkpoint), rules_for(rules, safetensors), options);
}

Status Model::load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules, const LoadOptions& options) {
  return load_weights(checkpoint, rules, rules, options);
}

Status Model::load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules, const CheckpointRulesData& adapter_rules,
                           const LoadOptions& options) {
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
    return Error{"axis",
                 std::string(name()) + " has " + std::to_string(axes.size()) + " run-time axes; " + std::to_string(StepSizes::max_axes) +
                     " are carried out",
                 {},
                 {}};
  for (const EntryDesc& desc : entries()) {
    Entry entry{&desc, {}, {}};
    for (const auto& [ports, out] : {std::pair{&desc.inputs, &entry.inputs}, std::pair{&desc.outputs, &entry.outputs}})
      for (const PortDesc& port : *ports) {
        auto dims = parse_port_shape(port.shape, axes);
        if (!dims)
          return Error{dims.error().kind,
                       std::string(name()) + "." + desc.name + ", " + port.name + ": " + dims.error().message,
                       {},
                       dims.error().help};
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
    Loader loader(*impl_, std::make_shared<const CheckpointIndex>(checkpoint), tree.weights(), mapping, *merge, options, report_);
    if (Status s = load_packed(loader, name(), *device_, checkpoint, weights, mapping, options, report_); !s) return s;
    ModelBinder binder(*impl_);
    for (Module* m : tree.bottom_up()) m->bind(binder);
  } catch (StepFailure& f) { return std::move(f.error); } catch (const std::bad_alloc&) {
    return Error{"out-of-memory", "no memory is left for the weights", {}, {}};
  }
  if (Status s = device_->finish(); !s) return s;
  for (const auto& file : impl_->files)
    if (Status s = file->intact(); !s) return s;
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

}  // namespace modelc
