#!/usr/bin/env python3
"""Writes runtime/tokenizer/unicode_additions.h: where the reference implementation does not go by Unicode 14.

The system's libraries may know Unicode 14 only (Debian 12). The reference, the package `tokenizers`, splits text by
Unicode 16, has lower case by a later version still, and normal forms by an earlier one. Needs that package, and Python 3.11,
whose unicodedata is Unicode 14.
"""
import pathlib
import sys
import unicodedata

import tokenizers
from tokenizers import Regex
from tokenizers.normalizers import NFKD, Lowercase
from tokenizers.pre_tokenizers import Split

# The scripts that regex_translate.cpp carries out.
SCRIPTS = (
    "Arabic Armenian Bengali Bopomofo Cherokee Common Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han "
    "Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil "
    "Telugu Thai Tibetan"
).split()
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()


def matched(pattern, codes):
    """Those of `codes` that the one-character pattern matches."""
    text = "".join(map(chr, codes))
    kept = set()
    for _, (a, b) in Split(Regex(pattern), "removed").pre_tokenize_str(text):
        kept.update(text[a:b])
    return {c for c in codes if chr(c) not in kept}


def main():
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"unicodedata is {unicodedata.unidata_version}, needed is 14.0.0 (Python 3.11)")
    unassigned = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) == "Cn"]
    category = {}
    for name in CATEGORIES:
        for c in matched(rf"\p{{{name}}}", unassigned):
            category[c] = name
    script = {}
    for name in SCRIPTS:
        for c in matched(rf"\p{{{name}}}", unassigned):
            script[c] = name
    ranges = []
    for c in sorted(category):
        key = (category[c], script.get(c, ""))
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == key:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, key])
    lower = [(c, Lowercase().normalize_str(chr(c))) for c in unassigned]
    lower_lines = [f"    {{0x{c:05X}, 0x{ord(s):05X}}}," for c, s in lower if s != chr(c)]
    undecomposed = []
    for c in range(0x80, 0x110000):
        s = chr(c)
        if 0xD800 <= c < 0xE000 or unicodedata.normalize("NFKD", s) == s or NFKD().normalize_str(s) != s:
            continue
        if undecomposed and undecomposed[-1][1] == c - 1:
            undecomposed[-1][1] = c
        else:
            undecomposed.append([c, c])
    undecomposed_lines = [f"    {{0x{a:05X}, 0x{b:05X}}}," for a, b in undecomposed]
    lines = [
        f'    {{0x{a:05X}, 0x{b:05X}, "{name}", "{of_script}"}},'
        for a, b, (name, of_script) in ranges
    ]
    text = f"""// Where the reference does not go by Unicode 14. Written by tools/make_unicode_additions.py with tokenizers
// {tokenizers.__version__}.
#pragma once

#include <cstdint>

namespace modelc::unicode {{

// What Unicode 15, 15.1 and 16 added, by general category.
struct Addition {{
  std::uint32_t first, last;
  char category[3];
  const char* script;  // of those that patterns may name; empty for others
}};

// By code, {len(category)} characters.
inline constexpr Addition additions[] = {{
""" + "\n".join(lines) + """
};

struct LowerCase {
  std::uint32_t upper, lower;
};

// What is not assigned in Unicode 14, but has a lower case, by code.
inline constexpr LowerCase lower_cases[] = {
""" + "\n".join(lower_lines) + """
};

struct Range {
  std::uint32_t first, last;
};

// What decomposes in Unicode 14, but not in the older tables of the reference, by code.
inline constexpr Range undecomposed[] = {
""" + "\n".join(undecomposed_lines) + """
};

}  // namespace modelc::unicode
"""
    path = pathlib.Path(__file__).resolve().parent.parent / "unicode_additions.h"
    path.write_text(text)
    print(f"{path}: {len(ranges)} ranges, {len(category)} characters")


if __name__ == "__main__":
    main()
