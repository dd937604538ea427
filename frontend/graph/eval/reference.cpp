#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval {

std::optional<std::int64_t> Call::dim(std::string_view attr, std::int64_t absent) const {
  const auto it = op.attrs.find(std::string(attr));
  if (it == op.attrs.end()) return absent;
  const std::optional<DimId> d = dim_of(it->second, dims);
  return d ? dims.evaluate(*d, axis_sizes) : std::nullopt;
}

Reference reference_of(OpKind kind) {
  using K = OpKind;
  switch (kind) {
    case K::linear: return reference::linear;
    case K::matmul: return reference::matmul;
    case K::take: return reference::take;
    case K::put: return reference::put;
    case K::attend: return reference::attend;
    case K::append: return reference::append;
    case K::rope: return reference::rope;
    case K::rms_norm: return reference::rms_norm;
    case K::layer_norm: return reference::layer_norm;
    case K::l2_normalize: return reference::l2_normalize;
    case K::softmax: return reference::softmax;
    case K::sum:
    case K::mean:
    case K::max_reduce:
    case K::min_reduce: return reference::reduce;
    case K::argmax: return reference::argmax;
    case K::cumsum: return reference::cumsum;
    case K::reshape: return reference::reshape;
    case K::cast: return reference::cast;
    case K::slice: return reference::slice;
    case K::concat: return reference::concat;
    case K::stack: return reference::stack;
    case K::split: return reference::split;
    case K::transpose: return reference::transpose;
    case K::repeat_axis: return reference::repeat_axis;
    case K::expand: return reference::expand;
    case K::pad: return reference::pad;
    case K::arange: return reference::arange;
    case K::linspace: return reference::linspace;
    case K::tensor_literal: return reference::tensor_literal;
    case K::one_hot: return reference::one_hot;
    case K::outer: return reference::outer;
    case K::where: return reference::where;
    case K::top_k: return reference::top_k;
    case K::einsum: return reference::einsum;
    case K::take_along: return reference::take_along;
    case K::attend_latent: return reference::attend_latent;
    case K::causal_conv1d: return reference::causal_conv1d;
    case K::ssd_scan: return reference::ssd_scan;
    case K::gated_delta: return reference::gated_delta;
    case K::route: return reference::route;
    case K::moe: return reference::moe;
    case K::conv1d:
    case K::conv2d:
    case K::conv3d: return reference::conv;
    case K::conv_transpose1d: return reference::conv_transpose1d;
    case K::cross_set: return reference::cross_set;
    case K::nibbles: return reference::nibbles;
    case K::e2m1: return reference::e2m1;
    default: break;
  }
  const OpInfo& row = info(kind);
  if (!row.elementwise) return nullptr;
  return row.operands.size() == 1 ? reference::unary : reference::binary;
}

}  // namespace modelc::graph::eval
