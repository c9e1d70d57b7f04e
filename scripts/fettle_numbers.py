"""What fettle-trainer starts from, for a program that is to do the same training: the order of samples (base/philox.h,
trainer/data/split.cpp) and the weights of a checkpoint (trainer/checkpoint/checkpoint.h). Needs no package."""

import array
import json
import pathlib
import struct

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
SPLIT, EPOCH = 0x73706C6974, 0x65706F6368                   # what a permutation is for
ALIGNED = 16                                                # floats: blocks of parameters begin on 64 bytes
HEADER = 32                                                 # bytes of a checkpoint before its metadata


def philox(counter, key):
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (p1 >> 32) ^ b ^ k0, p1 & MASK32, (p0 >> 32) ^ d ^ k1, p0 & MASK32
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return a, b, c, d


def mix_keys(a, b):
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def draws(key):
    """64 bits each, in order."""
    halves, count = (key & MASK32, key >> 32), 0
    while True:
        a, b, c, d = philox((count & MASK32, count >> 32, 0, 0), halves)
        yield a | (b << 32)
        yield c | (d << 32)
        count += 1


def permutation(n, key):
    order, bits = list(range(n)), draws(key)
    for i in range(n, 1, -1):
        drawn = next(bits)
        while drawn < ((1 << 64) - i) % i:                  # unbiased, by rejection
            drawn = next(bits)
        order[i - 1], order[drawn % i] = order[drawn % i], order[i - 1]
    return order


def split(count, held_out, seed=0):
    """Training samples, validation samples."""
    order = permutation(count, mix_keys(seed, SPLIT))
    return order[held_out:], order[:held_out]


def epoch_order(train, seed, epoch):
    return [train[i] for i in permutation(len(train), mix_keys(mix_keys(seed, EPOCH), epoch))]


def read_weights(path):
    """The flat array of a checkpoint's parameters."""
    file = pathlib.Path(path).read_bytes()
    magic, version, metadata_bytes = struct.unpack_from("<8sII", file)
    if magic != b"FETTLECP" or version != 1:
        raise ValueError(f"{path} is no checkpoint of fettle-trainer, version 1")
    metadata = json.loads(file[HEADER:HEADER + metadata_bytes])
    weights = array.array("f")
    weights.frombytes(file[HEADER + metadata_bytes:][:4 * metadata["arrays"][0]])  # the first array, fp32
    return weights


def blocks(sizes, begin=0):
    """Offsets of consecutive blocks of these numbers of floats, and the offset after the last."""
    places = []
    for size in sizes:
        places.append(begin)
        begin = -(-(begin + size) // ALIGNED) * ALIGNED
    return places, begin


def write_npy(path, kind, shape, values):
    """`kind`: |u1 for bytes."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def read_npy(path):
    """The bytes of an array of them, without the header."""
    file = pathlib.Path(path).read_bytes()
    return file[10 + struct.unpack_from("<H", file, 8)[0]:]
