#include "frontend/graph/types.h"

namespace modelc::graph {

std::string shape_text(const std::vector<DimId>& shape, const DimTable& dims) {
  std::string s = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i == 0 ? "" : ", ") + dims.text(shape[i]);
  return s + "]";
}

std::string text(const Type& type, const DimTable& dims) {
  if (type.kind == TypeKind::batch) return "Batch";
  if (type.kind == TypeKind::sequences) return "Sequences";
  std::string s = type.index_bound ? "index(" + dims.text(*type.index_bound) + ")" : std::string(name(type.dtype));
  return s + shape_text(type.shape, dims);
}

std::string_view language_name(StateKind kind) {
  constexpr std::string_view names[] = {"KVCache", "LatentCache", "CrossCache", "Ring", "Recurrent"};
  return names[static_cast<int>(kind)];
}

bool is_value_dtype(DType t) { return t != DType::f64 && t != DType::f8_e4m3 && t != DType::f8_e5m2 && t != DType::u64; }

std::optional<DType> promoted(const Type& a, const Type& b) {
  if (a.dtype == b.dtype) return a.dtype;
  if (a.dtype == DType::boolean || b.dtype == DType::boolean) return std::nullopt;
  if (is_float(a.dtype) != is_float(b.dtype)) return is_float(a.dtype) ? a.dtype : b.dtype;
  if (a.shape.empty() != b.shape.empty()) return a.shape.empty() ? b.dtype : a.dtype;
  if (!is_float(a.dtype)) return std::nullopt;
  if (bits(a.dtype) == bits(b.dtype)) return DType::f32;
  return bits(a.dtype) > bits(b.dtype) ? a.dtype : b.dtype;
}

}  // namespace modelc::graph
