// Operations that go over a state, and einsum: how the language writes them, and what is refused of them.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

// A model of width 4 with the members and the body of its forward.
Model body(std::string_view inputs, std::string_view text, std::string_view members) {
  Model m(around("d: dim", std::string(members) + "  forward(" + std::string(inputs) + ") { " + std::string(text) + " }"));
  m.config("{\n \"d\": 4 }");
  return m;
}
std::string graph(std::string_view inputs, std::string_view text, std::string_view members) {
  Model m = body(inputs, text, members);
  return m.part("M.forward");
}
std::string codes(std::string_view inputs, std::string_view text, std::string_view members) { return body(inputs, text, members).codes(); }
std::string said(std::string_view inputs, std::string_view text, std::string_view members) {
  return body(inputs, text, members).messages();
}

}  // namespace

TEST_CASE("a state stands before `at` in the operation that goes over it, or is given by name") {
  const std::string members = "param w: [c.d, 3]  param b: [c.d]  state ring: Ring(2, [c.d])";
  for (const char* call : {"causal_conv1d(x, w, b, ring, at)", "causal_conv1d(x, w, b: b, ring: ring, at: at)"})
    CHECK(has(graph("x: [tokens, c.d], at: Batch", std::string("return ") + call + " + w[0, 0]", members),
              "= causal_conv1d \"ring\"(%x, %1, %2, %at)"));
  CHECK(has(
      graph("x: [tokens, c.d], at: Batch", "return causal_conv1d(x, w, absent, ring, at) + b", members + "  param absent: [c.d] if false"),
      "= causal_conv1d \"ring\"(%x, %1, _, %at)"));

  CHECK(has(graph("x: [tokens, 2, c.d], dt: [tokens, 2], b: [tokens, 1, 3], a: [2], at: Batch",
                  "return ssd_scan(x, dt, a, b, b, a, memory, at)", "state memory: Recurrent([2, c.d, 3])"),
            "= ssd_scan \"memory\"(%x, %dt, %a, %b, %b, %a, %at)"));
  CHECK(has(graph("q: [tokens, 1, c.d], v: [tokens, 2, 3], g: [tokens, 2], at: Batch",
                  "return gated_delta(q, q, v, g, g, memory, at, scale: 0.5, normalize: 1e-6)", "state memory: Recurrent([2, c.d, 3])"),
            "= gated_delta \"memory\"(%q, %q, %v, %g, %g, %at; normalize: 1e-06, scale: 0.5)"));
  CHECK(has(graph("q: [tokens, 2, 3], r: [tokens, 2, 2], l: [tokens, c.d], k: [tokens, 2], at: Batch",
                  "cache.append(l, k, at)  return attend_latent(q, r, cache, at, up: w, mask: \"causal\", scale: 1)",
                  "param w: [10, c.d]  state cache: LatentCache(c.d, 2)"),
            "= attend_latent \"cache\"(%q, %r, %at, %1; mask: \"causal\", scale: 1.0)"));
}

TEST_CASE("the states of a class, with their sizes") {
  Model m =
      body("x: [tokens, c.d], at: Batch", "return causal_conv1d(x, w, none, ring, at)", "param w: [c.d, 3]  state ring: Ring(2, [c.d])");
  CHECK(has(m.part("M"), "state ring: ring[2, 4]"));
  CHECK(has(m.good().resolved, "state ring: Ring(2, 4)"));
}

TEST_CASE("E0349: states of another shape or kind than the operation goes over") {
  CHECK(has(
      said("x: [tokens, c.d], at: Batch", "return causal_conv1d(x, w, none, ring, at)", "param w: [c.d, 3]  state ring: Ring(3, [c.d])"),
      "causal_conv1d: the last axis of w is 3, for a ring of 3 rows and the token itself it is 4"));
  CHECK(codes("x: [tokens, c.d], at: Batch", "return causal_conv1d(x, w, none, ring, at)",
              "param w: [c.d, 3]  state ring: Recurrent([2, c.d])") == "E0349");
  CHECK(has(
      said("q: [tokens, 1, c.d], at: Batch", "return attend(q, cache, at, mask: \"causal\", scale: 1)", "state cache: LatentCache(c.d, 2)"),
      "attend: the state cache is a LatentCache, not a KVCache"));
  CHECK(has(said("l: [tokens, c.d], at: Batch", "cache.append(l, l, at)  return l", "state cache: LatentCache(c.d, 2)"),
            "append: the last axis of v is 4, of the cache 2"));
}

TEST_CASE("E0307, E0313: what is no state, and a state that is left out") {
  CHECK(has(said("x: [tokens, c.d], at: Batch", "return causal_conv1d(x, w, none, x, at)", "param w: [c.d, 3]"),
            "`ring` of `causal_conv1d` is a state, not a tensor"));
  CHECK(codes("x: [tokens, c.d], at: Batch", "return causal_conv1d(x, w, none, at: at)", "param w: [c.d, 3]") == "E0313");
}

