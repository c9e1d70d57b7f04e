#!/usr/bin/env python3
"""Writes trainer/testdata/pytorch_curves.json: short trainings as PyTorch does them.

    python3 tests/golden/pytorch_golden_train.py        (needs torch 2.11)

Each case has the model and training in Fettle's own words, bytes as images, initial weights in
Fettle's layouts (see pytorch_golden.py), the loss of every optimiser step and, at the end, loss and
correct answers in evaluation. PyTorch computes in double, so the tests' tolerance is ours alone;
but where the precision is bf16, it computes as torch.autocast does on fp32 weights.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch.nn.utils import prune

from pytorch_golden import Lamb

OUT = pathlib.Path(__file__).resolve().parents[2] / "trainer" / "testdata"
SAMPLES, SIDE, CLASSES, BATCH, EPOCHS = 22, 6, 3, 8, 4      # the last batch has 6 samples
CONTEXT, VOCABULARY, PIECES = 9, 11, 14                     # of text
MEAN, STD = 0.5, 0.25


def draw(generator, *shape, scale=0.4):
    """fp32 numbers with few digits, as doubles."""
    values = (torch.randn(*shape, generator=generator) * scale * 1000).round() / 1000
    return values.to(torch.float32).to(torch.float64)


class Attention(torch.nn.Module):
    """Causal, over queries, keys and values side by side."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, qkv):
        parts = [part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in qkv.chunk(3, dim=2)]
        return F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)


class Embedding(torch.nn.Module):
    def __init__(self, units):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(VOCABULARY, units))
        self.positions = torch.nn.Parameter(torch.zeros(CONTEXT, units))

    def forward(self, tokens):
        return F.embedding(tokens, self.weight) + self.positions


class Gpt(torch.nn.Module):
    """Runs a list of layers in Fettle's words on tokens."""

    def __init__(self, layers, generator):
        super().__init__()
        self.layers, self.modules_of, channels = layers, torch.nn.ModuleList(), 0
        for layer in layers:
            kind, module = layer["type"], torch.nn.Identity()
            if kind == "embedding":
                module, channels = Embedding(layer["units"]), layer["units"]
            elif kind == "linear":
                module, channels = torch.nn.Linear(channels, layer["units"]), layer["units"]
            elif kind == "attention":
                module, channels = Attention(layer["heads"]), channels // 3
            elif kind == "layerNorm":
                module = torch.nn.LayerNorm(channels)
            elif kind == "gelu":
                module = torch.nn.GELU(approximate=layer.get("approximate", "none"))
            self.modules_of.append(module.double())
        with torch.no_grad():
            for parameter in self.parameters():
                if parameter.dim() == 2:
                    parameter.copy_(draw(generator, *parameter.shape, scale=0.2))

    def forward(self, x):
        entries = []
        for layer, module in zip(self.layers, self.modules_of):
            if layer["type"] == "residual":
                entries.append(x)
            elif layer["type"] == "add":
                x = x + entries.pop()
            elif layer["type"] == "head":
                x = x @ self.modules_of[0].weight.T
            else:
                x = module(x)
        return x

    def initial(self):
        result = []
        for module in self.modules_of:
            if isinstance(module, Embedding):
                result.append({"weights": numbers(module.weight.flatten().tolist()), "biases": [],
                               "positions": numbers(module.positions.flatten().tolist())})
            elif isinstance(module, torch.nn.Linear):
                result.append({"weights": numbers(module.weight.flatten().tolist()),
                               "biases": numbers(module.bias.tolist())})
        return result


