#!/usr/bin/env python3
"""Writes kernels/testdata/*.json: what PyTorch says our layers and optimisers must compute.

    python3 tests/golden/pytorch_golden.py        (needs torch 2.11)

Inputs are fp32 numbers; PyTorch computes in double, so the files hold the true results and the tests'
tolerance is ours alone. Tensors are flat lists in our layouts: NHWC images, [outputs, inputs] linear
weights, [out channels, kernel, kernel, in channels] convolution weights. Runs give the same files.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "kernels" / "testdata"


def draw(generator, *shape):
    """fp32 numbers with few digits, as doubles that remember their gradient."""
    values = (torch.randn(*shape, generator=generator) * 1000).round() / 1000
    return values.to(torch.float32).to(torch.float64).requires_grad_()


def flat(tensor, image=False):
    """The elements in our order; `image` for tensors that PyTorch keeps as NCHW (or OIHW)."""
    tensor = tensor.detach()
    if image:
        tensor = tensor.permute(0, 2, 3, 1)
    return [float(f"{v:.9g}") for v in tensor.contiguous().flatten().tolist()]


def linear_case(samples, inputs, outputs, relu):
    g = torch.Generator().manual_seed(samples * 1000 + inputs)
    x, w, b, dy = (draw(g, samples, inputs), draw(g, outputs, inputs), draw(g, outputs),
                   draw(g, samples, outputs))
    y = F.linear(x, w, b)
    y = torch.relu(y) if relu else y
    y.backward(dy)
    return {"samples": samples, "inputs": inputs, "outputs": outputs, "relu": relu, "x": flat(x),
            "w": flat(w), "b": flat(b), "dy": flat(dy), "y": flat(y), "dx": flat(x.grad),
            "dw": flat(w.grad), "db": flat(b.grad)}


def conv_case(samples, size, channels, kernel, stride, padding, relu):
    (height, width), (cin, cout) = size, channels
    g = torch.Generator().manual_seed(kernel * 100 + stride * 10 + padding)
    x, w, b = draw(g, samples, cin, height, width), draw(g, cout, cin, kernel, kernel), draw(g, cout)
    y = F.conv2d(x, w, b, stride=stride, padding=padding)
    y = torch.relu(y) if relu else y
    dy = draw(g, *y.shape)
    y.backward(dy)
    return {"samples": samples, "height": height, "width": width, "inChannels": cin,
            "outChannels": cout, "kernel": kernel, "stride": stride, "padding": padding,
            "relu": relu, "x": flat(x, True), "w": flat(w, True), "b": flat(b), "dy": flat(dy, True),
            "y": flat(y, True), "dx": flat(x.grad, True), "dw": flat(w.grad, True),
            "db": flat(b.grad)}


def batch_norm_case(samples, size, channels, relu, momentum, epsilon):
    height, width = size
    g = torch.Generator().manual_seed(channels)
    x, scale, shift = draw(g, samples, channels, height, width), draw(g, channels), draw(g, channels)
    mean = draw(g, channels).detach()
    variance = draw(g, channels).detach().abs() + 0.5
    dy = draw(g, samples, channels, height, width)
    case = {"samples": samples, "height": height, "width": width, "channels": channels,
            "relu": relu, "momentum": momentum, "epsilon": epsilon, "x": flat(x, True),
            "scale": flat(scale), "shift": flat(shift), "mean": flat(mean),
            "variance": flat(variance), "dy": flat(dy, True)}
    last = torch.relu if relu else (lambda t: t)
    case["yInference"] = flat(last(F.batch_norm(x, mean, variance, scale, shift, False, momentum,
                                                epsilon)), True)
    y = last(F.batch_norm(x, mean, variance, scale, shift, True, momentum, epsilon))
    y.backward(dy)
    case.update({"y": flat(y, True), "dx": flat(x.grad, True), "dscale": flat(scale.grad),
                 "dshift": flat(shift.grad), "meanAfter": flat(mean),
                 "varianceAfter": flat(variance)})
    return case


def layer_norm_case(kind, samples, size, channels, epsilon):
    height, width = size
    g = torch.Generator().manual_seed(channels)
    x, scale = draw(g, samples, height, width, channels), draw(g, channels)
    shift = draw(g, channels) if kind == "layer" else None
    dy = draw(g, *x.shape)
    y = (F.layer_norm(x, (channels,), scale, shift, epsilon) if kind == "layer" else
         F.rms_norm(x, (channels,), scale, epsilon))
    y.backward(dy)
    return {"kind": kind, "samples": samples, "height": height, "width": width,
            "channels": channels, "epsilon": epsilon, "x": flat(x), "scale": flat(scale),
            "shift": [] if shift is None else flat(shift), "dy": flat(dy), "y": flat(y),
            "dx": flat(x.grad), "dscale": flat(scale.grad),
            "dshift": [] if shift is None else flat(shift.grad)}


def gelu_case(approximate, count):
    g = torch.Generator().manual_seed(count)
    x, dy = draw(g, count), draw(g, count)
    x.data *= 3
    y = F.gelu(x, approximate=approximate)
    y.backward(dy)
    return {"approximate": approximate, "x": flat(x), "dy": flat(dy), "y": flat(y),
            "dx": flat(x.grad)}


def attention_case(samples, length, heads, width):
    g = torch.Generator().manual_seed(length * 100 + width)
    qkv, dy = draw(g, samples, length, 3 * heads * width), draw(g, samples, length, heads * width)
    q, k, v = (part.unflatten(2, (heads, width)).transpose(1, 2) for part in qkv.chunk(3, dim=2))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    y.backward(dy)
    return {"samples": samples, "length": length, "heads": heads, "width": width,
            "qkv": flat(qkv), "dy": flat(dy), "y": flat(y), "dqkv": flat(qkv.grad)}


def embedding_case(samples, length, vocabulary, channels):
    g = torch.Generator().manual_seed(vocabulary)
    tokens = torch.randint(vocabulary, (samples, length), generator=g)
    table, positions = draw(g, vocabulary, channels), draw(g, length, channels)
    dy = draw(g, samples, length, channels)
    y = F.embedding(tokens, table) + positions
    y.backward(dy)
    return {"samples": samples, "length": length, "vocabulary": vocabulary, "channels": channels,
            "tokens": tokens.flatten().tolist(), "table": flat(table), "positions": flat(positions),
            "dy": flat(dy), "y": flat(y), "dtable": flat(table.grad),
            "dpositions": flat(positions.grad)}


def pool_case(kind, samples, size, channels, kernel, stride):
    height, width = size
    g = torch.Generator().manual_seed(height * 10 + kernel[0])
    x = draw(g, samples, channels, height, width)
    x.data = (x.data * 2).round() / 2  # many ties
    y = (F.max_pool2d if kind == "max" else F.avg_pool2d)(x, kernel, stride)
    dy = draw(g, *y.shape)
    y.backward(dy)
    return {"kind": kind, "samples": samples, "height": height, "width": width,
            "channels": channels, "kernelHeight": kernel[0], "kernelWidth": kernel[1],
            "stride": stride, "x": flat(x, True), "dy": flat(dy, True), "y": flat(y, True),
            "dx": flat(x.grad, True)}


def loss_case(samples, classes, smoothing, teacher=None):
    """`teacher`: the temperature and weight of a teacher's logits."""
    g = torch.Generator().manual_seed(classes)
    z = draw(g, samples, classes)
    z.data *= 3
    labels = torch.randint(classes, (samples,), generator=g)
    loss = F.cross_entropy(z, labels, reduction="sum", label_smoothing=smoothing)
    distilled = {}
    if teacher is not None:
        temperature, weight = teacher
        logits = draw(g, samples, classes).detach() * 3
        divergence = F.kl_div(F.log_softmax(z / temperature, 1), F.softmax(logits / temperature, 1),
                              reduction="batchmean")
        loss = (1 - weight) * loss + weight * temperature**2 * divergence * samples
        distilled = {"teacher": flat(logits), "temperature": temperature, "weight": weight}
    loss.backward()
    return {"samples": samples, "classes": classes, "smoothing": smoothing, "z": flat(z),
            "labels": labels.tolist(), "loss": loss.item(), "dz": flat(z.grad),
            "correct": int((z.argmax(1) == labels).sum()), **distilled}


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, written down line by line; torch.optim has none."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for x in group["params"]:
                state = self.state[x]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * x.grad
                v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * x.grad ** 2
                r = (m / (1 - beta1 ** t)) / ((v / (1 - beta2 ** t)).sqrt() + group["eps"])
                u = r + group["weight_decay"] * x
                norms = x.norm().item(), u.norm().item()
                ratio = norms[0] / norms[1] if min(norms) > 0 else 1
                x -= group["lr"] * ratio * u


