// Loading: which tensor each weight is (checkpoint/mapping.h decides), its bytes, the constants, and bind().
#include <chrono>
#include <filesystem>

#include "runtime/base/device_name.h"
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
  w.plain = spec.role == WeightRole::vector;
  return w;
}

// All on one device, or a set of several, and which module is on which.
Result<ModelDevices> open_devices(const ModuleTree& tree, std::vector<PlaceRule> rules, const LoadOptions& options) {
  ModelDevices out;
  out.rules = std::move(rules);
  if (options.device) {
    out = {options.device, {}, given_device, {}, given_device};
    return out;
  }
  auto placement = decide_placement(tree, out.rules, out.rest);
  if (!placement) return std::move(placement.error());
  std::vector<DeviceSet::Member> members;
  std::vector<int> numbers;
  if (placement->devices.size() > Whereabouts::max_members)
    return Error{"placement",
                 "the model is placed on " + std::to_string(placement->devices.size()) + " devices, and at most " +
                     std::to_string(Whereabouts::max_members) + " act together",
                 {},
                 {}};
  for (const std::string& name : placement->devices) {
    auto device = device_called(name, options);
    if (!device) {
      Error& e = device.error();
      if (options.place.empty() && !out.rules.empty()) {   // the file's own lines
        e.notes.push_back("for what `place` puts on " + name);
        e.help += std::string(e.help.empty() ? "" : "; ") + "a device of one's own choice (--device cpu) takes the place of `place`";
      } else if (out.rules.size() > 1) {
        e.notes.push_back("for what is placed on " + name);
      }
      return std::move(e);
    }
    numbers.push_back(static_cast<int>(members.size()));
    members.push_back({name, std::move(*device)});
  }
  set_members(tree, *placement, numbers);
  if (members.size() == 1) {
    out.name = members[0].name;
    out.device = members[0].device;
  } else {
    out.set = std::make_shared<DeviceSet>(std::move(members));
    out.device = out.set;
  }
  return out;
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
  if (write && device.members() > 1) return Error{"pack-split", "a model on several devices has no pack", {}, "pack it for one device"};
  if (options.pack == PackUse::none || device.members() > 1 || (!write && !in_files(checkpoint))) return loader.from_checkpoint();
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

Result<std::shared_ptr<Device>> device_called(const std::string& name, const LoadOptions& options) {
  for (const auto& [key, device] : options.devices)
    if (whole_device_name(key) == name) return device;
  auto device = open_device(name, options.cpu, options.vulkan);
  if (!device) return std::move(device.error());
  return std::shared_ptr<Device>(std::move(*device));
}

void set_members(const ModuleTree& tree, const Placement& placement, std::span<const int> members) {
  const auto member = [&](int device) { return members[static_cast<std::size_t>(device)]; };
  for (std::size_t i = 0; i < placement.modules.size(); ++i) tree.bottom_up()[i]->set_member(member(placement.modules[i]));
  for (std::size_t i = 0; i < placement.weights.size(); ++i) tree.weights()[i].weight->member = member(placement.weights[i]);
  for (const ModuleTree::NamedState& s : tree.states()) s.slot->member = s.of->member();
}

namespace {

Status fill_all(Residence& here, const char* model, const ModuleTree& tree, const LoadSource& source, const std::vector<bool>* which,
                LoadReport& report) {
  const LoadOptions& options = source.options;
  const CheckpointIndex& checkpoint = *source.checkpoint;
  std::vector<MappingWeight> weights;
  for (const NamedParameter& p : tree.weights()) weights.push_back(mapping_weight(p));
  const Mapping mapping = map_weights(weights, source.rules, checkpoint, {options.strict, options.auto_cast, &options.weights});
  if (!mapping.problems.empty()) return as_error(mapping);
  report.notes.insert(report.notes.end(), mapping.notes.begin(), mapping.notes.end());
  auto merge = open_adapters(options, weights, source.adapter_rules, mapping);
  if (!merge) return std::move(merge.error());
  report.notes.insert(report.notes.end(), merge->notes().begin(), merge->notes().end());
  try {
    Loader loader(here, source.checkpoint, tree.weights(), mapping, *merge, options, report);
    if (Status s = which != nullptr ? loader.from_checkpoint(which)
                                    : load_packed(loader, model, *here.device, checkpoint, weights, mapping, options, report);
        !s)
      return s;
    ModelBinder binder(here);
    for (Module* m : tree.bottom_up()) binder.bind(*m);
    here.device->enter(0);
  } catch (StepFailure& f) { return std::move(f.error); } catch (const std::bad_alloc&) {
    return Error{"out-of-memory", "no memory is left for the weights", {}, {}};
  }
  if (Status s = here.device->finish(); !s) return s;
  for (const auto& file : here.files)
    if (Status s = file->intact(); !s) return s;
  return {};
}

}  // namespace

Status fill(Residence& here, const char* model, const ModuleTree& tree, const LoadSource& source, const std::vector<bool>* which,
            LoadReport& report) {
  Status done = fill_all(here, model, tree, source, which, report);
  if (!done) {                                             // others may use the device: they find it as it was
    here.device->enter(0);
    static_cast<void>(here.device->finish());
  }
  return done;
}

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
  const ModuleTree tree(*this);
  auto placed = open_devices(tree, options.place.empty() ? placement() : options.place, options);
  if (!placed) return std::move(placed.error());
  if (options.around) {
    placed->device = options.around(std::move(placed->device));
    placed->set.reset();
    placed->name.clear();
  }
  const Mode mode = options.prefer_fast && placed->device->has_fast_mode() ? Mode::fast : options.mode;
  if (mode == Mode::fast && !placed->device->has_fast_mode())
    return Error{"mode", "mode fast is not carried out on " + placed->device->description(), {}, "mode exact is, on every device"};
  device_ = placed->device;
  impl_ = std::make_unique<ModelImpl>();
  impl_->here = std::make_unique<Residence>(std::move(*placed), mode);
  impl_->source = {std::make_shared<const CheckpointIndex>(checkpoint), rules, adapter_rules, options};
  impl_->states = tree.states();
  for (Module* m : tree.bottom_up()) m->model_ = this;
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

  if (Status s = fill(*impl_->here, name(), tree, impl_->source, nullptr, report_); !s) return s;
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

}  // namespace modelc
