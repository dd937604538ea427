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
mistake 's/q\(x\) as \[tokens, c\.heads, d\]/q(x).view(tokens, c.heads, d)/' 'error[E0315]' 'takes another shape by `q(x) as [tokens, n]`'
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
# ---- habits of PyTorch
mistake 's/^    forward\(ids/    checkpoint pytorch { }\n    forward(ids/' 'error[E0432]' ':32:16' 'the formats are `safetensors` and `gguf`' 'saved as safetensors first'
mistake 's/o\(y as \[tokens, c\.heads \* d\]\)/o(y as [.., -1])/' 'error[E0110]' 'any axes are written `...`'
mistake 's/o\(y as \[tokens, c\.heads \* d\]\)/o(y as [tokens, -1])/' 'error[E0307]' 'no size is found out'
mistake 's/let h = take\(table, ids\)/let h = table[ids]/' 'error[E0307]' '`take(table, ids)`'
mistake 's/take\(h, at\.outputs\)/h[-1]/' 'error[E0349]' 'counted from the end'
mistake 's/ids: index\(c\.vocab\)\[tokens\]/ids: int[tokens]/' 'error[E0329]' 'ids are `index(n)[tokens]`'
mistake 's/let h = take\((.*)\)/let h = softmax(take(\1), dim: -1)/' 'error[E0313]' 'an axis is named `axis`' 'it has x, where and axis'
mistake 's/let h = take\((.*)\)/let h = mean(take(\1), axis: -1, keepdim: true)/' 'error[E0313]' 'it is put back by `as`'
mistake 's/let h = take\((.*)\)/let (h, g) = split(take(\1), 2)/' 'error[E0314]' 'the size of each part is listed'
mistake 's/return linear/let g = print(h)  return linear/' 'error[E0301]' 'run with `--trace`'
mistake 's/^    forward\(ids/    policy { dtype: bf16 }\n    forward(ids/' 'error[E0433]' 'write `compute` for the whole model'
mistake 's/mask: "causal"/mask: true/' 'error[E0314]' 'the masks are "causal" and "full"'
mistake 's/\[Attention\(c\) for i in 0\.\.c\.layers\]/[Attention(c)] * c.layers/' 'error[E0307]' '`[Attention(c) for i in 0..c.layers]`'
mistake 's/return linear\(take\(h, at\.outputs\), table\)/return { logits: h }/' 'error[E0110]' 'their names stand in the signature'
mistake 's/float = 1e-6/float = 1e-6f/' 'error[E0110]' 'write `1e-6`'
mistake 's/float = 1e-6/float = 1./' 'error[E0110]' 'write `1.0`'
mistake 's/context 64/context 0x40/' 'error[E0110]' 'numbers are decimal: write `64`'
mistake 's/mask: "causal"/mask: f"causal"/' 'error[E0110]' 'leave the `f` out'
mistake 's/^module Attention\(c: Config\) \{/module Attention(c: Config) extends nn.Module {/' 'error[E0110]' "of PyTorch's there is none"
mistake 's/for layer in layers/for layer in enumerate(layers)/' 'error[E0301]' 'a `for` names one element'
mistake 's/scale: d \^ -0\.5/scale: 1.0 if d > 8 elif d > 4/' 'error[E0110]' '`a if p else b if q else c`'
mistake 's/return o\((.*)\)$/return o(\1).half()/' 'error[E0315]' 'takes another type by `x as f16`'
mistake 's/return o\(/let z = y.to(f32)  return o(/' 'error[E0315]' 'takes another type by `x as f32`'
mistake 's/return o\((.*)\)$/return o(\1) as float16/' 'error[E0329]' 'write `as f16`'
mistake 's/    o: Linear\(.*/    o: param[c.size, c.size]/' 'error[E0301]' 'the word stands before the name: `param w: [n, m]`'
# ---- effects are silent
mistake 's/    o: Linear\(.*/    o: Attention(c)/' 'error[E0346]' ':16:8' '`Attention` contains itself'
mistake 's/for layer in layers .*/h = layers(h, at)/' 'error[E0311]' 'for layer in layers { h = layer(h) }'
mistake 's/let y = attend\(/let y = x.attend(/' 'error[E0315]' 'an operation is written before its tensor'
# ---- element types are shown where they are what differs
mistake 's/layer\(norm\(h\), at\)/layer(norm(h) as f16, at)/' 'error[E0350]' 'found f16[tokens, size] = [tokens, 24]' 'expected f32[tokens, size] = [tokens, 24]' '… as f32`'
mistake 's/return o\((.*)\)$/return o(\1) as bf16/' 'error[E0350]' 'this is bf16[tokens, size]' 'declared as f32[tokens, size]'
mistake 's/return linear\(take\(h, at\.outputs\), table\)/return linear(take(h, take(h, at.outputs)), table)/' 'error[E0349]'
# ---- a comment where a division is meant
mistake 's/let d = c\.size \/ c\.heads/let d = c.size \/\/ c.heads/' 'warning[W0117]' ':12:20' 'whole division is written `div(a, b)`'
# ---- numbers
config=$work/large.json
for vocab in 281474976710656 4611686018427387904 9223372036854775807; do
  sed "s/\"vocab\": 32/\"vocab\": $vocab/" "$small/config.json" > "$config"
  mistake 's/@@//' 'error[E0309]' 'more elements than 2^48' "vocab = $vocab from large.json:2"
done
# ---- the configuration's text
json_mistake() {
  config=$work/fault.json
  sed -E "$1" "$small/config.json" > "$config"
  mistake 's/@@//' "${@:2}"
}
json_mistake 's/"layers": 2/"layers": 2,/' 'error[E0602]' 'fault.json:5:14' 'a comma stands before the closing `}`' 'remove it'
json_mistake 's/"size": 24,/"size": 24,,/' 'error[E0602]' 'fault.json:3:14' 'a second comma follows a comma'
json_mistake 's/"size": 24,/"size": 24, \/\/ of a row/' 'error[E0602]' 'fault.json:3:15' 'a comment stands here, and JSON has none'
json_mistake 's/"size": 24,/"size": 24/' 'error[E0602]' 'fault.json:4:3' 'a comma is missing before it' '^^^^^^^'
json_mistake 's/"size": 24,/size: 24,/' 'error[E0602]' 'fault.json:3:3' 'write `"size"`'
json_mistake 's/"size": 24,/"size": None,/' 'error[E0602]' 'JSON writes `null`'
config=
expect "a command that is none" 2 'there is no command "chekc"' 'did you mean `check`?' -- "$modelc" chekc "$small/small.model"
finish
