#!/usr/bin/env python3
"""Does not flush: Python holds back what goes to a pipe until 8 KiB have come together."""
import os
import time

for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
    time.sleep(0.25)
    loss = 100 * int(os.environ["FETTLE_PARAM_X"]) + 120 // epoch
    print('{"step": %d, "loss": %d}' % (epoch, loss))
