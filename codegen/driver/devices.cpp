// devices: what can run models here, what its memory holds, and what of a model would fit.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "codegen/driver/commands.h"
#include "codegen/driver/model_sizes.h"
#include "runtime/base/host_memory.h"
#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/device/device.h"

namespace modelc::driver {

namespace code = diag::code;

namespace {

std::string bytes_text(std::int64_t n) { return human_bytes(static_cast<std::uint64_t>(n)); }

// A device and what it would have of the model.
struct Asked {
  DeviceInfo info;
  std::int64_t room = 0;
  bool fast = false;                             // as `run` takes it without --mode
  Result<HeldModel> held = Error{};              // void without a model
  Fit fit;
  std::int64_t elsewhere = 0;                    // of a part: what the CPU then takes
};

std::vector<Asked> ask(const std::vector<DeviceInfo>& all, const ModelSizes& model) {
  std::vector<Asked> out;
  for (const DeviceInfo& info : all) {
    Asked a;
    a.info = info;
    a.room = room_of(info.memory, info.free);
    auto device = open_device(info.name, {});
    if (device) {
      a.fast = (*device)->has_fast_mode();
      a.held = model.on(**device, a.fast);
      if (a.held) a.fit = what_fits(*a.held, model.list(), info.name, a.room);
      // Together with a GPU the CPU computes as that does, and keeps its states so.
      if (a.held && a.fit.kind == Fit::Kind::part) {
        auto cpu = open_device("cpu", {});
        const auto rest = cpu ? model.on(**cpu, a.fast) : Result<HeldModel>(std::move(cpu.error()));
        if (rest) a.elsewhere = bytes_without_first(*rest, a.fit.elements);
        else a.held = rest.error();
      }
    } else {
      a.held = std::move(device.error());
    }
    out.push_back(std::move(a));
  }
  return out;
}

// What of the model fits, in words.
std::vector<std::string> fit_lines(const Asked& a, const ModelSizes& model, std::int64_t cpu_room) {
  if (!a.held) return {model.name() + " cannot run there: " + a.held.error().message};
  const Fit& f = a.fit;
  std::string needs = fmt::format("{}: weights {}", model.name(), bytes_text(f.weights));
  if (model.keeps_states())
    needs += fmt::format(", states {} ({} of one sequence{})", bytes_text(f.caches),
                         counted(static_cast<std::uint64_t>(model.context()), "position"), a.fast ? ", mode fast" : "");
  needs += fmt::format(", activations {} ({}): {} together", bytes_text(f.activations),
                       counted(static_cast<std::uint64_t>(model.tokens()), "token"), bytes_text(f.total()));
  if (a.info.memory == 0) return {needs, "how much memory there is, is not known"};
  const std::string room = bytes_text(a.room);
  const ModelList& list = model.list();
  switch (f.kind) {
    case Fit::Kind::whole: return {needs, fmt::format("it fits whole, into {}: --device {}", room, f.place)};
    case Fit::Kind::part:
      return {needs,
              fmt::format("{} of {} of {} fit into {}, with {}: --device '{}'", f.elements,
                          counted(static_cast<std::uint64_t>(list.elements), "element"), list.name, room, bytes_text(f.taken), f.place),
              fmt::format("the CPU would have {} of it, and has room for {}{}", bytes_text(a.elsewhere), bytes_text(cpu_room),
                          a.elsewhere > cpu_room ? ": too little" : "")};
    case Fit::Kind::nothing: break;
  }
  if (a.info.name == "cpu")
    return {needs, fmt::format("it does not fit into {}: weights would be read from their files again and again", room)};
  if (list.name.empty()) return {needs, fmt::format("it does not fit into {}, and has no list of modules to divide it by", room)};
  return {needs, fmt::format("nothing of it fits into {}: {}.0 takes {} with the activations", room, list.name,
                             bytes_text(bytes_of_first(*a.held, 1)))};
}

Json fit_json(const Asked& a, const ModelSizes& model) {
  JsonObject j;
  j.set("model", Json(model.name()));
  if (!a.held) {
    j.set("error", Json(a.held.error().message));
    return Json(std::move(j));
  }
  const Fit& f = a.fit;
  j.set("context", Json(model.context()));
  j.set("tokens", Json(model.tokens()));
  j.set("mode", Json(a.fast ? "fast" : "exact"));
  j.set("weights", Json(f.weights));
  j.set("states", Json(f.caches));
  j.set("activations", Json(f.activations));
  j.set("total", Json(f.total()));
  if (a.info.memory == 0) return Json(std::move(j));
  j.set("fits", Json(f.kind == Fit::Kind::whole ? "whole" : f.kind == Fit::Kind::part ? "part" : "nothing"));
  if (f.kind == Fit::Kind::part) {
    j.set("list", Json(model.list().name));
    j.set("elements", Json(f.elements));
    j.set("of", Json(model.list().elements));
    j.set("taken", Json(f.taken));
    j.set("on_cpu", Json(a.elsewhere));
  }
  if (!f.place.empty()) j.set("device", Json(f.place));
  return Json(std::move(j));
}

void print_json(const DeviceInfo& d, const Asked* asked, const ModelSizes* model) {
  JsonObject j;
  j.set("name", Json(d.name));
  j.set("description", Json(d.description));
  JsonArray limits;
  for (const std::string& l : d.limits) limits.push_back(Json(l));
  j.set("limits", Json(std::move(limits)));
  j.set("usable", Json(d.usable));
  if (d.memory > 0) {
    j.set("memory", Json(d.memory));
    j.set("free", Json(d.free));
    j.set("room", Json(room_of(d.memory, d.free)));
  }
  if (asked != nullptr) j.set("fit", fit_json(*asked, *model));
  std::printf("%s\n", dump(Json(std::move(j))).c_str());
}

std::string memory_line(const DeviceInfo& d, bool alone) {
  std::string line = "memory: " + human_bytes(d.memory) + ", " + human_bytes(d.free) + " free";
  if (alone && d.usable)
    line += fmt::format(": room for {} of weights, states and activations beside {} that are kept free",
                        bytes_text(room_of(d.memory, d.free)), human_bytes(kept_free(d.memory)));
  return line;
}

}  // namespace

int devices_command(const Options& o) {
  std::vector<DeviceInfo> all;
  const HostMemory host = host_memory();
  if (auto cpu = open_cpu({})) all.push_back({"cpu", (*cpu)->description(), {}, true, host.total, host.available});
  auto vulkan = vulkan_devices();
  if (vulkan) all.insert(all.end(), vulkan->begin(), vulkan->end());

  std::optional<ModelSizes> model;
  if (!o.files.empty() || !o.checkpoint.empty() || o.context) {
    Session s(o);
    // A plan for all that are here: a custom operation has no steps where it may run as a shader.
    s.vulkan = std::any_of(all.begin(), all.end(), [](const DeviceInfo& d) { return d.usable && d.name != "cpu"; });
    if (o.files.empty())
      s.sink.error(code::bad_option, "devices", "which model would fit is asked for, and no model file is given")
          .help("modelc devices FILE.model --checkpoint PATH");
    else if (o.checkpoint.empty())
      s.sink.error(code::bad_option, "devices", "how much a model takes depends on how its weights are stored, and no checkpoint is given")
          .help("modelc devices FILE.model --checkpoint PATH");
    else model = ModelSizes::of(s, o.context);
    const bool good = s.report();
    if (!good || !model) return std::max(1, s.status());
  }

  std::vector<Asked> asked;
  if (model) {
    std::vector<DeviceInfo> usable;
    std::copy_if(all.begin(), all.end(), std::back_inserter(usable), [](const DeviceInfo& d) { return d.usable; });
    asked = ask(usable, *model);
  }
  const std::int64_t cpu_room = room_of(host.total, host.available);
  for (const DeviceInfo& d : all) {
    const auto a = std::find_if(asked.begin(), asked.end(), [&](const Asked& x) { return x.info.name == d.name; });
    if (o.json) {
      print_json(d, a == asked.end() ? nullptr : &*a, model ? &*model : nullptr);
      continue;
    }
    std::printf("%s  %s\n", d.name.c_str(), d.description.c_str());
    if (d.memory > 0) std::printf("  %s\n", memory_line(d, !model).c_str());
    for (const std::string& l : d.limits) std::printf("  %s\n", l.c_str());
    if (a != asked.end())
      for (const std::string& l : fit_lines(*a, *model, cpu_room)) std::printf("  %s\n", l.c_str());
  }
  if (!vulkan) std::fprintf(stderr, "note: no Vulkan device: %s\n", vulkan.error().message.c_str());
  else if (vulkan->empty()) std::fputs("note: Vulkan is there, and no device with it\n", stderr);
  return 0;
}

}  // namespace modelc::driver
