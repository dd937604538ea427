#!/usr/bin/env bash
# Every kind of unknown name is answered with the nearest known one: a table of mistakes, one a line.
source "$(dirname "$0")/lib.sh"

cat > "$work/good.model" <<'MODEL'
language 1
import nn.linear
import nn.norm

axis frames: 2..30
variant Scaling by rope_type { "yarn" { factor: float } "linear" { factor: float } }
config Config {
    size:    dim
    hidden:  dim = size
    scaling: Scaling?
    act:     "silu" | "gelu"
}
config Wide extends Config { remove hidden }
interface Layer(n: dim) { forward(x: [tokens, n]) -> [tokens, n] }
encoding pair() of [n, k] { part codes at "{name}_codes": i8[n, k]  value codes as f32 }
fn double(x) = x * 2

module Block(n: dim, act: string = "silu") {
    proj: Linear(n, n)
    norm: RMSNorm(n, eps: 1e-5)
    forward(x: [tokens, n]) -> [tokens, n] {
        let scaled = activate(proj(norm(x)), act)
        return double(scaled)
    }
}
module Derived(n: dim) extends Block(n) {
    override norm: RMSNorm(n, eps: 1e-6)
}

model Small(c: Config) {
    blocks: [Block(c.size, act: c.act) for i in 0..2]
    extra:  Derived(c.size)
    state cache: KVCache(1, c.size)
    let factor = match c.scaling { none => 1.0  "yarn" as s => s.factor  "linear" as s => s.factor }
    forward(x: [tokens, c.size], at: Batch) -> [tokens, c.size] {
        let h = x as f32
        for b in blocks { h = b(h) }
        let q = extra(h) as [tokens, 1, c.hidden]
        cache.append(q, q, at)
        return attend(q, cache, at, mask: "causal", scale: factor) as [tokens, c.size]
    }
    checkpoint safetensors {
        old.{i} = blocks.{i} via cast(f32)
        encode blocks.0.proj.weight as pair()
    }
    policy { compute: bf16  **.norm: f32 }
    quantize { **.proj: q8_0 or file }
    shard { c.size over tensor_parallel }
    place { blocks[0..1]: gpu(0)  "**": cpu(0) }
}
MODEL
printf '{"size": 4, "act": "silu"}\n' > "$work/config.json"
expect "the text without a mistake" 0 -- "$modelc" check "$work/good.model" --config "$work/config.json"

