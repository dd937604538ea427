#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_pattern.h"
#include "runtime/device/model.h"

namespace modelc {
namespace {

struct Printer {
  std::vector<TensorPattern> filter;
  std::string export_path;
  std::FILE* out = nullptr;
  SafetensorsWriter writer;
  std::map<std::string, int> times;                        // that a name was seen
  Status failed;

  void see(const LayerValue& v) {
    const std::string name(v.name);
    if (!filter.empty() && std::none_of(filter.begin(), filter.end(), [&](const auto& p) { return p.matches(name); })) return;
    if (out != nullptr) print(name, v);
    if (export_path.empty() || !failed) return;
    const int n = ++times[name];
    failed = writer.add_f32(n == 1 ? name : name + "(" + std::to_string(n) + ")", {v.shape.axes().begin(), v.shape.axes().end()}, v.data);
  }

  void print(const std::string& name, const LayerValue& v) const {
    std::fprintf(out, "%s %s", name.c_str(), v.shape.text().c_str());
    if (!v.data.empty()) {
      float low = v.data[0], high = v.data[0];
      double sum = 0;
      std::size_t odd = 0;
      for (float x : v.data) {
        if (!std::isfinite(x)) ++odd;
        low = std::min(low, x);
        high = std::max(high, x);
        sum += x;
      }
      std::fprintf(out, " min %.6g max %.6g mean %.6g", low, high, sum / static_cast<double>(v.data.size()));
      if (odd > 0) std::fprintf(out, " NOT FINITE %zu", odd);
      std::fputs(":", out);
      const std::size_t shown = std::min<std::size_t>(v.data.size(), 8);
      for (std::size_t i = 0; i < shown; ++i) std::fprintf(out, " %.6g", v.data[i]);
      if (shown < v.data.size()) std::fputs(" …", out);
    }
    std::fputs("\n", out);
  }

  Status finish() {
    if (export_path.empty()) return {};
    if (!failed) return failed;
    return writer.write(export_path);
  }
};

}  // namespace

PrintHook make_print_hook(const PrintHookOptions& options) {
  auto printer = std::make_shared<Printer>();
  for (const std::string& f : options.filter) printer->filter.emplace_back(f);
  printer->export_path = options.export_path;
  printer->out = options.out;
  return {[printer](const LayerValue& v) { printer->see(v); }, [printer] { return printer->finish(); }};
}

}  // namespace modelc
