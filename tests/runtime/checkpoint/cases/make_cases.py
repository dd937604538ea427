#!/usr/bin/env python3
"""Writes the GGUF cases and the safetensors ones of the newer element types, byte by byte from the formats' descriptions,
with their rows in MANIFEST.tsv. Needs the standard library only. `--check` compares with the committed files instead."""
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def value(kind, v):
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        element, items = v
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, i) for i in items)
    return struct.pack(PACK[kind], v)


def entry(key, kind, v):
    return text(key) + struct.pack("<I", kind) + value(kind, v)


ARCH = entry("general.architecture", STRING, "tiny")


def tensor(name, dims, kind=0, offset=0):
    return text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)


def gguf(entries=(ARCH,), tensors=(), data=b"", version=3, align=32, count=None, keys=None, pad=True):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if count is None else count, len(entries) if keys is None else keys)
    head += b"".join(entries) + b"".join(tensors)
    if pad:
        head += bytes(-len(head) % align)
    return head + data


def align(v, kind=U32):
    return entry("general.alignment", kind, v)


def split(no, of, tensors):
    return [entry("split.no", U16, no), entry("split.count", U16, of), entry("split.tensors.count", I32, tensors)]


ONE = [tensor("a", [8])]
F8 = struct.pack("<8f", *range(8))
TYPES = [  # number, elements of a block, bytes of a block
    (0, 1, 4), (1, 1, 2), (2, 32, 18), (3, 32, 20), (6, 32, 22), (7, 32, 24), (8, 32, 34), (9, 32, 36), (10, 256, 84), (11, 256, 110),
    (12, 256, 144), (13, 256, 176), (14, 256, 210), (15, 256, 292), (16, 256, 66), (17, 256, 74), (18, 256, 98), (19, 256, 50),
    (20, 32, 18), (21, 256, 110), (22, 256, 82), (23, 256, 136), (24, 1, 1), (25, 1, 2), (26, 1, 4), (27, 1, 8), (28, 1, 8),
    (29, 256, 56), (30, 1, 2), (34, 256, 54), (35, 256, 66), (39, 32, 17), (40, 64, 36)]


def every_type():
    tensors, data = [], b""
    for number, elements, size in TYPES:
        data += bytes(-len(data) % 32)
        tensors.append(tensor(f"t{number}", [elements, 1], number, len(data)))
        data += bytes(size)
    return gguf(tensors=tensors, data=data)


def every_value():
    entries = [ARCH] + [entry(f"k{kind}", kind, 1) for kind in PACK] + [
        entry("text", STRING, "größe"), entry("bytes", STRING, b"\xff\x00"), entry("none", ARRAY, (STRING, [])),
        entry("words", ARRAY, (STRING, ["a", "", "ccc"])), entry("numbers", ARRAY, (F32, [0.5, -1.0])),
        entry("flags", ARRAY, (BOOL, [1, 0])),
        entry("nested", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["x"]), (ARRAY, [(I64, [-5])])]))]
    return gguf(entries, ONE, F8)


def nested(depth):
    v = (U8, [1])
    for _ in range(depth - 1):
        v = (ARRAY, [v])
    return entry("k", ARRAY, v)


