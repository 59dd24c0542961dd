#!/usr/bin/env python3
"""Runs `ksmith run` for a list of tasks and writes the table of docs/results/cpu.md.

    python3 bench/table.py --wall 75s                    every task, first dtype instance
    python3 bench/table.py softmax gemm:T=f64 --wall 2m  these
    python3 bench/table.py --write-only                  the table from what is there already

Each finished run is one line of HOME/results.jsonl and is not repeated (--again does); an interrupted run is resumed. Without
--wall the tasks' own budgets count (20 minutes each). At sizes beyond the caches the champion is measured beside copy, read and
multiply-add probes of the same process and thread; the judge has no part in that column. Standard library only.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path

from native import Scratch, Task, call, interleaved, machine, median

ROOT = Path(__file__).resolve().parent.parent

# Sizes whose tensors no cache holds (64 MB and more), inside each contract.
LARGE = {
    "softmax": {"rows": 4096, "cols": 4096},
    "layernorm": {"rows": 4096, "cols": 4096},
    "rmsnorm_residual": {"rows": 2048, "cols": 4096},
    "silu_mul": {"rows": 4096, "cols": 4096},
    "quantise_int8": {"rows": 4096, "cols": 4096},
    "rope": {"tokens": 4096, "heads": 32, "dim": 128},
    "scan": {"rows": 2048, "cols": 8192},
    "logsumexp": {"rows": 4096, "cols": 4096},
    "cross_entropy": {"rows": 512, "vocab": 32768},
    "argmax": {"rows": 4096, "cols": 4096},
    "column_sum": {"rows": 16384, "cols": 1024},
    "full_sum": {"n": 16777216},
    "gemv": {"m": 8192, "k": 2048},
    "gelu": {"rows": 4096, "cols": 4096},
    "rmsnorm": {"rows": 4096, "cols": 4096},
    "row_sum": {"rows": 4096, "cols": 4096},
    "quantise_fp8": {"rows": 4096, "cols": 4096},
    "rmsnorm_quantise": {"rows": 4096, "cols": 4096},
}
# Sizes at which arithmetic is the limit.
DENSE = {"gemm": {"m": 1024, "n": 1024, "k": 1024}}


def chosen(names):
    """(task, types) pairs; `name:T=f64` names an instance, a bare name the first one."""
    if not names:
        names = sorted(path.parent.name for path in (ROOT / "tasks").glob("*/task.toml"))
    for name in names:
        name, _, pick = name.partition(":")
        task = Task(ROOT / "tasks" / name)
        instances = task.instances()
        if pick:
            variable, dtype = pick.split("=")
            instances = [one for one in instances if one.get(variable) == dtype] or sys.exit(f"{name} has no {pick}")
        yield task, instances[0]


def key_of(task, types):
    return task.name + "".join(f"[{variable}={dtype}]" for variable, dtype in types.items())


def run(ksmith, task, types, options, home):
    """One run, resumed once if it was interrupted; its JSON object."""
    command = ["run", f"tasks/{task.name}", *(f"--type={variable}={dtype}" for variable, dtype in types.items())]
    command += ["--seed", str(options.seed)] + (["--wall", options.wall] if options.wall else [])
    arguments = [str(ROOT / command[1]) if part == command[1] else part for part in command]
    began = time.time()
    done = subprocess.run([ksmith, *arguments, "--json"], cwd=home, capture_output=True, text=True)
    if done.returncode == 130:
        answer = json.loads(done.stdout)
        done = subprocess.run([ksmith, "resume", answer["run"], "--json"], cwd=home, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return {"error": f"exit {done.returncode}: {last}"}
    answer = json.loads(done.stdout)
    answer["command"] = "ksmith " + " ".join(command)
    answer["seconds"] = time.time() - began
    return answer


def at_limits(scratch, task, types, folder, axes, seconds):
    """Share of the measured limit at `axes`: copies or reads per second, or multiply-adds per second."""
    inputs, outputs, scalars = task.bind(types, axes)
    entry = scratch.candidate(folder, types, f"{task.name}-champion")
    ins = [scratch.draw(tensor, axes, number + 1) for number, tensor in enumerate(inputs)]
    outs = [scratch.draw(tensor, axes, 99) for tensor in outputs]
    helper = scratch.helper
    arms = {"kernel": call(entry, ins, outs, scalars, axes)}
    if task.name in DENSE:
        turns = 2_000_000
        for bits in (128, 256, 512):
            probe = getattr(helper, f"probe_fma_{bits}")
            count = ctypes.c_int64(turns // (bits // 128))
            arms[f"{bits}-bit multiply-adds"] = lambda probe=probe, count=count: probe(
                count, ctypes.c_float(0.999), ctypes.c_float(0.1)
            )
        work = {"kernel": 2.0 * axes["m"] * axes["n"] * axes["k"]}
        for bits in (128, 256, 512):
            work[f"{bits}-bit multiply-adds"] = 2.0 * 12 * (bits // 32) * (turns // (bits // 128))
        unit = "GFLOP/s"
    else:
        read, written = sum(t.bytes for t in inputs), sum(t.bytes for t in outputs)
        largest = max(ins + outs, key=lambda buffer: buffer.size)
        size = ctypes.c_int64(largest.size)
        work = {"kernel": float(read + written)}
        if written * 20 < read:
            arms["read"] = lambda: helper.probe_read(largest.pointer, size)
            work["read"] = float(largest.size)
        else:
            other = type(largest)(largest.size)
            arms["copy"] = lambda: helper.probe_copy(largest.pointer, other.pointer, size)
            arms["memcpy"] = lambda: helper.probe_memcpy(largest.pointer, other.pointer, size)
            work["copy"] = work["memcpy"] = 2.0 * largest.size
        unit = "GB/s"
    times = interleaved(arms, seconds)
    rates = {name: [work[name] / t / 1e9 for t in times[name]] for name in arms}
    limit = max((name for name in arms if name != "kernel"), key=lambda name: median(rates[name]))
    share = median([ours / theirs for ours, theirs in zip(rates["kernel"], rates[limit])])
    return {"axes": axes, "share": share, "rate": median(rates["kernel"]), "limit": limit, "limit_rate": median(rates[limit]), "unit": unit}


def gain(speedup):
    if not speedup:
        return "not measured"
    return f"{speedup['point']:.2f} ({speedup['lower']:.2f} to {speedup['upper']:.2f})"


def table(lines):
    rows, notes = [], []
    counts = {"done": 0, "fast": 0, "over_flags": 0, "streams": 0, "streaming": 0}
    for key, line in lines.items():
        if "error" in line:
            rows.append(f"| {key} | | {line['error']} | | | | |")
            continue
        counts["done"] += 1
        champion = line.get("champion")
        over = champion and champion.get("speedup")
        flags = champion and champion.get("over_flag_control")
        counts["fast"] += bool(over and over["lower"] >= 1.5)
        counts["over_flags"] += bool(flags and flags["lower"] >= 1.2)
        large = line.get("large")
        limit = ""
        if large:
            size = " x ".join(str(value) for value in large["axes"].values())
            limit = f"{100 * large['share']:.0f} % of {large['limit']} at {size} ({large['rate']:.0f} of {large['limit_rate']:.0f} {large['unit']})"
            if large["unit"] == "GB/s":
                counts["streaming"] += 1
                counts["streams"] += large["share"] >= 0.85
        found = gain(over) if champion else "the baseline stands"
        rows.append(
            f"| {key} | {line['run'][:8]} | {found} | {gain(flags) if champion else ''} | {limit} | {line['wall_s']:.0f} | {line['screened']} |"
        )
        notes.append(f"- {key}: `{line['command']}`, {line['reason']}, head `{line['head'][:23]}`")
    text = ["| instance | run | over the baseline | over the flag control | share of the machine's limit | wall s | screened |",
            "|---|---|---|---|---|---|---|", *rows, ""]
    text.append(
        f"Of {counts['done']} runs {counts['fast']} have a confirmed lower bound of 1.5 over the baseline and "
        f"{counts['over_flags']} one of 1.2 over the flag control. Of {counts['streaming']} measured beyond the caches "
        f"{counts['streams']} reach 85 % of the probe."
    )
    return "\n".join(text) + "\n\nCommands and how each run ended:\n\n" + "\n".join(notes) + "\n"


BEGIN, END = "<!-- table.py: begin -->\n", "<!-- table.py: end -->\n"


def write(path, lines, threads):
    text = path.read_text() if path.exists() else "# Runs on a CPU\n\n"
    if BEGIN not in text:
        text = text.rstrip() + "\n\n" + BEGIN + END
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    date = time.strftime("%Y-%m-%d", time.gmtime())
    isolation = next((line["champion"]["isolation"] for line in lines.values() if line.get("champion")), "none")
    note = (
        f"Single runs, last on {date}: {machine()}, {threads} worker thread, isolation `{isolation}`. Gains are confirmed, with 99 % "
        "bounds. The share compares the champion with probes of the same process and thread at sizes beyond the caches (for GEMM: with "
        "the multiply-add peak); it is not the judge's. Measured on a CPU; this is no statement about GPU performance.\n\n"
    )
    path.write_text(head + BEGIN + note + table(lines) + END + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="NAME or NAME:T=DTYPE; all tasks by default")
    parser.add_argument("--wall", help="wall time of each run, such as 75s; by default the task's budget")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ksmith", default=str(ROOT / "target/release/ksmith"))
    parser.add_argument("--home", type=Path, default=ROOT / "target/table", help="where .ksmith/ and results.jsonl lie")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/cpu.md")
    parser.add_argument("--again", action="store_true", help="repeat runs that are there already")
    parser.add_argument("--write-only", action="store_true")
    parser.add_argument("--no-large", action="store_true", help="leave the sizes beyond the caches out")
    parser.add_argument("--seconds", type=float, default=1.5, help="time at each size beyond the caches")
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    results = options.home / "results.jsonl"
    lines = {}
    if results.exists():
        for text in results.read_text().splitlines():
            line = json.loads(text)
            lines[line["key"]] = line
    if not options.write_only:
        scratch = Scratch()
        try:
            for task, types in chosen(options.tasks):
                key = key_of(task, types)
                if key in lines and "error" not in lines[key] and not options.again:
                    print(f"{key}: there already", flush=True)
                    continue
                line = {"key": key, **run(options.ksmith, task, types, options, options.home)}
                champion = line.get("champion")
                axes = LARGE.get(task.name) or DENSE.get(task.name)
                if champion and axes and not options.no_large:
                    folder = options.home / ".ksmith/runs" / line["run"] / "candidates" / champion["id"]
                    line["large"] = at_limits(scratch, task, types, folder, axes, options.seconds)
                with results.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                lines[key] = line
                over = champion and champion.get("speedup")
                large = line.get("large")
                print(
                    f"{key}: {line.get('error') or (gain(over) if champion else 'the baseline stands')}"
                    + (f", {100 * large['share']:.0f} % of {large['limit']}" if large else ""),
                    flush=True,
                )
        finally:
            scratch.close()
    write(options.out, lines, 1)
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
