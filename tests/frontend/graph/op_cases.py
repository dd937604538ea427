#!/usr/bin/env python3
"""Writes op_cases.json: operations as graph texts, inputs, and what PyTorch and transformers give for them.

    python3 tests/frontend/graph/op_cases.py          (needs torch and transformers; the versions are recorded)

Numbers are worked out in float64 from float32 inputs, so that they are right to the last bit of float32, but where a case
is about a narrower dtype. Inputs come from a fixed seed and have three decimals.
"""
import json
import math
import pathlib
from unittest import mock

import torch
import torch.nn.functional as F
import transformers
from transformers.activations import ACT2FN
from transformers.integrations import mxfp4
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Config, DeepseekV3TopkRouter
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.gpt_oss.configuration_gpt_oss import GptOssConfig
from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb, repeat_kv
from transformers.models.mamba2 import modeling_mamba2
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeConfig, Qwen3MoeExperts
from transformers.models.qwen3_next import modeling_qwen3_next

torch.manual_seed(7)
cases = []
NAMES = {torch.float32: "f32", torch.float64: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.bool: "bool",
         torch.int64: "i32", torch.int32: "i32", torch.uint8: "u8"}


def random(*shape, low=-2.0, high=2.0):
    return torch.round((torch.rand(shape) * (high - low) + low) * 1000) / 1000


def number(v):
    if isinstance(v, float) and math.isfinite(v):
        return float(f"{v:.9g}")
    return v


def data_of(t):
    t = t.detach()
    if t.dtype == torch.bool:
        return [int(v) for v in t.flatten().tolist()]
    return [number(v) for v in t.flatten().tolist()]


def array(t):
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data": data_of(t)}


def type_of(t, bound=None, shape=None):
    dims = ", ".join(str(d) for d in (shape or t.shape))
    return (f"index({bound})" if bound is not None else NAMES[t.dtype]) + f"[{dims}]"


def attr(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, str):
        return f'"{v}"'
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(attr(i) for i in v) + "]"
    return repr(v)


class In:
    """An operand: its tensor, the bound of an index, the type's shape where axes have names."""

    def __init__(self, t, bound=None, shape=None):
        self.t, self.bound, self.shape = t, bound, shape

    def type(self):
        return type_of(self.t, self.bound, self.shape)


BATCH = object()
Out = In


def text(op, operands, outs, attrs, state=None, append=None, kind="kv_cache"):
    names = ["%at" if o is BATCH else f"%x{i}" if o is not None else "_" for i, o in enumerate(operands)]
    inputs = [f"%x{i}: {o.type()}" for i, o in enumerate(operands) if isinstance(o, In)]
    body = []
    member = ""
    if append is not None:
        inputs += [f"%k: {append[0].type()}", f"%v: {append[1].type()}"]
        body.append('append "cache"(%k, %v, %at)')
    if state:
        member = ' "cache"'
    if any(o is BATCH for o in operands) or append is not None:
        inputs.append("%at: Batch")
    results = ", ".join(f"%y{i}: {o.type()}" for i, o in enumerate(outs))
    named = ", ".join(f"{k}: {attr(v)}" for k, v in sorted(attrs.items()))
    body.append(f"{results} = {op}{member}({', '.join(names)}{'; ' if named and names else ''}{named})")
    body.append("return " + ", ".join(f"%y{i}" for i in range(len(outs))))
    lines = ["graph 1", "module Case root Case"]
    lines += ["axis tokens: 1..", "axis outputs: 0..", "axis batch: 1.."]
    lines += ["class Case: Case {"]
    if state:
        lines.append(f"  state cache: {kind}[{', '.join(map(str, state))}]")
    lines.append(f"  forward forward({', '.join(inputs)}) {{")
    lines += ["    " + b for b in body] + ["  }", "}", ""]
    return "\n".join(lines)


def case(name, op, operands, outs, tol=None, segments=None, **attrs):
    operands = [o if o is None or o is BATCH or isinstance(o, In) else In(o) for o in operands]
    outs = [o if isinstance(o, Out) else Out(o) for o in (outs if isinstance(outs, (list, tuple)) else [outs])]
    run = {"inputs": {f"x{i}": array(o.t) for i, o in enumerate(operands) if isinstance(o, In)},
           "outputs": [array(o.t) for o in outs]}
    if segments:
        run["segments"] = segments
    c = {"name": name, "ops": [op], "graph": text(op, operands, outs, attrs), "runs": [run]}
    if tol:
        c["tolerance"] = tol
    cases.append(c)


# ---- products ----
x, w, b = random(3, 5), random(4, 5), random(4)
case("linear", "linear", [x, w, b], F.linear(x.double(), w.double(), b.double()))
x = random(2, 3, 5)
case("linear, no bias, two leading axes", "linear", [x, w, None], F.linear(x.double(), w.double()))
a, c = random(3, 4), random(4, 2)
case("matmul", "matmul", [a, c], a.double() @ c.double())
a, c = random(2, 1, 3, 4), random(5, 4, 2)
case("matmul, leading axes broadcast", "matmul", [a, c], a.double() @ c.double())
a, c = random(3, 2, 4), random(2, 4, 5)
case("einsum, a product by head", "einsum", [a, c], torch.einsum("thn,hnr->thr", a.double(), c.double()), formula="thn,hnr->thr")
a, b, c = random(3, 4), random(4, 4), random(4)
case("einsum, two sums and three operands", "einsum", [a, b, c], torch.einsum("ij,jk,k->i", a.double(), b.double(), c.double()),
     formula="ij, jk, k -> i")
