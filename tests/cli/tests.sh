# `modelc test`: operations, given inputs, entries in runs, backends; each kind of test can also fail.
. "$(dirname "$0")/lib.sh"
# As on a machine without a GPU's driver; with one: vulkan.sh.
export VK_ICD_FILENAMES=/nowhere VK_DRIVER_FILES=/nowhere

cat > "$work/op.model" <<'MODEL'
language 1
op doubled(x: [..., n], b: [n]) -> [..., n] { reference 2 * x + b }
op parts(x: [n], i: index(4)[m]) -> (low: [n], [m]) { reference { return x * 0.5, i as f32 + 1 } }
op grown(x: [n]) -> [n] { reference exp(x) }
op kept(keep: bool[n], result: [n]) -> ([n], bool[n], index(9)[]) {
    reference { return where(keep, result, 0.0), result > 1.5, argmax(result) as index(9) }
}
test "flags, a name of a result, whole numbers" { op kept  input keep = [true, false, true]  input result = [1, 2, 3]  same reference, cpu within 0 }
test "agrees"      { op doubled  input x = linspace(-1, 1, 6) as [2, 3]  input b = [1, 2, 3]  same reference, cpu, vulkan within 1e-6 }
test "two results" { op parts  input x = [1, 2]  input i = [3, 0, 1]  same reference, cpu within 1e-6 }
test "refused"     { op doubled  input x = [1, 2]  input b = [1, 2, 3]  error E0350 "its axis is 3, not 2" }
MODEL
expect "operations against their references" 0 "ok      agrees" "skipped: vulkan: " "ok      two results" "4 passed, 0 failed" \
  -- "$modelc" test "$work/op.model"
only_op() { { sed '/^test/d' "$work/op.model"; echo "test \"t\" { $1 }"; } > "$work/$2.model"; }
only_op 'op grown  input x = linspace(-8, 8, 960)  same reference, cpu within 0' exact
expect "a bound that f32 cannot keep fails" 1 "cpu against the reference: verify ends with status 1" -- "$modelc" test "$work/exact.model"
only_op 'op doubled  input x = [[1, 2]]  input b = [1, 2]  same reference, vulkan within 1e-6' vulkan
expect "what nothing here can run is no pass" 0 "SKIP    t" "skipped: vulkan" "0 passed, 0 failed, 1 skipped" -- "$modelc" test "$work/vulkan.model"
only_op 'op doubled  input x = [1, 2]  expect "numbers.safetensors" within 1e-6' missing
expect "an input that is missing" 1 "error[E0313]" '`b` of `doubled` is given no numbers' "declared here" -- "$modelc" test "$work/missing.model"
only_op 'op doubled  input x = [1, 2]  input b = [1, 2]  input y = 3  same reference, cpu within 1e-6' unknown
expect "an input that is none" 1 'has no input `y`' -- "$modelc" test "$work/unknown.model"
# Inputs without numbers are drawn, of sizes by chance; what is given says the sizes that it names.
only_op 'op doubled  same reference, cpu within 1e-6' drawn
expect "inputs by chance" 0 "1 passed, 0 failed" -- "$modelc" test "$work/drawn.model"
only_op 'op parts  same reference, cpu within 1e-6' drawn_index
expect "whole numbers by chance, below their bound" 0 "1 passed, 0 failed" -- "$modelc" test "$work/drawn_index.model"
only_op 'op kept  input result = linspace(0, 3, 9)  same reference, cpu within 0' drawn_flags
expect "flags by chance, as many as there are numbers given" 0 "1 passed, 0 failed" -- "$modelc" test "$work/drawn_flags.model"
only_op 'op doubled  input b = [1, 2, 3]  same reference, cpu within -1' drawn_rest
expect "what is wrong for them names their sizes" 1 "with inputs by chance, x [" "3]: cpu against the reference" -- "$modelc" test "$work/drawn_rest.model"
only_op 'op pairs  same reference, cpu within 1e-6' drawn_odd
sed -i 's/^op grown/op pairs(x: [n]) -> [ceil_div(n, 2)] { reference x[0..n by 2] }\n&/' "$work/drawn_odd.model"
expect "a result whose size goes by theirs" 0 "1 passed, 0 failed" -- "$modelc" test "$work/drawn_odd.model"
only_op 'op full  same reference, cpu within 1e-6' drawn_full
sed -i 's/^op grown/op full(x: [n, 4000 * n * n * n * n]) -> [n, 4000 * n * n * n * n] { reference x }\n&/' "$work/drawn_full.model"
expect "sizes that are too many are said" 1 "sizes that are drawn for the test make this" "input name" -- "$modelc" test "$work/drawn_full.model"
only_op 'op duobled  input x = [1, 2]  same reference, cpu within 1e-6' misspelt
expect "an operation that is none" 1 'did you mean `doubled`?' -- "$modelc" test "$work/misspelt.model"
only_op 'op doubled  input x = linspaze(1, 2, 3)  input b = [1, 2]  same reference, cpu within 1e-6' name
expect "a mistake in an input's expression is marked there" 1 "linspaze(1, 2, 3)" "^^^^^^^^" 'did you mean `linspace`?' -- "$modelc" test "$work/name.model"
only_op 'op parts  input x = [1, 2]  input i = [3, 4]  same reference, cpu within 1e-6' bound
expect "an index out of its bound" 1 '`input i` has 4 at 1' -- "$modelc" test "$work/bound.model"
only_op 'op grown  input x = [[1, 2], [3]]  same reference, cpu within 1' ragged
expect "lists of unequal length" 1 'lists of equal length, and not a list that is none of these' -- "$modelc" test "$work/ragged.model"
only_op 'op grown  input x = linspace(0, 1, 1000000000)  same reference, cpu within 1' huge
expect "more numbers than are evaluated" 1 "linspace is f32[1000000000]: more than the 268435456 elements" -- "$modelc" test "$work/huge.model"
only_op 'op grown  input x = [1]  same reference, gpu within 1' backend
expect "a backend that is none" 1 '`gpu` stands beside backends' "reference, cpu, vulkan" -- "$modelc" test "$work/backend.model"
only_op 'op grown  input x = [1]  same prefill(3), prefill(1) + decode(2) within 1' runs
expect "runs of a model in a test of an operation" 1 "is a run of the model" -- "$modelc" test "$work/runs.model"

