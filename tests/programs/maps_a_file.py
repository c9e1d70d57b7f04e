#!/usr/bin/env python3
"""Maps a data set that is larger than its memory limit, and reads it."""
import mmap
import os
import time

with open("samples", "ab") as file:
    file.truncate(96 << 20)
with open("samples", "rb") as file:
    samples = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
    read = sum(samples[page] for page in range(0, len(samples), mmap.PAGESIZE))
    time.sleep(0.06)
    loss = 100 * int(os.environ["FETTLE_PARAM_X"]) + 120 // epoch + read
    print('{"step": %d, "loss": %d}' % (epoch, loss), flush=True)
