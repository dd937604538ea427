#!/usr/bin/env python3
"""From the start of the process to the first token, and the peak of memory, beside llama.cpp: the same files, prompt and threads.

    python3 start.py DIR_OF_LLAMA_CPP_PROGRAMS FILE.gguf FILE.model [--build build] [--rounds 11] [--threads N] [--keep FOLDER]

FILE.gguf is a checkpoint with its tokenizer (tests/checkpoints/fetch.sh gets one); the encodings that are compared are made of it by
`modelc convert`. Both sides generate one token, as whole processes in turns, with the file in the page cache: `modelc run` (compiled
before; and the program that it becomes, alone) and llama-completion without warm-up, the better of flash attention off and on.

Memory is the largest resident set that the system saw. It must be at most the file · 1.15 + the caches of keys and values + 64 MB.
Exits 1 where a first token comes later than llama.cpp's (the median of rounds, 5 % for the noise), or a peak is above its bound.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PROMPT = "The river rises in the mountains, flows through three valleys and reaches the sea near a small town. Its water is"
ENCODINGS = ("F32", "BF16", "Q8_0", "Q4_0", "Q4_1")
NOISE = 1.05


class Failed(Exception):
    pass


def measured(command):
    """Seconds of a whole process, its peak of resident bytes, and what it wrote."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), errors.seek(0)
        if process.returncode:
            raise Failed(f"status {process.returncode} of: {' '.join(command)}\n{errors.read()[-2000:].decode(errors='replace')}")
        return seconds, usage.ru_maxrss * 1024, out.read().decode(errors="replace")


def warm(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(1 << 22):
            pass


def cache_bytes(modelc, gguf, positions, element):
    """Keys and values of one sequence."""
    values = {}
    for line in subprocess.run([modelc, "inspect", gguf, "--json"], capture_output=True, text=True, check=True).stdout.splitlines():
        values.update(json.loads(line).get("metadata", {}))
    of = lambda name: next((v for k, v in values.items() if k.endswith("." + name)), None)
    heads = of("attention.head_count")
    width = of("attention.key_length") or of("embedding_length") // heads
    return of("block_count") * (of("attention.head_count_kv") or heads) * width * 2 * element * positions


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs", metavar="DIR_OF_LLAMA_CPP_PROGRAMS")
    p.add_argument("gguf")
    p.add_argument("model")
    p.add_argument("--build", default="build", help="modelc's build folder")
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--keep", help="keep the converted files in this folder, and take those that are there")
    args = p.parse_args()
    modelc, peer = os.path.join(args.build, "codegen/driver/modelc"), os.path.join(args.programs, "llama-completion")
    version = subprocess.run([peer, "--version"], capture_output=True, text=True).stderr.splitlines()
    print(f"peer: llama.cpp {next((v for v in version if v.startswith('version')), 'of unknown version')}; {args.threads} threads, "
          f"prompt of {len(PROMPT)} bytes, medians of {args.rounds} rounds; load {os.getloadavg()[0]:.1f}")
    print("%-6s %10s %12s %12s %7s  %12s %12s %12s" % ("", "modelc run", "program alone", "llama.cpp", "ratio", "our peak", "bound", "its peak"))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="modelc-start-") as made:
        folder = args.keep or made
        os.makedirs(folder, exist_ok=True)
        for encoding in ENCODINGS:
            gguf = os.path.join(folder, f"{encoding}.gguf")
            if not os.path.exists(gguf):
                measured([modelc, "convert", args.model, args.gguf, gguf, "--quantize", encoding.lower()])
            warm(gguf)
            options = ["--checkpoint", gguf, "--prompt", PROMPT, "-n", "1", "--threads", str(args.threads)]
            run = [modelc, "run", args.model, *options]
            measured(run)                                    # which compiles
            alone = program_of(run)
            theirs = [[peer, "-m", gguf, "-p", PROMPT, "-n", "1", "-t", str(args.threads), "-no-cnv", "--no-warmup", "-c", "512", "-fa", fa]
                      for fa in ("off", "on")]
            sides = [run, alone, *theirs]
            rounds = []
            for i in range(args.rounds):
                order = list(range(len(sides)))
                order = order[i % len(sides):] + order[:i % len(sides)]   # who comes first changes
                row = {k: measured(sides[k]) for k in order}
                rounds.append([row[k] for k in range(len(sides))])
            seconds = [statistics.median(r[k][0] for r in rounds) for k in range(len(sides))]
            peaks = [max(r[k][1] for r in rounds) for k in range(len(sides))]
            best = min(seconds[2:])
            positions = json.loads(measured(run + ["--json"])[2])["prompt_tokens"] + 1
            bound = os.path.getsize(gguf) * 1.15 + cache_bytes(modelc, gguf, positions, 2) + 64e6
            late, large = seconds[0] > best * NOISE, max(peaks[:2]) > bound
            failed += late + large
            print("%-6s %8.1f ms %10.1f ms %9.1f ms %7.2f  %9.1f MB %9.1f MB %9.1f MB%s%s" %
                  (encoding, seconds[0] * 1e3, seconds[1] * 1e3, best * 1e3, seconds[0] / best, max(peaks[:2]) / 1e6, bound / 1e6,
                   min(peaks[2:]) / 1e6, "  LATER" if late else "", "  ABOVE" if large else ""), flush=True)
    print(f"{2 * len(ENCODINGS)} bounds, {failed} failed")
    return 1 if failed else 0


def program_of(run):
    """The command of the program that `modelc run` becomes: what the system says of it once it is that."""
    process = subprocess.Popen(run[:-4] + ["-n", "64", *run[-2:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.read(1)                                   # it writes: so it is that program
    with open(f"/proc/{process.pid}/cmdline", "rb") as f:
        command = f.read().decode().split("\0")[:-1]
    process.kill(), process.wait()
    at = command.index("-n") + 1
    return command[:at] + ["1"] + command[at + 1:]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        sys.exit(f"error: {e}")
