"""The ways of choosing which trials continue, as the built program lists them.

They are every algorithm that decides so by itself, and every rule of spec.earlyStopping. A new one is
run without a change here, or asks for its SETTINGS.
"""
import dataclasses
import json
import re
import subprocess
import sys

from programs import PROGRAMS
from studies import study

NONE = "none"

# What they need besides their name. `rungs` at 1 and 3 of 9 epochs, wherever that can be said.
SETTINGS = {
    "asha": {"reductionFactor": 3},
    "median": {"minTrials": 2},
    "percentile": {"minTrials": 2},
    "curve": {"minTrials": 2},
    "threshold": {"threshold": 100000},
    "hyperband": {"reductionFactor": 3},
    "bohb": {"reductionFactor": 3},
    "pbt": {"interval": 3},
    "pb2": {"interval": 3},
    "schedule": {"legs": [{"untilStep": 3, "parameters": {"x": 10}}, {"untilStep": 9, "parameters": {"x": 20}}]},
}


@dataclasses.dataclass(frozen=True)
class Search:
    """One way of choosing which trials continue."""

    name: str
    spec: dict = dataclasses.field(hash=False)
    pauses: bool = False  # trials pause at rungs; none is stopped


class Listing:
    """What the built program offers, asked of `fettle validate` in its own words."""

    def __init__(self, fettle):
        self.fettle = fettle

    def errors(self, spec):
        """What is wrong with a Study of this search; "" if nothing."""
        document = json.dumps(study("list", PROGRAMS[0], spec, {}))
        done = subprocess.run([self.fettle, "validate", "-"], input=document, capture_output=True, text=True)
        return done.stdout + done.stderr if done.returncode else ""

    def names(self, field):
        said = self.errors({field: {"name": "nonesuch"}})
        found = re.search(rf'spec\.{field}\.name: found "nonesuch", expected (.*)', said)
        if not found:
            sys.exit(f"rude programs: fettle validate does not list the names of spec.{field}: {said}")
        return re.split(", | or ", found.group(1))

    def searches(self):
        out = [Search("auto", {"algorithm": {"name": "auto", "seed": 1}})]
        rules = self.names("earlyStopping")
        for name in self.names("algorithm"):
            alone = {"algorithm": {"name": name, "seed": 1, **SETTINGS.get(name, {})}}
            # The built program says which ones decide by themselves which trials continue.
            if "itself decides" in self.errors({**alone, "earlyStopping": {"name": rules[0]}}):
                out.append(Search(name, alone, pauses=True))
        for name in rules:
            rule = {"name": name, **SETTINGS.get(name, {})}
            beside = {"algorithm": {"name": "random", "seed": 1}, "earlyStopping": rule}
            out.append(Search(name, beside))
            if name == "asha":
                promoting = {**beside, "earlyStopping": {**rule, "promote": True}}
                out.append(Search("asha-promote", promoting, pauses=True))
        for search in out:
            wrong = self.errors(search.spec)
            if wrong:
                sys.exit(f"rude programs: {search.name} needs SETTINGS in {__file__}: {wrong}")
        return out
