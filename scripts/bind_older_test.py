#!/usr/bin/env python3
"""Tests of bind_older.py, on programs that are compiled here. Needs pyelftools and a C compiler; tests/dist/wheel.sh
runs it in the environment that makes the wheels."""
import pathlib
import subprocess
import tempfile
import unittest

import bind_older

HYPOT = "#include <math.h>\n#include <stdio.h>\nint main(int count, char** words) { printf(\"%g\\n\", hypot(3 * count, 4 * count)); }"
OTHER = "extern int _dl_find_object(void*, void*);\nint main() { return _dl_find_object(0, 0); }"


class Bind(unittest.TestCase):
    def setUp(self):
        self.program = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "program"

    def compile(self, text):
        subprocess.run(["cc", "-x", "c", "-", "-o", self.program, "-lm"], input=text, text=True, check=True)

    def symbols(self):
        return subprocess.run(["objdump", "-T", self.program], capture_output=True, text=True, check=True).stdout

    def test_a_symbol_is_bound_to_its_older_version(self):
        self.compile(HYPOT)
        self.assertRegex(self.symbols(), r"\(GLIBC_2.35\) +hypot")
        for _ in range(2):  # nothing is left for the second time
            bind_older.bind(self.program)
            self.assertRegex(self.symbols(), r"\(GLIBC_2.2.5\) +hypot")
            said = subprocess.run(self.program, env={"LD_BIND_NOW": "1"}, capture_output=True, text=True, check=True).stdout
            self.assertEqual(said, "5\n")

    def test_a_symbol_that_is_new_is_refused(self):
        self.compile(OTHER)
        before = self.program.read_bytes()
        with self.assertRaisesRegex(ValueError, "_dl_find_object need GLIBC_2.35, too"):
            bind_older.bind(self.program)
        self.assertEqual(self.program.read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