TEST_CASE("E0343: a state goes over the tokens of a call once") {
  const char* members = "param w: [c.d, 3]  state ring: Ring(2, [c.d])  parts: [Linear(c.d, c.d) for i in 0..2]";
  Model twice = body("x: [tokens, c.d], at: Batch",
                     "let y = causal_conv1d(x, w, none, ring, at)  return causal_conv1d(y, w, none, ring, at)", members);
  CHECK(has(twice.messages(), "the state `ring` would go over the same tokens a second time"));
  CHECK(has(twice.messages(), "it goes over them here"));
  CHECK(has(
      said("x: [tokens, c.d], at: Batch", "let h = x  for p in parts { h = causal_conv1d(p(h), w, none, ring, at) }  return h", members),
      "the state `ring` would go over the same tokens once in each turn of the loop"));
}

TEST_CASE("E0343: a cache is given the rows of a call's tokens once") {
  const std::string before =
      "module A(n: dim) { state own: KVCache(2, n)  "
      "forward(q: [tokens, 2, n], at: Batch) -> [tokens, 2, n] { own.append(q, q, at) "
      "return attend(q, own, at, mask: \"causal\", scale: 1) } }  "
      "module B(n: dim) { inner: A(n) forward(q: [tokens, 2, n], at: Batch) -> [tokens, 2, n] "
      "{ return inner(q, at) } } ";
  const auto model = [&](const std::string& text) {
    Model m(around("d: dim",
                   "state cache: KVCache(2, c.d)  state latent: LatentCache(c.d, 2)  a: A(c.d)  b: B(c.d)  "
                   "parts: [A(c.d) for i in 0..2]  mixed: [A(c.d) if i == 0 else B(c.d) for i in 0..2]  "
                   "forward(q: [tokens, 2, c.d], l: [tokens, c.d], k: [tokens, 2], at: Batch) { " +
                       text + " }",
                   before));
    m.config("{\n \"d\": 4 }");
    return m.messages();
  };
  const std::string all = "cache.append(q, q, at)  let y = attend(q, cache, at, mask: \"causal\", scale: 1) + a(q, at) + b(q, at)";
  const std::string loop = "  let h = y  for p in parts { h = p(h, at) }";
  const std::string mixed = "  let g = h  for p in mixed { g = p(g, at) }";
  const auto refused = [](const std::string& said, std::string_view what, std::string_view where) {
    CHECK_MESSAGE(has(said, "error[E0343]"), said);
    CHECK_MESSAGE(has(said, what), said);
    CHECK_MESSAGE(has(said, where), said);
  };
  CHECK_MESSAGE(!has(model(all + loop + mixed + " return g"), "E0343"), "each once");
  refused(model(all + " cache.append(y, y, at) return y"), "the state `cache` would be given rows for the same tokens a second time",
          "it is given them here");
  refused(model("latent.append(l, k, at) latent.append(l, k, at) return q"),
          "the state `latent` would be given rows for the same tokens a second time", "it is given them here");
  refused(model(all + " return y + a(q, at)"), "the state `a.own` would be given rows for the same tokens a second time",
          "it is given them by this");
  refused(model(all + " return y + b(q, at)"), "the state `b.inner.own` would be", "it is given them here");
  refused(model("let h = q  for p in parts { cache.append(h, h, at) h = p(h, at) }  return h"),
          "the state `cache` would be given rows for the same tokens once in each turn of the loop", "declared here");
  refused(model("let h = q  for p in parts { h = p(h, at) + a(h, at) }  return h"),
          "the state `a.own` would be given rows for the same tokens once in each turn of the loop", "declare a child");
  refused(model(all + loop + "  for p in parts { h = p(h, at) } return h"), "the state `parts.0.own` would be", "it is given them here");
  refused(model(all + loop + " return h + parts[1](h, at)"), "the state `parts.1.own` would be", "it is given them here");
  refused(model("let h = q  for p in parts { h = p(p(h, at), at) }  return h"), "the state `own` would be", "it is given them here");
  refused(model("let h = q  for p in mixed { h = p(p(h, at), at) }  return h"), "the state `own` would be", "it is given them here");
  // One instance of two names is two children, two states.
  CHECK_FALSE(has(model("let y = parts[0](q, at) + parts[1](q, at) return y"), "E0343"));
}

TEST_CASE("E0343: a ring in a child that is called twice") {
  Model m(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d], at: Batch) { return a(a(x, at), at) }",
                 "module A(n: dim) { param w: [n, 3] state ring: Ring(2, [n]) forward(x: [tokens, n], at: Batch) "
                 "-> [tokens, n] { return causal_conv1d(x, w, none, ring, at) } } "));
  m.config("{\n \"d\": 4 }");
  CHECK(has(m.messages(), "the state `a.ring` would go over the same tokens a second time"));
}

TEST_CASE("einsum: the formula, then the operands") {
  CHECK(has(graph("x: [tokens, 2, c.d]", "return einsum(\"thn,hnr->thr\", x, w)", "param w: [2, c.d, 3]"),
            "%2: f32[tokens, 2, 3] = einsum(%x, %1; formula: \"thn,hnr->thr\")"));
  CHECK(codes("x: [tokens, c.d]", "return einsum(\"tn,nr->tr\", x, w)", "param w: [2, c.d]") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return einsum(\"tn,nr\", x, w)", "param w: [c.d, 2]") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return einsum(x, w)", "param w: [c.d, 2]") == "E0314");
  CHECK(has(graph("x: [tokens, c.d], i: index(4)[tokens, 2]", "return take_along(x, i)", ""), "= take_along(%x, %i)"));
}
