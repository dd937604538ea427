#!/usr/bin/env python3
"""Makes small tokenizers, one for each way in which the stages are put together, and what the package `tokenizers` makes
of difficult texts with them.

    python3 make_cases.py            write NAME.tokenizer.json, NAME.cases.json, patterns.json and broken.json here
    python3 make_cases.py --check    compare with what is here; exit 1 if it differs

The form of the cases is that of examples/llama/fixtures/tokenizers/tokenizer_cases.py. The vocabularies are trained on
TRAINING below, written for this purpose.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = Path(__file__).resolve().parent

TRAINING = [
    "The river runs under the old stone bridge, and the children run after the boat that they built of bark.",
    "Nobody remembers who planted the lime trees; nobody has ever thought of cutting them down.",
    "It's late, isn't it? We'll be home when they're asleep, I've said, and you'd better not wake them!",
    "def area(width, height):\n    if width < 0:\n        raise ValueError(f\"width {width}\")\n    return width * height\n",
    "for (int i = 0; i < 10; ++i) {\n\tsum += values[i];\n}\n// 3.14159 and 2024-01-31, 1,000,000\n",
    "Der Fluss fließt unter der alten Brücke. L'été, la rivière est à sec. Über Ärger spricht man später.",
    "河流在老石桥下流过，孩子们追着小船跑。川は古い石橋の下を流れ、子供たちは舟を追いかける。ひらがなとカタカナ。",
    "يجري النهر تحت الجسر الحجري القديم، والأطفال يركضون. नदी पुराने पुल के नीचे बहती है और बच्चे दौड़ते हैं।",
    "강물은 오래된 돌다리 아래로 흐른다. Река течёт под старым мостом. Ποτάμι κυλά κάτω από το γεφύρι.",
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 ❤️ 🇩🇪🇫🇷 … — “quoted” ‘single’",
] * 3
LATIN = [line for line in TRAINING if max(line) < "\u0180"]  # so that other scripts are unknown

TEXTS = [
    "", " ", "a", "  ", "\n", "\t", "\r\n", "\n\n\n", " \n ", "          ten", "trail   ", "a  b   c    d",
    "The river runs under the bridge.", " The river", "the  river\n\n  runs\t\tunder",
    "it's IT'S we'll WE'LL they're I've you'd don't 'tis rock'n'roll o’clock l'été's", "'s 't 're 've 'm 'll 'd 'x ''s '",
    "ſ's 'ſ 'K",
    "def f(x):\n    return x**2  # squared\n\nclass A:\n\tpass\n", "if(a&&b||!c){x[i]=y->z;}//end", "<html><body>&nbsp;</body></html>",
    "a_b __init__ CamelCase snake_case SCREAMING_CASE HTTPServer iPhone XMLHttpRequest2",
    "1 12 123 1234 12345 123456789 1,234.5e-6 0x1F ٣٤٥ ४५६ Ⅷ ½ ² ① 一二三", "2024-01-31T12:34:56Z",
    "河流在老石桥下", "川は古い石橋の下を流れ", "カタカナ ひらがな 漢字 ｶﾀｶﾅ", "يجري النهر تحت الجسر", "नदी पुराने पुल के नीचे", "강물은 오래된",
    "Река течёт", "Ποτάμι κυλά", "สวัสดีครับ", "שלום עולם", "Ünïcödé ÀÉÎÕÜ ß ẞ ŒÆ ĳ ﬁ ﬂ",
    "😀", "👩‍👩‍👧‍👦 family", "🏳️‍🌈🇩🇪🇫🇷👍🏽", "❤️x❤️", "a\u200db\u200cc\u200bd\ufeffe",
    "e\u0301 é n\u0303 ñ A\u030a Å Å \u1e9b\u0323 ① ﷺ ㌔ 각 \u1112\u1161\u11ab", "q\u0307\u0323 q\u0323\u0307",
    "\u00a0no\u00a0break\u2003em\u3000wide\u1680ogham\u180emongolian\u2028line\u2029par\u0085next",
    "\u0000nul\u0001\u001f\u007f\u0080\u009f", "\U00031350\U0002EBF0 new \U0001F7D9 \U0001E030 \u1c89\u1c8a",
    "x" * 70, " " * 70, "\n" * 40, "12345678901234567890123456789012345678901234567890", "ab" * 40, "!?" * 30, "the " * 30,
    "<|special|>", "a<|special|>b", " <|special|> <|special|><|special|> ", "<|special", "<|special|>\n\nthe <|other|>  x",
    "[STRIP] a [STRIP]  b", "a  [LEFT]  b", "a  [RIGHT]  b", "word aword wordb word. wordword (word)", "NORM norm Norm",
    "<unk> <0x41> <s></s>", "▁the▁river", "mixed 漢字and latin123と数字!?", "tab\tand\vvt\fff",
]

GPT4O = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def trained(pre_tokenizer, normalizer=None, size=560, **model):
    t = Tokenizer(models.BPE(**model))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    return t


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **options})


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


def special(t, *names):
    t.add_special_tokens([AddedToken(n, special=True, normalized=False) for n in names])
    return t


def gpt2():
    t = trained(byte_level(use_regex=True))
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    return special(t, "<|special|>")


def gpt2_prefix():
    """add_prefix_space, and a template with two special tokens."""
    t = trained(byte_level(use_regex=True, add_prefix_space=True))
    t.decoder = decoders.ByteLevel()
    special(t, "<|special|>", "<|other|>")
    t.post_processor = processors.TemplateProcessing(
        single="<|special|> $A <|other|>", pair="<|special|> $A $B",
        special_tokens=[(n, t.token_to_id(n)) for n in ("<|special|>", "<|other|>")])
    return t


def llama3():
    t = trained(pre_tokenizers.Sequence([split(Regex(LLAMA3)), byte_level()]), ignore_merges=True)
    t.decoder = decoders.ByteLevel()
    special(t, "<|special|>", "<|other|>")
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|special|> $A", pair="<|special|> $A <|special|> $B:1",
                                      special_tokens=[("<|special|>", t.token_to_id("<|special|>"))])])
    return t


def qwen2():
    t = trained(pre_tokenizers.Sequence([split(Regex(LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"))), byte_level()]),
                normalizers.NFC())
    t.decoder = decoders.ByteLevel()
    special(t, "<|special|>")
    t.add_tokens([AddedToken("<|other|>", normalized=False)])
    return t


def gpt4o():
    t = trained(pre_tokenizers.Sequence([split(Regex(GPT4O)), byte_level()]))
    t.decoder = decoders.ByteLevel()
    return special(t, "<|special|>")


def deepseek():
    """Three patterns one after the other, one of them naming characters."""
    t = trained(pre_tokenizers.Sequence([
        split(Regex(r"\p{N}{1,3}")), split(Regex("[一-龥぀-ゟ゠-ヿ]+")),
        split(Regex(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")), byte_level()]))
    t.decoder = decoders.ByteLevel()
    return special(t, "<|special|>")


def starcoder():
    """Digits one by one, then GPT-2."""
    t = trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)]))
    t.decoder = decoders.ByteLevel()
    return special(t, "<|special|>")


def splits():
    """Every behavior of Split, with strings and patterns."""
    t = trained(pre_tokenizers.Sequence([
        split("e", "merged_with_previous"), split("r", "merged_with_next"), split(Regex(r"\d"), "contiguous"),
        split(Regex(r"\s+"), "removed"), split(Regex("[A-Z]+"), "isolated"), split(Regex("[a-m]+"), "isolated", True),
        split(Regex("[xyz]"), "contiguous", True), split(Regex("o|u"), "merged_with_next", True),
        split(Regex("n|i"), "merged_with_previous", True), byte_level()]))
    t.decoder = decoders.ByteLevel()
    return t


def normal_forms():
    """NFKC, lower case, replacements; then words by white space, and a token for what is unknown."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace("ll", "L"),
                                         normalizers.Replace(Regex(r"\d+"), "9")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(False)])
    t.train_from_iterator(LATIN, trainers.BpeTrainer(vocab_size=260, show_progress=False, special_tokens=["<unk>"]))
    return t