case("einsum, a diagonal", "einsum", [b], torch.einsum("ii->i", b), formula="ii->i")
case("einsum, to one number", "einsum", [b, b], torch.einsum("ij,ji->", b.double(), b.double()), formula="ij,ji->")
case("einsum, axes turned", "einsum", [a], a.T, formula="ij->ji")
a, c = random(3), random(4)
case("outer", "outer", [a, c], torch.outer(a.double(), c.double()))

# ---- rows by index ----
x, i = random(5, 3), torch.tensor([4, 0, 4, 2])
case("take", "take", [x, In(i, 5)], x[i])
i = torch.tensor([[1, 2], [3, 0]])
case("take, a table of rows", "take", [x, In(i, 5)], x[i])
i = torch.tensor([2, 0, 1])
case("take of indices", "take", [In(torch.tensor([7, 8, 9]), 10), In(i, 3)], Out(torch.tensor([9, 7, 8]), 10))
x, v, i = random(5, 3), random(2, 3), torch.tensor([3, 1])
y = x.clone()
y[i] = v
case("put", "put", [x, In(i, 5), v], y)
x, i = random(2, 5), torch.tensor([[4, 0, 4], [1, 2, 3]])
case("take_along", "take_along", [x, In(i, 5)], torch.take_along_dim(x, i, -1))
x, i = random(2, 3, 2), torch.tensor([[[2, 0]], [[1, 2]]])
case("take_along, axis 1", "take_along", [x, In(i, 3)], torch.take_along_dim(x, i, 1), axis=1)
case("take_along, of indices, axis 0", "take_along", [In(torch.tensor([[7, 8], [9, 6]]), 10), In(torch.tensor([[1, 0]]), 2)],
     Out(torch.tensor([[9, 8]]), 10), axis=0)
i = torch.tensor([[2, 0, 3]])
case("one_hot", "one_hot", [In(i, 4)], F.one_hot(i, 5).float(), count=5)
x = torch.tensor([[0.5, 2.0, -1.0, 1.0], [3.0, -2.0, 4.0, 0.0]])
v, i = torch.topk(x, 3)
case("top_k", "top_k", [x], [v, Out(i, 4)], k=3)


