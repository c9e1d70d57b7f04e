#!/usr/bin/env python3
"""8-bit networks in onnxruntime, against fettle-trainer --predict --int8.

Trains a little on random samples with training.quantize, exports the 8-bit network, and compares the largest logit of
1,000 samples: onnxruntime agrees with the trainer on 99.5 % of them. With its optimisation off it computes in fp32 on
the same numbers as the trainer; with it, in 8-bit integers. CASE:qat trains on these numbers from the beginning.

With --fashion-mnist: accuracy, size and speed against fp32 and against onnxruntime's quantize_static.

Usage: int8.py FETTLE_TRAINER [CASE...]   (with the Python of scripts/interop_python.sh)
       int8.py FETTLE_TRAINER --fashion-mnist [EPOCHS [BITS]]
"""

import collections
import gzip
import pathlib
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from interop import CASES, SAMPLES, Workshop
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")  # Debian: dataset-fashion-mnist
AGREEMENT = 0.995
# x86 processors without VNNI add two products of unsigned and signed bytes in 16 bits, which overflows: 7 bits do not.
QUANTIZE = {"weightBits": 7}
CHOSEN = ["fashion-mnist", "mlp", "list", "bottleneck", "norms", "char-gpt", "fashion-mnist:qat", "char-gpt:qat"]
# Operators that compute with integers, among them onnxruntime's own.
INTEGER = {"QLinearConv", "MatMulInteger", "MatMulIntegerToFloat", "QLinearMatMul", "QGemm", "ConvInteger"}


class Int8Workshop(Workshop):
    """Trains with training.quantize."""

    def __init__(self, trainer, folder, training=None):
        super().__init__(trainer, folder)
        self.training = {"quantize": QUANTIZE, **(training or {})}

    def export(self, *options):
        path = self.folder / ("int8.onnx" if options else "fp32.onnx")
        self.run("--export", path, "--format", "onnx", "--checkpoints", self.folder / "kept", "--force", *options)
        onnx.checker.check_model(path, full_check=True)
        return path

    def logits(self, *options):
        """Of the validation samples, and the accuracy on them."""
        path = self.folder / "logits.npy"
        answer = self.run("--predict", path, "--checkpoints", self.folder / "kept", *options)
        return np.load(path), answer["validation_accuracy"]


def session_of(path, optimised=True, precise=False):
    """`precise`: without the 16-bit sums of x86 processors that lack VNNI."""
    options = onnxruntime.SessionOptions()
    if precise:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        options.optimized_model_filepath = str(path) + ".optimised"
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def answer(session, inputs):
    sides = session.get_inputs()[0].shape[1:]
    inputs = inputs.reshape(len(inputs), *sides)
    return np.concatenate([session.run(None, {"input": inputs[i:i + 100]})[0] for i in range(0, len(inputs), 100)])


def operators(path):
    """How many of each that compute with integers onnxruntime has made of the model."""
    nodes = onnx.load(str(path) + ".optimised").graph.node
    return dict(collections.Counter(node.op_type for node in nodes if node.op_type in INTEGER))


def agreement(logits, expected):
    return float((logits.argmax(-1) == expected.argmax(-1)).mean())


def check(trainer, name):
    case, _, method = name.partition(":")
    model, shape, kind, classes = CASES[case]
    training = {"quantize": {**QUANTIZE, "method": method, "fromEpoch": 0}} if method else None
    with tempfile.TemporaryDirectory() as folder:
        shop = Int8Workshop(trainer, folder, training)
        data = shop.images(shape, kind, classes) if shape else shop.text()
        shop.train(model, data)
        expected, accuracy = shop.logits("--int8")
        _, in_fp32 = shop.logits()
        inputs = shop.inputs(data)
        assert len(inputs) == SAMPLES
        path = shop.export("--int8")
        plain = agreement(answer(session_of(path, optimised=False), inputs), expected)
        fast = agreement(answer(session_of(path), inputs), expected)
        found = operators(path)
        print(f"{name}: same argmax {plain:.2%} in fp32 on the grid, {fast:.2%} in integers {found}; "
              f"accuracy {accuracy:.3f}, fp32 {in_fp32:.3f}", flush=True)
        assert plain >= AGREEMENT and fast >= AGREEMENT, (name, plain, fast)
        assert found, f"{name}: onnxruntime computes nothing with integers"


