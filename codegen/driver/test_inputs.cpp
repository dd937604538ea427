#include "codegen/driver/test_inputs.h"

#include <fmt/format.h>

#include <cmath>

#include "frontend/graph/types.h"
#include "frontend/sema/test_programs.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc::driver {

namespace eval = graph::eval;

namespace {

Error problem(const std::string& message, std::string help = "") { return Error{"test", message, {}, std::move(help)}; }

Result<eval::Array> one(const std::string& name, eval::Array a, const graph::Type& type, graph::DimTable& dims, bool batched) {
  const auto tokens = dims.find_axis("tokens");
  const bool by_token = batched && tokens && !type.shape.empty() && type.shape[0] == dims.of_axis(*tokens);
  const std::size_t lead = by_token && a.shape.size() == type.shape.size() + 1 ? 1 : 0;
  bool fits = a.shape.size() == type.shape.size() + lead;
  for (std::size_t i = 0; fits && i < type.shape.size(); ++i) {
    const auto size = dims.value(type.shape[i]);
    fits = !size || *size == a.shape[i + lead];
  }
  if (!fits) {
    const TensorShape found(a.shape.begin(), a.shape.end());
    return problem(fmt::format("`input {}` is {}, and {} is wanted", name, shape_text(found), graph::text(type, dims)),
                   "`… as [2, 3]` gives numbers their shape");
  }
  if (is_float(type.dtype)) return a;
  eval::Array whole = eval::zeros(type.dtype, a.shape);
  const auto bound = type.index_bound ? dims.value(*type.index_bound) : std::nullopt;
  for (std::size_t i = 0; i < a.reals.size(); ++i) {
    const float v = a.reals[i];
    const bool good = v == std::floor(v) && std::abs(v) <= 0x1p24F && (!type.index_bound || v >= 0) &&
                      (!bound || v < static_cast<float>(*bound)) && (type.dtype != DType::boolean || v == 0 || v == 1);
    if (!good) return problem(fmt::format("`input {}` has {} at {}, and {} is wanted", name, shortest(v), i, graph::text(type, dims)));
    whole.integers[i] = static_cast<std::int64_t>(v);
  }
  return whole;
}

}  // namespace

std::optional<Numbers> numbers_of(Session& s, const sema::ConfigInput* config, const std::vector<const ast::InputTestItem*>& items) {
  if (items.empty()) return Numbers();
  const auto program = sema::inputs_program(s.sources, s.imports, config, items, sema_options(s.options), s.sink);
  if (!program) return std::nullopt;
  eval::Evaluator e(program->graph, [](const std::string&, const graph::WeightDecl&) { return std::nullopt; });
  auto outputs = e.run("forward", {});
  if (!outputs) {
    s.sink.error(diag::code::wrong_operand, items[0]->value->span, outputs.error());
    return std::nullopt;
  }
  Numbers numbers;
  for (eval::Output& o : *outputs) {
    eval::Array a = std::move(o.value);
    if (!is_float(a.dtype)) a.reals.assign(a.integers.begin(), a.integers.end());
    a.integers.clear();
    a.dtype = DType::f32;
    numbers.emplace_back(o.name, std::move(a));
  }
  return numbers;
}

Result<Numbers> fitted(const Numbers& given, const graph::Module& module) {
  Numbers out;
  graph::DimTable dims = module.dims;
  for (const auto& [name, value] : given) {
    std::vector<std::string> names;
    bool found = false;
    for (const graph::Function& f : module.of(module.root).functions) {
      if (f.kind != graph::FunctionKind::forward && f.kind != graph::FunctionKind::entry) continue;
      bool batched = false;
      for (const graph::Parameter& p : f.inputs) batched = batched || f.values[p.value.index].type.kind == graph::TypeKind::batch;
      for (const graph::Parameter& p : f.inputs) {
        const graph::Type& type = f.values[p.value.index].type;
        if (type.kind != graph::TypeKind::tensor) continue;
        names.push_back(p.name);
        if (p.name != name || found) continue;
        auto array = one(name, value, type, dims, batched);
        if (!array) return std::move(array.error());
        out.emplace_back(name, std::move(*array));
        found = true;
      }
    }
    if (!found)
      return problem(fmt::format("`input {}`: {} takes no input of this name", name, module.name), diag::did_you_mean(name, names));
  }
  return out;
}

Status write_numbers(const std::string& path, const Numbers& numbers, const std::string& with) {
  SafetensorsWriter writer;
  if (!with.empty()) {
    auto opened = open_checkpoint(with);
    if (!opened) return std::move(opened.error());
    const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
    CheckpointData data(index);
    for (const TensorInfo& t : index->tensors()) {
      for (const auto& [name, value] : numbers)
        if (name == t.name) return problem(fmt::format("`input {}`: {} holds it too", name, with));
      const auto dtype = dtype_of(t.encoding);
      if (!dtype) return problem(fmt::format("{} holds {} in blocks", with, t.name));
      auto bytes = data.bytes(t);
      if (!bytes) return std::move(bytes.error());
      if (Status s = writer.add(t.name, *dtype, {t.shape.begin(), t.shape.end()}, {bytes->data, bytes->size}); !s) return s;
    }
  }
  for (const auto& [name, a] : numbers) {
    if (is_float(a.dtype)) {
      if (Status s = writer.add_f32(name, a.shape, a.reals); !s) return s;
      continue;
    }
    std::vector<std::int32_t> whole(a.integers.begin(), a.integers.end());
    if (Status s = writer.add_i32(name, a.shape, whole); !s) return s;
  }
  return writer.write(path);
}

}  // namespace modelc::driver