def decomposed():
    """NFD, unknown characters left out, no decoder."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFD()
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(LATIN, trainers.BpeTrainer(vocab_size=240, show_progress=False))
    return t


def sentencepiece_bpe():
    """As Llama 2: no pre-tokenizer, spaces as ▁, bytes for unknown characters."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.pre_tokenizer = split("▁", "merged_with_next")
    t.train_from_iterator(LATIN, trainers.BpeTrainer(
        vocab_size=640, show_progress=False,
        special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    spec = json.loads(t.to_str())
    spec["pre_tokenizer"] = None
    spec["added_tokens"] = spec["added_tokens"][:3]  # not those for bytes
    return Tokenizer.from_str(json.dumps(spec))


def added():
    """Every option of added tokens."""
    t = trained(byte_level(use_regex=True), normalizers.Lowercase())
    t.decoder = decoders.ByteLevel()
    t.add_tokens([
        AddedToken("[STRIP]", lstrip=True, rstrip=True, normalized=False), AddedToken("[LEFT]", lstrip=True, normalized=False),
        AddedToken("[RIGHT]", rstrip=True, normalized=False), AddedToken("word", single_word=True, normalized=False),
        AddedToken("norm", normalized=True), AddedToken("riv", normalized=True, single_word=True),
        AddedToken("  ", normalized=False), AddedToken("    ", normalized=False), AddedToken("der", normalized=True)])
    return special(t, "<|special|>", "<|special|><|special|>", "<|other|>")


def words(special_tokens, *rest):
    return list(special_tokens) + sorted({w for line in LATIN for w in line.lower().split()})[:60] + list(rest)


def bert():
    """Words in parts, lower case without accents."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(TRAINING, trainers.WordPieceTrainer(
        vocab_size=420, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def bert_cased():
    """The other options of the same stages, and a template of two texts."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([
        normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=True, lowercase=False)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous")])
    t.train_from_iterator(TRAINING, trainers.WordPieceTrainer(
        vocab_size=400, show_progress=False, continuing_subword_prefix="@@", special_tokens=["[UNK]", "[CLS]", "[SEP]"]))
    t.decoder = decoders.WordPiece("@@", cleanup=False)
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $B:1 [SEP] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return t


RULES = [("\uff21", "A"), ("\uff42", "b"), ("\ufb01", "fi"), ("\ufb02", "fl"), ("\u2460", "1"), ("\u00bd", "1\u20442"), ("\u00b2", "2"),
         ("e\u0301", "é"), ("n\u0303", "ñ"), ("A\u030a", "Å"), ("\r", " "), ("\n", " "), ("\t", " "), ("\u00a0", " "), ("\u3000", " "),
         ("\u200b", " "), ("\u2028", " "), ("\ufeff", ""), ("\x7f", ""), ("\u1e9b\u0323", "\u1e69"), ("\uff76", "カ"), ("\uff80", "タ"),
         ("\ufdfa", "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647"), ("\u2026", "..."), ("\u0133", "ij"), ("\u1112\u1161\u11ab", "한")]


def protobuf_field(message, wanted):
    """The first field of that number that is of a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            if key >> 3 == wanted:
                return message[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += 4 if key & 7 == 5 else 8
    return b""


def charsmap():
    """A table of replacements as sentencepiece compiles it, of the rules above."""
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.tsv")
        code = lambda text: " ".join(f"{ord(c):X}" for c in text)
        rules.write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in RULES))
        text = Path(folder, "text.txt")
        text.write_text("\n".join(TRAINING))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(Path(folder, "m")), vocab_size=400, hard_vocab_limit=False,
            normalization_rule_tsv=str(rules), minloglevel=2)
        # ModelProto.normalizer_spec.precompiled_charsmap
        return protobuf_field(protobuf_field(Path(folder, "m.model").read_bytes(), 3), 2)


def trained_unigram(size=420, texts=TRAINING, **options):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Precompiled(charsmap())
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token="<unk>", **options))
    return t


def t5():
    t = trained_unigram(special_tokens=["<pad>", "</s>", "<unk>"])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    t.add_special_tokens([AddedToken("<extra_0>", lstrip=True, rstrip=True, normalized=False)])
    return t


def unigram_bytes():
    """Bytes for what is unknown, a space only where the whole text begins, not cut into words."""
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    t = trained_unigram(texts=LATIN, special_tokens=["<unk>", "<s>"] + bytes_, size=560)
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    spec = json.loads(t.to_str())
    spec["model"]["byte_fallback"] = True
    spec["added_tokens"] = spec["added_tokens"][:2]
    return Tokenizer.from_str(json.dumps(spec))


def gemma():
    """Spaces as ▁ and no space before the text; runs of spaces and line ends are tokens."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = split("▁", "merged_with_previous")
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=760, show_progress=False, special_tokens=["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)]))
    spec = json.loads(t.to_str())
    spec["added_tokens"] = spec["added_tokens"][:4]
    t = Tokenizer.from_str(json.dumps(spec))
    t.add_tokens([AddedToken("\n" * n, normalized=False) for n in (2, 3, 4)] +
                 [AddedToken("▁" * n, normalized=False) for n in (2, 3, 4, 8)])
    t.add_special_tokens([AddedToken("<|special|>", normalized=False)])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 2)])
    return t


