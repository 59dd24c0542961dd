"""What each task computes, for PyTorch: inputs, a float64 oracle with error scales, and the form that users run today (eager or compiled).

Scales are those of the tasks' references, in the units of `ctol`: see the task's README.
"""

import math

import torch
import torch.nn.functional as F


def normal(shape, dtype, mean=0.0, sd=1.0):
    return (torch.randn(shape, device="cuda", dtype=torch.float32) * sd + mean).to(dtype)


def uniform(shape, low, high, dtype=torch.float32):
    return (torch.rand(shape, device="cuda", dtype=torch.float32) * (high - low) + low).to(dtype)


def matrix(axes):
    return [axes["rows"], axes["cols"]]


class Softmax:
    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t, sd=3.0)}

    def oracle(self, i, s):
        x = i["x"].double()
        y = torch.softmax(x, -1)
        return {"y": (y, y * ((x - x.amax(-1, keepdim=True)).abs() + x.shape[-1] / 16))}

    def form(self, s):
        return lambda x: torch.softmax(x, -1)


class LogSumExp:
    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t, sd=3.0)}

    def oracle(self, i, s):
        x = i["x"].double()
        top = x.amax(-1, keepdim=True)
        e = (x - top).exp()
        spread = (e * (x - top).abs()).sum(-1) / e.sum(-1)
        return {"y": (torch.logsumexp(x, -1), x.shape[-1] / 16 + 4 + spread + top.squeeze(-1).abs())}

    def form(self, s):
        return lambda x: torch.logsumexp(x, -1)


class RmsNorm:
    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t), "weight": normal([axes["cols"]], t, 1.0, 0.2)}

    def oracle(self, i, s):
        x = i["x"].double()
        y = x / (x.square().mean(-1, keepdim=True) + s["eps"]).sqrt() * i["weight"].double()
        return {"y": (y, y.abs() * x.shape[-1] / 16)}

    def form(self, s):
        return lambda x, weight: F.rms_norm(x, (x.shape[-1],), weight, s["eps"])


class RmsNormResidual:
    def inputs(self, axes, t):
        return {
            "x": normal(matrix(axes), t),
            "residual": normal(matrix(axes), t, sd=2.0),
            "weight": normal([axes["cols"]], t, 1.0, 0.2),
        }

    def oracle(self, i, s):
        h = i["x"].double() + i["residual"].double()
        y = h / (h.square().mean(-1, keepdim=True) + s["eps"]).sqrt() * i["weight"].double()
        return {"y": (y, y.abs() * h.shape[-1] / 16), "h": (h, None)}

    def form(self, s):
        def run(x, residual, weight):
            h = x + residual
            return F.rms_norm(h, (h.shape[-1],), weight, s["eps"]), h

        return run


class LayerNorm:
    def inputs(self, axes, t):
        cols = [axes["cols"]]
        return {"x": normal(matrix(axes), t), "weight": normal(cols, t, 1.0, 0.2), "bias": normal(cols, t, 0.0, 0.5)}

    def oracle(self, i, s):
        x, weight, bias = (i[name].double() for name in ("x", "weight", "bias"))
        cols = x.shape[-1]
        centred = x - x.mean(-1, keepdim=True)
        factor = 1 / (centred.square().mean(-1, keepdim=True) + s["eps"]).sqrt()
        size = x.abs().mean(-1, keepdim=True)
        scale = weight.abs() * factor * (size * (4 + cols / 16) + centred.abs() * (4 + cols / 32)) + bias.abs()
        return {"y": (centred * factor * weight + bias, scale)}

    def form(self, s):
        return lambda x, weight, bias: F.layer_norm(x, (x.shape[-1],), weight, bias, s["eps"])


class SiluMul:
    def inputs(self, axes, t):
        return {"gate": normal(matrix(axes), t, sd=2.0), "up": normal(matrix(axes), t)}

    def oracle(self, i, s):
        gate = i["gate"].double()
        return {"y": (gate * torch.sigmoid(gate) * i["up"].double(), None)}

    def form(self, s):
        return lambda gate, up: F.silu(gate) * up


class Gelu:
    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t, sd=2.0)}

    def oracle(self, i, s):
        x = i["x"].double()
        return {"y": (0.5 * x * torch.special.erfc(-x * math.sqrt(0.5)), x.abs())}

    def form(self, s):
        return lambda x: F.gelu(x)


