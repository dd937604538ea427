#!/usr/bin/env bash
# Many small mistakes in one model: each is said once, with its code and the way out.
source "$(dirname "$0")/lib.sh"
small=tests/cli/messages

# mistake EDIT TEXT…: a sed expression on the model; one message and no warning, which has all the texts.
mistake() {
  local edit=$1 said missing=""
  shift
  sed -E "$edit" "$small/small.model" > "$work/small.model"
  said=$(NO_COLOR=1 "$modelc" check "$work/small.model" --config "${config:-$small/config.json}" 2>&1)
  for text in "$@"; do grep -qF -e "$text" <<< "$said" || missing="$missing; does not say: $text"; done
  [ "$(grep -cE '^(error|warning)\[' <<< "$said")" -eq 1 ] || missing="$missing; more or less than one message"
  if [ -z "$missing" ]; then pass "$edit"; else fail "$edit$missing" "$said"; fi
}

# ---- words of Python
mistake 's/has_bias: true/has_bias: True/' 'error[E0301]' 'write `true`'
mistake 's/has_bias: true/has_bias: None/' 'error[E0301]' 'what is absent is written `none`'
mistake 's/return o\(/return self.o(/' 'error[E0301]' 'without `self.`'
mistake 's/in 0\.\.c\.layers/in range(c.layers)/' 'error[E0301]' 'a range is written `0..n`'
mistake 's/q\(x\) as \[tokens, c\.heads, d\]/q(x).view(tokens, c.heads, d)/' 'error[E0315]' 'takes another shape by `x as [tokens, n]`'
mistake 's/    forward\(ids/    def forward(ids/' 'error[E0110]' 'functions are written without `def`'
mistake 's/h = h \+ layer/h += layer/' 'error[E0110]' 'the new value is written out: `h = h + …`'
mistake 's/let h = take/\/* let h = take/' 'error[E0110]' 'a comment begins with `//`'
mistake 's/\) -> logits/) => logits/' 'error[E0110]' 'results are written after `->`'
mistake 's/int in 1\.\.64/int in 1..64,/' 'error[E0110]' 'leave the `,` out'
# ---- names
mistake 's/^import nn\.norm//' 'error[E0301]' '`RMSNorm` is declared in `nn.norm`: write `import nn.norm`'
mistake 's/KVCache/KVCahce/' 'error[E0301]' 'did you mean `KVCache`?'
mistake 's/at: Batch\) -> \[/at: Bacth) -> [/' 'error[E0329]' 'did you mean `Batch`?'
mistake 's/param table: \[/param table: f23[/' 'error[E0329]' 'did you mean `f32`?'
mistake 's/cache\.append/cache.apend/' 'error[E0315]' ':20:15' 'cache.append(…)'
mistake 's/context 64/contxt 64/' 'error[E0110]' 'did you mean `context`?'
mistake 's/    forward\(ids/    foward(ids/' 'error[E0110]' 'did you mean `forward`?'
mistake 's/return o\(/return oo(/' 'error[E0301]' 'did you mean `o`?'
mistake 's/let d =/let größe =/; s/\bd\b([^i])/größe\1/g' 'error[E0106]' 'letters a to z'
mistake "s/\"causal\"/'causal'/" 'error[E0106]' 'double quotes'
mistake 's/attend\(q\(x\) as \[tokens, c\.heads, d\], cache/attend(cache, q(x)/' 'error[E0307]' 'after its tensors'
mistake 's/module Attention\(c: Config\)/module Attention(c: Config, c: Config)/' 'error[E0303]' 'two parameters'
mistake 's/^model Small/module Small/' 'error[E0356]' 'write `model` for `module`'
# ---- numbers
config=$work/large.json
for vocab in 281474976710656 4611686018427387904 9223372036854775807; do
  sed "s/\"vocab\": 32/\"vocab\": $vocab/" "$small/config.json" > "$config"
  mistake 's/@@//' 'error[E0309]' 'more elements than 2^48' "vocab = $vocab from large.json:2"
done
expect "a command that is none" 2 'there is no command "chekc"' 'did you mean `check`?' -- "$modelc" chekc "$small/small.model"
finish
