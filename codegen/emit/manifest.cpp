// FILE.manifest.json: what the generated code expects of a checkpoint, for other tools.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "codegen/emit/emit.h"

namespace modelc::emit {

File manifest(const plan::Program& p, const Options& o) {
  using nlohmann::ordered_json;
  const graph::Module& m = *p.graph;
  ordered_json root;
  root["modelc"] = o.version;
  root["model"] = o.class_name;
  root["file"] = m.file;
  if (m.context) root["context"] = *m.context;
  const auto memory = [&](graph::DimId d) { return p.dims->text(d); };
  root["memory"] = {{"arena_bytes", memory(p.peak_bytes)}, {"step_value_bytes", memory(p.step_value_bytes)}};

  const graph::CheckpointRules* rules = nullptr;
  for (const graph::CheckpointRules& r : m.checkpoints)
    if (r.format == "safetensors") rules = &r;
  ordered_json weights = ordered_json::array();
  for (const graph::WeightInstance& w : graph::weight_instances(m)) {
    ordered_json j;
    j["name"] = w.name;
    ordered_json shape = ordered_json::array();
    for (graph::DimId d : w.decl->type.shape) shape.push_back(p.dims->value(d).value_or(-1));
    j["shape"] = std::move(shape);
    j["formula"] = w.decl->shape_text;
    j["encoding"] = w.decl->required_dtype ? std::string(modelc::name(*w.decl->required_dtype)) : "as stored";
    static constexpr const char* roles[] = {"matrix", "table", "vector"};
    j["role"] = roles[static_cast<int>(w.decl->role)];
    j["source"] = {{"safetensors", w.name}};
    if (rules)
      for (const auto& a : rules->aliases)
        if (a.weight == w.name && a.when.empty()) j["alias_of"] = a.target;
    if (w.decl->default_value) j["default"] = *w.decl->default_value;
    if (w.use.line) j["declared"] = fmt::format("{}:{}:{}", w.use.file, w.use.line, w.use.column);
    weights.push_back(std::move(j));
  }
  root["weights"] = std::move(weights);
  return {o.file + ".manifest.json", root.dump(2) + "\n"};
}

}  // namespace modelc::emit
