#!/usr/bin/env python3
"""Classifies the 10,000 test images of Fashion-MNIST by networks that `fettle export-model --format onnx` wrote.

    python3 classify.py MODEL.onnx ...            (pip install onnxruntime numpy)

Prints each one's accuracy, size, and time for a single image. The files take bytes as they are: normalisation is
part of the network.
"""

import gzip
import pathlib
import statistics
import sys
import time

import numpy as np
import onnxruntime

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def read(name, header):
    return np.frombuffer(gzip.decompress((DATA / name).read_bytes()), np.uint8, offset=header)


def milliseconds(session, image):
    times = []
    for _ in range(300):
        began = time.perf_counter()
        session.run(None, {"input": image})
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def main():
    images = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28, 1)
    labels = read("t10k-labels-idx1-ubyte.gz", 8)
    for path in sys.argv[1:]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        (logits,) = session.run(None, {"input": images})
        accuracy = np.mean(logits.argmax(axis=1) == labels)
        print(f"{path}: {100 * accuracy:.2f} %, {pathlib.Path(path).stat().st_size:,} bytes, "
              f"{milliseconds(session, images[:1]):.3f} ms for an image")  # fmt: skip


if __name__ == "__main__":
    main()
