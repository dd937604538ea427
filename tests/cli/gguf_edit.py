#!/usr/bin/env python3
"""Looks into a GGUF file and changes it, as the scripts beside it ask: gguf_edit.py FILE COMMAND…   Standard library only.

  values TENSOR        the f32 elements, a line each    keys                 the metadata's keys, a line each
  without PREFIX OUT   a copy without the keys that begin with PREFIX
  text KEY VALUE OUT   a copy with one more key, of text
  restore NAME ROWS HEADS OUT   a copy whose f32 tensor NAME of ROWS rows has the rows of each head half-split, not in pairs
"""
import pathlib
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, LIST = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 4
        self.version, tensors, keys = self.number("<I"), self.number("<Q"), self.number("<Q")
        self.entries = []                                     # key, bytes of type and value
        for _ in range(keys):
            key = self.text()
            begin = self.at
            self.skip(self.number("<I"))
            self.entries.append((key, data[begin:self.at]))
        self.tensors = []                                     # name, dims (fastest first), type, offset
        for _ in range(tensors):
            name = self.text()
            dims = [self.number("<Q") for _ in range(self.number("<I"))]
            self.tensors.append((name, dims, self.number("<I"), self.number("<Q")))
        self.body = data[self.at + -self.at % 32:]

    def number(self, kind):
        size = struct.calcsize(kind)
        self.at += size
        return struct.unpack(kind, self.data[self.at - size:self.at])[0]

    def text(self):
        n = self.number("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def skip(self, kind):
        if kind == TEXT:
            self.text()
        elif kind == LIST:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in SIZES:
                self.at += SIZES[inner] * count
            else:
                for _ in range(count):
                    self.skip(inner)
        else:
            self.at += SIZES[kind]

    def place(self, name):
        dims, offset = next((d, o) for n, d, _, o in self.tensors if n == name)
        count = 1
        for d in dims:
            count *= d
        return offset, count


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def write(path, r, entries, body):
    head = b"GGUF" + struct.pack("<IQQ", r.version, len(r.tensors), len(entries))
    head += b"".join(text(k) + v for k, v in entries)
    for name, dims, kind, offset in r.tensors:
        head += text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims) + struct.pack("<IQ", kind, offset)
    pathlib.Path(path).write_bytes(head + bytes(-len(head) % 32) + body)


def main():
    r, command, args = Reader(pathlib.Path(sys.argv[1]).read_bytes()), sys.argv[2], sys.argv[3:]
    if command == "keys":
        print("\n".join(k for k, _ in r.entries))
    elif command == "values":
        offset, count = r.place(args[0])
        print("\n".join(repr(v) for v in struct.unpack(f"<{count}f", r.body[offset:offset + 4 * count])))
    elif command == "without":
        write(args[1], r, [e for e in r.entries if not e[0].startswith(args[0])], r.body)
    elif command == "text":
        write(args[2], r, r.entries + [(args[0], struct.pack("<I", TEXT) + text(args[1]))], r.body)
    elif command == "restore":
        offset, count = r.place(args[0])
        rows, heads = int(args[1]), int(args[2])
        row, half = 4 * count // rows, rows // heads // 2
        old = [r.body[offset + i * row:offset + (i + 1) * row] for i in range(rows)]
        new = [old[h * 2 * half + 2 * i + j] for h in range(heads) for j in range(2) for i in range(half)]
        write(args[3], r, r.entries, r.body[:offset] + b"".join(new) + r.body[offset + 4 * count:])
    else:
        sys.exit(__doc__)


main()
