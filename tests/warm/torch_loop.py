"""The same with fettle.trials(): torch_loop.py SECONDS"""

import sys

import fettle
from torch_trial import train

for trial in fettle.trials():
    with trial:
        trial.report(1, loss=train(trial["lr"], 7, float(sys.argv[1])))