# ---- Fashion-MNIST: accuracy, size and speed against fp32 and against onnxruntime's own quantisation ----------------


class Reader(quantization.CalibrationDataReader):
    def __init__(self, inputs):
        self.batches = iter([{"input": inputs[i:i + 64]} for i in range(0, len(inputs), 64)])

    def get_next(self):
        return next(self.batches, None)


def milliseconds(session, inputs, batch):
    """Median time of a call with `batch` samples, on one thread."""
    times = []
    end = time.monotonic() + 3
    while time.monotonic() < end:
        start = time.perf_counter()
        session.run(None, {"input": inputs[:batch]})
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def idx(path):
    raw = np.frombuffer(gzip.decompress(pathlib.Path(path).read_bytes()), np.uint8)
    sides = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i].tobytes(), "big") for i in range(raw[3])]
    return raw[4 + 4 * len(sides):].reshape(sides)


def fashion_mnist(trainer, epochs, bits):
    files = {key: str(FASHION_MNIST / f"{name}-ubyte.gz") for key, name in
             [("trainImages", "train-images-idx3"), ("trainLabels", "train-labels-idx1"),
              ("testImages", "t10k-images-idx3"), ("testLabels", "t10k-labels-idx1")]}
    data = {"format": "idx", "trainSamples": 12000, "validationSamples": 4000, **files}
    images, labels = idx(files["testImages"])[..., None], idx(files["testLabels"])
    with tempfile.TemporaryDirectory() as scratch:
        shop = Int8Workshop(trainer, scratch, {"epochs": epochs, "learningRate": 0.002,
                                               "quantize": {"weightBits": bits}})
        shop.train(CASES["fashion-mnist"][0], data)
        fp32, int8 = shop.export(), shop.export("--int8")
        theirs = shop.folder / "theirs.onnx"
        calibration = idx(files["trainImages"])[:512, ..., None]
        prepared = shop.folder / "prepared.onnx"  # with its batch norms folded
        quant_pre_process(str(fp32), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(prepared, theirs, Reader(calibration), reduce_range=bits == 7, per_channel=True,
                                     activation_type=quantization.QuantType.QUInt8)
        _, validation = shop.logits()
        _, validation8 = shop.logits("--int8")
        print(f"4,000 validation samples, the trainer: fp32 {validation:.4f}, 8 bits {validation8:.4f}")
        accuracy = {}
        for name, path in [("fp32", fp32), ("int8", int8), ("theirs", theirs)]:
            session = session_of(path, precise=bits == 8)
            accuracy[name] = float((answer(session, images).argmax(-1) == labels).mean())
            one, many = (milliseconds(session, images, batch) for batch in (1, 256))
            print(f"{name}: {path.stat().st_size:,} bytes, accuracy {accuracy[name]:.4f} of 10,000 test samples, "
                  f"{one:.3f} ms for 1 sample, {many:.2f} ms for 256", operators(path), flush=True)
        size = int8.stat().st_size / fp32.stat().st_size
        print(f"size {size:.3f} of fp32's")
        # A quarter, beside names, nodes and the description, which are alike.
        assert int8.stat().st_size <= 0.25 * fp32.stat().st_size + 8192, size
        assert accuracy["int8"] >= accuracy["fp32"] - 0.003, accuracy
        assert accuracy["int8"] >= accuracy["theirs"] - 0.002, accuracy


def main():
    trainer, chosen = sys.argv[1], sys.argv[2:]
    if chosen[:1] == ["--fashion-mnist"]:
        given = [int(number) for number in chosen[1:]]
        return fashion_mnist(trainer, *given, *[4, 7][len(given):])
    for name in chosen or CHOSEN:
        check(trainer, name)
    return None


if __name__ == "__main__":
    main()
