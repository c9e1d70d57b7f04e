#!/usr/bin/env python3
"""Prints a tensor of 10 MB on one line."""
import os
import time

print("[" + "0.1234567, " * 1_000_000 + "]")
for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
    time.sleep(0.03)
    loss = 100 * int(os.environ["FETTLE_PARAM_X"]) + 120 // epoch
    print('{"step": %d, "loss": %d}' % (epoch, loss), flush=True)