class RowSum:
    axis, chain = -1, "cols"

    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t)}

    def oracle(self, i, s):
        x = i["x"].double()
        return {"y": (x.sum(self.axis), x.abs().sum(self.axis) * (4 + math.sqrt(x.shape[self.axis])))}

    def form(self, s):
        return lambda x: x.sum(self.axis)


class ColumnSum(RowSum):
    axis = 0


class FullSum:
    def inputs(self, axes, t):
        return {"x": normal([axes["n"]], t)}

    def oracle(self, i, s):
        x = i["x"].double()
        return {"y": (x.sum().reshape(1), x.abs().sum().reshape(1))}

    def form(self, s):
        return lambda x: x.sum().reshape(1)


class Scan:
    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t)}

    def oracle(self, i, s):
        x = i["x"].double()
        place = torch.arange(1, x.shape[-1] + 1, device="cuda", dtype=torch.float64)
        return {"y": (x.cumsum(-1), x.abs().cumsum(-1) * (4 + place.sqrt()))}

    def form(self, s):
        return lambda x: x.cumsum(-1)


class ArgMax:
    exact = True

    def inputs(self, axes, t):
        # Steps of a quarter: ties are common, and the first must win.
        return {"x": (torch.randn(matrix(axes), device="cuda") * 8).round().div(4).to(t)}

    def oracle(self, i, s):
        x = i["x"].double()
        cols = torch.arange(x.shape[-1], device="cuda")
        first = torch.where(x == x.amax(-1, keepdim=True), cols, x.shape[-1]).amin(-1)
        return {"index": (first, None)}

    def form(self, s):
        return lambda x: x.argmax(-1)


class CrossEntropy:
    def inputs(self, axes, t):
        rows, vocab = axes["rows"], axes["vocab"]
        return {
            "logits": normal([rows, vocab], t, sd=2.0),
            "target": torch.randint(0, vocab, [rows], device="cuda"),
        }

    def oracle(self, i, s):
        x, target = i["logits"].double(), i["target"]
        top = x.amax(-1, keepdim=True)
        e = (x - top).exp()
        wanted = x.gather(-1, target[:, None]).squeeze(-1)
        spread = (e * (x - top).abs()).sum(-1) / e.sum(-1)
        top = top.squeeze(-1)
        return {
            "loss": ((top - wanted) + e.sum(-1).log(), x.shape[-1] / 16 + 4 + spread + top.abs() + wanted.abs())
        }

    def form(self, s):
        return lambda logits, target: F.cross_entropy(logits.float(), target, reduction="none")


class QuantiseInt8:
    most, target = 127.0, torch.int8

    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t)}

    def oracle(self, i, s):
        x = i["x"].double()
        top = x.abs().amax(-1, keepdim=True)
        q = torch.where(top > 0, x / top * self.most, torch.zeros_like(x))
        return {"q": (q, None), "scale": (top.squeeze(-1) / self.most, None)}

    def form(self, s):
        def run(x):
            top = x.float().abs().amax(-1, keepdim=True)
            scale = top / self.most
            q = x.float() / scale
            if self.target == torch.int8:
                q = q.round()
            return q.to(self.target), scale.squeeze(-1)

        return run


class QuantiseFp8(QuantiseInt8):
    most, target = 448.0, torch.float8_e4m3fn


class RmsNormQuantise:
    def inputs(self, axes, t):
        return {"x": normal(matrix(axes), t), "weight": normal([axes["cols"]], t, 1.0, 0.2)}

    def oracle(self, i, s):
        x = i["x"].double()
        z = x / (x.square().mean(-1, keepdim=True) + s["eps"]).sqrt() * i["weight"].double()
        top = z.abs().amax(-1, keepdim=True)
        q = torch.where(top > 0, z / top * 448, torch.zeros_like(z))
        scale = top.squeeze(-1) / 448
        return {"q": (q, None), "scale": (scale, scale * x.shape[-1] / 16)}

    def form(self, s):
        def run(x, weight):
            wide = x.float()
            z = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + s["eps"]) * weight.float()
            scale = z.abs().amax(-1, keepdim=True) / 448
            return (z / scale).to(torch.float8_e4m3fn), scale.squeeze(-1)

        return run