# ---- attention ----
def scores(q, k, scale, softcap=None, bias=None):
    """[..., H, n, m] of q [..., n, H, d] and k [..., m, Hk, d], with transformers' repeat_kv."""
    qh, kh = q.double().transpose(-3, -2), k.double().transpose(-3, -2)
    lead = qh.shape[:-3]
    kh = repeat_kv(kh.reshape(-1, *kh.shape[-3:]), qh.shape[-3] // kh.shape[-3]).reshape(*lead, qh.shape[-3], *kh.shape[-2:])
    s = qh @ kh.transpose(-1, -2) * scale
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    return s + bias.double() if bias is not None else s


def attend(q, k, v, scale, seen=None, softcap=None, sinks=None, bias=None):
    s = scores(q, k, scale, softcap, bias)
    if seen is not None:
        s = s.masked_fill(~seen, -math.inf)
    if sinks is not None:
        s = torch.cat([s, sinks.double().reshape(-1, 1, 1).expand(*s.shape[:-1], 1)], -1)
    p = torch.nan_to_num(torch.softmax(s, -1))
    if sinks is not None:
        p = p[..., :-1]
    vh = v.double().transpose(-3, -2)
    lead = p.shape[:-3]
    vh = repeat_kv(vh.reshape(-1, *vh.shape[-3:]), p.shape[-3] // vh.shape[-3]).reshape(*lead, p.shape[-3], *vh.shape[-2:])
    return (p @ vh).transpose(-3, -2)


def causal(n, window=None):
    i, j = torch.arange(n)[:, None], torch.arange(n)[None]
    return (j <= i) & (i - j < (window or n))


def plain(name, n, m, H, Hk, d, dv, lead=(), seen=None, operands=None, tol=None, **attrs):
    q, k, v = random(*lead, n, H, d), random(*lead, m, Hk, d), random(*lead, m, Hk, dv)
    o = operands or {}
    keep, bias, sinks = o.get("keep"), o.get("bias"), o.get("sinks")
    if keep is not None:
        by_key = keep.reshape(*lead, 1, 1, m)
        seen = by_key if seen is None else seen & by_key
    y = attend(q, k, v, attrs["scale"], seen, attrs.get("softcap"), sinks, bias)
    case(name, "attend", [q, k, v, None, sinks, keep, bias], y, tol, **attrs)


plain("attend, full", 3, 4, 2, 2, 4, 3, mask="full", scale=0.5)
q, k, v = random(2, 4, 4, 8), random(2, 4, 4, 8), random(2, 4, 4, 8)
sdpa = F.scaled_dot_product_attention(*(t.double().transpose(1, 2) for t in (q, k, v)), is_causal=True).transpose(1, 2)
case("attend, causal, as scaled_dot_product_attention", "attend", [q, k, v, None, None, None, None], sdpa, mask="causal",
     scale=8 ** -0.5)
plain("attend, grouped heads", 3, 3, 6, 2, 4, 4, seen=causal(3), mask="causal", scale=0.5)
plain("attend, window 2", 5, 5, 2, 1, 4, 4, seen=causal(5, 2), mask="causal", scale=0.5, window=2)
plain("attend, softcap", 4, 4, 2, 2, 4, 4, seen=causal(4), mask="causal", scale=1.0, softcap=1.5)
plain("attend, keep, one row of a batch sees nothing", 2, 3, 2, 2, 4, 4, lead=(2,), mask="full", scale=0.5,
      operands={"keep": torch.tensor([[True, False, True], [False, False, False]])})
plain("attend, bias", 3, 4, 2, 2, 4, 4, mask="full", scale=0.5, operands={"bias": random(2, 1, 4)})

# gpt-oss's own function: sinks, grouped heads, causal.
q, k, v, sinks = random(1, 4, 4, 8), random(1, 4, 2, 8), random(1, 4, 2, 8), random(4)


class Holder(torch.nn.Module):
    num_key_value_groups = 2


holder = Holder()
holder.sinks = sinks.double()
mask = torch.zeros(1, 1, 4, 4, dtype=torch.float64).masked_fill(~causal(4), torch.finfo(torch.float64).min)
y, _ = modeling_gpt_oss.eager_attention_forward(holder, *(t.double().transpose(1, 2) for t in (q, k, v)), mask, 0.3)
case("attend, sinks, as gpt-oss", "attend", [q, k, v, None, sinks, None, None], y, mask="causal", scale=0.3)

# Within each sequence of a Batch.
q, k, v = random(6, 2, 4), random(6, 1, 4), random(6, 1, 4)
which = torch.tensor([0, 0, 0, 0, 1, 1])
y = attend(q, k, v, 0.5, causal(6) & (which[:, None] == which[None]))
named = [In(t, shape=("tokens", *t.shape[1:])) for t in (q, k, v)]
case("attend within each sequence", "attend", [*named, BATCH, None, None, None], Out(y, shape=("tokens", 2, 4)),
     segments=[[0, 4], [1, 2]], mask="causal", scale=0.5)

# With a cache: three calls of two sequences against each sequence at once.
for name, attrs in {"attend, cache": {"mask": "causal"}, "attend, cache, window 3, softcap": {"mask": "causal", "window": 3, "softcap": 2.0},
                    "attend, cache, sinks": {"mask": "causal"}}.items():
    H, Hk, d, dv, scale = 4, 2, 4, 2, 0.5
    sinks = random(H) if "sinks" in name else None
    whole = {s: (random(n, H, d), random(n, Hk, d), random(n, Hk, dv)) for s, n in ((0, 7), (1, 4))}
    results = {s: attend(*t, scale, causal(len(t[0]), attrs.get("window")), attrs.get("softcap"), sinks)
               for s, t in whole.items()}
    done = {0: 0, 1: 0}
    runs = []
    for segments in ([[0, 4], [1, 1]], [[1, 3]], [[0, 3]]):
        parts = [[], [], [], []]
        for s, n in segments:
            rows = slice(done[s], done[s] + n)
            for part, t in zip(parts, (*whole[s], results[s])):
                part.append(t[rows])
            done[s] += n
        q, k, v, y = (torch.cat(p) for p in parts)
        inputs = {"x0": array(q), "k": array(k), "v": array(v)}
        if sinks is not None:
            inputs["x4"] = array(sinks)
        runs.append({"inputs": inputs, "segments": segments, "outputs": [array(y)]})
    operands = [In(q, shape=("tokens", H, d)), None, None, BATCH, In(sinks) if sinks is not None else None, None, None]
    graph = text("attend", operands, [Out(y, shape=("tokens", H, dv))], {**attrs, "scale": scale}, (Hk, d, dv),
                 (In(k, shape=("tokens", Hk, d)), In(v, shape=("tokens", Hk, dv))))
    cases.append({"name": name, "ops": ["attend", "append"], "graph": graph, "runs": runs})


# ---- states: sequences in pieces, several in a call, against each of them at once ----
PIECES = ([[0, 5], [1, 1]], [[2, 1], [1, 3]], [[0, 1]], [[1, 2], [2, 4], [0, 3]])
LENGTHS = {s: sum(n for piece in PIECES for of, n in piece if of == s) for s in (0, 1, 2)}


def state_case(name, op, kind, state, operands, whole, append=None, tol=None, **attrs):
    """`operands`: per name what is given: a tensor for every call, BATCH, or a key of `whole`. `whole[s]`: by key the rows of
    sequence s, and under "y" the result's."""
    done = {s: 0 for s in LENGTHS}
    runs = []
    for segments in PIECES:
        rows = {}
        for s, n in segments:
            for key, t in whole[s].items():
                rows.setdefault(key, []).append(t[done[s]:done[s] + n])
            done[s] += n
        rows = {key: torch.cat(parts) for key, parts in rows.items()}
        given = {f"x{i}": rows[o] if isinstance(o, str) else o for i, o in enumerate(operands) if o is not None and o is not BATCH}
        if append:
            given.update({"k": rows[append[0]], "v": rows[append[1]]})
        runs.append({"inputs": {key: array(t) for key, t in given.items()}, "segments": segments, "outputs": [array(rows["y"])]})
    by_tokens = lambda key: In(whole[0][key], shape=("tokens", *whole[0][key].shape[1:]))
    typed = [by_tokens(o) if isinstance(o, str) else o if o is None or o is BATCH else In(o) for o in operands]
    graph = text(op, typed, [by_tokens("y")], attrs, state, tuple(map(by_tokens, append)) if append else None, kind)
    c = {"name": name, "ops": [op, "append"] if append else [op], "graph": graph, "runs": runs}
    if tol:
        c["tolerance"] = tol
    cases.append(c)


for bias in (True, False):
    w, b, whole = random(3, 4), random(3) if bias else None, {}
    for s, n in LENGTHS.items():
        x = random(n, 3)
        y = modeling_mamba2.causal_conv1d_fn(x.double().T[None], w.double(), b.double() if bias else None)[0].T
        whole[s] = {"x": x, "y": y}
    state_case("causal_conv1d, as Mamba-2" + ("" if bias else ", no bias"), "causal_conv1d", "ring", (3, 3), ["x", w, b, BATCH],
               whole)

# Four heads of 3 channels, two groups of b and c, states of 5; the reference goes in chunks of 2.
a, d, whole = -random(4, low=0.1, high=2), random(4), {}
for s, n in LENGTHS.items():
    x, dt, b, c = random(n, 4, 3), random(n, 4, low=0.01, high=2), random(n, 2, 5), random(n, 2, 5)
    y = modeling_mamba2.mamba2_chunk_scan(x[None], dt[None], a, b[None], c[None], 2, D=d)[0]
    whole[s] = {"x": x, "dt": dt, "b": b, "c": c, "y": y}
state_case("ssd_scan, as Mamba-2", "ssd_scan", "recurrent", (4, 3, 5), ["x", "dt", a, "b", "c", d, BATCH], whole, tol=1e-5)

# Two key heads of 4 channels, four value heads of 3; the reference goes in chunks of 3, and token by token.
for normalize, rule in ((1e-6, modeling_qwen3_next.torch_chunk_gated_delta_rule),
                        (None, modeling_qwen3_next.torch_recurrent_gated_delta_rule)):
    whole = {}
    for s, n in LENGTHS.items():
        q, k, v = random(n, 2, 4), random(n, 2, 4) / (1 if normalize else 4), random(n, 4, 3)
        k = torch.round(k * 1000) / 1000
        decay, beta = -random(n, 4, low=0.01, high=2), random(n, 4, low=0.05, high=0.95)
        if normalize:
            q[0] = q[0] / 1000                                 # so small that eps is felt
        y, _ = rule(q[None], k[None], v[None], g=decay[None], beta=beta[None], use_qk_l2norm_in_kernel=normalize is not None,
                    **({"chunk_size": 3} if normalize else {}), initial_state=None, output_final_state=False)
        whole[s] = {"q": q, "k": k, "v": v, "decay": decay, "beta": beta, "y": y[0]}
    state_case("gated_delta, as Qwen3-Next" + (", normalized" if normalize else ""), "gated_delta", "recurrent", (4, 4, 3),
               ["q", "k", "v", "decay", "beta", BATCH], whole, tol=1e-5, scale=4 ** -0.5,
               **({"normalize": normalize} if normalize else {}))

# Three heads: 4 channels from the latent of 5, 2 that are turned, values of 3; DeepSeek-V3's own expansion.
up, whole, holder = random(3 * (4 + 3), 5), {}, Holder()
holder.num_key_value_groups, holder.qk_nope_head_dim, holder.v_head_dim, holder.qk_rope_head_dim = 1, 4, 3, 2
holder.kv_b_proj = lambda latent: F.linear(latent, up.double())
for s, n in LENGTHS.items():
    q_nope, q_rope, latent, key = random(n, 3, 4), random(n, 3, 2), random(n, 5), random(n, 2)
    k, v = modeling_deepseek_v3.DeepseekV3Attention.expand_kv(holder, latent.double()[None, None], key.double()[None, None])
    mask = torch.zeros(1, 1, n, n, dtype=torch.float64).masked_fill(~causal(n), -math.inf)
    q = torch.cat([q_nope, q_rope], -1).double().transpose(0, 1)[None]
    scores_of = q @ k.transpose(2, 3) * 0.4 + mask
    y = (torch.softmax(scores_of, -1) @ v)[0].transpose(0, 1)
    whole[s] = {"q_nope": q_nope, "q_rope": q_rope, "latent": latent, "key": key, "y": y}
state_case("attend_latent, as DeepSeek-V3", "attend_latent", "latent_cache", (5, 2), ["q_nope", "q_rope", BATCH, up], whole,
           append=("latent", "key"), mask="causal", scale=0.4)


# ---- rope ----
def rope_case(name, tokens, heads, d, r, pairs, magnitude=None):
    x, angles = random(tokens, heads, d), random(tokens, r // 2, low=-7, high=7)
    cos, sin = angles.double().cos() * (magnitude or 1), angles.double().sin() * (magnitude or 1)
    turned = x[..., :r].double()
    if pairs == "halves":
        cos2, sin2 = torch.cat([cos, cos], -1)[None], torch.cat([sin, sin], -1)[None]
        y, _ = apply_rotary_pos_emb(turned.transpose(0, 1)[None], turned.transpose(0, 1)[None], cos2, sin2)
        y = y[0].transpose(0, 1)
    else:
        z = torch.view_as_complex(turned.reshape(tokens, heads, r // 2, 2).contiguous())
        y = torch.view_as_real(z * torch.complex(cos, sin)[:, None]).flatten(-2)
    y = torch.cat([y, x[..., r:].double()], -1)
    attrs = {"pairs": pairs, **({"magnitude": magnitude} if magnitude else {})}
    case(name, "rope", [x, angles], y, **attrs)


rope_case("rope, halves, as transformers", 3, 2, 8, 8, "halves")
rope_case("rope, adjacent, as complex numbers", 3, 2, 8, 8, "adjacent")
rope_case("rope, halves, the first 4 channels, magnitude", 2, 1, 6, 4, "halves", 1.25)
rope_case("rope, adjacent, the first 4 channels", 2, 1, 6, 4, "adjacent")

# ---- norms ----
x, w, b = random(2, 3, 6), random(6), random(6)
case("rms_norm", "rms_norm", [x, w], F.rms_norm(x.double(), (6,), w.double(), 1e-5), eps=1e-5)
case("rms_norm, no weight", "rms_norm", [x, None], F.rms_norm(x.double(), (6,), None, 0.5), eps=0.5)
gemma = Gemma3RMSNorm(6, eps=1e-6)
gemma.weight.data = w
case("rms_norm, offset 1, as Gemma 3", "rms_norm", [x, w], gemma(x), 1e-6, eps=1e-6, offset=1.0, multiply="before_cast")
llama = LlamaRMSNorm(6, eps=1e-5)
llama.weight.data = w.bfloat16()
y = llama(x.bfloat16())
case("rms_norm, bf16, rounded before the weight, as Llama", "rms_norm", [x.bfloat16(), w.bfloat16()], y, 1e-9, eps=1e-5,
     multiply="after_cast")
gemma.weight.data = w.bfloat16()
y = gemma(x.bfloat16())
case("rms_norm, bf16, rounded after the weight, as Gemma 3", "rms_norm", [x.bfloat16(), w.bfloat16()], y, 1e-9, eps=1e-6,
     offset=1.0, multiply="before_cast")
case("layer_norm", "layer_norm", [x, w, b], F.layer_norm(x.double(), (6,), w.double(), b.double(), 1e-5), eps=1e-5)
case("layer_norm, bare", "layer_norm", [x, None, None], F.layer_norm(x.double(), (6,), eps=1e-5), eps=1e-5)
case("l2_normalize", "l2_normalize", [x], F.normalize(x.double(), dim=-1))
case("l2_normalize, eps larger than the length", "l2_normalize", [x], F.normalize(x.double(), dim=-1, eps=100.0), eps=100.0)

# ---- reductions ----
x = random(2, 3, 4)
keep = torch.tensor([[True, False, True], [True, True, False]])            # axes up to axis 1
kept = keep[..., None]
d = x.double()
case("softmax", "softmax", [x, None], torch.softmax(d, -1))
case("softmax, axis 1", "softmax", [x, None], torch.softmax(d, 1), axis=1)
case("softmax, where", "softmax", [x, keep], torch.softmax(d.masked_fill(~kept, -math.inf), 1), axis=1)
case("sum", "sum", [x, None], d.sum(-1))
case("sum, where", "sum", [x, keep], (d * kept).sum(1), axis=1)
case("sum of integers", "sum", [torch.tensor([[1, -2, 3], [4, 5, 6]]), None], torch.tensor([5, 3, 9]), axis=0)
case("mean", "mean", [x, None], d.mean(0), axis=0)
case("mean, where", "mean", [x, keep], (d * kept).sum(1) / kept.sum(1), axis=1)
case("max_reduce", "max_reduce", [x, None], d.amax(1), axis=1)
case("max_reduce, where", "max_reduce", [x, keep], d.masked_fill(~kept, -math.inf).amax(1), axis=-2)
case("min_reduce", "min_reduce", [x, None], d.amin(-1))
case("min_reduce, where", "min_reduce", [x, keep], d.masked_fill(~kept, math.inf).amin(1), axis=1)
case("argmax", "argmax", [x, None], Out(d.argmax(-1), 4))
case("argmax, axis 0", "argmax", [x, None], Out(d.argmax(0), 2), axis=0)
case("argmax, where", "argmax", [x, keep], Out(d.masked_fill(~kept, -math.inf).argmax(1), 3), axis=1)
case("cumsum", "cumsum", [x, None], d.cumsum(-1))
case("cumsum, where, axis 1", "cumsum", [x, keep], (d * kept).cumsum(1), axis=1)

# ---- views and copies ----
x = random(2, 3, 4)
case("reshape", "reshape", [x], x.reshape(4, 6))
case("reshape to one axis", "reshape", [x], x.reshape(24))
r = torch.tensor([1.0, 1.00390625, 1.01171875, -3.14159, 1e-40, 70000.0, 0.1])
case("cast to bf16", "cast", [r], r.bfloat16(), 1e-12, dtype="bf16")
case("cast to f16", "cast", [r], r.half(), 1e-12, dtype="f16")
r = torch.tensor([-2.7, -0.5, 0.0, 0.5, 2.7])
case("cast to i32", "cast", [r], r.int(), dtype="i32")
case("cast to bool", "cast", [r], r.bool(), dtype="bool")
case("cast of bool", "cast", [torch.tensor([True, False])], torch.tensor([1.0, 0.0]), dtype="f32")
case("cast of integers", "cast", [torch.tensor([-3, 5])], torch.tensor([-3.0, 5.0]), dtype="f32")
x = random(3, 7)
case("slice", "slice", [x], x[:, 1:6:2], axis=-1, start=1, stop=6, step=2)
case("slice to the end", "slice", [x], x[1:], axis=0, start=1)
case("slice, one index", "slice", [x], x[:, 4], axis=1, start=4, drop=True)
z = random(3, 2)
case("concat", "concat", [x, z], torch.cat([x, z], -1))
z = random(1, 7)
case("concat of three, axis 0", "concat", [x, z, x], torch.cat([x, z, x], 0), axis=0)
a, c = random(2, 3), random(2, 3)
case("stack", "stack", [a, c], torch.stack([a, c]))
case("stack, last axis", "stack", [a, c, a], torch.stack([a, c, a], -1), axis=-1)
case("split", "split", [x], list(torch.split(x, [1, 4, 2], -1)), sizes=[1, 4, 2])
case("split, axis 0", "split", [x], list(torch.split(x, [2, 1], 0)), sizes=[2, 1], axis=0)
x = random(2, 3, 4)
case("transpose", "transpose", [x], x.transpose(0, 2), a=0, b=2)
case("transpose, from the end", "transpose", [x], x.transpose(-1, -2), a=-1, b=-2)
case("repeat_axis", "repeat_axis", [x], x.repeat_interleave(2, -1), times=2)
case("repeat_axis, axis 1", "repeat_axis", [x], x.repeat_interleave(3, 1), times=3, axis=1)
z = random(3, 1)
case("expand", "expand", [z], z.expand(2, 3, 4))
case("pad", "pad", [x], F.pad(x, (1, 2)), before=1, after=2)
case("pad, axis 1, value", "pad", [x], F.pad(x, (0, 0, 2, 0), value=-1.5), before=2, after=0, axis=1, value=-1.5)

# ---- makers ----
case("arange", "arange", [], torch.arange(5).float(), count=5)
case("linspace", "linspace", [], torch.linspace(-8, 8, 11), 1e-6, start=-8.0, stop=8.0, count=11)
case("linspace of one", "linspace", [], torch.linspace(3, 5, 1), start=3.0, stop=5.0, count=1)
case("tensor_literal", "tensor_literal", [], torch.tensor([0.1, -2.0, 3e10]), values=[0.1, -2.0, 3e10])
case("tensor_literal, shape", "tensor_literal", [], torch.tensor([[1.0], [2.0]]), values=[1.0, 2.0], shape=[2, 1])

# ---- elementwise ----
a, c = random(2, 3), random(3)
cond = torch.tensor([[True], [False]])
case("where", "where", [cond, a, c], torch.where(cond, a, c))
one = torch.tensor(0.5)
for name, f in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "min": torch.minimum,
                "max": torch.maximum, "mod": torch.remainder}.items():
    case(name, name, [a, c], f(a.double(), c.double()))
case("add, one number", "add", [a, one], a.double() + 0.5)
z = random(3, 1)
case("mul, both broadcast", "mul", [z, c], z.double() * c.double())
p = random(2, 3, low=0.1, high=3)
case("pow", "pow", [p, c], torch.pow(p.double(), c.double()))
i, j = torch.tensor([7, -7, 7, -7]), torch.tensor([3, 3, -3, -3])
case("mod of integers", "mod", [i, j], torch.remainder(i, j))
case("add of integers", "add", [i, j], i + j)
case("mul of integers", "mul", [i, j], i * j)
case("max of integers", "max", [i, j], torch.maximum(i, j))
z = random(4)
case("integer times float", "mul", [i, z], i * z.double())
u, v = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 2.0, 2.0])
for name, f in {"less": torch.lt, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge,
                "equal": torch.eq, "not_equal": torch.ne}.items():
    case(name, name, [u, v], f(u, v))
case("less of integers", "less", [i, j], i < j)
m, n = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
case("logical_and", "logical_and", [m, n], m & n)
case("logical_or", "logical_or", [m, n], m | n)
case("logical_not", "logical_not", [m], ~m)

x = torch.cat([random(8, low=-4, high=4), torch.tensor([0.0, -20.0, 20.0])])
positive = torch.cat([random(6, low=0.01, high=5), torch.tensor([1e-6, 1e6])])
for name, f in {"neg": torch.neg, "silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"),
                "quick_gelu": ACT2FN["quick_gelu"], "relu": F.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
                "softplus": lambda t: F.softplus(t, threshold=1e9), "exp": torch.exp, "exp2": torch.exp2,
                "expm1": torch.expm1, "erf": torch.erf, "cos": torch.cos, "sin": torch.sin, "abs": torch.abs,
                "floor": torch.floor, "ceil": torch.ceil}.items():
    case(name, name, [x], f(x.double()))
for name, f in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt}.items():
    case(name, name, [positive], f(positive.double()))
