#!/usr/bin/env python3
"""Trains the tiny Llama-shaped model of this folder from nothing, on one CPU thread.

Needs Python 3.9+ with torch, transformers, safetensors, tokenizers and numpy, and a text to learn:

  * by default Jane Austen's six novels, taken from the Debian package r-cran-janeaustenr (it brings R along):
        apt-get install r-cran-janeaustenr
  * or any plain UTF-8 files:  --text FILE [FILE ...]   (blank lines separate paragraphs)

    python3 train.py --out OUTPUT_FOLDER [--minutes 50]

writes tokenizer.json, tokenizer_config.json, config.json, generation_config.json, model.safetensors and training.json,
and replaces them every few minutes while it runs, each file in one step, so the folder can be used at any time.
With --minutes the learning rate follows the clock, so the number of steps depends on the machine; with --steps the run
is the same everywhere up to rounding.
"""
import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BEGIN, END = "<|begin|>", "<|end|>"
NOVELS = ["sensesensibility", "prideprejudice", "mansfieldpark", "emma", "northangerabbey", "persuasion"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, type=Path, help="folder to write")
    p.add_argument("--text", nargs="+", type=Path, help="UTF-8 text files instead of the novels")
    p.add_argument("--minutes", type=float, default=50.0, help="length of the run (default 50)")
    p.add_argument("--steps", type=int, help="stop after this many steps instead of --minutes")
    p.add_argument("--save-minutes", type=float, default=5.0, help="time between two intermediate versions")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--vocab", type=int, default=2048)
    p.add_argument("--hidden", type=int, default=192)
    p.add_argument("--layers", type=int, default=5)
    p.add_argument("--heads", type=int, default=6)
    p.add_argument("--kv-heads", type=int, default=2)
    p.add_argument("--head-dim", type=int, default=32)
    p.add_argument("--intermediate", type=int, default=512)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--batch", type=int, default=4, help="sequences a step")
    p.add_argument("--lr", type=float, default=2.5e-3)
    p.add_argument("--weight-decay", type=float, default=0.1)
    p.add_argument("--warmup", type=float, default=0.02, help="share of the run that warms up")
    p.add_argument("--bf16", action="store_true", help="matrix products in bfloat16 (faster where the CPU has it)")
    p.add_argument("--compile", action="store_true", help="torch.compile (needs a C++ compiler)")
    return p.parse_args()


# ---------------------------------------------------------------------------------------------------------------- text
def novels():
    if shutil.which("Rscript") is None:
        sys.exit("train.py: no Rscript: install the package r-cran-janeaustenr, or give --text FILE")
    with tempfile.TemporaryDirectory() as folder:
        names = ",".join(f'"{n}"' for n in NOVELS)
        code = (f'suppressPackageStartupMessages(library(janeaustenr)); for (n in c({names})) '
                f'writeLines(get(n), file.path("{folder}", n), useBytes = TRUE)')
        subprocess.run(["Rscript", "--vanilla", "-e", code], check=True)
        return [(n, (Path(folder) / n).read_text(encoding="utf-8")) for n in NOVELS]


def documents(text):
    """The chapters of a text; in each, a paragraph is one line, and an empty line stands between two."""
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text.replace("\r", ""))]
    chapter, out = [], []
    for p in filter(None, paragraphs):
        if re.match(r"(CHAPTER|Chapter)\b", p) and chapter:
            out.append(chapter)
            chapter = []
        chapter.append(p)
    out.append(chapter)
    return ["\n\n".join(c) + "\n" for c in out if sum(map(len, c)) > 200]


# ----------------------------------------------------------------------------------------------------------- tokenizer
def train_tokenizer(texts, vocab):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False,
        special_tokens=[AddedToken(BEGIN, special=True, normalized=False), AddedToken(END, special=True, normalized=False)]))
    t.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN} $B:1", special_tokens=[(BEGIN, t.token_to_id(BEGIN))])
    return t


def tokenizer_config(t, context):
    added = {str(t.token_to_id(s)): {"content": s, "lstrip": False, "normalized": False, "rstrip": False,
                                     "single_word": False, "special": True} for s in (BEGIN, END)}
    return {"added_tokens_decoder": added, "bos_token": BEGIN, "clean_up_tokenization_spaces": False,
            "eos_token": END, "model_max_length": context, "tokenizer_class": "PreTrainedTokenizerFast"}


# --------------------------------------------------------------------------------------------------------------- output
def put(folder, name, write):
    """Writes a file beside its place and moves it there in one step."""
    part = folder / f".{name}.part"
    write(part)
    os.replace(part, folder / name)


def save(model, folder, record):
    import torch
    state = {k: v.detach().to(torch.bfloat16) for k, v in model.state_dict().items()}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as temporary:
        copy = type(model)(model.config).to(torch.bfloat16)
        copy.load_state_dict(state)
        copy.save_pretrained(temporary)
        for name in ("model.safetensors", "config.json", "generation_config.json"):
            os.chmod(Path(temporary) / name, 0o644)
            os.replace(Path(temporary) / name, folder / name)
    put(folder, "training.json", lambda f: f.write_text(json.dumps(record, indent=2) + "\n"))


