#!/usr/bin/env python3
"""Writes runtime/tokenizer/reference_classes.h: classes of characters that the reference implementation takes from tables
of its own, older than the system's libraries, found by asking it about every character.

Needs the package `tokenizers`.
"""
import pathlib

import tokenizers
from tokenizers.normalizers import BertNormalizer, StripAccents
from tokenizers.pre_tokenizers import Punctuation, UnicodeScripts

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(codes):
    runs = []
    for c in sorted(codes):
        if runs and runs[-1][1] == c - 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return runs


def bert(**options):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return BertNormalizer(**{**off, **options}).normalize_str


def scripts():
    """Runs of characters of one class; characters of no class (which never cut) are left out."""
    cuts = UnicodeScripts().pre_tokenize_str
    same = lambda a, b: len(cuts(chr(a) + chr(b))) == 1
    classes, runs = [], []
    for c in CODES:
        if same(0x61, c) and same(0x4EAC, c):
            continue
        if runs and runs[-1][1] == c - 1 and same(c - 1, c):
            runs[-1][1] = c
            continue
        known = next((i for i, r in enumerate(classes) if same(r, c)), None)
        if known is None:
            known = len(classes)
            classes.append(c)
        runs.append([c, c, known])
    return runs


def table(name, comment, rows, type_name):
    cells = ["{" + ", ".join([f"0x{r[0]:05X}", f"0x{r[1]:05X}"] + [str(x) for x in r[2:]]) + "}" for r in rows]
    per_line = 5 if len(rows[0]) == 2 else 4
    lines = [", ".join(cells[i:i + per_line]) + "," for i in range(0, len(cells), per_line)]
    return f"// {comment}\ninline constexpr {type_name} {name}[] = {{\n    " + "\n    ".join(lines) + "\n};\n"


def main():
    strip, accents, clean = StripAccents().normalize_str, bert(strip_accents=True), bert(clean_text=True)
    punctuation = Punctuation("isolated").pre_tokenize_str
    text = f"""// Classes of characters by the reference's own tables. Written by tools/make_reference_classes.py with tokenizers
// {tokenizers.__version__}.
#pragma once

#include <cstdint>

namespace modelc::unicode {{

struct CodeRange {{
  std::uint32_t first, last;
}};
struct ScriptRange {{
  std::uint32_t first, last;
  std::uint16_t script;
}};

"""
    text += "\n".join([
        table("combining_marks", "What StripAccents takes away: Mn, Mc, Me.",
              ranges(c for c in CODES if strip("a" + chr(c)) == "a"), "CodeRange"),
        table("nonspacing_marks", "What is left out of a decomposed text by the normalizer with `strip_accents`: Mn.",
              ranges(c for c in CODES if accents("a" + chr(c)) == "a"), "CodeRange"),
        table("cleaned_away", "What the normalizer with `clean_text` takes away: Cc, Cf, Co and U+FFFD.",
              ranges(c for c in CODES if clean("a" + chr(c) + "b") == "ab"), "CodeRange"),
        table("punctuation_marks", "Punctuation: P of Unicode, and the signs and symbols of ASCII.",
              ranges(c for c in CODES if len(punctuation("a" + chr(c) + "a")) == 3), "CodeRange"),
        table("scripts", "Scripts by number, kana counted as Han; what is in no range belongs to every script.", scripts(),
              "ScriptRange"),
    ])
    text += "\n}  // namespace modelc::unicode\n"
    pathlib.Path(__file__).resolve().parent.parent.joinpath("reference_classes.h").write_text(text)


if __name__ == "__main__":
    main()
