"""Writes the inputs of a Kimi Delta Attention layer as one sequence of a batch holds them: prefill.safetensors.

Two query heads share keys and gates, padded tokens on the left are zero with open decay and shut gate, the state starts
at zero. No model is needed and nothing but the standard library. The file that lies here is what counts: another C library
may round a few values otherwise. For tensors of a real model use the snippet in docs/recorded-tensors.md.

    python3 tasks/kdattn/traces/record.py
"""

import json
import math
import random
import struct
from pathlib import Path

HEADS, TOKENS, DK, DV = 4, 24, 32, 32
PADDING = 4


def record(seed=30):
    draw = random.Random(seed)
    out = {name: [] for name in ("q", "k", "v", "g", "beta", "h0")}
    slow = [draw.random() ** 3 for _ in range(DK)]  # most channels forget slowly, a few at once
    for head in range(HEADS):
        if head % 2 == 0:
            keys, gates = [], []
            previous = [0.0] * DK
            for t in range(TOKENS):
                if t < PADDING:
                    keys.append([0.0] * DK)
                    gates.append([0.0] * DK)
                    continue
                # Neighbouring tokens resemble each other, as after a short convolution; silu keeps keys mostly small.
                raw = [0.7 * p + draw.gauss(0, 1) for p in previous]
                previous = raw
                keys.append([x / (1.0 + math.exp(-x)) for x in raw])
                gates.append([-4.0 * s * math.log1p(math.exp(draw.gauss(-1, 1))) for s in slow])
        for t in range(TOKENS):
            padded = t < PADDING
            out["q"].extend([0.0] * DK if padded else [x / (1.0 + math.exp(-x)) for x in (draw.gauss(0, 1) for _ in range(DK))])
            out["k"].extend(keys[t])
            out["g"].extend(gates[t])
            out["v"].extend([0.0] * DV if padded else [draw.gauss(0, 0.5) * (8.0 if i == 5 else 1.0) for i in range(DV)])
            out["beta"].append(0.0 if padded else 1.0 / (1.0 + math.exp(-draw.gauss(1, 2))))
    out["h0"] = [0.0] * (HEADS * DK * DV)
    return out


def write(path, tensors, shapes):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shapes[name], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    key, value = [HEADS, TOKENS, DK], [HEADS, TOKENS, DV]
    shapes = {"q": key, "k": key, "v": value, "g": key, "beta": [HEADS, TOKENS], "h0": [HEADS, DK, DV]}
    write(Path(__file__).with_name("prefill.safetensors"), record(), shapes)