GGUF = {
    "ok_min": (gguf(tensors=ONE, data=F8), "ok"),
    "ok_v2": (gguf(tensors=ONE, data=F8, version=2), "ok"),
    "ok_al64": (gguf([ARCH, align(64)], [tensor("a", [8]), tensor("b", [8], 0, 64)], F8 + bytes(32) + F8, align=64), "ok"),
    "ok_al1": (gguf([ARCH, align(1)], [tensor("a", [3], 24), tensor("b", [8], 0, 3)], b"abc" + F8, align=1), "ok"),
    "ok_empty": (gguf(pad=False), "ok"),
    "ok_padded_end": (gguf(tensors=[tensor("a", [2])], data=bytes(32)), "ok"),
    "ok_scalar_empty": (gguf(tensors=[tensor("s", []), tensor("e", [0, 4], 0, 0)], data=bytes(4)), "ok"),
    "ok_out_of_order": (gguf(tensors=[tensor("b", [8], 0, 32), tensor("a", [8], 0, 0)], data=F8 + F8), "ok"),
    "ok_name64": (gguf(tensors=[tensor("n" * 64, [8])], data=F8), "ok"),
    "ok_types": (every_type(), "ok"),
    "ok_values": (every_value(), "ok"),
    "ok_nested8": (gguf([ARCH, nested(8)], ONE, F8), "ok"),
    "bad_empty": (b"", "reject:truncated"),
    "bad_fixed": (b"GGUF\x03\0\0\0\0\0", "reject:truncated"),
    "bad_html": (b"<html>not found</html>", "reject:not-gguf"),
    "bad_magic": (b"GGUX" + gguf()[4:], "reject:not-gguf"),
    "bad_ver1": (gguf(tensors=ONE, data=F8, version=1), "reject:version"),
    "bad_ver99": (gguf(tensors=ONE, data=F8, version=99), "reject:version"),
    "bad_big_endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "reject:version"),
    "bad_count_tensors": (gguf(tensors=ONE, data=F8, count=1 << 60), "reject:count"),
    "bad_count_one_more": (gguf(tensors=ONE, data=F8, count=2), "reject:name"),
    "bad_count_keys": (gguf(tensors=ONE, data=F8, keys=1 << 40), "reject:count"),
    "bad_count_array": (gguf([ARCH, text("k") + struct.pack("<IIQ", ARRAY, U8, 1 << 40)]), "reject:count"),
    "bad_count_wraps": (gguf([ARCH, text("k") + struct.pack("<IIQ", ARRAY, U64, (1 << 61) + 1)]), "reject:count"),
    "bad_strlen": (gguf([ARCH, text("k") + struct.pack("<IQ", STRING, 1 << 56)]), "reject:string-length"),
    "bad_strlen_wraps": (gguf([ARCH, text("k") + struct.pack("<IQ", STRING, (1 << 64) - 8)]), "reject:string-length"),
    "bad_keylen": (gguf([ARCH, struct.pack("<Q", 1 << 33) + bytes(8)]), "reject:string-length"),
    "bad_key_empty": (gguf([ARCH, entry("", U8, 1)]), "reject:metadata-key"),
    "bad_key_utf8": (gguf([ARCH, entry(b"\xff", U8, 1)]), "reject:metadata-key"),
    "bad_value_type": (gguf([ARCH, text("k") + struct.pack("<IB", 13, 1)]), "reject:metadata-type"),
    "bad_element_type": (gguf([ARCH, text("k") + struct.pack("<IIQ", ARRAY, 13, 0)]), "reject:metadata-type"),
    "bad_bool": (gguf([ARCH, entry("k", BOOL, 2)]), "reject:metadata-value"),
    "bad_bools": (gguf([ARCH, entry("k", ARRAY, (BOOL, [1, 255]))]), "reject:metadata-value"),
    "bad_nested": (gguf([ARCH, nested(9)], ONE, F8), "reject:array-depth"),
    "bad_dup_key": (gguf([ARCH, entry("k", U8, 1), entry("k", U8, 1)]), "reject:duplicate-key"),
    "bad_al0": (gguf([ARCH, align(0)], ONE, F8), "reject:alignment"),
    "bad_al24": (gguf([ARCH, align(24)], ONE, F8), "reject:alignment"),
    "bad_al1073741824": (gguf([ARCH, align(1 << 30)], ONE, F8), "reject:alignment"),
    "bad_al_type": (gguf([ARCH, align(32, U64)], ONE, F8), "reject:alignment"),
    "bad_name65": (gguf(tensors=[tensor("n" * 65, [8])], data=F8), "reject:name-length"),
    "bad_name_empty": (gguf(tensors=[tensor("", [8])], data=F8), "reject:name"),
    "bad_name_utf8": (gguf(tensors=[tensor(b"a\xc3", [8])], data=F8), "reject:name"),
    "bad_dup": (gguf(tensors=[tensor("a", [8]), tensor("a", [8], 0, 32)], data=F8 + F8), "reject:duplicate-name"),
    "bad_ndims5": (gguf(tensors=[tensor("a", [1, 1, 1, 1, 8])], data=F8), "reject:ndims"),
    "bad_extent": (gguf(tensors=[tensor("a", [1 << 63])], data=F8), "reject:shape"),
    "bad_product": (gguf(tensors=[tensor("a", [1 << 32, 1 << 32])], data=F8), "reject:shape"),
    "bad_type4": (gguf(tensors=[tensor("a", [32], 4)], data=F8), "reject:type-removed"),
    "bad_type36": (gguf(tensors=[tensor("a", [32], 36)], data=F8), "reject:type-removed"),
    "bad_type41": (gguf(tensors=[tensor("a", [128], 41)], data=F8), "reject:dtype"),
    "bad_type99": (gguf(tensors=[tensor("a", [8], 99)], data=F8), "reject:dtype"),
    "bad_q4k_96": (gguf(tensors=[tensor("a", [96, 8], 12)], data=bytes(432)), "reject:block-size"),
    "bad_q8_scalar": (gguf(tensors=[tensor("a", [], 8)], data=bytes(34)), "reject:block-size"),
    "bad_off_align": (gguf(tensors=[tensor("a", [8], 0, 4)], data=bytes(64)), "reject:offset-alignment"),
    "bad_past_eof": (gguf(tensors=[tensor("a", [8], 0, 1 << 40)], data=F8), "reject:out-of-file"),
    "bad_off_wraps": (gguf(tensors=[tensor("a", [8], 0, (1 << 64) - 32)], data=F8), "reject:out-of-file"),
    "bad_overlap": (gguf(tensors=[tensor("a", [9]), tensor("b", [8], 0, 32)], data=bytes(64)), "reject:overlap"),
    "bad_trunc1": (gguf(tensors=ONE, data=F8)[:-1], "reject:truncated"),
    "bad_trunc_data": (gguf(tensors=ONE, data=F8)[:-60], "reject:truncated"),
    "bad_trunc_header": (gguf(tensors=ONE, pad=False)[:-9], "reject:truncated"),
    "bad_gap": (gguf(tensors=[tensor("a", [8]), tensor("b", [8], 0, 64)], data=bytes(96)), "reject:trailing-bytes"),
    "bad_trailing": (gguf(tensors=ONE, data=F8 + bytes(32)), "reject:trailing-bytes"),
    "split/two-00001-of-00002": (gguf([ARCH] + split(0, 2, 2), ONE, F8), "ok"),
    "split/two-00002-of-00002": (gguf(split(1, 2, 2), [tensor("b", [8])], F8), "ok"),
    "split/lost-00001-of-00002": (gguf([ARCH] + split(0, 2, 2), ONE, F8), "reject:missing-shard"),
    "split/swapped-00001-of-00002": (gguf([ARCH] + split(1, 2, 2), ONE, F8), "reject:split"),
    "split/swapped-00002-of-00002": (gguf(split(0, 2, 2), [tensor("b", [8])], F8), "reject:split"),
    "split/fewer-00001-of-00002": (gguf([ARCH] + split(0, 2, 3), ONE, F8), "reject:split"),
    "split/fewer-00002-of-00002": (gguf(split(1, 2, 3), [tensor("b", [8])], F8), "reject:split"),
    "split/twice-00001-of-00002": (gguf([ARCH] + split(0, 2, 2), ONE, F8), "reject:duplicate-name"),
    "split/twice-00002-of-00002": (gguf(split(1, 2, 2), ONE, F8), "reject:duplicate-name"),
    "split/renamed": (gguf([ARCH] + split(0, 2, 2), ONE, F8), "reject:split"),
}


