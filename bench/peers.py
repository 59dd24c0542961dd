#!/usr/bin/env python3
"""Our champions beside NumPy, PyTorch CPU eager and torch.compile: the same inputs, threads and process, in turns.

    python3 -m venv VENV && VENV/bin/pip install numpy torch threadpoolctl
    VENV/bin/python bench/peers.py                 champions of bench/table.py's runs
    VENV/bin/python bench/peers.py softmax --no-compile

Champions are loaded through their C ABI. Every arm's result is compared with ours before anything is timed. Each workload of a
task is one figure: the median over rounds of (peer's time / our time), arms interleaved within a round; a task's figure is the
geometric mean of its workloads. PyTorch's results include the allocation of its outputs, as its users see it.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Older OpenBLAS builds need these two; they slow a current NumPy down.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

# Tasks over which the geometric mean is taken.
ROW_FUSED_SCAN = [
    "softmax", "layernorm", "rmsnorm", "rmsnorm_residual", "logsumexp", "cross_entropy", "argmax", "row_sum",
    "silu_mul", "gelu", "quantise_int8", "quantise_fp8", "rmsnorm_quantise", "rope", "scan",
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--home", type=Path, default=ROOT / "target/table", help="HOME of bench/table.py")
    parser.add_argument("--champion", action="append", default=[], metavar="TASK=FOLDER", help="a candidate folder instead of a run's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="time per workload")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/peers.md")
    return parser.parse_args()


OPTIONS = arguments()
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(OPTIONS.threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from native import BYTES, Scratch, Task, call, interleaved, machine, median  # noqa: E402

torch.set_num_threads(OPTIONS.threads)
torch.set_grad_enabled(False)

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "i32": np.int32, "i8": np.int8, "f8e4m3": np.uint8}
# Dtypes that NumPy holds as whole numbers of their width.
NARROW = {"bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn}


def rope_tables(xp, position, dim, theta):
    half = dim // 2
    frequency = float(theta) ** (-2.0 * np.arange(half) / dim)
    if xp is torch:
        angle = position.to(torch.float32)[:, None] * torch.tensor(frequency, dtype=torch.float32)
        return angle.cos()[:, None, :], angle.sin()[:, None, :]
    angle = position.astype(np.float32)[:, None] * frequency.astype(np.float32)
    return np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]


# Each takes the inputs in the contract's order, the scalars, and the axes; and returns the outputs in order.
def n_softmax(x, **_):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def n_layernorm(x, weight, bias, eps, **_):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(eps)) * weight + bias


def t_rmsnorm(x, residual, weight, eps, **_):
    h = x + residual
    return F.rms_norm(h, (h.shape[-1],), weight, eps), h


def n_rmsnorm(x, residual, weight, eps, **_):
    h = x + residual
    return h / np.sqrt((h * h).mean(-1, keepdims=True) + np.float32(eps)) * weight, h


def n_logsumexp(x, **_):
    top = x.max(-1, keepdims=True)
    return top[..., 0] + np.log(np.exp(x - top).sum(-1))


def n_cross_entropy(logits, target, **_):
    return n_logsumexp(logits) - logits[np.arange(len(target)), target]


def t_quantise(x, **_):
    scale = x.abs().amax(-1) / 127.0
    q = torch.round(x / torch.where(scale == 0, 1.0, scale)[:, None]).clamp(-127, 127).to(torch.int8)
    return q, scale


def n_quantise(x, **_):
    scale = np.abs(x).max(-1) / np.float32(127)
    return np.rint(x / np.where(scale == 0, np.float32(1), scale)[:, None]).astype(np.int8), scale


def t_quantise_fp8(x, **_):
    scale = x.abs().amax(-1) / 448.0
    return (x / torch.where(scale == 0, 1.0, scale)[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale


def t_rmsnorm_quantise(x, weight, eps, **_):
    return t_quantise_fp8(F.rms_norm(x, (x.shape[-1],), weight, eps))


def rotate(xp, x, position, theta, dim):
    cosine, sine = rope_tables(xp, position, dim, theta)
    low, high = x[..., : dim // 2], x[..., dim // 2 :]
    join = torch.cat if xp is torch else np.concatenate
    return join([low * cosine - high * sine, high * cosine + low * sine], -1)


def t_topk(logits, k, **_):
    values, index = torch.topk(logits, k, -1)
    return index.to(torch.int32), torch.softmax(values, -1)


def n_topk(logits, k, **_):
    index = np.argpartition(-logits, k - 1, -1)[:, :k]
    values = np.take_along_axis(logits, index, -1)
    order = np.argsort(-values, -1, kind="stable")
    index, values = np.take_along_axis(index, order, -1), np.take_along_axis(values, order, -1)
    return index.astype(np.int32), n_softmax(values)


def n_attention(q, k, v, seq, dim, **_):
    scores = q @ k.transpose(0, 2, 1) * np.float32(1 / math.sqrt(dim))
    scores = np.where(np.tril(np.ones((seq, seq), bool)), scores, np.float32(-np.inf))
    return n_softmax(scores) @ v


def delta(xp, q, k, v, g, beta, h0, tokens, dk):
    norm = lambda x: x / xp.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)  # noqa: E731
    q, k, keep = norm(q) / math.sqrt(dk), norm(k), xp.exp(g)
    state = h0.clone() if xp is torch else h0.copy()
    outputs = []
    for t in range(tokens):
        state = state * keep[:, t, :, None]
        change = beta[:, t, None] * (v[:, t] - (state * k[:, t, :, None]).sum(1))
        state = state + k[:, t, :, None] * change[:, None, :]
        outputs.append((state * q[:, t, :, None]).sum(1))
    stack = torch.stack if xp is torch else np.stack
    return stack(outputs, 1), state


TORCH = {
    "softmax": lambda x, **_: F.softmax(x, -1),
    "layernorm": lambda x, weight, bias, eps, **_: F.layer_norm(x, (x.shape[-1],), weight, bias, eps),
    "rmsnorm": lambda x, weight, eps, **_: F.rms_norm(x, (x.shape[-1],), weight, eps),
    "rmsnorm_residual": t_rmsnorm,
    "row_sum": lambda x, **_: x.sum(-1),
    "gelu": lambda x, **_: F.gelu(x),
    "quantise_fp8": t_quantise_fp8,
    "rmsnorm_quantise": t_rmsnorm_quantise,
    "skinny_gemm": lambda x, w, **_: x @ w.T,
    "logsumexp": lambda x, **_: torch.logsumexp(x, -1),
    "cross_entropy": lambda logits, target, **_: F.cross_entropy(logits, target, reduction="none"),
    "argmax": lambda x, **_: torch.argmax(x, -1),
    "silu_mul": lambda gate, up, **_: F.silu(gate) * up,
    "quantise_int8": t_quantise,
    "rope": lambda x, position, theta, dim, **_: rotate(torch, x, position, theta, dim),
    "scan": lambda x, **_: torch.cumsum(x, -1),
    "column_sum": lambda x, **_: x.sum(0),
    "full_sum": lambda x, **_: x.sum().reshape(1),
    "gemm": lambda a, b, **_: a @ b,
    "gemm_half": lambda a, b, **_: a @ b,
    "gemm_int8": lambda a, b, **_: torch._int_mm(a, b),
    "gemv": lambda a, x, **_: a @ x,
    "topk_gate": t_topk,
    "attention": lambda q, k, v, **_: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0],
    "kdattn": lambda q, k, v, g, beta, h0, tokens, dk, **_: delta(torch, q, k, v, g, beta, h0, tokens, dk),
}
NUMPY_PEERS = {
    "softmax": n_softmax,
    "layernorm": n_layernorm,
    "rmsnorm": lambda x, weight, eps, **_: x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * weight,
    "rmsnorm_residual": n_rmsnorm,
    "row_sum": lambda x, **_: x.sum(-1),
    "skinny_gemm": lambda x, w, **_: x @ w.T,
    "logsumexp": n_logsumexp,
    "cross_entropy": n_cross_entropy,
    "argmax": lambda x, **_: np.argmax(x, -1),
    "silu_mul": lambda gate, up, **_: gate / (1 + np.exp(-gate)) * up,
    "quantise_int8": n_quantise,
    "rope": lambda x, position, theta, dim, **_: rotate(np, x, position, theta, dim),
    "scan": lambda x, **_: np.cumsum(x, -1, dtype=x.dtype),
    "column_sum": lambda x, **_: x.sum(0),
    "full_sum": lambda x, **_: x.sum(keepdims=True),
    "gemm": lambda a, b, **_: a @ b,
    "gemm_int8": lambda a, b, **_: a.astype(np.int32) @ b.astype(np.int32),
    "gemv": lambda a, x, **_: a @ x,
    "topk_gate": n_topk,
    "attention": n_attention,
    "kdattn": lambda q, k, v, g, beta, h0, tokens, dk, **_: delta(np, q, k, v, g, beta, h0, tokens, dk),
}


def view(buffer, tensor):
    """The buffer's memory as an array, no copy."""
    count = tensor.bytes // BYTES[tensor.dtype]
    return np.frombuffer(buffer.memory, NUMPY[tensor.dtype], count).reshape(tensor.shape)