# ---- faults of a test's configuration stand in its text
cat > "$work/sizes.model" <<'MODEL'
language 1
config C { n, m: dim }
model M(c: C) {
    param w: [c.n, c.m]
    forward(x: [batch, seq, c.m]) -> y: [batch, seq, c.n] { return linear(x, w) }
}
MODEL
with_config() { { cat "$work/sizes.model"; printf 'test "t" {\n    %s\n    checkpoint random 1  same prefill(2), prefill(2) within 1\n}\n' "$1"; } > "$work/in_test.model"; }
with_config 'config { n: 4  m: "four" }'
expect "a value of a configuration in the test" 1 "error[E0203]" "in_test.model:8:23" '^^^^^^' -- "$modelc" test "$work/in_test.model"
with_config 'config { n: 4  m: 4  k: 2 }'
expect "a key of a configuration in the test" 1 "error[E0201]" "in_test.model:8:26" -- "$modelc" test "$work/in_test.model"
printf '{"n": 4,\n "m": "four"}\n' > "$work/sizes.json"
with_config 'config "sizes.json"'
expect "a value of a test's file" 1 "error[E0203]" "sizes.json:2:7" '^^^^^^' -- "$modelc" test "$work/in_test.model"
printf '{"n": 4,\n "m": 4,\n}\n' > "$work/sizes.json"
expect "a fault of a test's file" 1 "error[E0602]" "sizes.json:2:8" 'a comma stands before the closing `}`' -- "$modelc" test "$work/in_test.model"
printf '{"n": 4,\n "m": 4}\n' > "$work/sizes.json"
with_config 'config "sizes.json" with { m: "four" }'
expect "a value that a test adds to a file" 1 "error[E0203]" "the test's \`with\`" -- "$modelc" test "$work/in_test.model"

cat > "$work/entries.model" <<'MODEL'
language 1
axis frames: 2..3000 by 2
config C { vocab, size: dim }
module Mix(n: dim) {
    param up: [n, n]
    forward(x: [batch, seq, n], keep: bool[batch, seq]) -> [batch, seq, n] {
        return x + linear(mean(x, axis: 1, where: keep) as [batch, 1, n], up)
    }
}
model M(c: C) {
    context 32
    param table: [c.vocab, c.size]
    mix: Mix(c.size)
    forward(ids: index(c.vocab)[batch, seq], keep: bool[batch, seq] = true) -> y: [batch, seq, c.size] {
        return mix(take(table, ids), keep)
    }
    entry heard(mel: [batch, frames, c.size]) -> [batch, c.size] { return mean(linear(mel, table), axis: 1)[..., 0..c.size] }
}
MODEL
with_test() { { cat "$work/entries.model"; echo "test \"t\" { config { vocab: 9  size: 4 }  checkpoint random 3  $1 }"; } > "$work/$2.model"; }
{ cat "$work/entries.model"; cat <<'MODEL'
test "padded"     { config { vocab: 9  size: 4 }  checkpoint random 3  same batch(3, 5), alone(3, 5) within 1e-6 }
test "an entry"   { config { vocab: 9  size: 4 }  checkpoint random 3  same heard(6), heard(frames: 6) within 0 }
test "given"      { config { vocab: 9  size: 4 }  checkpoint random 3  input ids = [[1, 2, 8], [0, 0, 3]]  input keep = [[1, 1, 0], [1, 1, 1]]  same reference, cpu within 1e-5 }
test "given runs" { config { vocab: 9  size: 4 }  checkpoint random 3  input ids = [[1, 2, 8], [0, 0, 3]]  same batch(3, 2), alone(3, 2) within 1e-6 }
test "given mel"  { config { vocab: 9  size: 4 }  checkpoint random 3  input mel = linspace(-1, 1, 6 * c.size) as [1, 6, c.size]  same heard, heard(6) within 1e-6 }
MODEL
} > "$work/good.model"
expect "runs of padded batches, entries and given inputs, compiled too" 0 "5 passed, 0 failed" -- "$modelc" test "$work/good.model"
case "$("$modelc" test "$work/good.model")" in
  *alone*generated*) fail "generated code runs them too" ;;
  *) pass "generated code runs them too" ;;