def gemma_runs():
    """As transformers makes Gemma's of a vocabulary of sentencepiece: all that a user defined has one score, so that the merges of
    runs stand among each other."""
    from transformers import GemmaTokenizer
    from transformers.tokenization_utils_base import generate_merges
    runs = ["\n" * n for n in range(2, 9)] + ["▁" * n for n in range(2, 9)] + ["\t" * n for n in range(2, 5)]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("\n".join(TRAINING))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(Path(folder, "m")), vocab_size=700, model_type="bpe", byte_fallback=True,
            normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False, character_coverage=0.99,
            user_defined_symbols=runs, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
            unk_piece="<unk>", minloglevel=2)
        sp = sentencepiece.SentencePieceProcessor(model_file=str(Path(folder, "m.model")))
    vocab = {sp.id_to_piece(i): i for i in range(len(sp))}
    merges = generate_merges(vocab, {p: sp.get_score(i) for p, i in vocab.items() if not (sp.is_control(i) or sp.is_unknown(i))})
    t = GemmaTokenizer(vocab=vocab, merges=merges).backend_tokenizer
    t.add_tokens([AddedToken(r, normalized=False) for r in runs])
    t.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 2)])
    return t


def roberta():
    """Byte-level with the tokens around it that double between two texts."""
    t = trained(byte_level(use_regex=True, add_prefix_space=True), size=420)
    t.decoder = decoders.ByteLevel()
    special(t, "<s>", "</s>")
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    return t


