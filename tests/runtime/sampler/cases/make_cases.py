#!/usr/bin/env python3
"""Makes cases.json: what the logits processors of transformers leave of random logits, for many options.

    python3 make_cases.py            write cases.json beside this script
    python3 make_cases.py --check    compare with what is here; exit 1 if it differs

Each case has logits, history, options and `probabilities`, [id, probability] of what is left.
"""
import argparse
import json
import random
import sys
from pathlib import Path

import torch
import transformers
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                          SequenceBiasLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

HERE = Path(__file__).resolve().parent


def processors(o):
    """In the order of generate()."""
    made = LogitsProcessorList()
    if o["logit_bias"]:
        made.append(SequenceBiasLogitsProcessor([[[t], b] for t, b in o["logit_bias"]]))
    if o["repetition_penalty"] != 1:
        made.append(RepetitionPenaltyLogitsProcessor(o["repetition_penalty"]))
    if o["temperature"] != 1:
        made.append(TemperatureLogitsWarper(o["temperature"]))
    if o["top_k"]:
        made.append(TopKLogitsWarper(o["top_k"]))
    if o["top_p"] < 1:
        made.append(TopPLogitsWarper(o["top_p"]))
    if o["min_p"] > 0:
        made.append(MinPLogitsWarper(o["min_p"]))
    return made


def make():
    rng = random.Random(20)
    cases = []
    for i in range(160):
        size = rng.choice([2, 5, 17, 40, 97])
        spread = rng.choice([0.5, 2.0, 6.0])
        logits = [float(f"{rng.gauss(0, spread):.5g}") for _ in range(size)]
        if i % 5 == 0:  # ties
            logits = [round(x) * 1.0 for x in logits]
        some = lambda value, off: value if rng.random() < 0.6 else off
        o = {"temperature": some(rng.choice([0.2, 0.7, 1.3, 3.0]), 1.0), "top_k": some(rng.choice([1, 3, 10, 500]), 0),
             "top_p": some(rng.choice([0.0, 0.1, 0.5, 0.9, 0.99]), 1.0), "min_p": some(rng.choice([0.02, 0.2, 0.6, 1.0]), 0.0),
             "repetition_penalty": some(rng.choice([0.8, 1.2, 2.0]), 1.0),
             "logit_bias": some([[t, rng.choice([-4.0, 1.5, 5.0])] for t in rng.sample(range(size), min(3, size))], [])}
        if i % 5 == 0:
            o["top_p"] = 1.0  # which of equals goes is not said there
        history = [rng.randrange(size) for _ in range(rng.randrange(1, 12))]
        scores = processors(o)(torch.tensor([history]), torch.tensor([logits], dtype=torch.float32))
        left = torch.softmax(scores.double(), -1)[0]
        cases.append({"logits": logits, "history": history, "options": o,
                      "probabilities": [[t, round(p, 9)] for t, p in enumerate(left.tolist()) if p > 0]})
    line = lambda c: json.dumps(c)
    return (f'{{"transformers": "{transformers.__version__}", "torch": "{torch.__version__}",\n"cases": [\n'
            + ",\n".join(map(line, cases)) + "\n]}\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    check = p.parse_args().check
    text = make()
    if check:
        same = (HERE / "cases.json").read_text() == text
        print("the same" if same else "cases.json differs")
        return 0 if same else 1
    (HERE / "cases.json").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