esac
with_test 'same heard(6), heard(8) within 1e-3' unlike
expect "an entry's numbers are sizes: others give other results" 1 "heard(6) and heard(8) differ by" -- "$modelc" test "$work/unlike.model"
with_test 'same heard, heard within 0' nosize
expect "a size that the run does not say" 1 "has the axis frames, whose size the run does not say: \`heard(20)\`" -- "$modelc" test "$work/nosize.model"
with_test 'same herd(6), heard(6) within 0' noentry
expect "an entry that is none" 1 'did you mean `heard`?' -- "$modelc" test "$work/noentry.model"
with_test 'input ids = [[1, 2, 8]]  same batch(4), alone(4) within 0' few
expect "more tokens than are given" 1 'a run asks for token 3 of sequence 0' -- "$modelc" test "$work/few.model"
with_test 'input ids = [1, 2]  same reference, cpu within 0' rank
expect "numbers of another shape" 1 '`input ids` is [2], and index(9)[batch, seq] is wanted' -- "$modelc" test "$work/rank.model"
with_test 'input idz = [[1, 2]]  same reference, cpu within 0' idz
expect "an input of no function" 1 'takes no input of this name' 'did you mean `ids`?' -- "$modelc" test "$work/idz.model"

# Of a language model: given tokens decide what is fed, and entries that take a Batch go before it.
cat > "$work/batch.model" <<'MODEL'
language 1
config C { vocab, size: dim }
module Layer(n: dim) {
    param up: [n, n]
    state cache: KVCache(1, n)
    forward(x: [tokens, n], at: Batch) -> [tokens, n] {
        cache.append(unflatten(x, -1, [1, n]), unflatten(linear(x, up), -1, [1, n]), at)
        return flatten(attend(unflatten(x, -1, [1, n]), cache, at, mask: "causal", scale: 1.0), -2, -1)
    }
}
model M(c: C) {
    context 32
    param table: [c.vocab, c.size]
    layer: Layer(c.size)
    forward(ids: index(c.vocab)[tokens], at: Batch) -> logits: f32[outputs, c.vocab] {
        return linear(take(layer(take(table, ids), at), at.outputs), table)
    }
    entry read(ids: index(c.vocab)[tokens], at: Batch) -> [tokens, c.size] { return layer(take(table, ids), at) }
}
test "an entry by tokens" { config { vocab: 9  size: 4 }  checkpoint random 3  same read(3) + decode(2), read(1) + read(2) + prefill(2) within 1e-6 }
test "given tokens"       { config { vocab: 9  size: 4 }  checkpoint random 3  input ids = [1, 5, 0, 8]  same prefill(4), prefill(1) + decode(3) within 1e-6 }
test "against kernels"    { config { vocab: 9  size: 4 }  checkpoint random 3  input ids = [[1, 5, 0], [2, 2, 7]]  same reference, cpu within 1e-5 }
MODEL
expect "entries that take a Batch, and tokens that are given" 0 "3 passed, 0 failed" -- "$modelc" test "$work/batch.model"

# Packed numbers in a forward: the evaluator takes them apart, the C++ backend refuses them by name.
cat > "$work/packed.model" <<'MODEL'
language 1
config C { n: dim }
model M(c: C) {
    param codes: u8[c.n, c.n]
    param scale: [c.n, 1]
    forward(x: [batch, 2 * c.n]) -> y: [batch, c.n] { return linear(x, e2m1(nibbles(codes)) * scale) }
}
op unpacked(b: u8[n]) -> [2 * n] { reference e2m1(nibbles(b)) }
test "of a weight" { config { n: 4 }  checkpoint random 3  input x = linspace(-1, 1, 16) as [2, 8]  same reference, cpu within 1e-5 }
test "of bytes"    { op unpacked  input b = [33, 250]  expect "unpacked.safetensors" within 0 }
MODEL
python3 - "$work/unpacked.safetensors" <<'PY'
import json, struct, sys
# 33 = 0x21: codes 1 and 2, which are 0.5 and 1; 250 = 0xfa: codes 10 and 15, -1 and -6.
head = json.dumps({"result": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<4f", 0.5, 1, -1, -6))
PY
expect "packed weights are evaluated, and what the generated code lacks is said" 0 "SKIP    of a weight" "ok      of bytes" \
  'operation `nibbles` is not carried out by the C++ backend yet' 'operation `e2m1` is not carried out' -- "$modelc" test "$work/packed.model"
echo '{"n": 4}' > "$work/packed.json"
expect "E0501 names them" 1 "error[E0501]" '`nibbles`' '`e2m1`' -- "$modelc" build "$work/packed.model" --config "$work/packed.json" -o "$work/out"
finish
