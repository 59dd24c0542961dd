#!/usr/bin/env python3
"""Checks and times the candidates of a bundle on this machine's GPU.

    cargo xtask bundle --out bundle
    python3 bench/gpu/check_structures.py bundle --out results.json [--seconds 150]

Every candidate runs at every shape of the bundle on fresh random inputs, into poisoned outputs, twice, against a float64
oracle in PyTorch with the task's own tolerance. At the task's workloads it is then timed with cold L2 beside a copy of the
same bytes. This is a tool for those who write structures; verdicts come from `ksmith judge` alone.
"""

import argparse
import json
import statistics
import time

import torch

import driver
import operators

CALLS = 12


def check(folder, modules, entry, shape, shared):
    """The worst error ratio, and the bound candidate."""
    task, axes, scalars = entry["task"], shape["axes"], shape["scalars"]
    inputs, expected = shared
    bound = driver.Bound(folder, modules, entry, shape, inputs)
    before = {name: tensor.clone() for name, tensor in inputs.items()} if not shape["timed"] else {}
    worst = 0.0
    for _ in range(2):
        bound.poison()
        bound()
        torch.cuda.synchronize()
        for tensor in shape["tensors"]:
            if tensor["role"] == "output":
                want, scale = expected[tensor["name"]]
                got = bound.outputs[tensor["name"]]
                worst = max(worst, operators.error_ratio(task, tensor, got, want, scale, inputs))
    for name, tensor in before.items():
        if not torch.equal(tensor.view(torch.uint8), inputs[name].view(torch.uint8)):
            raise RuntimeError(f"input {name} was written")
    return worst, bound


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--out", default="structures.json")
    parser.add_argument("--seconds", type=float, default=150.0, help="begin no candidate after so many seconds")
    parser.add_argument("--tasks", default="", help="comma-separated; the default is all")
    parser.add_argument("--no-times", action="store_true")
    args = parser.parse_args()
    began = time.monotonic()
    torch.manual_seed(int.from_bytes(__import__("os").urandom(4), "little"))
    bundle = driver.load(args.bundle)
    chosen = set(filter(None, args.tasks.split(",")))
    entries = [entry for entry in bundle["entries"] if not chosen or entry["task"] in chosen]
    modules, copies, results, skipped = {}, {}, [], 0
    flush = driver.flush_buffer()
    device = torch.cuda.get_device_properties(0)
    if device.multi_processor_count != bundle["sm_count"]:
        print(f"note: {device.multi_processor_count} multiprocessors, the bundle is for {bundle['sm_count']}")
    groups = {}
    for entry in entries:
        groups.setdefault((entry["task"], tuple(sorted(entry["types"].items()))), []).append(entry)
    for (task, types), group in groups.items():
        if time.monotonic() - began > args.seconds:
            skipped += len(group)
            continue
        rows = {}
        for number, shape in enumerate(group[0]["shapes"]):
            # All candidates of an instance see the same inputs and share the oracle's answer.
            inputs = operators.OPERATORS[task].inputs(shape["axes"], driver.DTYPES[dict(types).get("T", "f32")])
            expected = operators.oracle(task, inputs, shape["scalars"], shape["axes"])
            bounds = []
            for entry in group:
                row = rows.setdefault(
                    entry["structure"] + " " + entry["config"],
                    {
                        "task": task,
                        "types": dict(types),
                        "structure": entry["structure"],
                        "config": entry["config"],
                        "worst": 0.0,
                        "failed": [],
                        "ms": {},
                        "copy_ms": {},
                    },
                )
                same = entry["shapes"][number]
                try:
                    ratio, bound = check(args.bundle, modules, entry, same, (inputs, expected))
                    row["worst"] = max(row["worst"], ratio)
                    if not ratio <= 1.0:
                        row["failed"].append({"shape": shape["name"], "axes": shape["axes"], "ratio": ratio})
                    bounds.append((row, bound))
                except RuntimeError as error:
                    row["failed"].append({"shape": shape["name"], "axes": shape["axes"], "error": str(error)[:300]})
                    if "illegal" in str(error).lower() or "ILLEGAL" in str(error):
                        print(json.dumps(row), flush=True)
                        raise
            if shape["timed"] and not args.no_times:
                key = shape["cost_bytes"]
                if key not in copies:
                    copies[key] = statistics.median(driver.timed(driver.copy_call(key), flush, 25))
                # Interleaved rounds: no candidate has the machine to itself while another does not.
                times = {id(bound): [] for _, bound in bounds}
                for _ in range(3):
                    for _, bound in bounds:
                        times[id(bound)] += driver.timed(bound, flush, CALLS // 3, warmup=1)
                for row, bound in bounds:
                    row["ms"][shape["name"]] = statistics.median(times[id(bound)])
                    row["copy_ms"][shape["name"]] = copies[key]
            del inputs, expected, bounds
        for row in rows.values():
            last = list(row["ms"])[-1] if row["ms"] else None
            speed = f"{row['copy_ms'][last] / row['ms'][last]:.3f} of copy, {row['ms'][last]:.4f} ms" if last else ""
            state = "ok" if not row["failed"] else "FAILED " + json.dumps(row["failed"][:2])
            types_text = ",".join(f"{name}={value}" for name, value in row["types"].items())
            print(
                f"{task}[{types_text}] {row['structure']} [{row['config']}]: error {row['worst']:.3f} {speed} {state}",
                flush=True,
            )
            results.append(row)
        torch.cuda.empty_cache()
        with open(args.out, "w") as file:
            json.dump(
                {
                    "device": device.name,
                    "torch": torch.__version__,
                    "arch": bundle["arch"],
                    "seconds": time.monotonic() - began,
                    "results": results,
                    "skipped": skipped,
                },
                file,
            )
    failed = [row for row in results if row["failed"]]
    print(f"{len(results)} candidates, {len(failed)} failed, {skipped} not begun, {time.monotonic() - began:.0f} s")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
