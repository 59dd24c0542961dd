#!/usr/bin/env python3
"""Times PyTorch and a copy beside our kernels, on the same workloads, in the same process, interleaved, with cold L2.

    cargo xtask bundle --out champions --tasks softmax --type bf16 --candidate PATH/TO/CHAMPION --speed-only
    python3 bench/torch_peers.py champions --out peers.json [--arms ours,eager,compile,autotune] [--seconds 300] [--resume]

Arms: `ours` (each candidate of the bundle, through the driver API), `eager`, `compile` (torch.compile), `autotune`
(torch.compile, mode max-autotune-no-cudagraphs: graphs would time copies of the inputs), and always `copy`, a
device-to-device copy that moves the bytes that the task cannot avoid. Each call is preceded by a write of 512 MiB (more
than twice the L2), outside the events. Our outputs are checked against the float64 oracle before anything is timed. One JSON object per
instance and workload: medians, quartiles, ratios to copy and to the best PyTorch arm.
"""

import argparse
import json
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu"))
import driver  # noqa: E402
import operators  # noqa: E402


def summary(times):
    ordered = sorted(times)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return {"median_ms": statistics.median(ordered), "q1_ms": low, "q3_ms": high, "calls": len(ordered)}


def torch_arm(kind, task, scalars, axes, inputs):
    """A call of PyTorch, warmed up: compilation happens here."""
    # Forms share their code between tasks, and what is compiled for one counts towards the limit of recompilations.
    torch._dynamo.reset()
    run = operators.function(task, scalars, axes)
    if kind == "compile":
        run = torch.compile(run, dynamic=False)
    elif kind == "autotune":
        run = torch.compile(run, dynamic=False, mode="max-autotune-no-cudagraphs")
    arguments = list(inputs.values())
    with torch.no_grad():
        for _ in range(3):
            run(*arguments)
        torch.cuda.synchronize()

    def call():
        with torch.no_grad():
            run(*arguments)

    return call


