#!/usr/bin/env python3
"""Redraws one line an epoch, as tqdm does: only what is drawn last is the epoch's loss."""
import os
import time

x = int(os.environ["FETTLE_PARAM_X"])
for epoch in range(1, int(os.environ["FETTLE_UNTIL_STEP"]) + 1):
    for batch in range(1, 41):
        loss = 100 * x + 120 // epoch + 1000 * (40 - batch)
        bar = "█" * (batch // 4)
        percent = batch * 100 // 40
        print(f"\repoch {epoch}: {percent:3}%|{bar:10}| {batch}/40 [loss={loss}]", end="", flush=True)
    print()
    time.sleep(0.03)
