#!/usr/bin/env python3
"""Kernel Tuner (PyPI, its C backend with g++) on one of our template spaces, at the same wall time as `ksmith run`.

    python3 -m venv VENV && VENV/bin/pip install kernel-tuner jinja2 numpy
    VENV/bin/python bench/kernel_tuner.py softmax --wall 60 --ksmith target/release/ksmith

Both sides get the same template, knobs and constraints, gcc's flags `-O3 -march=native`, the task's dev workloads and one thread.
Kernel Tuner checks no result here, as it does by default; each of our configurations passes smoke and a dev case, and the champion
all gates. The best of both sides is measured again at the end, interleaved in one process.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from native import Scratch, Task, call, interleaved, machine, median  # noqa: E402

# This file has the module's name; the module must win.
sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
import jinja2  # noqa: E402
import kernel_tuner as tuner  # noqa: E402
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
STRUCTURES = ROOT / "crates/ksmith-search/structures"
# Folder of the structure and its prototype, which `ksmith` derives from the contract.
SPACES = {
    "softmax": ("row-reduction/softmax", "void softmax(const float *x, float *y, int64_t rows, int64_t cols)"),
    "gemm": ("gemm/panels", "void gemm(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k)"),
    "attention": (
        "attention/causal",
        "void attention(const float *q, const float *k, const float *v, float *o, int64_t heads, int64_t seq, int64_t dim)",
    ),
}
STRATEGIES = ["random_sample", "greedy_ils", "genetic_algorithm", "dual_annealing", "bayes_opt"]


def facts():
    """What constraints may ask of the machine."""
    text = Path("/proc/cpuinfo").read_text()
    flags = set(re.search(r"^flags\s*:(.*)$", text, re.M).group(1).split())
    wide = "avx512f" in flags
    sizes = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (index / "type").read_text().strip() != "Instruction":
            size = (index / "size").read_text().strip()
            sizes[f"l{(index / 'level').read_text().strip()}"] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
    return {
        "vector_bits": 512 if wide else 256 if "avx2" in flags else 128,
        "vector_registers": 32 if wide else 16,
        "vnni": "avx512_vnni" in flags or "avx_vnni" in flags,
        "size_T": 4,
        "T": "f32",
        "f32": "f32",
        "l1": sizes.get("l1", 32 << 10),
        "l2": sizes.get("l2", 512 << 10),
        "l3": sizes.get("l3", 8 << 20),
    }


class Space:
    def __init__(self, name):
        folder, self.signature = SPACES[name]
        self.manifest = tomllib.loads((STRUCTURES / folder / "structure.toml").read_text())
        self.knobs = {knob["name"]: knob["values"] for knob in self.manifest["knob"]}
        self.facts = facts()
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(str(STRUCTURES)), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
            undefined=jinja2.StrictUndefined,
        )
        self.template = environment.get_template(f"{folder}/kernel.c.j2")
        rules = [rule.replace("&&", " and ").replace("||", " or ") for rule in self.manifest.get("constraints", [])]
        self.rules = [compile(rule, rule, "eval") for rule in rules]

    def fits(self, config):
        return all(eval(rule, {"__builtins__": {}}, {**self.facts, **config}) for rule in self.rules)

    def size(self):
        configs = [{}]
        for knob, values in self.knobs.items():
            configs = [{**config, knob: value} for config in configs for value in values]
        return sum(self.fits(config) for config in configs)

    def source(self, config):
        known = {
            "signature": self.signature, "prologue": "", "T": "f32", "c": {"T": "float"}, "uses_bf16": False, "uses_f16": False,
            "workers": 1, "machine": {name: self.facts[name] for name in ("l1", "l2", "l3")},
        }
        return self.template.render(**known, **config)


def wrapper(name, task):
    """A function that Kernel Tuner calls: every dev workload once, the geometric mean of their times in milliseconds."""
    tensors = [spec["name"] for spec in task.contract["inputs"] + task.contract["outputs"]]
    lines = ["#include <math.h>", "#include <time.h>",
             "static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }",
             # With this word in it Kernel Tuner does not wrap the whole file.
             f"extern \"C\" float timed({', '.join('float *' + tensor for tensor in tensors)}) {{", "    double log_sum = 0;"]
    for axes in task.workloads().values():
        arguments = ", ".join(tensors + [str(value) for value in axes.values()])
        lines.append(f"    {{ double start = now(); {name}({arguments}); log_sum += log(now() - start); }}")
    lines += [f"    return (float)exp(log_sum / {len(task.workloads())});", "}"]
    return "\n".join(lines) + "\n"


def tune(name, task, space, strategy, wall):
    """Kernel Tuner's best configuration under `wall` seconds, and how many it measured."""
    arguments = []
    for spec in task.contract["inputs"] + task.contract["outputs"]:
        count = max(math.prod(axes[size] for size in spec["shape"]) for axes in task.workloads().values())
        arguments.append(np.random.default_rng(1).standard_normal(count).astype(np.float32))
    tail = wrapper(name, task)

    def source(parameters):
        return space.source({knob: int(parameters[knob]) for knob in space.knobs}) + tail

    # Not a lambda, whose source Kernel Tuner would rewrite.
    def fits(parameters):
        return space.fits({knob: int(parameters[knob]) for knob in space.knobs})

    began = time.perf_counter()
    results, _ = tuner.tune_kernel(
        "timed", source, 1, arguments, dict(space.knobs), lang="C", compiler="g++", compiler_options=["-O3", "-march=native", "-w"],
        restrictions=fits,
        strategy=strategy, strategy_options={"time_limit": wall, "max_fevals": 100_000}, quiet=True,
        # The template holds the knobs' values; as macros their names would hit its variables.
        defines={},
    )
    seconds = time.perf_counter() - began
    good = [result for result in results if isinstance(result.get("time"), float)]
    best = min(good, key=lambda result: result["time"])
    # A strategy may ask for a configuration again, which is answered without measuring.
    measured = {tuple(result[knob] for knob in space.knobs) for result in results}
    return {
        "strategy": strategy, "evaluations": len(measured), "seconds": seconds,
        "config": {knob: int(best[knob]) for knob in space.knobs}, "ms": best["time"],
    }


