"""Texts whose ids are compared: code, emoji with joiners, scripts, runs of spaces and digits, contractions, special tokens."""

TEXTS = [
    "", " ", "Hello, world!", "hello  world   with    runs     of spaces", "\n\n\n  \t\t \r\n x", "1234567890 3.14159 00",
    "I'm you're we'll they'd it's DON'T", "def f(x):\n    return x ** 2  # comment\n\n\tif (a&&b) { a->b(); }",
    "日本語のテキスト、漢字とカナ。", "中文字符测试,数字123", "العربية نص تجريبي ١٢٣", "हिन्दी पाठ १२३", "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽", "é é ﬁ ½ ²",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>", "a<|im_end|>b <|im_start|> c", "naïve café Ünïcödé", "\u00a0\u2003\u3000x",
    "x" * 300, "9" * 50, " " * 70 + "end", "Ωmega ≠ ∞ ∑ ∫", "http://example.org/a?b=c&d=%20#e", "\u0000\u0001\u007f", "ⅷ ٣ ৪ ௫ 五 ₂ ①",
]

# Beside them, for tokenizers that are not one checkpoint's.
MORE = [
    "if x:\n\treturn [i for i in range(10)]  # ünï\n", "int main(void) { printf(\"%d\\n\", 1 << 3); return 0; }", "SELECT * FROM t WHERE a='b';",
    "👩🏽‍💻👨‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿❤️‍🔥", "こんにちは、世界！今日は2026年です。", "你好，世界！《文章》——“引号”", "اَلسَّلَامُ عَلَيْكُمْ", "क्षत्रिय ज्ञानं १२३", "   leading and trailing   ",
    "1 12 123 1234 12345 1234567890123456", "I'LL you'VE he's we'd I'M 'tis rock'n'roll", "<s> </s> <pad> [CLS] [MASK] <|endoftext|> <|begin_of_text|>",
    "a<s>b</s>c[SEP]d", "\ufeffBOM \u200b zero\u200dwidth", "tab\tand\u000bvt\u000cff", "ﷺ ㎏ ① ﬀ Å Å", "x" * 1000 + " " * 300 + "0" * 300, "Ḳ́̄ḹ", "\r\n\r\n\n \n  \n",
    "한국어 텍스트 각", "Zażółć gęślą jaźń", "Ελληνικά Ωσς", "ไทยไม่มีช่องว่าง", "🇩🇪🇫🇷🇯🇵", "… ‘quotes’ – — ―",
]