case("silu, bf16", "silu", [x.bfloat16()], F.silu(x.bfloat16().float()).bfloat16(), 1e-12)

# ---- mixture of experts ----
torch.manual_seed(8)


def router(scores, k, bias=None, groups=1, keep=1, renormalize=False, scale=1.0):
    """DeepSeek-V3's own router, given what comes out of its sigmoid."""
    n = scores.shape[-1]
    config = DeepseekV3Config(n_routed_experts=n, num_experts_per_tok=k, n_group=groups, topk_group=keep,
                              norm_topk_prob=renormalize, routed_scaling_factor=scale, hidden_size=n)
    gate = DeepseekV3TopkRouter(config).double()
    gate.weight.data = torch.eye(n, dtype=torch.float64)
    gate.e_score_correction_bias.data = torch.zeros(n, dtype=torch.float64) if bias is None else bias.double()
    p = scores.double()
    with torch.no_grad(), mock.patch.object(torch.Tensor, "sigmoid", lambda s: p):
        _, weights, chosen = gate(p)
    order = (p + (0 if bias is None else bias.double())).gather(1, chosen).argsort(-1, descending=True)
    return chosen.gather(1, order), weights.gather(1, order)


s, b = random(5, 8, low=0.01, high=0.99), random(8, low=-1.0, high=1.0)
best, order = torch.topk(s, 3)
case("route", "route", [s, None], [Out(order, 8), best], k=3, renormalize=False)
case("route, of equals the lower index", "route", [torch.tensor([[0.25, 0.5, 0.5, 0.25]]), None],
     [Out(torch.tensor([[1, 2, 0]]), 4), torch.tensor([[0.5, 0.5, 0.25]])], k=3, renormalize=False)
