#!/usr/bin/env python3
"""Does not flush: Python holds back what goes to a pipe until 8 KiB have come together.

Each epoch takes until fettle has its line, so what is held back is never followed by more.
"""
import os
import pathlib
import time

log = pathlib.Path(os.environ["FETTLE_TRIAL"]).with_name("output.log")
for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
    loss = 100 * int(os.environ["FETTLE_PARAM_X"]) + 120 // epoch
    line = '{"step": %d, "loss": %d}' % (epoch, loss)
    print(line)
    while line not in log.read_text():
        time.sleep(0.02)
