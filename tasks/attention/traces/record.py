"""Writes q, k, v as an attention layer with grouped queries holds them: decode.safetensors, 4 heads over 2 key heads.

No model is needed and nothing but the standard library: the values imitate what recordings of such layers show (see
README.md). The file that lies here is what counts: another C library may round a few values otherwise. For tensors of a real model use the snippet in
docs/recorded-tensors.md.

    python3 tasks/attention/traces/record.py
"""

import json
import math
import random
import struct
from pathlib import Path

HEADS, GROUPS, SEQ, DIM = 4, 2, 40, 64
PADDING = 6  # tokens at the left that a batch of shorter prompts is filled up with


def rotate(row, position):
    half = DIM // 2
    out = list(row)
    for i in range(half):
        angle = position * 10000.0 ** (-2.0 * i / DIM)
        c, s = math.cos(angle), math.sin(angle)
        out[i] = row[i] * c - row[i + half] * s
        out[i + half] = row[i + half] * c + row[i] * s
    return out


def record(seed=20):
    draw = random.Random(seed)
    basis = [[draw.gauss(0, 1) for _ in range(DIM)] for _ in range(6)]
    loud = draw.sample(range(DIM), 3)
    q, k, v = [], [], []
    for head in range(HEADS):
        group = draw if head % (HEADS // GROUPS) == 0 else None
        if group is not None:
            keys, values = [], []
            for t in range(SEQ):
                if t < PADDING:
                    keys.append([0.0] * DIM)
                    values.append([0.0] * DIM)
                    continue
                weights = [group.gauss(0, 0.6) for _ in basis]
                row = [sum(w * b[i] for w, b in zip(weights, basis)) + group.gauss(0, 0.3) for i in range(DIM)]
                for i in loud:
                    row[i] += 9.0  # channels with a large mean
                # The first real token: every later one looks at it, and it says nothing.
                sink = t == PADDING
                keys.append(rotate([3.0 * x for x in row] if sink else row, t))
                values.append([0.01 * group.gauss(0, 1) if sink else group.gauss(0, 0.8) for _ in range(DIM)])
        for t in range(SEQ):
            weights = [draw.gauss(0.3, 0.7) for _ in basis]
            row = [sum(w * b[i] for w, b in zip(weights, basis)) * 0.4 for i in range(DIM)]
            q.extend([0.0] * DIM if t < PADDING else rotate(row, t))
            k.extend(keys[t])
            v.extend(values[t])
    return {"q": q, "k": k, "v": v}


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
    shape = [HEADS, SEQ, DIM]
    write(Path(__file__).with_name("decode.safetensors"), record(), {"q": shape, "k": shape, "v": shape})
