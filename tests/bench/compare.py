"""What compare.sh does: models of the stated shapes by `modelc convert`, then `modelc bench` and `llama-bench` in turns."""
import argparse, json, os, re, statistics, subprocess, sys, tempfile, time

GATE = 0.7  # of the peer's tokens a second, decode and prefill, for GATED
GATED = "SmolLM2-135M"
# The encodings that both sides are compared in. With those of blocks llama.cpp rounds activations to 8 bits, and --mode fast to 13.
ENCODINGS = {"F32": "exact", "BF16": "exact", "Q8_0": "fast", "Q4_0": "fast", "Q4_1": "fast"}
# The same on Vulkan, where all is exact and no gate is stated.
VULKAN_ENCODINGS = ["F32", "F16", "Q8_0", "Q4_0", "Q4_K"]
PLAIN = ("F32", "F16", "BF16")

LLAMA = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}
QWEN2 = {"model_type": "qwen2", "hidden_act": "silu", "tie_word_embeddings": True, "rms_norm_eps": 1e-6, "use_sliding_window": False}


def shape(base, hidden, inner, layers, heads, kv_heads, vocabulary, context, theta):
    return dict(base, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
                vocab_size=vocabulary, max_position_embeddings=context, rope_theta=theta)


# Name: model file, configuration, encodings of the whole run, of the quick one. Scaled rope of the last costs no time and has no key in
# a GGUF, so it is left out.
SHAPES = {
    "SmolLM2-135M": ("llama", shape(LLAMA, 576, 1536, 30, 9, 3, 49152, 8192, 100000.0), list(ENCODINGS), list(ENCODINGS)),
    "Qwen2.5-0.5B": ("qwen2", shape(QWEN2, 896, 4864, 24, 14, 2, 151936, 32768, 1000000.0), list(ENCODINGS), ["Q8_0", "Q4_0"]),
    "Llama-3.2-1B": ("llama", shape(LLAMA, 2048, 8192, 16, 32, 8, 128256, 131072, 500000.0), ["BF16", "Q8_0", "Q4_0", "Q4_1"], []),
}


class Failed(Exception):
    pass


def encodings_of(args, name):
    """Of the whole run, and of the quick one."""
    _, config, whole, quick = SHAPES[name]
    if args.backend == "cpu":
        return whole, quick
    blocks = config["hidden_size"] % 256 == 0 and config["intermediate_size"] % 256 == 0
    ours = [e for e in VULKAN_ENCODINGS if (e != "F32" or e in whole) and (e != "Q4_K" or blocks)]
    return ours, [e for e in ours if quick == whole or e in quick]


def cases_of(args):
    """(shape, encoding, mode) of all that is measured, in order. --quick has each encoding in its own mode alone."""
    wanted = {}
    for text in args.only or []:
        name, colon, encoding = text.partition(":")
        if name not in SHAPES:
            raise Failed(f"--only {text}: no shape is called '{name}'; there are {', '.join(SHAPES)}")
        known = encodings_of(args, name)[0]
        if colon and encoding not in known:
            raise Failed(f"--only {text}: {name} is not compared in '{encoding}' on {args.backend}, but in {', '.join(known)}")
        wanted.setdefault(name, set()).add(encoding)           # "": all of them
    cases = []
    modes = {e: ["exact"] for e in VULKAN_ENCODINGS} if args.backend == "vulkan" else \
        {e: [own] if args.quick else ["exact", "fast"] for e, own in ENCODINGS.items()}
    for name in SHAPES:
        whole, quick = encodings_of(args, name)
        encodings = quick if args.quick else whole
        if args.only:
            named = wanted.get(name, set())
            encodings = [e for e in whole if e in named or "" in named and (e in encodings or not encodings)]
        cases += [(name, e, mode) for e in encodings for mode in modes[e]]
    return cases


def parameters(name):
    s = SHAPES[name][1]
    wide = s["hidden_size"] * s["num_key_value_heads"] // s["num_attention_heads"]
    layer = s["hidden_size"] * (2 * s["hidden_size"] + 2 * wide + 3 * s["intermediate_size"])
    return s["num_hidden_layers"] * layer + s["vocab_size"] * s["hidden_size"]


