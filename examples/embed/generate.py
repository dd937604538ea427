#!/usr/bin/env python3
"""A generated model from Python, with ctypes alone: generate.py LIBRARY CHECKPOINT TEXT [TOKENS]

LIBRARY is what modelc_add_library(llama SHARED MODEL llama.model CONFIG config.json C_API) makes: libllama.so.
The declarations below follow runtime/c/modelc.h, in the order of their fields.
"""
import ctypes
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

ON_TOKEN = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_size_t)


class ModelInfo(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("device", c_char_p), ("context", c_int64), ("vocabulary", c_int64),
                ("parameters", c_int64), ("bytes", c_int64), ("load_seconds", c_double), ("tokenizer", c_int32),
                ("chat_template", c_int32)]


class GenerateOptions(Structure):
    _fields_ = [("size", c_size_t), ("max_tokens", c_int64), ("temperature", c_float), ("top_k", c_int32), ("top_p", c_float),
                ("min_p", c_float), ("repetition_penalty", c_float), ("seed", c_uint64), ("ignore_eos", c_int32),
                ("stop", POINTER(c_char_p)), ("stop_count", c_size_t), ("on_token", ON_TOKEN), ("user", c_void_p)]


class GenerateResult(Structure):
    _fields_ = [("size", c_size_t), ("finish", c_int32), ("prompt_tokens", c_int64), ("tokens", c_int64), ("length", c_int64),
                ("prefill_seconds", c_double), ("first_token_seconds", c_double), ("decode_seconds", c_double)]


class ModelError(Exception):
    """What modelc found wrong; `kind` is a word for programs."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Library:
    """The functions of modelc.h in a shared library; handles are freed with the objects that hold them."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        signatures = {
            "modelc_version": (c_char_p, []),
            "modelc_error_text": (c_char_p, [c_void_p]),
            "modelc_error_kind": (c_char_p, [c_void_p]),
            "modelc_error_free": (None, [c_void_p]),
            "modelc_load": (c_int32, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
            "modelc_model_free": (None, [c_void_p]),
            "modelc_describe": (c_int32, [c_void_p, POINTER(ModelInfo), POINTER(c_void_p)]),
            "modelc_encode": (c_int32, [c_void_p, c_char_p, c_size_t, c_int32, POINTER(c_int32), c_size_t, POINTER(c_size_t),
                                        POINTER(c_void_p)]),
            "modelc_session_new": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), POINTER(c_void_p)]),
            "modelc_session_free": (None, [c_void_p]),
            "modelc_cancel": (None, [c_void_p]),
            "modelc_generate": (c_int32, [c_void_p, POINTER(c_int32), c_size_t, POINTER(GenerateOptions),
                                          POINTER(GenerateResult), POINTER(c_void_p)]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    def check(self, status, error):
        if status != 0:
            kind, text = self.c.modelc_error_kind(error).decode(), self.c.modelc_error_text(error).decode()
            self.c.modelc_error_free(error)
            raise ModelError(kind, text)


class Model:
    """One checkpoint, loaded into the class whose factory is called `factory` ("llama_model_type")."""

    def __init__(self, library, factory, checkpoint):
        self.library, self.handle = library, c_void_p()
        make = getattr(library.c, factory)
        make.restype, make.argtypes = c_void_p, []
        error = c_void_p()
        library.check(library.c.modelc_load(make(), checkpoint.encode(), None, byref(self.handle), byref(error)), error)

    def __del__(self):
        self.library.c.modelc_model_free(self.handle)

    def info(self):
        info, error = ModelInfo(size=ctypes.sizeof(ModelInfo)), c_void_p()
        self.library.check(self.library.c.modelc_describe(self.handle, byref(info), byref(error)), error)
        return info

    def encode(self, text):
        raw, count, error = text.encode(), c_size_t(), c_void_p()
        ids = (c_int32 * (len(raw) + 16))()                # a token covers a byte or more; the rest are special ones
        self.library.check(self.library.c.modelc_encode(self.handle, raw, len(raw), 1, ids, len(ids), byref(count), byref(error)), error)
        return list(ids[:count.value])

    def generate(self, text, tokens=60, on_text=None, **options):
        """The text that follows; on_text(piece) is called as it comes, and ends it by returning False."""
        session, error, pieces, raised = c_void_p(), c_void_p(), [], []

        def on_token(_user, _token, at, size):
            try:                                           # an exception cannot pass through C
                pieces.append(ctypes.string_at(at, size).decode())
                return 0 if on_text and on_text(pieces[-1]) is False else 1
            except BaseException as e:                     # noqa: BLE001 – raised again below
                raised.append(e)
                return 0

        ids = self.encode(text)
        self.library.check(self.library.c.modelc_session_new(self.handle, 0, byref(session), byref(error)), error)
        try:
            callback = ON_TOKEN(on_token)                  # must live as long as the call
            o = GenerateOptions(size=ctypes.sizeof(GenerateOptions), max_tokens=tokens, on_token=callback, **options)
            r = GenerateResult(size=ctypes.sizeof(GenerateResult))
            self.library.check(self.library.c.modelc_generate(session, (c_int32 * len(ids))(*ids), len(ids), byref(o), byref(r), byref(error)), error)
        finally:
            self.library.c.modelc_session_free(session)
        if raised:
            raise raised[0]
        return "".join(pieces)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        model = Model(Library(sys.argv[1]), "llama_model_type", sys.argv[2])
        info = model.info()
        print(f"{info.name.decode()} on {info.device.decode()}, {info.parameters} parameters", file=sys.stderr)
        print(sys.argv[3], end="", flush=True)
        model.generate(sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 60, lambda piece: print(piece, end="", flush=True))
        print()
    except ModelError as e:
        sys.exit(f"error: {e}")


if __name__ == "__main__":
    main()