def one(args, bundle, modules, flush, group, number):
    shape = group[0]["shapes"][number]
    task, axes, scalars = group[0]["task"], shape["axes"], shape["scalars"]
    dtype = driver.DTYPES[group[0]["types"].get("T", "f32")]
    inputs = operators.OPERATORS[task].inputs(axes, dtype)
    # In the task's order, which is the order of the form's arguments.
    inputs = {t["name"]: inputs[t["name"]] for t in shape["tensors"] if t["role"] == "input"}
    expected = operators.oracle(task, inputs, scalars, axes)
    arms, notes = {"copy": driver.copy_call(shape["cost_bytes"])}, {}
    for entry in group if "ours" in args.arms else []:
        if args.skip and entry["structure"].startswith(tuple(args.skip.split(","))):
            continue
        name = " ".join(["ours", entry["structure"], entry["config"]]).strip()
        args.at = f"{args.at.split(': ')[0]}: {name}"
        bound = driver.Bound(args.bundle, modules, entry, entry["shapes"][number], inputs)
        bound.poison()
        bound()
        torch.cuda.synchronize()
        worst = max(
            operators.error_ratio(task, t, bound.outputs[t["name"]], *expected[t["name"]], inputs)
            for t in shape["tensors"]
            if t["role"] == "output"
        )
        notes[name] = {"error_ratio": worst}
        if worst <= 1.0:
            arms[name] = bound
    del expected
    for kind in ("eager", "compile", "autotune"):
        if kind in args.arms:
            began = time.monotonic()
            args.at = f"{args.at.split(': ')[0]}: {kind}"
            try:
                arms[kind] = torch_arm(kind, task, scalars, axes, inputs)
                notes[kind] = {"prepared_s": round(time.monotonic() - began, 2)}
            except Exception as error:  # a compiler's refusal is a result, not a reason to stop
                notes[kind] = {"error": f"{type(error).__name__}: {error}"[:300]}
    times = {name: [] for name in arms}
    for _ in range(args.rounds):
        for name, call in arms.items():
            times[name] += driver.timed(call, flush, args.calls, warmup=1)
    found = {name: {**summary(values), **notes.get(name, {})} for name, values in times.items()}
    found.update({name: note for name, note in notes.items() if name not in found})
    copy = found["copy"]["median_ms"]
    peers = [found[kind]["median_ms"] for kind in ("eager", "compile", "autotune") if "median_ms" in found.get(kind, {})]
    for name, arm in found.items():
        if "median_ms" in arm:
            arm["of_copy"] = copy / arm["median_ms"]
            if name.startswith("ours") and peers:
                arm["gain_over_best_torch"] = min(peers) / arm["median_ms"]
    return {"task": task, "types": group[0]["types"], "workload": shape["name"], "axes": axes, "arms": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--out", default="peers.json")
    parser.add_argument("--arms", default="ours,eager,compile,autotune")
    parser.add_argument("--tasks", default="", help="comma-separated, in the order to run; the default is all of the bundle")
    parser.add_argument("--workloads", default="", help="comma-separated; the default is all")
    parser.add_argument("--skip", default="", help="comma-separated; arms of ours that begin with one of these stay out")
    parser.add_argument("--resume", action="store_true", help="go on with the file of --out: what it holds is not repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=480.0, help="begin nothing new after so many seconds")
    args = parser.parse_args()
    args.arms = set(args.arms.split(","))
    began = time.monotonic()
    bundle = driver.load(args.bundle)
    device = torch.cuda.get_device_properties(0)
    record = {
        "schema": 1,
        "device": device.name,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "protocol": f"{args.rounds} rounds of {args.calls} calls per arm, L2 flushed before each",
        "results": [],
        "failed": {},
        "not_begun": [],
    }
    if args.resume and os.path.exists(args.out):
        with open(args.out) as file:
            held = json.load(file)
        record["results"], record["failed"] = held["results"], held["failed"]
    done = {(r["task"], tuple(sorted(r["types"].items())), r["workload"]) for r in record["results"]}

    def save():
        with open(args.out + ".new", "w") as file:
            json.dump(record, file)
        os.replace(args.out + ".new", args.out)

    groups = {}
    for entry in bundle["entries"]:
        if not args.tasks or entry["task"] in args.tasks.split(","):
            groups.setdefault((entry["task"], tuple(sorted(entry["types"].items()))), []).append(entry)
    order = args.tasks.split(",")
    modules, flush = {}, driver.flush_buffer()
    for (task, types), group in sorted(groups.items(), key=lambda item: order.index(item[0][0]) if args.tasks else 0):
        for number, shape in enumerate(group[0]["shapes"]):
            if not shape["timed"] or (args.workloads and shape["name"] not in args.workloads.split(",")):
                continue
            name = f"{task}[{','.join(f'{a}={b}' for a, b in types)}] {shape['name']}"
            if (task, types, shape["name"]) in done or name in record["failed"]:
                continue
            if time.monotonic() - began > args.seconds:
                record["not_begun"].append(name)
                continue
            args.at = name
            try:
                result = one(args, bundle, modules, flush, group, number)
            except RuntimeError as error:
                # A context that a fault has ended serves nobody: the next call with --resume leaves this workload out.
                record["failed"][name] = f"{args.at.split(': ')[-1]}: {error}"[:300]
                print(f"{name}: failed, {record['failed'][name]}", flush=True)
                save()
                if "CUDA" in str(error) or "launching" in str(error):
                    raise SystemExit(4) from error
                continue
            record["results"].append(result)
            arms = ", ".join(
                f"{arm} {value['median_ms']:.4f}" if "median_ms" in value else f"{arm} failed"
                for arm, value in result["arms"].items()
            )
            print(f"{name}: {arms}", flush=True)
            torch.cuda.empty_cache()
            save()
    save()
    print(f"{len(record['results'])} workloads, {len(record['not_begun'])} not begun, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
