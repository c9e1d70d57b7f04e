#!/usr/bin/env python3
"""scripts/rooms_lint.py sees two folders that include each other, and a roof that is included from below."""

import os
import pathlib
import tempfile
import unittest

import rooms_lint


class RoomsLint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def findings(self, **files):
        """By path, with __ for / and the text that the file includes."""
        for name, target in files.items():
            path = pathlib.Path("kernels", name.replace("__", "/") + ".cpp")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "kernels/{target}"\n')
        return list(rooms_lint.findings("kernels"))

    def test_two_that_include_each_other(self):
        found = self.findings(add__a="cuda/device.h", cuda__b="add/add.h")
        self.assertEqual(found, ["kernels/add and kernels/cuda include each other:\n"
                                 '  kernels/add/a.cpp:1: #include "kernels/cuda/device.h"\n'
                                 '  kernels/cuda/b.cpp:1: #include "kernels/add/add.h"'])

    def test_one_way_and_tests(self):
        self.assertEqual(self.findings(add__a="cuda/device.h", cuda__b_test="add/add.h", cuda__c="cuda/d.h"), [])

    def test_a_roof_from_below(self):
        self.assertEqual(len(self.findings(add__a="backends/cuda/backend.h")), 1)
        self.assertEqual(self.findings(bench__a="backends/cuda/backend.h", add__a="add/b.h",
                                       backends__c="backends/cuda/backend.h"), [])


if __name__ == "__main__":
    unittest.main()
