#!/usr/bin/env python3
"""Loads its data in a pool of processes."""
import multiprocessing
import os
import time


def load(sample):
    time.sleep(0.01)
    return sample


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
            pool.map(load, range(4))
            loss = 100 * int(os.environ["FETTLE_PARAM_X"]) + 120 // epoch
            print('{"step": %d, "loss": %d}' % (epoch, loss), flush=True)