text=$(cat "$work/good.model")
one() {  # one KIND WAS NOW MEANT: the first WAS of the text becomes NOW
  local bad=${text/"$2"/"$3"}
  [ "$bad" != "$text" ] || { fail "$1" "the text has no $2"; return; }
  printf '%s\n' "$bad" > "$work/bad.model"
  expect "$1" 1 "did you mean \`$4\`?" -- "$modelc" check "$work/bad.model" --config "$work/config.json"
}
one "an import"                    "nn.linear" "nn.linaer" "import nn.linear"
one "a config to extend"           "extends Config" "extends Confg" Config
one "a field to remove"            "remove hidden" "remove hiden" hidden
one "a field in a config"          "dim = size" "dim = siez" size
one "a type of a field"            "scaling: Scaling?" "scaling: Scalling?" Scaling
one "a type word"                  "size:    dim" "size:    dmi" dim
one "a module"                     "proj: Linear" "proj: Liner" Linear
one "a base"                       "extends Block" "extends Blok" Block
one "a member to override"         "override norm" "override nrom" norm
one "a named argument"             "act: c.act" "atc: c.act" act
one "a field of the configuration" "c.size, act" "c.siz, act" size
one "a child"                      "proj(norm(x))" "porj(norm(x))" proj
one "a fn"                         "double(scaled)" "duoble(scaled)" double
one "a local"                      "double(scaled)" "double(scaledd)" scaled
one "an operation"                 "activate(proj" "activte(proj" activate
one "an operation's argument"      "mask: \"causal\"" "maks: \"causal\"" mask
one "an operation's value"         '"causal"' '"casual"' causal
one "a state's kind"               "KVCache" "KVCahce" KVCache
one "a state"                      "q, cache, at" "q, cahce, at" cache
one "an entry of a child"          "extra(h) as" "extra.forwrd(h) as" forward
one "an element type"              "x as f32" "x as f23" f32
one "an axis"                      "forward(x: [tokens, n]) -> [tokens, n] {" "forward(x: [token, n]) -> [tokens, n] {" tokens
one "a declared axis"              "forward(x: [tokens, n]) -> [tokens, n] {" "forward(x: [frame, n]) -> [tokens, n] {" frames
one "a case of a match"            '"yarn" as s' '"yarm" as s' yarn
one "a Batch's field"              "cache.append(q, q, at)" "cache.append(q, q, at) let p = at.postions" positions
one "a checkpoint format"          "checkpoint safetensors" "checkpoint safetensor" safetensors
one "a weight of a rule"           "= blocks.{i} via" "= bloks.{i} via" "blocks.{i}"
one "a transform"                  "via cast" "via csat" cast
one "an encoding"                  "as pair()" "as piar()" pair
one "a section"                    "quantize {" "quantise {" quantize
one "a module of a policy"         "**.norm: f32" "**.nrom: f32" norm
one "a field in an arm, of none"   "s.factor" "s.facter" factor
one "a word of a policy"           "policy { compute" "policy { comput" compute
one "a type of a policy"           "compute: bf16" "compute: bf61" bf16
one "an encoding to quantize to"   "q8_0" "q8_O" q8_0
one "what is split over"           "tensor_parallel" "tensor_paralel" tensor_parallel
one "a factor"                     "shard { c.size" "shard { c.sizee" size
one "a device"                     "gpu(0)" "gup(0)" gpu
one "a declaration"                "variant Scaling" "varaint Scaling" variant
one "a statement"                  "return double" "retrun double" return
one "a member's word"              "override norm" "overide norm" override

cp "$work/good.model" "$work/bad.model"
printf '{"size": 4, "act": "silu", "hiden": 5}\n' > "$work/key.json"
expect "a key of the configuration" 1 "did you mean \`hidden\`?" -- "$modelc" check "$work/bad.model" --config "$work/key.json"
printf '{"size": 4, "act": "slu"}\n' > "$work/value.json"
expect "a value of the configuration" 1 "did you mean \`silu\`?" -- "$modelc" check "$work/bad.model" --config "$work/value.json"
printf '{"size": 4, "act": "silu", "scaling": {"rope_type": "yran", "factor": 2}}\n' > "$work/tag.json"
expect "a tag" 1 "did you mean \`yarn\`?" -- "$modelc" check "$work/bad.model" --config "$work/tag.json"
printf '{"size": 4, "act": "silu", "scaling": {"rope_type": "yarn", "factor": 2}}\n' > "$work/config.json"
one "a field of a case"            "s.factor" "s.facter" factor
one "of a case that is not taken"  '"linear" as s => s.factor' '"linear" as s => s.facter' factor
printf '{"size": 4, "act": "silu"}\n' > "$work/config.json"
printf '%s\n' "${text/cache.append/cache.apend}" > "$work/bad.model"
expect "a state's function" 1 "it is written by \`cache.append(…)\`" -- "$modelc" check "$work/bad.model" --config "$work/config.json"
cp "$work/good.model" "$work/bad.model"
expect "a key of --set" 2 "did you mean \`hidden\`?" -- "$modelc" check "$work/bad.model" --config "$work/config.json" --set hiden=4
expect "an option" 2 "did you mean \`--config\`?" -- "$modelc" check "$work/bad.model" --confg "$work/config.json"
expect "a command" 2 "did you mean \`check\`?" -- "$modelc" chek "$work/bad.model"
expect "a stage" 2 "did you mean \`graph\`?" -- "$modelc" dump "$work/bad.model" --stage grpah
expect "a code to explain" 2 "did you mean" -- "$modelc" explain E03500
finish
