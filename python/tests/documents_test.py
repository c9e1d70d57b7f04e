#!/usr/bin/env python3
"""The snippets of docs/python.md and README.md run as they are printed."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from program import ENVIRONMENT, PACKAGE, PROGRAM, InAFolder

DOCUMENT = PACKAGE.parent / "docs" / "python.md"
STUDY = """
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: documented}
spec:
  objectives: [{metric: loss, direction: Minimize}]
  parameters:
  - {name: rate, type: Double, min: 1e-3, max: 1, scale: Log}
  resource: {unit: epoch, max: 9}
  budget: {trials: 6, parallelism: 2}
  trial:
    execution: Warm
    template:
      spec:
        containers:
        - {name: train, command: [%s, train.py]}
"""


def snippets(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


class Documents(InAFolder):
    def run_snippet(self, text):
        pathlib.Path("train.py").write_text(text)
        done = subprocess.run([sys.executable, "train.py"], env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_function(self):
        function = snippets(DOCUMENT)[0]
        best = float(self.run_snippet(function).split()[0])
        self.assertLess(best, 0.5)

    def test_ask_and_tell(self):
        said = self.run_snippet(snippets(DOCUMENT)[1])
        self.assertEqual(said.split()[0], "0.0")  # the point that was enqueued

    def test_the_program_alone_and_in_a_warm_worker(self):
        self.assertEqual(self.run_snippet(snippets(DOCUMENT)[2]), "")
        pathlib.Path("study.yaml").write_text(STUDY % sys.executable)
        done = subprocess.run([PROGRAM, "run", "study.yaml"], env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "Best: loss -0.2")
        self.assertTrue(os.listdir(".fettle/documented/workers"))

    def test_the_study(self):
        pathlib.Path("train.py").write_text(snippets(DOCUMENT)[2])
        done = subprocess.run([sys.executable, "-c", snippets(DOCUMENT)[3]], env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 7)

    def test_the_function_of_the_readme(self):
        found = [one for one in snippets(PACKAGE.parent / "README.md") if "fettle.tune" in one]
        self.assertEqual(len(found), 1)
        self.assertRegex(self.run_snippet(found[0]), r"^\S+ \{")


if __name__ == "__main__":
    unittest.main()