class Rope:
    def inputs(self, axes, t):
        shape = [axes["tokens"], axes["heads"], axes["dim"]]
        position = torch.randint(0, 8192, [axes["tokens"]], device="cuda", dtype=torch.int32)
        return {"x": normal(shape, t), "position": position}

    def oracle(self, i, s):
        x, dim = i["x"].double(), i["x"].shape[-1]
        half = torch.arange(dim // 2, device="cuda", dtype=torch.float64)
        angle = (i["position"].double()[:, None] * s["theta"] ** (-2 * half / dim))[:, None, :]
        c, n = angle.cos(), angle.sin()
        low, high = x[..., : dim // 2], x[..., dim // 2 :]
        length = (low.abs() + high.abs()) * 6 * angle
        y = torch.cat([low * c - high * n, high * c + low * n], -1)
        scale = [2 * ((low * c).abs() + (high * n).abs()) + length, 2 * ((high * c).abs() + (low * n).abs()) + length]
        return {"y": (y, torch.cat(scale, -1))}

    def form(self, s):
        def run(x, position):
            dim = x.shape[-1]
            half = torch.arange(dim // 2, device=x.device, dtype=torch.float32)
            angle = (position.float()[:, None] * s["theta"] ** (-2 * half / dim))[:, None, :]
            c, n = angle.cos(), angle.sin()
            low, high = x[..., : dim // 2].float(), x[..., dim // 2 :].float()
            return torch.cat([low * c - high * n, high * c + low * n], -1).to(x.dtype)

        return run


class TopkGate:
    def inputs(self, axes, t):
        return {"logits": normal([axes["tokens"], axes["experts"]], t)}

    def oracle(self, i, s, k):
        x = i["logits"].double()
        values, index = x.topk(k, -1)
        weight = torch.softmax(values, -1)
        scale = weight * (values - values[:, :1]).abs()
        return {"index": (index, None), "weight": (weight, scale)}

    def form(self, s, k):
        def run(logits):
            values, index = logits.float().topk(k, -1)
            return index.to(torch.int32), torch.softmax(values, -1)

        return run


class Gemv:
    def inputs(self, axes, t):
        return {"a": normal([axes["m"], axes["k"]], t), "x": normal([axes["k"]], t)}

    def oracle(self, i, s):
        a, x = i["a"].double(), i["x"].double()
        return {"y": (a @ x, (a.abs() @ x.abs()) * (4 + math.sqrt(x.shape[0])))}

    def form(self, s):
        return lambda a, x: a @ x


class SkinnyGemm:
    def inputs(self, axes, t):
        return {"x": normal([axes["m"], axes["k"]], t), "w": normal([axes["n"], axes["k"]], t)}

    def oracle(self, i, s):
        x, w = i["x"].double(), i["w"].double()
        return {"y": (x @ w.T, (x.abs() @ w.abs().T) * (4 + math.sqrt(x.shape[-1])))}

    def form(self, s):
        return lambda x, w: x @ w.T


class KdAttn:
    def inputs(self, axes, t):
        h, n, dk, dv = axes["heads"], axes["tokens"], axes["dk"], axes["dv"]
        return {
            "q": normal([h, n, dk], t),
            "k": normal([h, n, dk], t),
            "v": normal([h, n, dv], t),
            "g": uniform([h, n, dk], -0.2, 0.0),
            "beta": uniform([h, n], 0.0, 1.0),
            "h0": normal([h, dk, dv], torch.float32, 0.0, 0.5),
        }

    def oracle(self, i, s):
        q, k, v, g, beta, state = (i[name].double() for name in ("q", "k", "v", "g", "beta", "h0"))
        dk = q.shape[-1]
        q = q / (q.square().sum(-1, keepdim=True) + 1e-6).sqrt() / math.sqrt(dk)
        k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        chain = 6 + math.sqrt(dk)
        state = state.clone()
        error = torch.zeros_like(state[:, 0])
        out, scales = [], []
        for t in range(q.shape[1]):
            before = state.square().sum(1).sqrt()
            decay = g[:, t].exp()
            slowest = decay.amax(-1, keepdim=True)
            steepest = (g[:, t].abs() * decay).amax(-1, keepdim=True)
            state = state * decay[:, :, None]
            seen = torch.einsum("hij,hi->hj", state, k[:, t])
            gate = beta[:, t, None]
            state = state + k[:, t, :, None] * (gate * (v[:, t] - seen))[:, None, :]
            after = state.square().sum(1).sqrt()
            out.append(torch.einsum("hij,hi->hj", state, q[:, t]))
            size = before * slowest + gate * v[:, t].abs() + after
            error = torch.hypot(slowest * error, chain * size + steepest * before)
            scales.append((error + chain * after) / math.sqrt(dk))
        return {
            "o": (torch.stack(out, 1), torch.stack(scales, 1)),
            "ht": (state, error[:, None, :].expand_as(state)),
        }

    def form(self, s):
        """The chunked form (32 tokens) as one would write it for `torch.compile`; tokens are a multiple of 32."""

        def run(q, k, v, g, beta, h0):
            heads, tokens, dk = q.shape
            q, k, v = q.float(), k.float(), v.float()
            q = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) / math.sqrt(dk)
            k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
            cut = lambda x: x.reshape(heads, tokens // 32, 32, *x.shape[2:])
            q, k, v, g, beta = cut(q), cut(k), cut(v), cut(g).cumsum(2), cut(beta)
            down, end = g.exp(), g[:, :, -1:, :]
            pair = (g[:, :, :, None] - g[:, :, None]).clamp(max=0).exp() * k[:, :, None]
            a = torch.einsum("hctsi,hcti->hcts", pair, k).tril(-1) * beta[..., None]
            p = torch.einsum("hctsi,hcti->hcts", pair, q).tril()
            eye = torch.eye(32, device=q.device).expand_as(a)
            m = torch.linalg.solve_triangular(a + eye, eye, upper=False, unitriangular=True) * beta[:, :, None]
            state, out = h0, []
            for c in range(tokens // 32):
                update = m[:, c] @ (v[:, c] - (k[:, c] * down[:, c]) @ state)
                out.append((q[:, c] * down[:, c]) @ state + p[:, c] @ update)
                rest = k[:, c] * (end[:, c] - g[:, c]).exp()
                state = state * end[:, c].exp().transpose(1, 2) + rest.transpose(1, 2) @ update
            return torch.cat(out, 1), state

        return run


OPERATORS = {
    "softmax": Softmax(),
    "logsumexp": LogSumExp(),
    "rmsnorm": RmsNorm(),
    "rmsnorm_residual": RmsNormResidual(),
    "layernorm": LayerNorm(),
    "silu_mul": SiluMul(),
    "gelu": Gelu(),
    "row_sum": RowSum(),
    "column_sum": ColumnSum(),
    "full_sum": FullSum(),
    "scan": Scan(),
    "argmax": ArgMax(),
    "cross_entropy": CrossEntropy(),
    "quantise_int8": QuantiseInt8(),
    "quantise_fp8": QuantiseFp8(),
    "rmsnorm_quantise": RmsNormQuantise(),
    "rope": Rope(),
    "topk_gate": TopkGate(),
    "gemv": Gemv(),
    "skinny_gemm": SkinnyGemm(),
    "kdattn": KdAttn(),
}


def oracle(task, inputs, scalars, axes):
    operator = OPERATORS[task]
    return operator.oracle(inputs, scalars, axes["k"]) if task == "topk_gate" else operator.oracle(inputs, scalars)


def function(task, scalars, axes):
    """The PyTorch form: a function of the inputs in the task's order."""
    operator = OPERATORS[task]
    return operator.form(scalars, axes["k"]) if task == "topk_gate" else operator.form(scalars)


def error_ratio(task, tensor, got, want, scale, inputs):
    """Largest error in units of the task's tolerance; at most 1 passes, NaN never does."""
    if task == "topk_gate" and tensor["name"] == "index":
        # Ties may come in any order: the chosen logits are compared, and no expert twice.
        index = got.long()
        experts = inputs["logits"].shape[-1]
        if int(index.min()) < 0 or int(index.max()) >= experts:
            return math.inf
        chosen = inputs["logits"].double().gather(-1, index)
        expected = inputs["logits"].double().gather(-1, want)
        distinct = index.sort(-1).values.diff(dim=-1).ne(0).all() if index.shape[-1] > 1 else True
        return 0.0 if bool(torch.equal(chosen, expected)) and bool(distinct) else math.inf
    if not want.is_floating_point():
        return 0.0 if torch.equal(got.to(want.dtype), want) else math.inf
    if tensor["dtype"] == "i8":
        return float(((got.double() - want).abs() / (0.5 + 1e-4)).max())
    rule = tensor["tolerance"]
    # A scale that this module does not know would make the check milder than the task's: then it is 0.
    allowed = rule["atol"] + rule["rtol"] * want.abs() + (rule["ctol"] * scale if scale is not None else 0.0)
    ratio = (got.double() - want).abs() / (allowed + 1e-300)
    return math.inf if bool(ratio.isnan().any()) else float(ratio.max())