def optimizer_case(name, settings, make):
    g = torch.Generator().manual_seed(11)
    w = draw(g, 37)
    gradients = [draw(g, 37).detach() for _ in range(5)]
    case = {"optimizer": name, "settings": settings, "w": flat(w), "steps": []}
    optimizer = make([w])
    for gradient in gradients:
        w.grad = gradient
        optimizer.step()
        case["steps"].append({"gradient": flat(gradient), "w": flat(w)})
    return case


def optimizer_cases():
    o = torch.optim
    sgd = [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
           {"momentum": 0.8, "nesterov": True, "weightDecay": 0.1}, {"weightDecay": 0.05}]
    adam = [{}, {"weightDecay": 0.1}, {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4}]
    rmsprop = [{}, {"momentum": 0.9, "weightDecay": 0.1}, {"smoothing": 0.9, "epsilon": 1e-4}]

    def make(name, s):
        decay = s.get("weightDecay", 0)
        betas, epsilon = (s.get("beta1", 0.9), s.get("beta2", 0.999)), s.get("epsilon", 1e-8)
        return {
            "sgd": lambda p: o.SGD(p, 0.1, s.get("momentum", 0), 0, decay, s.get("nesterov", False)),
            "adam": lambda p: o.Adam(p, 0.1, betas, epsilon, decay),
            "adamw": lambda p: o.AdamW(p, 0.1, betas, epsilon, decay),
            "rmsprop": lambda p: o.RMSprop(p, 0.1, s.get("smoothing", 0.99), epsilon, decay,
                                           s.get("momentum", 0)),
            "lamb": lambda p: Lamb(p, 0.1, betas, epsilon, decay),
        }[name]

    table = {"sgd": sgd, "adam": adam, "adamw": adam, "rmsprop": rmsprop, "lamb": adam}
    return [optimizer_case(name, settings, make(name, settings))
            for name, list_of_settings in table.items() for settings in list_of_settings]


