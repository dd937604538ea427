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
mistake 's/^import nn\.linear/from nn import linear/' 'error[E0110]' 'an import is written `import nn.linear`'
mistake 's/^module Attention/class Attention/' 'error[E0110]' 'a module is written `module Name(size: dim) { … }`'
mistake 's/^module Attention\(c: Config\) \{/module Attention(c: Config):/' 'error[E0111]' ':11:28' 'a `{` is missing before `:`' 'write `{` for this `:`'
mistake 's/    let d = (.*)/    __init__(c) { let d = \1 }/' 'error[E0110]' 'a module has no constructor'
mistake 's/    let d = /    """An attention."""\n    let d = /' 'error[E0110]' 'behind `///`'
mistake 's/    let d = /    super() let d = /' 'error[E0110]' 'has its members as its own'
mistake 's/    let d = /    register_buffer("f", d) let d = /' 'error[E0110]' '`const name: f32[n] = …`'
mistake 's/^module Attention\(c: Config\)/module Attention(c: Config, **kwargs)/' 'error[E0110]' 'declared by name and type'
mistake 's/at: Batch\) -> \[/at: Batch): [/' 'error[E0110]' 'results are written after `->`'
mistake 's/^config Config/config Config(Base)/' 'error[E0110]' 'a configuration has no parameters'
mistake 's/float = 1e-6/float = .5/' 'error[E0110]' 'a number begins with a digit'
mistake 's/float = 1e-6/"a" or "b"/' 'error[E0110]' '`"a" | "b"`'
mistake 's/let h = take/let g = lambda z: z  let h = take/' 'error[E0110]' '`fn(x) = …`'
mistake 's/for layer in layers/while true/' 'error[E0110]' '`for` goes over a list of children'
mistake 's/for layer in layers/for i, layer in layers/' 'error[E0110]' 'a `for` names one element'
mistake 's/for layer in layers/for (i, layer) in layers/' 'error[E0110]' 'a `for` names one element'
mistake 's/return o\(.*/return d > 4 ? x : x/' 'error[E0110]' '`a if condition else b`'
mistake 's/take\(h, at\.outputs\)/h[:, 0]/' 'error[E0110]' 'a slice is written `a..b`'
mistake 's/let h = take/let g = layers.0(x)  let h = take/' 'error[E0110]' '`list[0]`'
mistake 's/return o\((.*)\)$/return dropout(o(\1), 0.1)/' 'error[E0301]' 'drops nothing out'
mistake 's/return o\(y as .*/return o(view(y, d))/' 'error[E0301]' 'takes another shape by `x as [tokens, n]`'
mistake 's/param table: \[/param table: torch.float16[/' 'error[E0329]' 'write `f16`'
mistake 's/eps: +float/eps: str/' 'error[E0329]' 'write `string`'
# A comment where Python divides: the bracket that it hides is looked for further on.
mistake 's/q: Linear\(c\.size, c\.heads \* d\)/q: Linear(c.size, c.size \/\/ c.heads)/' 'error[E0111]' 'whole division is `div(a, b)`'
mistake 's/q\(x\) as \[tokens, c\.heads, d\]/q(x) as [tokens, c.heads, c.size \/\/ 4]/' 'error[E0111]' 'whole division is `div(a, b)`'
# A name that is made without `let` is known from there on; what is wrong is said once.
mistake 's/let y = attend/y = attend/' 'error[E0326]' ':21:9' 'write `let y = …`'
mistake 's/let y = attend/y = attend/; s/return o/y = y + y  return o/' 'error[E0326]' ':21:9'
# What an argument is wanted for is shown where it is declared.
mistake 's/layer\(norm\(h\), at\)/layer(norm(h))/' 'error[E0313]' 'lacks `at`' ':19:38' '`at` is declared here'
mistake 's/layer\(norm\(h\), at\)/layer(norm(h), at, h)/' 'error[E0313]' ':19:38' 'the last one'
mistake 's/eps: c\.eps/epz: c.eps/' 'error[E0313]' 'did you mean `eps`?' '`eps` is declared here'
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