def ours(options, home):
    """A run of the same wall time; its counters from the record."""
    home.mkdir(parents=True, exist_ok=True)
    command = [options.ksmith, "run", str(ROOT / "tasks" / options.space), "--type", "T=f32", "--wall", f"{options.wall}s", "--seed", "1", "--json"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"`ksmith run` ended with {done.returncode}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    run = home / ".ksmith/runs" / answer["run"]
    records = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    screens = [record["body"] for record in records if record["kind"] == "screened"]
    busy = sum(body.get("ms", 0) for body in screens) / 1e3
    folder = run / "candidates" / answer["champion"]["id"] if answer.get("champion") else None
    return answer, len(screens), busy, folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("space", choices=sorted(SPACES), nargs="?", default="softmax")
    parser.add_argument("--wall", type=int, default=60, help="seconds for our run and for each strategy")
    parser.add_argument("--strategies", nargs="*", default=STRATEGIES)
    parser.add_argument("--ksmith", default=str(ROOT / "target/release/ksmith"))
    parser.add_argument("--home", type=Path, default=ROOT / "target/kernel-tuner")
    parser.add_argument("--seconds", type=float, default=3.0, help="time per workload of the last comparison")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/kernel-tuner.md")
    options = parser.parse_args()
    task, space = Task(ROOT / "tasks" / options.space), Space(options.space)
    answer, screened, busy, folder = ours(options, options.home)
    found = []
    for strategy in options.strategies:
        try:
            found.append(tune(options.space, task, space, strategy, options.wall))
        except Exception as cause:  # a strategy that fails on this space is a finding
            found.append({"strategy": strategy, "failed": f"{type(cause).__name__}: {cause}"})
        print(found[-1], flush=True)
    good = [one for one in found if "config" in one]
    if not good and not folder:
        sys.exit("nothing to compare: neither side found a configuration")
    scratch = Scratch()
    try:
        entries = {"ksmith": scratch.candidate(folder, {"T": "f32"}, "ksmith")} if folder else {}
        for one in good:
            place = options.home / f"kernel-tuner-{one['strategy']}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "kernel.c").write_text(space.source(one["config"]))
            (place / "candidate.toml").write_text(
                f'schema = 1\nbackend = "cpu"\nsources = ["kernel.c"]\nentry = "{options.space}"\nflags = ["-O3", "-march=native"]\n'
            )
            entries[one["strategy"]] = scratch.candidate(place, {"T": "f32"}, one["strategy"])
        logs = {name: 0.0 for name in entries}
        for axes in task.workloads().values():
            inputs, outputs, scalars = task.bind({"T": "f32"}, axes)
            ins = [scratch.draw(tensor, axes, number + 1) for number, tensor in enumerate(inputs)]
            outs = [scratch.draw(tensor, axes, 99) for tensor in outputs]
            times = interleaved({name: call(entry, ins, outs, scalars, axes) for name, entry in entries.items()}, options.seconds)
            for name in entries:
                logs[name] += math.log(median(times[name])) / len(task.workloads())
    finally:
        scratch.close()
    us = {name: math.exp(value) * 1e6 for name, value in logs.items()}
    seconds = answer["wall_s"]
    rows = [
        f"| `ksmith run` | {screened} | {seconds:.0f} | {60 * screened / seconds:.0f} ({60 * screened / max(busy, 1e-9):.0f} while screening) | "
        f"{us.get('ksmith', float('nan')):.2f} | {(folder / 'kernel.c').read_text().splitlines()[0].strip('/* ') if folder else 'the baseline stands'} |"
    ]
    for one in found:
        if "config" in one:
            config = " ".join(f"{knob}={value}" for knob, value in one["config"].items())
            rows.append(
                f"| Kernel Tuner, {one['strategy']} | {one['evaluations']} | {one['seconds']:.0f} | {60 * one['evaluations'] / one['seconds']:.0f} | "
                f"{us[one['strategy']]:.2f} | {config} |"
            )
        else:
            rows.append(f"| Kernel Tuner, {one['strategy']} | | | | | failed: {one['failed']} |")
    date = time.strftime("%Y-%m-%d", time.gmtime())
    options.out.write_text(
        "\n".join(
            [
                "# Beside Kernel Tuner",
                "",
                f"`bench/kernel_tuner.py {options.space} --wall {options.wall}` on {date}: {machine()}; Kernel Tuner {tuner.__version__}, C backend, g++; "
                f"the {space.size()} configurations of `{space.manifest['name']}`, {options.wall} s for each row. Times are medians of one interleaved "
                "measurement of all best configurations, geometric mean over the dev workloads. Kernel Tuner checks no result; `ksmith run` proves each "
                "candidate on a smoke and a dev case and the champion by all gates, and its time includes that, baseline, full scorings and confirmation. "
                "Measured on a CPU; this is no statement about GPU performance.",
                "",
                "| search | evaluations | s | per minute | best, us | configuration |",
                "|---|---|---|---|---|---|",
                *rows,
                "",
            ]
        )
    )
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
