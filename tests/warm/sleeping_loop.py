"""The stub worker with fettle.trials(): sleeping_loop.py SECONDS [LOG_FOLDER]"""

import os
import sys
import time

import fettle

log = open(f"{sys.argv[2]}/{os.getpid()}", "w", buffering=1) if len(sys.argv) > 2 else open(os.devnull, "w")
for trial in fettle.trials():
    log.write(f"begin {trial.name} {time.monotonic():.9f}\n")
    with trial:
        time.sleep(float(sys.argv[1]))
        trial.report(1, loss=0.5)
    log.write(f"end {trial.name} {time.monotonic():.9f}\n")
