#!/usr/bin/env python3
"""Launches candidates of a bundle and nothing else of ours: the program under a profiler or a memory checker.

    ncu --set full --csv --page raw -k regex:softmax -c 1 python3 bench/gpu/launch.py bundle --task softmax --type bf16
    compute-sanitizer --tool memcheck python3 bench/gpu/launch.py bundle --small

`--small` runs every candidate at the bundle's shapes of correctness instead of the last workload. Outputs are compared with
the float64 oracle; exit 1 if one is wrong.
"""

import argparse

import torch

import driver
import operators

SMALL = 1 << 21  # bytes that a small shape must move, at most


def chosen(args, entry):
    return (
        (not args.task or entry["task"] in args.task.split(","))
        and (not args.type or entry["types"].get("T", "f32") == args.type)
        and (not args.structure or entry["structure"].startswith(args.structure))
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--task", default="", help="comma-separated; the default is all")
    parser.add_argument("--type", default="")
    parser.add_argument("--structure", default="", help="how its name begins; the default is all")
    parser.add_argument("--workload", default="device")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--calls", type=int, default=1)
    args = parser.parse_args()
    modules, launched, wrong = {}, 0, 0
    for entry in filter(lambda entry: chosen(args, entry), driver.load(args.bundle)["entries"]):
        for shape in entry["shapes"]:
            small = not shape["timed"] and shape["cost_bytes"] <= SMALL
            if not (small if args.small else shape["name"] == args.workload):
                continue
            dtype = driver.DTYPES[entry["types"].get("T", "f32")]
            inputs = operators.OPERATORS[entry["task"]].inputs(shape["axes"], dtype)
            bound = driver.Bound(args.bundle, modules, entry, shape, inputs)
            bound.poison()
            for _ in range(args.calls):
                bound()
            torch.cuda.synchronize()
            expected = operators.oracle(entry["task"], inputs, shape["scalars"], shape["axes"])
            for tensor in filter(lambda tensor: tensor["role"] == "output", shape["tensors"]):
                name = tensor["name"]
                ratio = operators.error_ratio(entry["task"], tensor, bound.outputs[name], *expected[name], inputs)
                if not ratio <= 1.0:
                    wrong += 1
                    print(f"{entry['task']} {entry['structure']} {shape['axes']}: {name} is off by {ratio:.3g}", flush=True)
            launched += 1
    print(f"{launched} launched, {wrong} wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
