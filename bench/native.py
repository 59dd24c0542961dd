"""Calls compiled candidates through their C ABI, on inputs as the contract says, beside probes of the machine.

Not the judge: nothing here is proved or boxed, and no figure from here is a verdict. It serves comparisons that the judge
does not make (large sizes, other libraries). Standard library only.
"""

import ctypes
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1, "f8e4m3": 1, "f8e5m2": 1}
C_SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i64": ctypes.c_int64, "i32": ctypes.c_int32}


class Buffer:
    """Memory on pages of its own."""

    def __init__(self, size):
        self.size = size
        self.memory = mmap.mmap(-1, max(4096, -(-size // 4096) * 4096))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    @property
    def pointer(self):
        return ctypes.c_void_p(self.address)


class Tensor:
    def __init__(self, spec, types, axes):
        self.name = spec["name"]
        self.dtype = types.get(spec["dtype"], spec["dtype"])
        self.shape = [axes[size] if size in axes else int(size) for size in spec["shape"]]
        self.fill = spec.get("fill")
        self.count = 1
        for size in self.shape:
            self.count *= size
        self.bytes = self.count * BYTES[self.dtype]


class Task:
    """A contract, as far as calls need it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.contract = tomllib.loads((self.folder / "task.toml").read_text())
        self.name = self.contract["name"]
        self.family = self.contract.get("family", "")

    def instances(self):
        """One dict of dtype variables per instance on the CPU, in the order of `ksmith run`."""
        types = self.contract.get("types", {})
        found = [{}]
        for variable, dtypes in types.items():
            if isinstance(dtypes, dict):
                dtypes = dtypes.get("cpu", [])
            found = [{**one, variable: dtype} for one in found for dtype in dtypes]
        return found

    def workloads(self):
        return {w["name"]: w["axes"] for w in self.contract["workloads"] if "cpu" in w.get("backends", ["cpu"])}

    def bind(self, types, axes):
        """Inputs, outputs and scalars for one choice of sizes."""
        inputs = [Tensor(spec, types, axes) for spec in self.contract["inputs"]]
        outputs = [Tensor(spec, types, axes) for spec in self.contract["outputs"]]
        scalars = [
            C_SCALARS[types.get(spec["dtype"], spec["dtype"])](spec["value"]) for spec in self.contract.get("scalars", [])
        ]
        return inputs, outputs, scalars


class Scratch:
    """A folder for libraries, with the helper library in it."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ksmith-bench-"))
        self.candidates = 0
        source = Path(__file__).with_name("native.c")
        self.helper = ctypes.CDLL(str(self._library("native", [source], ["-O3", "-march=native", "-w"])))
        self.helper.probe_read.restype = ctypes.c_double
        for bits in (128, 256, 512):
            getattr(self.helper, f"probe_fma_{bits}").restype = ctypes.c_float

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def _library(self, name, sources, flags):
        """Compiles with the flags and links without: fast-math must not bring its start-up code."""
        objects = []
        for number, source in enumerate(sources):
            objects.append(self.folder / f"{name}-{number}.o")
            compiler = "g++" if source.suffix in (".cc", ".cpp", ".cxx") else "gcc"
            subprocess.run([compiler, *flags, "-fPIC", "-c", "-o", objects[-1], source], check=True)
        library = self.folder / f"{name}.so"
        threads = [flag for flag in flags if flag == "-fopenmp"]
        subprocess.run(["gcc", "-shared", *threads, "-o", library, *objects, "-lm"], check=True)
        return library

    def candidate(self, folder, types, name):
        """The entry of a candidate folder, built with its own flags."""
        folder = Path(folder)
        manifest = tomllib.loads((folder / "candidate.toml").read_text())
        defines = [f"-D{variable}_{dtype}=1" for variable, dtype in types.items()]
        flags = [*manifest.get("flags", ["-O2"]), *defines, "-w"]
        # A library of a known name would not be loaded again.
        self.candidates += 1
        library = self._library(f"{name}-{self.candidates}", [folder / source for source in manifest["sources"]], flags)
        entry = getattr(ctypes.CDLL(str(library)), manifest["entry"])
        entry.restype = None
        return entry

    def draw(self, tensor, axes, seed):
        """A buffer filled as the contract's dev fill says."""
        buffer = Buffer(tensor.bytes)
        floating = tensor.dtype in ("f64", "f32", "f16", "bf16")
        text = tensor.fill or ("normal(0, 1)" if floating else "integers(-100, 100)")
        kind, arguments = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
        values = [float(eval(part, {"__builtins__": {}}, dict(axes))) for part in arguments.split(",")]
        kinds = {"normal": 0, "uniform": 1, "integers": 2}
        self.helper.fill(
            tensor.dtype.encode(),
            buffer.pointer,
            ctypes.c_int64(tensor.count),
            kinds[kind],
            ctypes.c_double(values[0]),
            ctypes.c_double(values[1]),
            ctypes.c_uint64(seed),
        )
        return buffer


def call(entry, inputs, outputs, scalars, axes):
    """A function without arguments that makes one call, in the ABI's order: inputs, outputs, scalars, axes."""
    arguments = [b.pointer for b in inputs] + [b.pointer for b in outputs] + scalars
    arguments += [ctypes.c_int64(size) for size in axes.values()]
    return lambda: entry(*arguments)


def interleaved(arms, seconds, least=9):
    """Seconds per call of each arm, round by round, the order turning. Arms are functions without arguments."""
    for arm in arms.values():
        arm()
    names = list(arms)
    times = {name: [] for name in names}
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(times[names[0]]) < least:
        for name in names:
            arm = arms[name]
            start = time.perf_counter_ns()
            arm()
            first = time.perf_counter_ns() - start
            turns = max(1, min(1000, int(1e6 / max(first, 1))))
            start = time.perf_counter_ns()
            for _ in range(turns):
                arm()
            times[name].append((time.perf_counter_ns() - start) / turns / 1e9)
        names = names[1:] + names[:1]
    return times


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def machine():
    """Processor and compiler in one line."""
    model = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"{model}, {os.cpu_count()} CPUs, gcc {gcc}"