best = best.double()
case("route, renormalized", "route", [s, None], [Out(order, 8), best / best.sum(-1, keepdim=True)], k=3, renormalize=True)
order, best = router(s, 3, b, 1, 1, True, 2.5)
assert (order != torch.topk(s, 3)[1]).any()
case("route, a bias chooses and does not weigh", "route", [s, b], [Out(order, 8), best], k=3, renormalize=True, scale=2.5)
order, best = router(s, 3, b, 4, 2, True, 2.5)
assert (order != router(s, 3, b)[0]).any()
case("route, the two best of four groups by the sum of their two best, as DeepSeek-V3", "route", [s, b],
     [Out(order, 8), best], k=3, groups=4, keep_groups=2, group_score="top2_sum", renormalize=True, scale=2.5)
of_group = s.view(5, 2, 4).amax(-1)
kept = F.one_hot(of_group.argmax(-1), 2).bool().repeat_interleave(4, -1)
best, order = torch.topk(s.masked_fill(~kept, -math.inf), 3)
case("route, the best of two groups by its largest", "route", [s, None], [Out(order, 8), best], k=3, groups=2, keep_groups=1,
     group_score="max", renormalize=False)


def experts_case(name, y, operands, body, E, f):
    chosen, k = operands[1], operands[1].shape[1]
    names = ["x", "chosen", "weights", "gate", "up", "down", "gate_b", "up_b", "down_b"]
    given = {n: In(t, E if n == "chosen" else None) for n, t in zip(names, operands) if t is not None}
    inputs = ", ".join(f"%{n}: {o.type()}" for n, o in given.items())
    used = ", ".join(f"%{n}" if n in given else "_" for n in names)
    lines = ["graph 1", "module Case root Case", "class Case: Case {", f"  forward forward({inputs}) {{",
             f"    %y: {type_of(y)} = moe({used}) {{", f"      carry %g: f32[{f}], %u: f32[{f}]",
             *("      " + line.replace("ROW", f"f32[{f}]") for line in body), "    }", "    return %y", "  }", "}", ""]
    run = {"inputs": {n: array(o.t) for n, o in given.items()}, "outputs": [array(y)]}
    cases.append({"name": name, "ops": ["moe"], "graph": "\n".join(lines), "runs": [run], "tolerance": 1e-6})


