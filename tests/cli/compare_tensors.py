"""Checkpoints compared without a library: compare_tensors.py same|ulp|log A B (folders or .safetensors), or types A"""
import glob, json, os, struct, sys


def tensors(path):
    out = {}
    for f in sorted(glob.glob(os.path.join(path, "model*.safetensors"))) if os.path.isdir(path) else [path]:
        data = open(f, "rb").read()
        n = struct.unpack("<Q", data[:8])[0]
        for name, t in json.loads(data[8 : 8 + n]).items():
            if name != "__metadata__":
                a, b = t["data_offsets"]
                out[name] = (t["dtype"], t["shape"], data[8 + n + a : 8 + n + b])
    return out


def ordered(bits):  # f32 bits as whole numbers in the order of the values
    return -(bits & 0x7FFFFFFF) if bits >> 31 else bits


mode, a = sys.argv[1], tensors(sys.argv[2])
if mode == "types":
    print(" ".join(sorted({t[0] for t in a.values()})))
    sys.exit(0)
b, wrong = tensors(sys.argv[3]), []
if set(a) != set(b):
    wrong.append("names: " + " ".join(sorted(set(a) ^ set(b))))
for name in set(a) & set(b):
    x, y = a[name], b[name]
    if x[:2] != y[:2]:
        wrong.append(f"{name}: {x[:2]} and {y[:2]}")
    elif mode == "same" and x[2] != y[2]:
        wrong.append(f"{name}: bytes differ")
    elif mode == "log":
        values = [struct.unpack(f"<{len(v[2]) // 4}f", v[2]) for v in (x, y)]
        near = max((abs(u - v) for u, v in zip(*values)), default=0)
        if near > (2**-22 if name.endswith("A_log") else 0):
            wrong.append(f"{name}: {near}")
    elif mode == "ulp":
        n = len(x[2]) // 4
        p, q = struct.unpack(f"<{n}I", x[2]), struct.unpack(f"<{n}I", y[2])
        # The offset is added to a number of its own size: one ulp there.
        values = [abs(struct.unpack("<f", struct.pack("<I", v))[0]) for v in p]
        far = [abs(ordered(u) - ordered(v)) for u, v, w in zip(p, q, values) if w >= 0.25]
        near = max((abs(struct.unpack("<f", struct.pack("<I", u))[0] - struct.unpack("<f", struct.pack("<I", v))[0]) for u, v in zip(p, q)), default=0)
        if near > 2**-23 or (name.find("norm") < 0 and p != q):
            wrong.append(f"{name}: {near}")
print("same" if not wrong else "\n".join(wrong[:10]), len(a))
sys.exit(1 if wrong else 0)
