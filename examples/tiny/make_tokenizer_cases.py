#!/usr/bin/env python3
"""Writes tokenizer_cases.json: what the `tokenizers` package makes of difficult strings with this folder's tokenizer.json.

    python3 make_tokenizer_cases.py

The strings and the form of the file are in ../llama/fixtures/tokenizers/tokenizer_cases.py.
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "llama" / "fixtures" / "tokenizers"))

import tokenizers

from tokenizer_cases import cases, dump

made = cases(tokenizers.Tokenizer.from_file(str(HERE / "tokenizer.json")), ["<|begin|>", "<|end|>"])
dump(made, HERE / "tokenizer_cases.json", tokenizers.__version__)
print(f"{len(made['cases'])} cases, {len(made['decode'])} to decode")