with torch.no_grad():
    T, d, f, E, k = 5, 6, 4, 3, 2
    x, gate, up, down = random(T, d), random(E, f, d), random(E, f, d), random(E, d, f)
    chosen, weights = torch.tensor([[0, 2], [2, 1], [1, 0], [2, 0], [0, 1]]), random(T, k, low=0, high=1)
    m = Qwen3MoeExperts(Qwen3MoeConfig(num_experts=E, hidden_size=d, moe_intermediate_size=f)).double()
    m.gate_up_proj.data, m.down_proj.data = torch.cat([gate, up], 1).double(), down.double()
    experts_case("moe, as Qwen3-MoE", m(x.double(), chosen, weights.double()), [x, chosen, weights, gate, up, down],
                 ["%1: ROW = silu(%g)", "%2: ROW = mul(%1, %u)", "next %2"], E, f)
    biases = random(E, f), random(E, f), random(E, d)
    m = modeling_gpt_oss.GptOssExperts(GptOssConfig(num_local_experts=E, hidden_size=d, intermediate_size=f,
                                                    swiglu_limit=1.5)).double()
    m.gate_up_proj.data = torch.stack([gate, up], 2).reshape(E, 2 * f, d).transpose(1, 2).double()
    m.gate_up_proj_bias.data = torch.stack(biases[:2], 2).reshape(E, 2 * f).double()
    m.down_proj.data, m.down_proj_bias.data = down.transpose(1, 2).double(), biases[2].double()
    clamped = ["%1: f32[] = literal(value: 1.5)", "%2: ROW = min(%g, %1)", "%3: f32[] = literal(value: -1.5)",
               "%4: ROW = max(%u, %3)", "%5: f32[] = literal(value: 1.5)", "%6: ROW = min(%4, %5)",
               "%7: f32[] = literal(value: 1.0)", "%8: ROW = add(%6, %7)", "%9: ROW = mul(%8, %2)",
               "%10: f32[] = literal(value: 1.702)", "%11: ROW = mul(%10, %2)", "%12: ROW = sigmoid(%11)",
               "%13: ROW = mul(%9, %12)", "next %13"]
    y = m(x.double(), chosen, weights.double())
    assert (y - m.forward(x.double() * 0.99, chosen, weights.double())).abs().max() > 1e-3
    experts_case("moe with biases and a clamp that is reached, as gpt-oss", y,
                 [x, chosen, weights, gate, up, down, *biases], clamped, E, f)
