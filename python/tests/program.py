"""Shared by the tests that need the program `fettle`: `make python-test` says where it is."""

import os
import pathlib
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE))
os.environ.setdefault("FETTLE_PROGRAM", str(PACKAGE.parent / "build" / "bin" / "fettle"))
PROGRAM = os.environ["FETTLE_PROGRAM"]
# What a program of a test needs to find the package and the program.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE), "FETTLE_PROGRAM": PROGRAM}


class InAFolder(unittest.TestCase):
    """Each test has a folder of its own, `self.folder`, and is in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
