// The text form of a module: what `modelc dump --stage graph` shows, and what reader.h reads back.
//
//   graph 1
//   module Tiny from "tiny.model" root Tiny
//   context 64
//   axis tokens: 1..
//   config hidden_size "dim" = 40
//   checkpoint "safetensors" { alias "lm_head.weight" = "model.embed_tokens.weight" }
//
//   class Linear: Linear "in_dim: 40, out_dim: 64" leaf {
//     weight weight: f32[64, 40] matrix shape "[out_dim, in_dim]" numbers "[4 * 16, 40]" from "hidden_size = 40 from config.json:3"
//   }
//   class Mixer: Mixer "size: 40" {
//     child q_proj: Linear
//     state cache: kv_cache[2, 16, 16] window 4
//     forward forward(%x: f32[tokens, 40], %at: Batch) {
//       %1: f32[64, 40] = weight "q_proj.weight"
//       %q: f32[tokens, 64] stage "q_proj" = linear(%x, %1, _) source "q_proj(x)" @ "tiny.model":12:9
//       %h: f32[tokens, 64] = repeat "layers"(%q) { carry %h.2: f32[tokens, 64]   …   next %7 }
//       return %h as "logits"
//     }
//   }
//
// A value is %name, the second of a name %name.2, an unnamed one %number, in the order of the text; `_` is an operand
// that is left out; attributes stand after `;` (`literal(value: 2.0)` has no operands). `@` gives a place. The text
// says all that a module holds, so print(read(print(m))) == print(m); the same module gives the same bytes.
#pragma once

#include <string>

#include "frontend/graph/graph.h"

namespace modelc::graph {

struct PrintOptions {
  bool places = true;                            // `source "…"` and `@ "file":line:column`
};
// Of any module, even one that the verifier refuses; what cannot be named is printed as "?", which the reader refuses.
std::string print(const Module& module, const PrintOptions& options = {});

// One operation of a function as in the whole text, without body: for messages.
std::string print_op(const Module& module, const Function& function, const Op& op);

}  // namespace modelc::graph