# ---- convolutions; a seed of their own, so that cases before them may come and go ----
torch.manual_seed(11)


def conv_case(name, op, x, w, bias, **attrs):
    f = {"conv1d": F.conv1d, "conv2d": F.conv2d, "conv3d": F.conv3d, "conv_transpose1d": F.conv_transpose1d}[op]
    b = None
    if bias:
        b = random(w[1] * attrs.get("groups", 1) if op == "conv_transpose1d" else w[0])
    x, w = random(*x), random(*w)
    case(f"{op}, {name}", op, [x, w, b], f(x.double(), w.double(), None if b is None else b.double(), **attrs), **attrs)


conv_case("bare", "conv1d", (2, 3, 7), (4, 3, 3), False)
conv_case("bias, padding, stride that does not divide", "conv1d", (2, 3, 8), (4, 3, 3), True, stride=3, padding=1)
conv_case("dilation, groups", "conv1d", (1, 4, 9), (6, 2, 3), True, dilation=2, groups=2, padding=2)
conv_case("depthwise, kernel 1", "conv1d", (1, 3, 4), (3, 1, 1), False, groups=3)
conv_case("the kernel as wide as x with its padding", "conv1d", (1, 2, 3), (2, 2, 5), True, padding=1)
conv_case("patches", "conv2d", (2, 3, 8, 8), (5, 3, 4, 4), True, stride=4)
conv_case("unequal axes, stride that does not divide, padding", "conv2d", (1, 2, 7, 5), (3, 2, 3, 2), True, stride=2, padding=1)
conv_case("dilation, groups", "conv2d", (1, 4, 6, 7), (4, 2, 2, 3), False, dilation=2, groups=2)
conv_case("stride, padding", "conv3d", (1, 2, 4, 5, 3), (3, 2, 2, 3, 2), True, stride=2, padding=1)
conv_case("groups", "conv3d", (1, 2, 2, 3, 3), (4, 1, 2, 1, 2), False, groups=2)
conv_case("bare", "conv_transpose1d", (2, 3, 4), (3, 2, 3), False)
conv_case("stride, padding, bias", "conv_transpose1d", (2, 3, 4), (3, 2, 5), True, stride=3, padding=2)
conv_case("dilation, groups", "conv_transpose1d", (1, 4, 3), (4, 3, 2), True, stride=2, dilation=3, groups=2)