class Progress:
    """Where the run is, and about how long the rest takes, on a terminal: a round costs in proportion to the weights of its shape. Models
    that are still to be made are not counted."""

    def __init__(self, cases, rounds):
        self.rounds, self.shown, self.spent, self.done = rounds, sys.stderr.isatty(), 0.0, 0
        self.all = sum(parameters(name) for name, _, _ in cases) * rounds

    def round(self, name, encoding, mode, i, seconds):
        self.done += parameters(name)
        self.spent += seconds
        left = self.spent / self.done * (self.all - self.done)
        self.say(f"{name} {encoding} {mode}: round {i + 1} of {self.rounds}; about " + (f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s") + " left")

    def say(self, text=""):
        if self.shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def said(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode:
        raise Failed(f"status {done.returncode} of: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Models:
    """Files of a shape: one set of random weights in every format and encoding."""

    def __init__(self, modelc, folder):
        self.modelc, self.folder = modelc, folder

    def convert(self, name, source, out, *options):
        path = os.path.join(self.folder, out)
        if not os.path.exists(path):
            said([self.modelc, "convert", self.model(name), source, path, *options])
        return path

    def model(self, name):
        return f"examples/{SHAPES[name][0]}/{SHAPES[name][0]}.model"

    def base(self, name):
        """The folder that all others are made of: F32 where that is compared, else the widest that is."""
        widest = next(e for e in ENCODINGS if e in SHAPES[name][2])
        config = os.path.join(self.folder, name + ".json")
        with open(config, "w") as f:
            json.dump(SHAPES[name][1], f, indent=1)
        return self.convert(name, "random", f"{name}-{widest}", "--config", config, "--quantize", widest.lower()), widest

    def pair(self, name, encoding):
        """What modelc loads and what llama.cpp loads: the same values; plain numbers as safetensors here and GGUF there."""
        base, widest = self.base(name)
        gguf = self.convert(name, base, f"{name}-{encoding}.gguf", "--quantize", encoding.lower())
        if encoding not in PLAIN:
            return gguf, gguf
        return (base if encoding == widest else self.convert(name, base, f"{name}-{encoding}", "--quantize", encoding.lower())), gguf


class Ours:
    def __init__(self, args, model, checkpoint, mode):
        self.command = [args.modelc, "bench", model, "--checkpoint", checkpoint, "--threads", str(args.threads), "--mode", mode,
                        "-p", str(args.prompt), "-n", str(args.tokens), "-r", "1", "--json"]
        if args.backend == "vulkan":
            self.command += ["--device", args.device]

    def run(self):
        return json.loads(said(self.command))


class Peer:
    """llama-bench with flash attention off and on. Its tokens are generated behind a prompt of the same length as ours."""

    def __init__(self, args, gguf):
        common = [args.bench, "-m", gguf, "-t", str(args.threads), "-fa", "0,1", "-r", "1", "-o", "jsonl"]
        common += ["-ngl", "99", "-dev", "Vulkan0"] if args.backend == "vulkan" else []
        self.commands = {"prefill": common + ["-p", str(args.prompt), "-n", "0"],
                         "decode": common + ["-p", "0", "-n", str(args.tokens), "-d", str(args.prompt)]}

    def run(self):
        """{phase: {flash attention: tokens a second}}, and one of the rows with what llama.cpp says of itself."""
        figures, about = {}, None
        for phase, command in self.commands.items():
            rows = [json.loads(line) for line in said(command).splitlines() if line.startswith("{")]
            # Since "auto" came, off is 0 or false and on is 1 or true.
            figures[phase] = {int(r["flash_attn"]): r["avg_ts"] for r in rows}
            if sorted(figures[phase]) != [0, 1]:
                raise Failed(f"expected one row with and one without flash attention from: {' '.join(command)}\n{rows}")
            about = rows[0]
        return figures, about


def one_device(args):
    """What both sides say of the Vulkan device that both use. llama.cpp leaves processors out unless told which device is to be seen."""
    devices = dict(re.findall(r"^(vulkan:\d+)\s+(.*)$", said([args.modelc, "devices"]), re.M))
    if args.device not in devices:
        raise Failed(f"there is no device {args.device}; modelc lists {', '.join(devices) or 'none on Vulkan'}")
    os.environ["GGML_VK_VISIBLE_DEVICES"] = args.device.partition(":")[2]
    listed = said([args.bench, "--list-devices"])
    peer = re.search(r"^\s*Vulkan0: (.*?)(?: \([^()]*free\))?$", listed, re.M)
    if not peer:
        raise Failed(f"{args.bench} lists no Vulkan device (it was built without GGML_VULKAN=ON, or finds no driver): {' '.join(listed.split())}")
    if not devices[args.device].startswith(peer[1]):
        raise Failed(f"{args.device} is '{devices[args.device]}', and llama.cpp's Vulkan0 '{peer[1]}'")
    verbose = subprocess.run([args.bench, "-v", "--list-devices"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    driver = re.search(r"^ggml_vulkan: 0 = (.*)$", verbose, re.M)
    return {"ours": devices[args.device], "peer": driver[1] if driver else peer[1]}


def flags_of(folder):
    """How llama.cpp was configured, where its build folder still says."""
    for cache in (os.path.join(folder, "..", "CMakeCache.txt"), os.path.join(folder, "CMakeCache.txt")):
        if not os.path.exists(cache):
            continue
        entries = dict(re.findall(r"^([A-Za-z_0-9]+):\w+=(.*)$", open(cache).read(), re.M))
        names = ["CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "CMAKE_CXX_FLAGS_RELEASE"]
        names += sorted(n for n, v in entries.items() if n.startswith("GGML_") and v in ("ON", "1", "TRUE"))
        return " ".join(f"{n}={entries[n]}" for n in names if entries.get(n))
    return "not known: there is no CMakeCache.txt beside the programs"


def measure(args, name, encoding, mode, models, progress):
    ours_path, peer_path = models.pair(name, encoding)
    ours, peer = Ours(args, models.model(name), ours_path, mode), Peer(args, peer_path)
    rounds, about = [], None
    for i in range(args.rounds):
        begin = time.monotonic()
        figures, about = peer.run() if i % 2 else (None, about)   # who comes first alternates
        mine = ours.run()
        if figures is None:
            figures, about = peer.run()
        rounds.append((mine, figures))
        progress.round(name, encoding, mode, i, time.monotonic() - begin)
    progress.say()
    # The limits of the machine are what any of the runs reached; of a GPU none are measured.
    limits = [m["limits"][-1] for m, _ in rounds if m["limits"]]
    read = max((m["read_bytes_per_second"] for m in limits), default=None)
    peak = max((max(m["f32_operations_per_second"].values()) for m in limits), default=None)
    rows = []
    for phase in ("prefill", "decode"):
        mine = [m[f"{phase}_tokens_per_second"]["median"] for m, _ in rounds]
        fa = max((0, 1), key=lambda k: statistics.median(f[phase][k] for _, f in rounds))
        theirs = [f[phase][fa] for _, f in rounds]
        # Of one token, which the other side has to do as well.
        work = statistics.median((m["prefill_operations_per_second"] if phase == "prefill" else m["decode_bytes_per_second"]) / t
                                 for (m, _), t in zip(rounds, mine))
        limit = peak if phase == "prefill" else read
        ratio = statistics.median(a / b for a, b in zip(mine, theirs))
        gate = GATE if args.backend == "cpu" and name == GATED and ENCODINGS[encoding] == mode else None
        rows.append({"model": name, "encoding": encoding, "mode": mode, "phase": phase, "ours": statistics.median(mine), "peer": statistics.median(theirs),
                     "flash_attention": bool(fa), "ratio": ratio, "ratio_min": min(a / b for a, b in zip(mine, theirs)),
                     "ratio_max": max(a / b for a, b in zip(mine, theirs)), "share": limit and work * statistics.median(mine) / limit,
                     "peer_share": limit and work * statistics.median(theirs) / limit, "limit": limit, "gate": gate, "holds": gate is None or ratio >= gate,
                     "ours_all": mine, "peer_all": theirs})
    return rows, about


HEAD = ("model", "encoding", "mode", "", "ours t/s", "peer t/s", "fa", "ratio", "of rounds", "ours/limit", "peer/limit", "gate")
LINE = "%-13s %-8s %-6s %-8s %9s %9s %-4s %6s %13s %10s %10s  %s"


def line(r):
    gate = "" if r["gate"] is None else f"{r['gate']} {'holds' if r['holds'] else 'FAILS'}"
    shares = [f"{r[k]:.2f}" if r["limit"] else "-" for k in ("share", "peer_share")]
    return LINE % (r["model"], r["encoding"], r["mode"], r["phase"], f"{r['ours']:.1f}", f"{r['peer']:.1f}", "on" if r["flash_attention"] else "off",
                   f"{r['ratio']:.2f}", f"{r['ratio_min']:.2f} to {r['ratio_max']:.2f}", *shares, gate)


def count(text):
    if not re.fullmatch("[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, and found '{text}'")
    return int(text)


def main():
    p = argparse.ArgumentParser(prog="compare.sh", description="Prefill and decode beside llama.cpp, in turns. The whole run takes about four "
                                "hours on two cores, more than half of them for the largest shape; --quick less than ten minutes.")
    p.add_argument("programs", metavar="DIR_OF_LLAMA_CPP_PROGRAMS")
    p.add_argument("--quick", action="store_true", help="under ten minutes: fewer rounds and shapes, shorter prompts, each encoding in one mode")
    p.add_argument("--backend", choices=["cpu", "vulkan"], default="cpu", help="vulkan: both sides on one Vulkan device, ours in exact mode; no gates")
    p.add_argument("--device", default="vulkan:0", metavar="vulkan:N", help="which, as `modelc devices` lists them")
    p.add_argument("--only", action="append", metavar="SHAPE[:ENCODING]", help="this shape, or it in this encoding; may be given again. Shapes: "
                   + ", ".join(SHAPES))
    p.add_argument("--rounds", type=count, metavar="N", help="both sides' turns (7; with --quick 3)")
    p.add_argument("--prompt", type=count, metavar="N", help="tokens of the prompt (512; with --quick 128)")
    p.add_argument("--tokens", type=count, metavar="N", help="tokens written behind it (64; with --quick 24)")
    p.add_argument("--threads", type=count, default=len(os.sched_getaffinity(0)))
    p.add_argument("--build", default="build", help="modelc's build folder")
    p.add_argument("--keep", help="keep the models in this folder, and take those that are there")
    p.add_argument("--json", help="write the figures of every round to this file")
    args = p.parse_args()
    begin = time.monotonic()
    args.modelc = os.path.join(args.build, "codegen/driver/modelc")
    args.bench = os.path.join(args.programs, "llama-bench")
    for program in (args.modelc, args.bench):
        if not os.access(program, os.X_OK):
            raise Failed(f"{program} is not there, or no program")
    prompt, tokens, rounds = (128, 24, 3) if args.quick else (512, 64, 7)
    args.prompt, args.tokens, args.rounds = args.prompt or prompt, args.tokens or tokens, args.rounds or rounds
    cases = cases_of(args)
    device = one_device(args) if args.backend == "vulkan" else None
    with tempfile.TemporaryDirectory(prefix="modelc-compare-") as made:
        folder = args.keep or made
        os.makedirs(folder, exist_ok=True)
        models = Models(args.modelc, folder)
        print(f"modelc: {said([args.modelc, '--version']).splitlines()[0]}; {args.threads} threads, prompt of {args.prompt}, "
              f"{args.tokens} tokens behind it, medians of {args.rounds} rounds")
        if device:
            print(f"device {args.device}: {device['ours']}\nllama.cpp's:     {device['peer']}\nmode exact: all of ours in f32")
        load = os.getloadavg()[0]
        if load > 0.5:
            print(f"NOTE: the machine is not idle (load {load:.1f}); the ratios are of pairs and stand, the speeds may not")
        all_rows, told = [], False
        progress = Progress(cases, args.rounds)
        for name, encoding, mode in cases:
            rows, about = measure(args, name, encoding, mode, models, progress)
            if not told:
                print(f"peer: llama.cpp commit {about['build_commit']}, {about['backends']}, {about['cpu_info']}, batches of {about['n_ubatch']}, "
                      f"cache {about['type_k']}\nits flags: {flags_of(args.programs)}\n\n" + (LINE % HEAD).rstrip())
                told = True
            for r in rows:
                print(line(r).rstrip(), flush=True)
            all_rows += rows
        for phase, text in (("decode", "read of the weights, GB/s"), ("prefill", "f32 multiply-adds, GFLOP/s")):
            limits = [r["limit"] / 1e9 for r in all_rows if r["phase"] == phase and r["limit"]]
            if limits: print(f"limit of {phase}: {text}: {min(limits):.1f} to {max(limits):.1f}")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": device, "peer": about, "flags": flags_of(args.programs), "rows": all_rows}, f, indent=1)
    failed = [r for r in all_rows if not r["holds"]]
    print(f"{len([r for r in all_rows if r['gate']])} gates, {len(failed)} failed; {time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


try:
    sys.exit(main())
except Failed as e:
    print(f"error: {e}", file=sys.stderr)
    sys.exit(2)