def safetensors(entries, data):
    header = json.dumps({n: {"dtype": d, "shape": s, "data_offsets": o} for n, d, s, o in entries}, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header + data


ST_TYPES = [("BOOL", 1, 8), ("U8", 1, 8), ("I8", 1, 8), ("F8_E5M2", 1, 8), ("F8_E4M3", 1, 8), ("F8_E8M0", 1, 8), ("I16", 1, 16),
            ("U16", 1, 16), ("F16", 1, 16), ("BF16", 1, 16), ("I32", 1, 32), ("U32", 1, 32), ("F32", 1, 32), ("C64", 1, 64),
            ("F64", 1, 64), ("I64", 1, 64), ("U64", 1, 64), ("F4", 2, 4), ("F6_E2M3", 4, 6), ("F6_E3M2", 4, 6)]


def every_dtype():
    entries, at = [], 0
    for name, n, bits in ST_TYPES:
        entries.append((name.lower(), name, [n], [at, at + n * bits // 8]))
        at += n * bits // 8
    return safetensors(entries, bytes(at))


ST = {
    "ok_dtypes": (every_dtype(), "ok"),
    "ok_f4_rows": (safetensors([("a", "F4", [3, 2], [0, 3])], bytes(3)), "ok"),
    "ok_f4_odd_rows": (safetensors([("a", "F4", [2, 3], [0, 3])], bytes(3)), "ok"),
    "bad_f4_odd": (safetensors([("a", "F4", [3], [0, 2])], bytes(2)), "reject:size-mismatch"),
    "bad_f6_odd": (safetensors([("a", "F6_E2M3", [2], [0, 2])], bytes(2)), "reject:size-mismatch"),
    "bad_dtype": (safetensors([("a", "F128", [1], [0, 16])], bytes(16)), "reject:dtype"),
    "bad_dtype_case": (safetensors([("a", "f32", [1], [0, 4])], bytes(4)), "reject:dtype"),
    "bad_depth": (struct.pack("<Q", 208) + b'{"a":' + b"[" * 203, "reject:json-depth"),
}


def main():
    files = {f"gguf/{n}.gguf": c for n, c in GGUF.items()} | {f"st/{n}.safetensors": c for n, c in ST.items()}
    manifest = HERE / "MANIFEST.tsv"
    kept = [r for r in manifest.read_text().splitlines() if r.split("\t")[0] not in files and not r.startswith("gguf/")]
    rows = kept + [f"{n}\t{len(data)}\t{verdict}\t" for n, (data, verdict) in files.items()]
    if "--check" in sys.argv:
        wrong = [n for n, (data, _) in files.items() if not (HERE / n).exists() or (HERE / n).read_bytes() != data]
        wrong += ["MANIFEST.tsv"] if manifest.read_text().splitlines() != rows else []
        print("\n".join(wrong) or "all equal")
        sys.exit(bool(wrong))
    for n, (data, _) in files.items():
        (HERE / n).parent.mkdir(parents=True, exist_ok=True)
        (HERE / n).write_bytes(data)
    manifest.write_text("\n".join(rows) + "\n")


main()
