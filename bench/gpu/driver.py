"""Launches the cubins of a bundle (`cargo xtask bundle`) through the CUDA driver API, on PyTorch's tensors and stream.

Only ctypes and PyTorch are needed. A bundle holds numbers alone: grids, blocks and arguments were resolved when it was
made, so nothing here knows an operator.
"""

import ctypes
import json
import os

import torch

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.uint8,
}

COOPERATIVE, CLUSTER, PROGRAMMATIC = 2, 4, 6  # CUlaunchAttributeID
MAX_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, padded to 8 bytes, and a union of 64."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


_lib = None


def lib():
    global _lib
    if _lib is None:
        torch.zeros(1, device="cuda")  # makes the primary context current
        _lib = ctypes.CDLL("libcuda.so.1")
    return _lib


def check(code, what):
    if code != 0:
        text = ctypes.c_char_p()
        lib().cuGetErrorName(code, ctypes.byref(text))
        raise RuntimeError(f"{what}: {(text.value or b'error').decode()} ({code})")


class Module:
    """One cubin, loaded."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.image = file.read()
        self.handle = ctypes.c_void_p()
        check(lib().cuModuleLoadData(ctypes.byref(self.handle), self.image), f"loading {path}")
        self.functions = {}

    def function(self, name, shared):
        known = self.functions.get(name)
        if known is None:
            handle = ctypes.c_void_p()
            check(lib().cuModuleGetFunction(ctypes.byref(handle), self.handle, name.encode()), f"finding {name}")
            known = [handle, 0]
            self.functions[name] = known
        if shared > max(known[1], 48 << 10):
            check(lib().cuFuncSetAttribute(known[0], MAX_SHARED, shared), f"shared memory of {name}")
            known[1] = shared
        return known[0]


class Launch:
    """One step of a plan, ready to be issued."""

    def __init__(self, module, step, pointers):
        self.name = step["kernel"]
        self.function = module.function(step["kernel"], step["shared"])
        self.values = []
        for param in step["params"]:
            if "buffer" in param:
                self.values.append(ctypes.c_uint64(pointers[param["buffer"]]))
            else:
                self.values.append(ctypes.create_string_buffer(bytes.fromhex(param["bytes"]), len(param["bytes"]) // 2))
        self.arguments = (ctypes.c_void_p * len(self.values))(
            *[ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in self.values]
        )
        attributes = []
        if step["cooperative"]:
            attributes.append((COOPERATIVE, [1]))
        if step["cluster"]:
            attributes.append((CLUSTER, step["cluster"]))
        if step["pdl"]:
            attributes.append((PROGRAMMATIC, [1]))
        self.attributes = (Attribute * max(1, len(attributes)))()
        for slot, (number, words) in zip(self.attributes, attributes):
            slot.id = number
            for index, word in enumerate(words):
                slot.value[index] = word
        self.config = Config(
            (ctypes.c_uint * 3)(*step["grid"]),
            (ctypes.c_uint * 3)(*step["block"]),
            step["shared"],
            None,
            self.attributes,
            len(attributes),
        )

    def __call__(self, stream):
        self.config.stream = stream
        code = lib().cuLaunchKernelEx(ctypes.byref(self.config), self.function, self.arguments, None)
        check(code, f"launching {self.name}")


class Fill:
    """A memset of a plan."""

    def __init__(self, step, pointers):
        fill = step["fill"]
        self.pointer, self.value, self.bytes = pointers[fill["buffer"]], fill["value"], fill["bytes"]

    def __call__(self, stream):
        code = lib().cuMemsetD8Async(
            ctypes.c_uint64(self.pointer),
            ctypes.c_ubyte(self.value),
            ctypes.c_size_t(self.bytes),
            ctypes.c_void_p(stream),
        )
        check(code, "memset")


class Bound:
    """A candidate at one shape: its buffers and its steps. Call it to run it once on the current stream."""

    def __init__(self, folder, modules, entry, shape, inputs):
        path = os.path.join(folder, entry["cubin"])
        if path not in modules:
            modules[path] = Module(path)
        self.tensors, self.outputs = [], {}
        for tensor in shape["tensors"]:
            dtype = DTYPES[tensor["dtype"]]
            if tensor["role"] == "input":
                given = inputs[tensor["name"]]
                assert given.dtype == dtype and list(given.shape) == tensor["shape"], tensor
                self.tensors.append(given.contiguous())
            else:
                made = torch.empty(tensor["shape"], dtype=dtype, device="cuda")
                self.tensors.append(made)
                self.outputs[tensor["name"]] = made
        for _, size in shape["workspaces"]:
            self.tensors.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        self.workspaces = self.tensors[len(shape["tensors"]) :]
        pointers = [tensor.data_ptr() for tensor in self.tensors]
        assert all(pointer % 256 == 0 for pointer in pointers)
        self.steps = [
            Fill(step, pointers) if "fill" in step else Launch(modules[path], step, pointers) for step in shape["steps"]
        ]

    def poison(self):
        """Bytes that are NaN in every float type, so that what is not written shows."""
        for tensor in [*self.outputs.values(), *self.workspaces]:
            tensor.view(torch.uint8).fill_(0xFF)

    def __call__(self):
        stream = torch.cuda.current_stream().cuda_stream
        for step in self.steps:
            step(stream)


def load(folder):
    with open(os.path.join(folder, "bundle.json")) as file:
        bundle = json.load(file)
    if bundle["schema"] != 1:
        raise SystemExit(f"bundle schema {bundle['schema']} is unknown, expected 1")
    return bundle


def timed(call, flush, calls, warmup=2):
    """Milliseconds of each call, with cold L2: `flush` is written before it, outside the events. The host does not wait in
    between, so that the device never does: what a call costs the host hides behind the flush."""
    times = []
    for index in range(warmup + calls):
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        begin.record()
        call()
        end.record()
        end.synchronize()
        if index >= warmup:
            times.append(begin.elapsed_time(end))
    return times


def flush_buffer():
    """At least twice the L2; 512 MiB keep the device busy for longer than a launch costs the host."""
    size = torch.cuda.get_device_properties(0).L2_cache_size
    return torch.empty(max(2 * size, 512 << 20), dtype=torch.uint8, device="cuda")


def copy_call(total_bytes):
    """A device-to-device copy that moves `total_bytes`, read and written together."""
    half = max(256, int(total_bytes) // 2)
    source = torch.empty(half, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)
