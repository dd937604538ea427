#!/usr/bin/env bash
# Names and texts that would break generated C++: words of C++, names that meet after mangling, marks that end a comment or a string.
# What comes out compiles without a warning.
source "$(dirname "$0")/lib.sh"

if ! command -v python3 > /dev/null; then skip "python3 is not installed"; pass "nothing to do"; finish; exit; fi
python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
# Members, parameters, locals and modules called as words of C++, of the generated code, and as each other but for a sign.
words = ["class", "struct", "int", "float", "double", "void", "new", "delete", "this", "template", "namespace", "operator", "virtual",
         "union", "switch", "default", "register", "co_await", "requires_", "concept", "nullptr", "std", "modelc", "main", "NULL",
         "Step", "Tensor", "Batch_", "a_b", "a__b", "_a", "a_", "A_B", "x1", "x_1", "forward_", "load", "Layer", "layer", "errno", "assert"]
module = """language 1
config C { size: dim    note: string    namespace, template: dim }
"""
for i, w in enumerate(words):
    module += f"module {w}(size: dim) {{\n    param int: [size]\n    param class: [size] = 1.0\n    forward(this: [tokens, size]) -> [tokens, size] {{ let auto = this * int  return auto + class }}\n}}\n"
module += "model M(c: C) {\n"
for i, w in enumerate(words):
    module += f"    m{i} at {w}.{i}: {w}(c.size)\n"
for w in words:
    module += f"    w_{w}: {w}(c.size)\n"
module += "    param typename: [c.namespace * c.template, c.size]\n"
text = r'''*/ /* // ??/ ??) \\ \" )" )\" \u{e9} R\"( %s {} $(x) `'''.replace(')"', ')\\"')
module += "    fn marked(x) = x * (2.0 if c.note == \"" + text + "\" else 1.0)   // ends in a backslash \\\n"
module += "    forward(ids: index(c.namespace * c.template)[tokens], at: Batch) -> class: [outputs, c.size] {\n        let h = take(typename, ids)\n"
for i, w in enumerate(words):
    module += f"        let return_{i} = m{i}(h) + w_{w}(h) * (2.0 if c.note == \"{text}\" else 1.0)  // */ \\\n"
module += "        return take(marked(" + " + ".join(f"return_{i}" for i in range(len(words))) + "), at.outputs)\n    }\n}\n"
open(f"{work}/int.model", "w").write(module)
json.dump({"size": 8, "namespace": 2, "template": 4, "note": "*/ /* ??/ ??) \\ \" )\" )\\\" \u00e9 R\"( %s {} \n\r\t\u0001 \\u0041 \\"}, open(f"{work}/config.json", "w"))
PY
expect "the model checks" 0 "M:" -- "$modelc" check "$work/int.model" --config "$work/config.json"
expect "it builds, in a file whose name is a word of C++" 0 -- "$modelc" build "$work/int.model" --config "$work/config.json" -o "$work/out"
for compiler in g++ clang++-16; do
  if ! command -v $compiler > /dev/null; then skip "$compiler: not installed"; continue; fi
  expect "$compiler takes it without a warning" 0 -- $compiler -std=c++20 -Wall -Wextra -Werror -trigraphs -I. -fsyntax-only "-I$work/out" "$work"/out/*.cpp
done
expect "the manifest is JSON" 0 -- python3 -c "import json, sys; json.load(open(sys.argv[1]))" "$work/out/int.manifest.json"
"$modelc" dump "$work/int.model" --config "$work/config.json" --stage graph > "$work/graph" 2> /dev/null && pass "the graph prints" || fail "the graph prints"

# Children, so values and buffers too, called as what generated code speaks of.
python3 - "$work" <<'PY'
import sys
words = ["Step", "Frame", "Tensor", "Shape", "DType", "Module", "Model", "Weight", "WeightSpec", "Batch", "Product", "Once", "Linear_",
         "ABuffers", "f32", "i32", "axis", "memory_", "step_", "kernels", "once", "product", "math", "b", "s",
         "result", "x", "d", "int64_t", "size_t", "array", "string", "member", "Mask", "Pairs", "MBuffers", "MConfig", "m_factory"]
text = "language 1\nimport nn.linear\nconfig C { size: dim " + " ".join(f"{w}: dim = 1" for w in ["std", "modelc", "int64_t", "MConfig"]) + " }\n"
text += "module A(d: dim) {\n" + "".join(f"    {w}: Linear(d, d)\n" for w in words if w not in ("x", "d"))
text += "    forward(x: [tokens, d]) -> [tokens, d] {\n        let v = " + "x\n"
for i, w in enumerate(w for w in words if w not in ("x", "d")):
    text += f"        let v{i} = {w}({'v' if i == 0 else f'v{i - 1}'})\n"
text += f"        return v{len(words) - 3}\n    }}\n}}\n"
text += "model M(c: C) {\n    require c.std + c.modelc + c.int64_t + c.MConfig > 0\n    param table: [8, c.size]\n    Step: A(c.size)\n    Tensor: [A(c.size) for i in 0..2]\n"
text += "    forward(ids: index(8)[tokens], at: Batch) -> Shape: [outputs, c.size] {\n        let h = Step(take(table, ids))\n"
text += "        for Frame in Tensor { h = h + Frame(h) }\n        return take(h, at.outputs)\n    }\n}\n"
open(f"{sys.argv[1]}/types.model", "w").write(text)
open(f"{sys.argv[1]}/types.json", "w").write('{"size": 4}')
PY
expect "members called as the types of generated code" 0 -- "$modelc" build "$work/types.model" --config "$work/types.json" --name M -o "$work/types"
for compiler in g++ clang++-16; do
  command -v $compiler > /dev/null || continue
  expect "$compiler takes those without a warning" 0 -- $compiler -std=c++20 -Wall -Wextra -Werror -I. -fsyntax-only "-I$work/types" "$work"/types/*.cpp
done

# Names outside of ASCII are no names; a text may hold them.
printf 'language 1\nmodule Größe() { param w: [4] }\n' > "$work/wide.model"
expect "a name that is not ASCII" 1 'error[E01' 'wide.model:2' -- "$modelc" check "$work/wide.model"
printf 'language 1\nmodule 1a() { param w: [4] }\n' > "$work/digit.model"
expect "a name that begins with a digit" 1 'error[E01' 'digit.model:2' -- "$modelc" check "$work/digit.model"
finish
