// The fields of everything in a plan by name, in one place for the printer and the reader. Structured bindings name all
// members, so that one that is added to plan.h and forgotten here does not compile.
//
// `v(name, value)` is called for each field; `v.pack(name, index)` for an index into Class::packs.
#pragma once

#include <concepts>
#include <type_traits>

#include "codegen/plan/plan.h"

namespace modelc::plan {

template <class S, class T>
concept As = std::same_as<std::remove_const_t<S>, T>;

template <class V, As<Linear> S> void fields(V& v, S& s) {
  auto& [pack, x, outs] = s;
  v.pack("product", pack), v("x", x), v("outs", outs);
}
template <class V, As<LinearAdd> S> void fields(V& v, S& s) {
  auto& [pack, x, residual, out, inner, rounded] = s;
  v.pack("product", pack), v("x", x), v("residual", residual), v("out", out), v("inner", inner), v("rounded", rounded);
}
template <class V, As<LinearMap> S> void fields(V& v, S& s) {
  auto& [pack, x, kernel, out, inner, rounded] = s;
  v.pack("product", pack), v("x", x), v("kernel", kernel), v("out", out), v("inner", inner), v("rounded", rounded);
}
template <class V, As<Take> S> void fields(V& v, S& s) {
  auto& [table, rows, scale, out] = s;
  v("table", table), v("rows", rows), v("scale", scale), v("out", out);
}
template <class V, As<TakeRows> S> void fields(V& v, S& s) {
  auto& [x, rows, out] = s;
  v("x", x), v("rows", rows), v("out", out);
}
template <class V, As<RmsNorm> S> void fields(V& v, S& s) {
  auto& [x, w, eps, offset, out] = s;
  v("x", x), v("w", w), v("eps", eps), v("offset", offset), v("out", out);
}
template <class V, As<AddRmsNorm> S> void fields(V& v, S& s) {
  auto& [x, y, w, eps, offset, sum, out] = s;
  v("x", x), v("y", y), v("w", w), v("eps", eps), v("offset", offset), v("sum", sum), v("out", out);
}
template <class V, As<LayerNorm> S> void fields(V& v, S& s) {
  auto& [x, w, b, eps, out] = s;
  v("x", x), v("w", w), v("b", b), v("eps", eps), v("out", out);
}
template <class V, As<Rope> S> void fields(V& v, S& s) {
  auto& [x, cos, sin, halves, out] = s;
  v("x", x), v("cos", cos), v("sin", sin), v("halves", halves), v("out", out);
}
template <class V, As<Append> S> void fields(V& v, S& s) {
  auto& [state, k, value, at] = s;
  v("state", state), v("k", k), v("v", value), v("at", at);
}
template <class V, As<CrossSet> S> void fields(V& v, S& s) {
  auto& [state, k, value, at] = s;
  v("state", state), v("k", k), v("v", value), v("at", at);
}
template <class V, As<Attend> S> void fields(V& v, S& s) {
  auto& [q, state, k, value, at, sinks, keep, causal, scale, softcap, window, out] = s;
  v("q", q), v("state", state), v("k", k), v("v", value), v("at", at), v("sinks", sinks), v("keep", keep);
  v("causal", causal), v("scale", scale), v("softcap", softcap), v("window", window), v("out", out);
}
template <class V, As<AttendLatent> S> void fields(V& v, S& s) {
  auto& [q_nope, q_rope, state, at, up, causal, scale, out] = s;
  v("q_nope", q_nope), v("q_rope", q_rope), v("state", state), v("at", at), v("up", up);
  v("causal", causal), v("scale", scale), v("out", out);
}
template <class V, As<Map> S> void fields(V& v, S& s) {
  auto& [kernel, inputs, out] = s;
  v("kernel", kernel), v("inputs", inputs), v("out", out);
}
template <class V, As<Copy> S> void fields(V& v, S& s) {
  auto& [from, to] = s;
  v("from", from), v("to", to);
}
template <class V, As<Layout> S> void fields(V& v, S& s) {
  auto& [kind, axis, other, start, stop, step, shape] = s;
  v("kind", kind), v("axis", axis), v("other", other), v("start", start), v("stop", stop), v("step", step), v("shape", shape);
}
template <class V, As<Part> S> void fields(V& v, S& s) {
  auto& [from, read, write] = s;
  v("from", from), v("read", read), v("write", write);
}
template <class V, As<Rearrange> S> void fields(V& v, S& s) {
  auto& [parts, fill, out] = s;
  v("parts", parts), v("fill", fill), v("out", out);
}
template <class V, As<Reduce> S> void fields(V& v, S& s) {
  auto& [op, x, where, axis, eps, out] = s;
  v("op", op), v("x", x), v("where", where), v("axis", axis), v("eps", eps), v("out", out);
}
template <class V, As<Route> S> void fields(V& v, S& s) {
  auto& [scores, bias, groups, keep_groups, top2_sum, renormalize, scale, chosen, weights] = s;
  v("scores", scores), v("bias", bias), v("groups", groups), v("keep_groups", keep_groups), v("top2_sum", top2_sum);
  v("renormalize", renormalize), v("scale", scale), v("chosen", chosen), v("weights", weights);
}
template <class V, As<Experts> S> void fields(V& v, S& s) {
  auto& [x, chosen, weights, gate, up, down, gate_bias, up_bias, down_bias, kernel, out] = s;
  v("x", x), v("chosen", chosen), v("weights", weights), v("gate", gate), v("up", up), v("down", down);
  v("gate_bias", gate_bias), v("up_bias", up_bias), v("down_bias", down_bias), v("kernel", kernel), v("out", out);
}
template <class V, As<Conv> S> void fields(V& v, S& s) {
  auto& [x, w, b, stride, padding, dilation, groups, out] = s;
  v("x", x), v("w", w), v("b", b), v("stride", stride), v("padding", padding), v("dilation", dilation);
  v("groups", groups), v("out", out);
}
template <class V, As<CausalConv1d> S> void fields(V& v, S& s) {
  auto& [x, w, b, state, at, out] = s;
  v("x", x), v("w", w), v("b", b), v("state", state), v("at", at), v("out", out);
}
template <class V, As<SsdScan> S> void fields(V& v, S& s) {
  auto& [x, dt, a, b, c, d, state, at, out] = s;
  v("x", x), v("dt", dt), v("a", a), v("b", b), v("c", c), v("d", d), v("state", state), v("at", at), v("out", out);
}
template <class V, As<GatedDelta> S> void fields(V& v, S& s) {
  auto& [q, k, value, decay, beta, state, at, scale, normalize, out] = s;
  v("q", q), v("k", k), v("v", value), v("decay", decay), v("beta", beta), v("state", state), v("at", at);
  v("scale", scale), v("normalize", normalize), v("out", out);
}
template <class V, As<Call> S> void fields(V& v, S& s) {
  auto& [member, function, inputs, at, outs] = s;
  v("member", member), v("function", function), v("inputs", inputs), v("at", at), v("outs", outs);
}
template <class V, As<Fill> S> void fields(V& v, S& s) {
  auto& [values, out] = s;
  v("values", values), v("out", out);
}
template <class V, As<Carried> S> void fields(V& v, S& s) {
  auto& [current, next, rounded] = s;
  v("current", current), v("next", next), v("rounded", rounded);
}
template <class V, As<graph::Dispatch> S> void fields(V& v, S& s) {
  auto& [shader, local_size, groups] = s;
  v("shader", shader), v("local_size", local_size), v("groups", groups);
}
template <class V, As<Custom> S> void fields(V& v, S& s) {
  auto& [name, inputs, sizes, dispatches, host, outs, body] = s;
  v("name", name), v("inputs", inputs), v("sizes", sizes), v("dispatches", dispatches), v("host", host);
  v("outs", outs), v("body", body);
}
template <class V, As<Repeat> S> void fields(V& v, S& s) {
  auto& [member, variable, carried, body] = s;
  v("member", member), v("variable", variable), v("carried", carried), v("body", body);
}
template <class V, As<Trace> S> void fields(V& v, S& s) {
  auto& [member, name, value, element] = s;
  v("member", member), v("name", name), v("value", value), v("element", element);
}
template <class V, As<Rounding> S> void fields(V& v, S& s) {
  auto& [value, to] = s;
  v("value", value), v("to", to);
}
// Beside those of its kind, whose names are others.
template <class V, As<Step> S> void fields(V& v, S& s) {
  auto& [kind, roundings, traces, replaces, where] = s;
  v("roundings", roundings), v("traces", traces), v("replaces", replaces), v("place", where);
}
template <class V, As<Buffer> S> void fields(V& v, S& s) {
  auto& [name, kind, type, bytes, offset, first, last] = s;
  v("kind", kind), v("type", type), v("bytes", bytes), v("offset", offset), v("first", first), v("last", last);
}
// The buffers first: all else names them.
template <class V, As<Function> S> void fields(V& v, S& s) {
  auto& [name, kind, signature, shapes, inputs, input_names, outputs, output_names, at, advances, buffers, steps, frame_bytes, peak_bytes,
         where] = s;
  v("kind", kind), v("signature", signature), v("shapes", shapes), v("at", at), v("advances", advances), v("where", where);
  v("frame", frame_bytes), v("peak", peak_bytes), v("buffers", buffers);
  v("inputs", inputs), v("input_names", input_names), v("outputs", outputs), v("output_names", output_names);
  v("steps", steps);
}
template <class V, As<Pack> S> void fields(V& v, S& s) {
  auto& [name, weights, biases] = s;
  v("weights", weights), v("biases", biases);
}
template <class V, As<StepValue> S> void fields(V& v, S& s) {
  auto& [name, shape, keys, compute] = s;
  v("shape", shape), v("keys", keys), v("compute", compute);
}
template <class V, As<Class> S> void fields(V& v, S& s) {
  auto& [source, packs, step_values, functions] = s;
  v("products", packs), v("once", step_values), v("functions", functions);
}
template <class V, As<MapKernel> S> void fields(V& v, S& s) {
  auto& [name, inputs, nodes, source] = s;
  v("inputs", inputs), v("nodes", nodes), v("source", source);
}

}  // namespace modelc::plan
