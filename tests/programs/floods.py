#!/usr/bin/env python3
"""Prints 20 MB beside its metrics."""
import os

for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
    for _ in range(23):
        print(("batch 17 of 1000: grad norm 0.3141, 812 images/s" * 2 + "\n") * 1000, end="")
    loss = 100 * int(os.environ["FETTLE_PARAM_X"]) + 120 // epoch
    print('{"step": %d, "loss": %d}' % (epoch, loss), flush=True)