# A memory of 5 rows for each sequence, set in two calls; the tokens of a sequence see all of it, and of no other.
H, Hk, d, rows, scale = 4, 2, 4, 5, 0.5
memory = {s: (random(rows, Hk, d), random(rows, Hk, d)) for s in (0, 3, 1)}
asked = [[[3, 2], [0, 1]], [[1, 2]], [[0, 1], [3, 1]]]
runs = []
for slots in ((0, 3), (1,)):
    runs.append({"function": "remember", "sequences": list(slots), "outputs": [],
                 "inputs": {n: array(torch.stack([memory[s][i] for s in slots])) for i, n in enumerate("kv")}})
for segments in asked:
    q = {s: random(n, H, d) for s, n in segments}
    y = torch.cat([attend(q[s], *memory[s], scale) for s, _ in segments])
    runs.append({"inputs": {"x0": array(torch.cat(list(q.values())))}, "segments": segments, "outputs": [array(y)]})
shape = f"f32[batch, {rows}, {Hk}, {d}]"
graph = "\n".join(["graph 1", "module Case root Case", "axis tokens: 1..", "axis outputs: 0..", "axis batch: 1..",
                   "class Case: Case {", f"  state cache: cross_cache[{rows}, {Hk}, {d}]",
                   f"  entry remember(%k: {shape}, %v: {shape}, %at: Sequences) {{",
                   '    cross_set "cache"(%k, %v, %at)', "    return", "  }",
                   f"  forward forward(%x0: f32[tokens, {H}, {d}], %at: Batch) {{",
                   f'    %y0: f32[tokens, {H}, {d}] = attend "cache"(%x0, _, _, %at, _, _, _; mask: "full", scale: {scale})',
                   "    return %y0", "  }", "}", ""])
cases.append({"name": "attend, cross cache, two sequences and a third", "ops": ["attend", "cross_set"], "graph": graph,
              "runs": runs})

# ---- packed numbers: four bits of each, as transformers unpacks MXFP4 ----
codes = torch.randint(0, 256, (2, 3), dtype=torch.uint8)
apart = torch.stack([codes & 15, codes >> 4], -1).flatten(-2)
case("nibbles", "nibbles", [codes], apart)
case("e2m1, all codes", "e2m1", [torch.arange(16, dtype=torch.uint8).reshape(2, 8)],
     torch.tensor(mxfp4.FP4_VALUES).reshape(2, 8))
case("e2m1, of a byte the low half", "e2m1", [torch.arange(0, 256, 5).to(torch.uint8)],
     torch.tensor(mxfp4.FP4_VALUES)[torch.arange(0, 256, 5) & 15])

out = {"versions": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}, "cases": cases}
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
path = pathlib.Path(__file__).with_name("op_cases.json")
path.write_text('{"versions":' + json.dumps(out["versions"]) + ',\n"cases":[\n' + lines + "\n]}\n")
print(f"{len(cases)} cases, {path.stat().st_size} bytes")