def as_torch(array, dtype):
    tensor = torch.from_numpy(array)
    return tensor.view(NARROW[dtype]) if dtype in NARROW else tensor


def tuple_of(value):
    return value if isinstance(value, tuple) else (value,)


def widened(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64).numpy()
    if dtype in NARROW:
        return as_torch(np.array(value), dtype).to(torch.float64).numpy()
    return np.asarray(value, np.float64)


def agrees(name, ours, theirs, outputs):
    """Peers may round in another order; a peer that computes something else must not be timed."""
    for tensor, a, b in zip(outputs, ours, theirs):
        a, b = widened(a, tensor.dtype), widened(b, tensor.dtype)
        # A float8 may fall on either side of a tie: one step.
        loose = {"bf16": 2e-2, "f16": 4e-3, "f8e4m3": 0.13}.get(tensor.dtype, 1e-3)
        close = np.isclose(a, b, rtol=loose, atol=loose * max(1e-30, float(np.abs(a).max())))
        if tensor.dtype == "i8" and name == "quantise_int8":
            close = np.abs(a - b) <= 1
        if not close.all():
            return f"differs in {int((~close).sum())} of {close.size} elements of {tensor.name}"
    return None


def measure(scratch, task, types, folder):
    """Per workload: median ratio of each peer's time to ours."""
    entry = scratch.candidate(folder, types, f"{task.name}-champion")
    rows = {}
    for workload, axes in task.workloads().items():
        inputs, outputs, scalars = task.bind(types, axes)
        ins = [scratch.draw(tensor, axes, number + 1) for number, tensor in enumerate(inputs)]
        outs = [scratch.draw(tensor, axes, 99) for tensor in outputs]
        arrays = [view(buffer, tensor) for buffer, tensor in zip(ins, inputs)]
        named = dict(zip([spec["name"] for spec in task.contract.get("scalars", [])], [scalar.value for scalar in scalars]))
        named |= axes
        ours = call(entry, ins, outs, scalars, axes)
        ours()
        results = [np.array(view(buffer, tensor)) for buffer, tensor in zip(outs, outputs)]
        candidates = {}
        if task.name in NUMPY_PEERS and not any(tensor.dtype in ("bf16", "f16") for tensor in inputs):
            candidates["numpy"] = lambda f=NUMPY_PEERS[task.name]: f(*arrays, **named)
        tensors = [as_torch(array, tensor.dtype) for array, tensor in zip(arrays, inputs)]
        eager = TORCH[task.name]
        candidates["eager"] = lambda: eager(*tensors, **named)
        if not OPTIONS.no_compile:
            torch.compiler.reset()
            compiled = torch.compile(lambda *given: eager(*given, **named), dynamic=False)
            candidates["compile"] = lambda: compiled(*tensors)
        arms, why = {"ours": ours}, {}
        for name, peer in candidates.items():
            try:
                theirs = tuple_of(peer())
                wrong = agrees(task.name, results, theirs, outputs)
            except Exception as cause:  # a peer that cannot do it is a finding, not a fault of this script
                wrong = f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
            if wrong:
                why[name] = wrong
            else:
                arms[name] = peer
        times = interleaved(arms, OPTIONS.seconds)
        rows[workload] = {
            "us": {name: median(times[name]) * 1e6 for name in arms},
            "ratio": {
                name: median([theirs / mine for theirs, mine in zip(times[name], times["ours"])])
                for name in arms
                if name != "ours"
            },
            "missing": why,
        }
    return rows


def mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else float("nan")


def champions():
    """Task, dtypes and folder of what is measured."""
    given = dict(text.split("=", 1) for text in OPTIONS.champion)
    for name, folder in given.items():
        task = Task(ROOT / "tasks" / name)
        yield task, task.instances()[0], Path(folder), "given"
    results = OPTIONS.home / "results.jsonl"
    lines = {}
    if results.exists():
        for text in results.read_text().splitlines():
            line = json.loads(text)
            lines[line["key"]] = line
    for key, line in lines.items():
        name, _, rest = key.partition("[")
        if name in given or "error" in line or (OPTIONS.tasks and name not in OPTIONS.tasks):
            continue
        task = Task(ROOT / "tasks" / name)
        types = dict(part.split("=") for part in rest.rstrip("]").split(",") if part)
        champion = line.get("champion")
        folder = OPTIONS.home / ".ksmith/runs" / line["run"] / "candidates" / champion["id"] if champion else task.folder / "baseline/cpu"
        yield task, types, folder, line["run"][:8] if champion else "the baseline"


def main():
    scratch = Scratch()
    peers = ["numpy", "eager"] + ([] if OPTIONS.no_compile else ["compile"])
    rows, below, missing = [], [], []
    groups = {peer: [] for peer in peers}
    try:
        for task, types, folder, source in champions():
            key = task.name + "".join(f"[{variable}={dtype}]" for variable, dtype in types.items())
            found = measure(scratch, task, types, folder)
            ratios = {}
            for peer in peers:
                values = [row["ratio"][peer] for row in found.values() if peer in row["ratio"]]
                if len(values) == len(found):
                    ratios[peer] = mean(values)
                    if task.name in ROW_FUSED_SCAN:
                        groups[peer].append(ratios[peer])
                    if ratios[peer] < 1:
                        below.append(f"{key} against {peer}: {ratios[peer]:.2f}")
                else:
                    missing += sorted({f"{key} {peer}: {row['missing'][peer]}" for row in found.values() if peer in row["missing"]})
            ours = ", ".join(f"{name} {row['us']['ours']:.1f}" for name, row in found.items())
            rows.append(f"| {key} | {source} | {ours} | " + " | ".join(f"{ratios[p]:.2f}" if p in ratios else "" for p in peers) + " |")
            print(rows[-1], flush=True)
    finally:
        scratch.close()
    if not rows:
        sys.exit("nothing to measure: run bench/table.py first, or name --champion TASK=FOLDER")
    date = time.strftime("%Y-%m-%d", time.gmtime())
    text = [
        "# Beside other libraries on a CPU",
        "",
        f"`bench/peers.py` on {date}: {machine()}; {OPTIONS.threads} thread for every arm; NumPy {np.__version__}, PyTorch {torch.__version__}"
        f" ({'eager and torch.compile' if not OPTIONS.no_compile else 'eager'}). Figures are the peer's time over ours, medians of interleaved"
        " rounds in one process on the dev workloads, geometric mean over a task's workloads; above 1 ours is faster. The champions are those of"
        " `docs/results/cpu.md`, called through their C ABI; the judge has no part in these figures. Measured on a CPU; this is no statement"
        " about GPU performance.",
        "",
        "| instance | run | ours, us | " + " | ".join(peers) + " |",
        "|---|---|---|" + "---|" * len(peers),
        *rows,
        "",
        "Geometric mean over the row, fused and scan tasks: "
        + ", ".join(f"{peer} {mean(groups[peer]):.2f} ({len(groups[peer])} tasks)" for peer in peers if groups[peer])
        + ".",
        "",
        "Below 1.0: " + ("; ".join(below) if below else "none") + ".",
    ]
    if missing:
        text += ["", "Not measured:", "", *[f"- {line}" for line in missing]]
    OPTIONS.out.write_text("\n".join(text) + "\n")
    print(f"written: {OPTIONS.out}")


if __name__ == "__main__":
    main()