def clip():
    """Marks at the ends of words."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t.train_from_iterator(LATIN, trainers.BpeTrainer(
        vocab_size=300, show_progress=False, end_of_word_suffix="</w>", special_tokens=["<unk>"]))
    t.decoder = decoders.BPEDecoder("</w>")
    return t


def marked_bpe():
    """Marks before what continues a word; scripts apart; accents away."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.WhitespaceSplit(),
                                               pre_tokenizers.FixedLength(9)])
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=420, show_progress=False, continuing_subword_prefix="##", special_tokens=["<unk>"]))
    t.decoder = decoders.WordPiece("##")
    return t


def word_level():
    t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words(["<unk>"], "|", ".", ",", "'", "a", "1"))}, "<unk>"))
    t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("r"), pre_tokenizers.Whitespace()])
    t.decoder = decoders.CTC("<unk>", "|")
    return t


def byte_normalized():
    """Bytes spelled out by the normalizer, then cut."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.ByteLevel()
    t.pre_tokenizer = split(Regex("Ġ?[^Ġ]+|Ġ+"))
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    t.decoder = decoders.ByteLevel()
    return t


# Trained again they come out otherwise (the trainer sums in no fixed order), so the files that are here are kept; to make
# one anew, delete it. Fewer of their ids to decode, and texts in pairs.
WITH_PAIRS = [bert, bert_cased, t5, unigram_bytes, gemma, gemma_runs, roberta, clip, marked_bpe, word_level, byte_normalized]
MADE = [gpt2, gpt2_prefix, llama3, qwen2, gpt4o, deepseek, starcoder, splits, normal_forms, decomposed, sentencepiece_bpe, added] + WITH_PAIRS


def cases(t):
    rows, decode = [], []
    for text in TEXTS:
        ids = t.encode(text, add_special_tokens=False).ids
        full = t.encode(text).ids
        rows.append({"text": text, "ids": ids, "ids_with_special": full, "decoded": t.decode(ids, skip_special_tokens=False),
                     "decoded_skip_special": t.decode(full, skip_special_tokens=True)})
        # Cut in the middle, where characters may be cut too; and turned round, where hardly any bytes make sense.
        for part in (ids[1:], ids[:-1], ids[::-1]):
            if 0 < len(part) < 24 and len(decode) < 60:
                decode.append({"ids": part, "text": t.decode(part, skip_special_tokens=False)})
    return rows, decode


PATTERNS = [
    r"\s", r"\S", r"\w", r"\W", r"\d+", r"\D", r"\h", r"\H", r"[\w]", r"[^\w]", r"[\W]", r"[^\s\p{L}\p{N}]", r"[^\S\n]", r"\p{C}",
    r"\P{C}+", r"\p{Cn}", r"[\p{Cf}a]", r"\p{^L}", r"[^\P{Lu}]", r"[[:punct:]]", r"[[:word:]]+", r"[[:^digit:]]", r"[[:cntrl:]]",
    r"[a-z&&[^aeiou]]", r"[\p{L}&&[^\p{Lu}]]+", r"[^\p{L}&&\p{Lu}]", r"[a-c[x-z]]", r"(?i:s)", r"(?i:'RE|'ll)", r"(?i)k|å", r"\b.",
    r".\b", r".\B", r".", r"(?m:.)", r"\R", r"\v", r"$", r"e$|^.", r"^", r"\p{Any}", r"[\x{4e00}-\x{9fff}\u3040-\u30ff]+",
    r"(?<![\p{L}\p{N}_])\w+", r"\p{Letter}+", r"\p{uppercase_letter}", r"\p{White Space}", r".\Z", r"\A.", r"(?<=t)h", r"(?<!t)h",
    r"e.?", r"e?+.", r"s{,2}", r"(?:n{1,3})+", r"[0-9]{1,3}+", r"[0-9]{2}?", r"\p{N}{1,3}", r"[-a]", r"[]a]", r"[\]\\^-]", r"a{x}|{", r"]",
    r"(?i:[^k])", r"\p{Han}+", r"\p{Hiragana}|\p{Katakana}", r"\p{Greek}+", r"\p{Arabic}+", r"(th|the)(?# a comment)e?", r"(?>a+)b", r"the|",
    r"x*", r"", r"(?<name>he)", r"\.|\?|\*|\/", r"é", r"[é-ü]", r"\t|\n|\r|\f|\x{9}|\x20|\u00a0", r"\p{M}+", r"\p{Sc}|\p{Sm}|\p{So}",
    r"(?=the)", r"[\d\-x]", r"(?i-m:THE)", GPT4O, LLAMA3,
]


def patterns():
    """Where each pattern cuts a text that has something for all of them."""
    text = ("The river'S they'll snow 'RE" "\r\n" r"the  ssst é ü Å K ſaxb_c-d]e{a\ " "\t\v^ 12 1234567 ½² Ⅷ ٣٤ ४ a{x}\n\n"
            "e\u0301 河流とカタ 각 Ποτάμι الجسر नदी 👩\u200d👧 $+€<|\u00a0\u1680\u180e\u2028\u0085\0\x7f\ufeff "
            "\U0001e030\U00031350\U000e0fff aa ab.*?/ ")
    rows = []
    for p in PATTERNS:
        parts = split(Regex(p)).pre_tokenize_str(text)
        rows.append({"pattern": p, "ends": [len(text[:b].encode()) for _, (_, b) in parts]})
    return text, rows


def broken():
    """Bytes that are not UTF-8, as Python reads them with errors="replace"."""
    rows = [b"\xff", b"a\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82a", b"\xe2(\xa1", b"\xf0\x9f\x98", b"\xf0\x9f\x98\xf0\x9f\x98\x80",
            b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80",
            b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\x80\x80", b"ab\x80cd\xffef", b"\xe6\xb2\xb3\xe6\xb2",
            b"\xc3\xc3\xa9", b"\xf1\x80\xe1\x80\xc2b\x80", b"\xfe\xff\x00", b"12345678\xe2\x82"]
    return [{"bytes": b.hex(), "text": b.decode("utf-8", errors="replace")} for b in rows]


def scored(folder):
    """A vocabulary of sentencepiece's own BPE, as a GGUF holds it, and its ids."""
    kept = HERE / "scored.json"
    if kept.exists():  # trained once, as the others
        spec = json.loads(kept.read_text(encoding="utf-8"))
        model = bytes.fromhex(spec["model"])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            text = Path(temporary, "text.txt")
            text.write_text("\n".join(TRAINING))
            sentencepiece.SentencePieceTrainer.train(
                input=str(text), model_prefix=str(Path(temporary, "m")), vocab_size=640, model_type="bpe", byte_fallback=True,
                normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.99, minloglevel=2)
            model = Path(temporary, "m.model").read_bytes()
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    kind = lambda i: 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
    rows = [{"text": t, "ids": sp.encode(t)} for t in TEXTS if "<s>" not in t]
    (folder / "scored.json").write_text(json.dumps({
        "sentencepiece": sentencepiece.__version__, "model": model.hex(), "tokens": [sp.id_to_piece(i) for i in range(len(sp))],
        "scores": [sp.get_score(i) for i in range(len(sp))], "types": [kind(i) for i in range(len(sp))]}, ensure_ascii=False)[:-1]
        + ',\n"cases": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n", encoding="utf-8")


def write(folder):
    scored(folder)
    text, rows = patterns()
    (folder / "patterns.json").write_text(
        json.dumps({"tokenizers": tokenizers.__version__, "text": text})[:-1] + ',\n"patterns": [\n'
        + ",\n".join(map(json.dumps, rows)) + "\n]}\n", encoding="utf-8")
    (folder / "broken.json").write_text("[\n" + ",\n".join(map(json.dumps, broken())) + "\n]\n", encoding="utf-8")
    for make in MADE:
        name = make.__name__.removesuffix("_bpe") if make is sentencepiece_bpe else make.__name__
        kept = HERE / f"{name}.tokenizer.json"
        if make in WITH_PAIRS and kept.exists():
            text = kept.read_text(encoding="utf-8").rstrip("\n")
        else:
            t = make()
            text = json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":"))
            # One stage a line, so that messages can name a line.
            for key in ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"):
                text = text.replace(f',"{key}":', f',\n"{key}":', 1)
            (folder / f"{name}.tokenizer.json").write_text(text + "\n", encoding="utf-8")
        reference = Tokenizer.from_str(text)
        rows, decode = cases(reference)
        pairs = []
        if make in WITH_PAIRS:
            decode = decode[::3]
            for a, b in zip(TEXTS[::3], TEXTS[2::3]):
                ids = [reference.encode(a, b, add_special_tokens=x).ids for x in (True, False)]
                pairs.append({"first": a, "second": b, "ids_with_special": ids[0], "ids": ids[1]})
        line = lambda row: json.dumps(row, ensure_ascii=True)
        (folder / f"{name}.cases.json").write_text(
            f'{{"tokenizers": "{tokenizers.__version__}",\n"cases": [\n' + ",\n".join(map(line, rows)) + '\n],\n"decode": [\n'
            + ",\n".join(map(line, decode)) + (('\n],\n"pairs": [\n' + ",\n".join(map(line, pairs))) if pairs else "") + "\n]}\n",
            encoding="utf-8")
        print(f"{name}: {reference.get_vocab_size()} tokens, {len(rows)} texts, {len(decode)} to decode")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    if not p.parse_args().check:
        write(HERE)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary))
        wrong = [f.name for f in sorted(Path(temporary).iterdir())
                 if not (HERE / f.name).exists() or f.read_bytes() != (HERE / f.name).read_bytes()]
    print("\n".join(f"{w} differs" for w in wrong) or "the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
