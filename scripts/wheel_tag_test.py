#!/usr/bin/env python3
"""Tests of wheel_tag.py."""

import unittest

import wheel_tag

DUMP = """
0000000000000000      DF *UND*	0000000000000000 (GLIBC_2.34) pthread_create
0000000000000000      DF *UND*	0000000000000000 (GLIBC_2.38) __isoc23_strtol
0000000000000000      DF *UND*	0000000000000000 (GLIBCXX_3.4.29) _ZSt8to_charsPcS_d
0000000000000000      DF *UND*	0000000000000000 (GLIBCXX_3.4.9) _ZNSo9_M_insertIbEERSoT_
0000000000000000  w   D  *UND*	0000000000000000  Base        __gmon_start__
0000000000012345 g    DF .text	0000000000000010  GLIBC_2.99  defined_here
0000000000000000      DO *UND*	0000000000000000 (CXXABI_1.3.15) _ZTIDF16b
"""


class Tag(unittest.TestCase):
    def test_names_what_is_too_new(self):
        self.assertEqual(list(wheel_tag.too_new(DUMP)), [("__isoc23_strtol", "GLIBC_2.38"), ("_ZTIDF16b", "CXXABI_1.3.15")])

    def test_the_promise_and_the_limit_agree(self):
        major, minor = wheel_tag.NEWEST["GLIBC"]
        self.assertEqual(wheel_tag.PROMISED, f"manylinux_{major}_{minor}_x86_64")


if __name__ == "__main__":
    unittest.main()