def main():
    files = {
        "linear": [linear_case(3, 7, 5, False), linear_case(4, 17, 9, True),
                   linear_case(1, 16, 16, True), linear_case(19, 33, 18, False)],
        "conv": [conv_case(2, (6, 5), (3, 4), 3, 1, 1, False),
                 conv_case(2, (7, 7), (1, 5), 3, 1, 0, True),
                 conv_case(2, (7, 8), (2, 3), 5, 1, 2, True),
                 conv_case(1, (9, 9), (2, 2), 7, 1, 3, False),
                 conv_case(2, (9, 8), (3, 4), 3, 2, 1, True),
                 conv_case(1, (8, 11), (2, 3), 5, 3, 2, False),
                 conv_case(2, (4, 4), (3, 5), 1, 1, 0, True)],
        "batch_norm": [batch_norm_case(4, (3, 3), 3, False, 0.1, 1e-5),
                       batch_norm_case(3, (2, 5), 17, True, 0.3, 1e-3),
                       batch_norm_case(8, (1, 1), 5, False, 0.1, 1e-5)],
        "layer_norm": [layer_norm_case("layer", 3, (1, 1), 7, 1e-5),
                       layer_norm_case("layer", 2, (2, 3), 16, 1e-3),
                       layer_norm_case("rms", 3, (1, 1), 9, 1e-5),
                       layer_norm_case("rms", 2, (3, 2), 20, 1e-3)],
        "attention": [attention_case(2, 5, 2, 3), attention_case(1, 17, 1, 8),
                      attention_case(1, 33, 2, 17), attention_case(3, 1, 2, 4)],
        "embedding": [embedding_case(3, 4, 7, 5), embedding_case(2, 6, 3, 16)],
        "gelu": [gelu_case("none", 41), gelu_case("tanh", 41)],
        "pool": [pool_case("max", 2, (6, 6), 3, (2, 2), 2), pool_case("max", 2, (7, 6), 2, (3, 3), 2),
                 pool_case("average", 2, (6, 7), 3, (2, 2), 2),
                 pool_case("average", 1, (7, 7), 2, (3, 3), 1),
                 pool_case("average", 2, (5, 4), 3, (5, 4), 1),
                 pool_case("max", 2, (5, 4), 3, (5, 4), 1)],
        "softmax_cross_entropy": [loss_case(5, 10, 0.0), loss_case(4, 7, 0.1), loss_case(3, 2, 0.3),
                                  loss_case(5, 10, 0.0, (4.0, 0.7)), loss_case(4, 7, 0.1, (1.5, 0.25)),
                                  loss_case(3, 2, 0.0, (20.0, 1.0))],
        "optimizer": optimizer_cases(),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    for name, cases in files.items():
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        (OUT / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
