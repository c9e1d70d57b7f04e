"""A script as people write them: arguments, one training, one line at the end."""

import argparse
import json

from torch_trial import train

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--seconds", type=float, required=True)
options = parser.parse_args()
print(json.dumps({"loss": train(options.lr, 7, options.seconds)}), flush=True)