# ------------------------------------------------------------------------------------------------------------- training
def main():
    a = arguments()
    import numpy
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    random.seed(a.seed)
    a.out.mkdir(parents=True, exist_ok=True)

    sources = [(f.name, f.read_text(encoding="utf-8")) for f in a.text] if a.text else novels()
    docs = [(name, d) for name, text in sources for d in documents(text)]
    random.Random(a.seed).shuffle(docs)
    held = docs[:max(1, len(docs) // 40)] if len(docs) > 1 else []
    train_docs = docs[len(held):]

    tokenizer = train_tokenizer([d for _, d in train_docs], a.vocab)
    put(a.out, "tokenizer.json", lambda f: tokenizer.save(str(f)))
    put(a.out, "tokenizer_config.json",
        lambda f: f.write_text(json.dumps(tokenizer_config(tokenizer, a.context), indent=2) + "\n"))
    begin, end = tokenizer.token_to_id(BEGIN), tokenizer.token_to_id(END)

    def stream(these):
        ids = []
        for _, d in these:
            ids += tokenizer.encode(d).ids + [end]            # the template puts <|begin|> first
        return torch.tensor(numpy.array(ids, dtype=numpy.int64))

    data, test = stream(train_docs), stream(held or train_docs[:1])
    characters = sum(len(d) for _, d in train_docs)
    print(f"{len(train_docs)} chapters, {characters} characters, {len(data)} tokens; held out: {len(held)} chapters, "
          f"{len(test)} tokens", flush=True)

    config = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=a.hidden, intermediate_size=a.intermediate,
        num_hidden_layers=a.layers, num_attention_heads=a.heads, num_key_value_heads=a.kv_heads, head_dim=a.head_dim,
        max_position_embeddings=a.context, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=begin,
        eos_token_id=end, pad_token_id=None, attn_implementation="sdpa")
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for name, w in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                w /= math.sqrt(2 * a.layers)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters", flush=True)

    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": a.weight_decay},
                                   {"params": vectors, "weight_decay": 0.0}], lr=a.lr, betas=(0.9, 0.95), fused=True)

    def loss_of(x):
        with torch.autocast("cpu", torch.bfloat16, enabled=a.bf16):
            logits = model(x[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten())

    run = torch.compile(loss_of) if a.compile else loss_of

    @torch.no_grad()
    def held_out_loss():
        model.eval()
        rows = test[:len(test) // (a.context + 1) * (a.context + 1)].view(-1, a.context + 1)
        total = sum(float(loss_of(r[None])) for r in rows) / len(rows)
        model.train()
        return total

    @torch.no_grad()
    def sample():
        model.eval()
        ids = model.generate(torch.tensor([tokenizer.encode("It is a truth").ids]), max_new_tokens=48, do_sample=False)
        model.train()
        return tokenizer.decode(ids[0].tolist())

    random_state = torch.Generator().manual_seed(a.seed)
    started = time.monotonic()
    saved, step, recent, history = started, 0, [], []

    def record(done):
        loss = held_out_loss()
        history.append({"step": step, "minutes": round((time.monotonic() - started) / 60, 1),
                        "train": round(sum(recent) / max(1, len(recent)), 4), "held_out": round(loss, 4)})
        save(model, a.out, {
            "finished": done, "parameters": count, "steps": step, "tokens_seen": step * a.batch * a.context,
            "training_tokens": len(data), "batch": a.batch, "context": a.context, "lr": a.lr,
            "weight_decay": a.weight_decay, "seed": a.seed, "matmul": "bfloat16" if a.bf16 else "float32",
            "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "history": history})
        print(f"saved at step {step}: {json.dumps(history[-1])}\n  {sample()!r}", flush=True)

    model.train()
    while True:
        elapsed = (time.monotonic() - started) / 60
        progress = step / a.steps if a.steps else elapsed / a.minutes
        if progress >= 1:
            break
        rate = a.lr * (progress / a.warmup if progress < a.warmup else
                       0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (progress - a.warmup) / (1 - a.warmup))))
        for group in optimizer.param_groups:
            group["lr"] = max(rate, a.lr * 1e-3)
        starts = torch.randint(0, len(data) - a.context - 1, (a.batch,), generator=random_state)
        loss = run(torch.stack([data[s:s + a.context + 1] for s in starts.tolist()]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        recent = (recent + [loss.item()])[-100:]
        if step % 50 == 0 or step < 4:
            print(f"{(time.monotonic() - started) / 60:6.2f} min  step {step}  loss {sum(recent) / len(recent):.4f}  "
                  f"rate {rate:.2e}", flush=True)
        if (time.monotonic() - saved) / 60 >= a.save_minutes:
            saved = time.monotonic()
            record(False)
    record(True)


if __name__ == "__main__":
    main()
