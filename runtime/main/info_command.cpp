// info: the model's modules and weights as loaded, and what the runtime is.
#include <cstdio>

#include "runtime/base/build_info.h"
#include "runtime/base/strings.h"
#include "runtime/main/options.h"

namespace modelc::main_program {

int run_info(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  Model& m = *loaded->model;
  const LoadReport& r = m.load_report();
  if (o.json) {
    JsonObject j;
    j.set("model", Json(m.name()));
    j.set("device", Json(m.device().description()));
    j.set("context", Json(m.context()));
    j.set("weights", Json(r.weights));
    j.set("parameters", Json(r.parameters));
    j.set("bytes", Json(r.bytes));
    JsonObject versions;
    versions.set("runtime", Json(runtime_version));
    versions.set("generated_by", Json(factory.version));
    for (const auto& [what, version] : runtime_built_with()) versions.set(what, Json(version));
    j.set("versions", Json(std::move(versions)));
    JsonArray list;
    for (const NamedParameter& p : m.parameters()) {
      JsonObject w;
      w.set("name", Json(p.name));
      w.set("shape", Json(p.weight->spec.shape.text()));
      w.set("source", Json(p.weight->source));
      list.push_back(Json(std::move(w)));
    }
    j.set("tensors", Json(std::move(list)));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
    return 0;
  }
  std::printf("%s on %s: %lld weights, %s parameters, %s; context %lld\n", m.name(), m.device().description().c_str(),
              static_cast<long long>(r.weights), grouped(r.parameters).c_str(), human_bytes(static_cast<std::uint64_t>(r.bytes)).c_str(),
              static_cast<long long>(m.context()));
  std::printf("from %s by modelc %s; runtime %s", factory.file, factory.version, runtime_version);
  for (const auto& [what, version] : runtime_built_with()) std::printf(", %s %s", what.c_str(), version.c_str());
  std::printf("\n");
  for (const NamedParameter& p : m.parameters())
    std::printf("  %s %s  %s\n", p.name.c_str(), p.weight->spec.shape.text().c_str(), p.weight->source.c_str());
  return 0;
}

}  // namespace modelc::main_program