class Grids:
    """Rounds inputs and weights to 8 bits by PyTorch's functions; ranges follow as torch.ao's moving averages."""

    def __init__(self, ranges):
        self.ranges = list(ranges)
        self.rounded = {}                                      # by identity of the input

    def begin(self):
        self.rounded = {}

    def input(self, x):
        if id(x) not in self.rounded:
            low, high = self.ranges[len(self.rounded)]
            low += 0.01 * (min(x.min().item(), 0) - low)
            high += 0.01 * (max(x.max().item(), 0) - high)
            self.ranges[len(self.rounded)] = low, high
            scale = (high - low) / 255
            zero = min(round(-low / scale), 255)
            self.rounded[id(x)] = x, torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)
        return self.rounded[id(x)][1]

    def weights(self, weights):
        scales = (weights.detach().flatten(1).abs().amax(1) / 127).to(torch.float32)
        zeros = torch.zeros(len(scales), dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(weights, scales, zeros, 0, -127, 127)


class Network(torch.nn.Module):
    """Runs a list of layers in Fettle's words on NCHW images."""

    def __init__(self, layers, generator):
        super().__init__()
        self.layers = layers
        self.grids = None                                      # in training
        self.modules_of = torch.nn.ModuleList()
        channels, side, flat = 1, SIDE, False
        entries = []                                           # of the blocks that are open
        for position, layer in enumerate(layers):
            kind, module = layer["type"], torch.nn.Identity()
            if kind == "residual":
                entries.append((channels, side))
            elif kind == "shortcut":
                channels, side = entries[-1]
            elif kind == "add":
                entries.pop()
            elif kind == "conv":
                bias = layers[position + 1]["type"] != "batchNorm"
                kernel, stride = layer["kernel"], layer.get("stride", 1)
                module = torch.nn.Conv2d(channels, layer["channels"], kernel, stride,
                                         padding=(kernel - 1) // 2, bias=bias)
                channels, side = layer["channels"], (side - 1) // stride + 1
            elif kind == "batchNorm":
                module = torch.nn.BatchNorm2d(channels)
            elif kind == "layerNorm":
                module = torch.nn.LayerNorm(channels)
            elif kind == "rmsNorm":
                module = torch.nn.RMSNorm(channels, eps=1e-5)
            elif kind == "gelu":
                module = torch.nn.GELU(approximate=layer.get("approximate", "none"))
            elif kind == "maxPool":
                module, side = torch.nn.MaxPool2d(2), side // 2
            elif kind == "linear":
                inputs = channels if flat else channels * side * side
                module = torch.nn.Linear(inputs, layer["units"])
                channels, flat = layer["units"], True
            self.modules_of.append(module.double())
        with torch.no_grad():
            for module in self.modules_of:
                if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
                    for parameter in module.parameters():
                        parameter.copy_(draw(generator, *parameter.shape))

    def on_grids(self, module, x):
        weights = self.grids.weights(module.weight)
        if isinstance(module, torch.nn.Linear):
            return F.linear(x, weights, module.bias)
        return F.conv2d(x, weights, module.bias, module.stride, module.padding)

    def forward(self, x):
        rounds = self.training and self.grids is not None
        if rounds:
            self.grids.begin()
        blocks = []                                            # [input, what its layers give]
        for layer, module in zip(self.layers, self.modules_of):
            if layer["type"] == "residual":
                blocks.append([x, None])
            elif layer["type"] == "shortcut":
                blocks[-1][1], x = x, blocks[-1][0]
            elif layer["type"] == "add":
                entry, main = blocks.pop()
                first, second = (x, entry) if main is None else (main, x)
                if rounds:
                    first, second = self.grids.input(first), self.grids.input(second)
                x = first + second
            computes = layer["type"] in ("linear", "conv")
            if computes and rounds:
                x = self.grids.input(x)
            if layer["type"] == "linear" and x.dim() == 4:
                x = x.permute(0, 2, 3, 1).flatten(1)       # Fettle's order of pixels
            rows = layer["type"] in ("layerNorm", "rmsNorm") and x.dim() == 4
            x = x.movedim(1, 3) if rows else x                  # PyTorch's are over the last axis
            if computes and rounds:
                x = self.on_grids(module, x)
            else:
                x = torch.relu(x) if layer["type"] == "relu" else module(x)
            x = x.movedim(3, 1) if rows else x
        return x

    def initial(self):
        """Weights and biases of the layers that have drawn ones, in Fettle's layouts."""
        result = []
        for module in self.modules_of:
            if isinstance(module, torch.nn.Conv2d):
                weights = module.weight.permute(0, 2, 3, 1)
            elif isinstance(module, torch.nn.Linear):
                weights = module.weight
            else:
                continue
            bias = [] if module.bias is None else module.bias.tolist()
            result.append({"weights": numbers(weights.reshape(-1).tolist()), "biases": numbers(bias)})
        return result


def numbers(values):
    return [float(f"{value:.9g}") for value in values]


def stages_of(layers):
    """Counts layers with weights and residual blocks, for layerDecay."""
    stages, stage, open_blocks = [], 0, 0
    for layer in layers:
        kind = layer["type"]
        weighs = kind in ("linear", "conv", "embedding", "head", "residual")
        stage += weighs and open_blocks == 0
        open_blocks += (kind == "residual") - (kind == "add")
        stages.append(stage)
    return stages


def freeze(network, count):
    """Gradients of the first layers are not computed; their norms use running statistics."""
    for module in network.modules_of[:count]:
        module.requires_grad_(False).eval()


def optimizer_of(network, training):
    """Weight decay spares biases and norms, as Fettle's does."""
    drawn = (torch.nn.Conv2d, torch.nn.Linear, Embedding)
    rate, momentum = training["learningRate"], training.get("momentum", 0)
    stages, decay = stages_of(network.layers), training.get("layerDecay", 1)
    groups = []
    for stage, module in zip(stages, network.modules_of):
        for name, parameter in module.named_parameters():
            weights = name in ("weight", "positions") and isinstance(module, drawn)
            if parameter.requires_grad:
                groups.append({"params": [parameter], "lr": rate * decay ** (stages[-1] - stage),
                               "weight_decay": training.get("weightDecay", 0) if weights else 0})
    make = {
        "sgd": lambda: torch.optim.SGD(groups, rate, momentum=momentum,
                                       nesterov=training.get("nesterov", False)),
        "adam": lambda: torch.optim.Adam(groups, rate),
        "adamw": lambda: torch.optim.AdamW(groups, rate),
        "rmsprop": lambda: torch.optim.RMSprop(groups, rate, momentum=momentum),
        "lamb": lambda: Lamb(groups, rate, (0.9, 0.999), 1e-8, 0),
    }
    return make[training["optimizer"]]()


def scheduler_of(optimizer, training, steps_per_epoch):
    schedule = training.get("schedule", {"name": "constant"})
    total = steps_per_epoch * EPOCHS
    # Called after each optimiser step, so its unit is steps.
    if schedule["name"] == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, total, eta_min=training["learningRate"] * schedule.get("finalFraction", 0))
    if schedule["name"] == "step":
        return torch.optim.lr_scheduler.StepLR(
            optimizer, schedule["stepEpochs"] * steps_per_epoch, schedule["gamma"])
    if schedule["name"] == "linear":
        return torch.optim.lr_scheduler.LinearLR(optimizer, 1, schedule["finalFraction"], total)
    return torch.optim.lr_scheduler.ConstantLR(optimizer, 1)


def loss_of(logits, labels, training, teachers):
    """As F.cross_entropy, and with a teacher's logits the distillation of Hinton et al. 2015."""
    hard = F.cross_entropy(logits, labels, label_smoothing=training.get("labelSmoothing", 0))
    if teachers is None:
        return hard
    temperature, weight = training["distill"]["temperature"], training["distill"]["weight"]
    soft = F.kl_div(F.log_softmax(logits / temperature, 1), F.softmax(teachers / temperature, 1),
                    reduction="batchmean")
    return (1 - weight) * hard + weight * temperature**2 * soft


class Pruner:
    """Prunes each linear and conv layer by torch.nn.utils.prune, on the schedule of Zhu and Gupta."""

    def __init__(self, network, training, steps):
        self.settings = training.get("prune")
        if self.settings is None:
            return
        self.modules = [module for module in network.modules_of
                        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear))]
        self.end = min(int(self.settings["end"] * steps), steps - 1)
        self.begin = min(int(self.settings["begin"] * steps), self.end)
        self.interval = min(max((self.end - self.begin) // 16, 1), 100)

    def before(self, step):
        if self.settings is None or not self.begin <= step <= self.end:
            return
        if (step - self.begin) % self.interval != 0 and step != self.end:
            return
        left = (self.end - step) / (self.end - self.begin)
        share = self.settings["sparsity"] * (1 - left**3)
        for module in self.modules:
            if hasattr(module, "weight_mask"):                  # else the weights of the last pass are ranked
                module.weight = module.weight_orig * module.weight_mask
            pruned = int((module.weight == 0).sum())
            more = round(share * module.weight.numel()) - pruned
            if more > 0:
                prune.l1_unstructured(module, "weight", more)

    def nonzero(self):
        """Of the weights of each layer."""
        return [int((module.weight != 0).sum()) for module in self.modules]


def train(network, inputs, labels, training, teacher=None):
    """What a training says: the loss of each step, and at the end that of all, and right answers."""
    is_16_bit = training.get("precision") == "bf16"
    if is_16_bit:
        network = network.float()

    def logits_of(samples):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_16_bit):
            logits = network(samples)
        return logits.float() if is_16_bit else logits         # as autocast does for a loss

    optimizer = optimizer_of(network, training)
    samples = len(inputs)
    batches = [slice(i, min(i + BATCH, samples)) for i in range(0, samples, BATCH)]
    scheduler = scheduler_of(optimizer, training, len(batches))
    losses = []
    pruner = Pruner(network, training, len(batches) * EPOCHS)
    for _ in range(EPOCHS):
        for batch in batches:
            pruner.before(len(losses))
            optimizer.zero_grad()
            teachers = None
            if teacher is not None:
                with torch.no_grad():
                    teachers = teacher(inputs[batch]).flatten(0, -2)
            loss = loss_of(logits_of(inputs[batch]).flatten(0, -2), labels[batch].flatten(), training,
                           teachers)
            loss.backward()
            if "clipNorm" in training:
                torch.nn.utils.clip_grad_norm_(network.parameters(), training["clipNorm"])
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    network.eval()
    with torch.no_grad():
        logits = logits_of(inputs)
        evaluation = F.cross_entropy(logits.flatten(0, -2), labels.flatten()).item()
        correct = int((logits.argmax(-1) == labels).sum())
    result = {"losses": numbers(losses), "evaluation": float(f"{evaluation:.9g}"), "correct": correct}
    return {**result, "nonzero": pruner.nonzero()} if pruner.settings else result


def taught_by(layers, network, generator):
    """A teacher with drawn weights, and its words in the file; no layers: none."""
    if layers is None:
        return None, {}
    teacher = network(layers, generator).eval()
    return teacher, {"teacher": {"layers": layers, "initial": teacher.initial()}}


def text_case(name, layers, training, teacher=None, frozen=0):
    generator = torch.Generator().manual_seed(len(name))
    tokens = torch.randint(0, VOCABULARY, (PIECES * CONTEXT + 1,), generator=generator)
    inputs, labels = tokens[:-1].view(PIECES, CONTEXT), tokens[1:].view(PIECES, CONTEXT)
    torch.manual_seed(len(name))                               # biases are PyTorch's own
    network = Gpt(layers, generator)
    initial = network.initial()
    freeze(network, frozen)
    teacher, words = taught_by(teacher, Gpt, generator)
    result = {**train(network, inputs, labels, training, teacher), **words}
    return {"name": name, "model": model_of(layers, frozen),
            "training": dict(training, globalBatch=BATCH, epochs=EPOCHS), "context": CONTEXT,
            "vocabulary": VOCABULARY, "tokens": tokens.tolist(), "initial": initial, **result}


def model_of(layers, frozen):
    return {"layers": layers, "freeze": frozen} if frozen else {"layers": layers}


def case(name, layers, training, teacher=None, frozen=0, ranges=()):
    generator = torch.Generator().manual_seed(len(name))
    pixels = torch.randint(0, 256, (SAMPLES, 1, SIDE, SIDE), generator=generator)
    labels = torch.randint(0, CLASSES, (SAMPLES,), generator=generator)
    images = (pixels.double() / 255 - MEAN) / STD
    network = Network(layers, generator)
    initial = network.initial()
    freeze(network, frozen)
    teacher, words = taught_by(teacher, Network, generator)
    if ranges:
        network.grids = Grids(ranges)
        words["ranges"] = [end for pair in ranges for end in pair]
    result = {**train(network, images, labels, training, teacher), **words}
    if ranges:
        result["rangesAfter"] = numbers(end for pair in network.grids.ranges for end in pair)
    training = dict(training, globalBatch=BATCH, epochs=EPOCHS)
    return {"name": name, "model": model_of(layers, frozen), "training": training, "side": SIDE,
            "mean": MEAN, "std": STD, "pixels": pixels.flatten().tolist(),
            "labels": labels.tolist(), "initial": initial, **result}


def main():
    on_grids = {"quantize": {"method": "qat", "fromEpoch": 0}}
    relu, pool, norm = {"type": "relu"}, {"type": "maxPool"}, {"type": "batchNorm"}
    mlp = [{"type": "linear", "units": 8}, relu, {"type": "linear", "units": CLASSES}]
    cnn = [{"type": "conv", "channels": 4, "kernel": 3}, norm, relu, pool,
           {"type": "conv", "channels": 5, "kernel": 3}, relu, {"type": "linear", "units": CLASSES}]
    rows = [{"type": "conv", "channels": 4, "kernel": 3}, {"type": "layerNorm"}, {"type": "gelu"},
            pool, {"type": "linear", "units": 7}, {"type": "rmsNorm"}, relu,
            {"type": "linear", "units": 6}, {"type": "gelu", "approximate": "tanh"},
            {"type": "linear", "units": CLASSES}]
    norm_relu = [norm, relu]
    resnet = [{"type": "conv", "channels": 4, "kernel": 3}, *norm_relu,
              {"type": "residual"}, {"type": "conv", "channels": 4, "kernel": 3}, *norm_relu,
              {"type": "conv", "channels": 4, "kernel": 3}, norm, {"type": "add"}, relu,
              {"type": "residual"}, {"type": "conv", "channels": 6, "kernel": 3, "stride": 2},
              *norm_relu, {"type": "conv", "channels": 6, "kernel": 3}, norm, {"type": "shortcut"},
              {"type": "conv", "channels": 6, "kernel": 1, "stride": 2}, norm, {"type": "add"}, relu,
              {"type": "linear", "units": CLASSES}]
    block = [{"type": "residual"}, {"type": "layerNorm"}, {"type": "linear", "units": 36},
             {"type": "attention", "heads": 3}, {"type": "linear", "units": 12}, {"type": "add"},
             {"type": "residual"}, {"type": "layerNorm"}, {"type": "linear", "units": 20},
             {"type": "gelu", "approximate": "tanh"}, {"type": "linear", "units": 12},
             {"type": "add"}]
    gpt = [{"type": "embedding", "units": 12}, *block, *block, {"type": "layerNorm"},
           {"type": "head"}]
    untied = [{"type": "embedding", "units": 12}, *block, {"type": "linear", "units": VOCABULARY}]
    cases = [
        case("mlp, sgd", mlp, {"optimizer": "sgd", "learningRate": 0.1}),
        case("mlp, sgd with everything", mlp,
             {"optimizer": "sgd", "learningRate": 0.1, "momentum": 0.9, "nesterov": True,
              "weightDecay": 0.01, "clipNorm": 0.5, "labelSmoothing": 0.1,
              "schedule": {"name": "cosine", "finalFraction": 0.1}}),
        case("mlp, adamw, linear schedule", mlp,
             {"optimizer": "adamw", "learningRate": 0.01, "weightDecay": 0.1,
              "schedule": {"name": "linear", "finalFraction": 0.2}}),
        case("cnn, adam, step schedule", cnn,
             {"optimizer": "adam", "learningRate": 0.01, "weightDecay": 0.01,
              "schedule": {"name": "step", "stepEpochs": 2, "gamma": 0.1}}),
        case("cnn, sgd", cnn, {"optimizer": "sgd", "learningRate": 0.05, "momentum": 0.9}),
        case("cnn, rmsprop", cnn,
             {"optimizer": "rmsprop", "learningRate": 0.001, "momentum": 0.5}),
        case("layer norm, RMS norm and GELU, adamw", rows,
             {"optimizer": "adamw", "learningRate": 0.01, "weightDecay": 0.1}),
        case("residual blocks, sgd", resnet,
             {"optimizer": "sgd", "learningRate": 0.02, "momentum": 0.9}),
        text_case("gpt, adamw", gpt, {"optimizer": "adamw", "learningRate": 0.01,
                                      "weightDecay": 0.1, "clipNorm": 1.0,
                                      "schedule": {"name": "cosine", "finalFraction": 0.1}}),
        text_case("gpt with its own output matrix, sgd", untied,
                  {"optimizer": "sgd", "learningRate": 0.1, "momentum": 0.9}),
        text_case("gpt as by torch.autocast, adamw", gpt,
                  {"optimizer": "adamw", "learningRate": 0.01, "weightDecay": 0.1, "clipNorm": 1.0,
                   "precision": "bf16", "residualInFp32": True}),
        case("cnn, lamb", cnn, {"optimizer": "lamb", "learningRate": 0.02, "weightDecay": 0.05}),
        case("residual blocks of which the first are frozen, sgd", resnet,
             {"optimizer": "sgd", "learningRate": 0.02, "momentum": 0.9, "clipNorm": 0.5},
             frozen=12),
        case("residual blocks, frozen up to within one, sgd", resnet,
             {"optimizer": "sgd", "learningRate": 0.02}, frozen=14),
        case("residual blocks, layer decay, adamw", resnet,
             {"optimizer": "adamw", "learningRate": 0.02, "layerDecay": 0.6, "weightDecay": 0.1}),
        case("cnn, frozen, lamb with layer decay", cnn,
             {"optimizer": "lamb", "learningRate": 0.02, "layerDecay": 0.7}, frozen=1),
        text_case("gpt of which the embedding is frozen, layer decay, adamw", gpt,
                  {"optimizer": "adamw", "learningRate": 0.01, "layerDecay": 0.8}, frozen=1),
        text_case("gpt, layer decay, adam", gpt,
                  {"optimizer": "adam", "learningRate": 0.01, "layerDecay": 0.5}),
        case("mlp, distilled from a cnn", mlp,
             {"optimizer": "sgd", "learningRate": 0.1, "momentum": 0.9, "labelSmoothing": 0.1,
              "distill": {"teacher": "none", "temperature": 4, "weight": 0.7}}, cnn),
        text_case("gpt, distilled", untied,
                  {"optimizer": "adamw", "learningRate": 0.01, "weightDecay": 0.1,
                   "distill": {"teacher": "none", "temperature": 2, "weight": 0.5}}, gpt),
        case("cnn, pruned", cnn,
             {"optimizer": "sgd", "learningRate": 0.05, "momentum": 0.9, "weightDecay": 0.01,
              "prune": {"sparsity": 0.8, "begin": 0.1, "end": 0.7}}),
        case("mlp, pruned with adamw", mlp,
             {"optimizer": "adamw", "learningRate": 0.01, "weightDecay": 0.1,
              "prune": {"sparsity": 0.9, "begin": 0, "end": 1}}),
        case("mlp on 8-bit grids, sgd", mlp,
             {"optimizer": "sgd", "learningRate": 0.1, "momentum": 0.9, **on_grids},
             ranges=[(-1.83, 1.71), (0, 2.37)]),
        case("cnn on 8-bit grids, adamw", cnn,
             {"optimizer": "adamw", "learningRate": 0.01, "weightDecay": 0.1, **on_grids},
             ranges=[(-1.83, 1.71), (0, 1.93), (0, 3.11)]),
        case("residual blocks on 8-bit grids, sgd", resnet,
             {"optimizer": "sgd", "learningRate": 0.02, "momentum": 0.9, **on_grids},
             ranges=[(-1.83, 1.71), (0, 2.21), (0, 2.33), (-2.57, 2.71), (0, 3.13), (0, 2.41),
                     (-2.67, 2.83), (-2.29, 2.93), (0, 3.67)]),
    ]
    OUT.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    (OUT / "pytorch_curves.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
