#!/usr/bin/env python3
"""Tests of spaces: what the search is sent, and the errors of bad ones."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fettle.space import boolean, choice, integer, loguniform, uniform, variables  # noqa: E402


class GoodSpaces(unittest.TestCase):
    def test_kinds_as_the_search_reads_them(self):
        self.assertEqual(
            variables({"rate": loguniform(1e-5, 1), "x": uniform(-1, 1, step=0.5), "depth": integer(1, 8, log=True),
                       "width": integer(8, 64, step=8), "kind": choice("a", 2, 0.5, True), "on": boolean()}),
            [{"name": "rate", "type": "float", "low": 1e-5, "high": 1.0, "log": True},
             {"name": "x", "type": "float", "low": -1.0, "high": 1.0, "log": False, "step": 0.5},
             {"name": "depth", "type": "int", "low": 1, "high": 8, "log": True},
             {"name": "width", "type": "int", "low": 8, "high": 64, "log": False, "step": 8},
             {"name": "kind", "type": "categorical", "choices": ["a", 2, 0.5, True]},
             {"name": "on", "type": "bool"}])

    def test_a_list_of_choices(self):
        self.assertEqual(choice(["a", "b"]), choice("a", "b"))
        self.assertEqual(choice(range(3)).choices, (0, 1, 2))
        self.assertEqual(choice("ab").choices, ("ab",))

    def test_true_and_one_are_different_choices(self):
        self.assertEqual(choice(True, 1).choices, (True, 1))

    def test_a_parent_comes_before_what_depends_on_it(self):
        space = {"c": uniform(0, 1, when={"b": True}), "b": boolean(when={"a": ["x"]}), "a": choice("x", "y")}
        sent = variables(space)
        self.assertEqual([one["name"] for one in sent], ["a", "b", "c"])
        self.assertEqual(sent[1]["when"], {"param": "a", "in": ["x"]})
        self.assertEqual(sent[2]["when"], {"param": "b", "in": [True]})

    def test_any_name(self):
        self.assertEqual(variables({"learning-rate": uniform(0, 1)})[0]["name"], "learning-rate")


class BadSpaces(unittest.TestCase):
    def refused(self, error, words, make):
        with self.assertRaisesRegex(error, words):
            make()

    def test_bounds(self):
        self.refused(ValueError, "lower bound 2 is above", lambda: uniform(2, 1))
        self.refused(ValueError, "finite", lambda: uniform(0, float("inf")))
        self.refused(ValueError, "finite", lambda: loguniform(float("nan"), 1))
        self.refused(TypeError, "bounds are numbers; found '1'", lambda: uniform("1", 2))
        self.refused(TypeError, "bounds are numbers; found True", lambda: uniform(True, 2))
        self.refused(ValueError, "lower bound above 0; found 0", lambda: loguniform(0, 1))
        self.refused(ValueError, "lower bound above 0; found -3", lambda: integer(-3, 1, log=True))
        self.refused(TypeError, "whole numbers; found 1.5", lambda: integer(1.5, 2))

    def test_steps(self):
        self.refused(ValueError, "above 0; found 0", lambda: uniform(0, 1, step=0))
        self.refused(TypeError, "step is a number", lambda: uniform(0, 1, step="a"))
        self.refused(TypeError, "whole numbers; found 0.5", lambda: integer(0, 4, step=0.5))

    def test_choices(self):
        self.refused(ValueError, "at least one", choice)
        self.refused(ValueError, "at least one", lambda: choice([]))
        self.refused(ValueError, "'a' comes twice", lambda: choice("a", "b", "a"))
        self.refused(TypeError, "Give each object a name", lambda: choice("a", None))
        self.refused(TypeError, "Give each object a name", lambda: choice(unittest.TestCase, "b"))
        self.refused(TypeError, "finite number", lambda: choice(float("nan"), 1))

    def test_conditions(self):
        self.refused(ValueError, "one other parameter", lambda: uniform(0, 1, when={"a": [1], "b": [2]}))
        self.refused(ValueError, "one other parameter", lambda: uniform(0, 1, when="a"))
        self.refused(ValueError, "lists no value of 'a'", lambda: uniform(0, 1, when={"a": []}))
        self.refused(ValueError, "'x' depends on 'y', which is not in the space",
                     lambda: variables({"x": uniform(0, 1, when={"y": 1})}))
        self.refused(ValueError, "depends on it in turn",
                     lambda: variables({"x": boolean(when={"y": True}), "y": boolean(when={"x": True})}))

    def test_what_is_no_space(self):
        self.refused(ValueError, "empty", lambda: variables({}))
        self.refused(TypeError, "dict", lambda: variables([uniform(0, 1)]))
        self.refused(TypeError, "'x': expected uniform", lambda: variables({"x": (0, 1)}))
        self.refused(TypeError, "not empty; found ''", lambda: variables({"": uniform(0, 1)}))
        self.refused(TypeError, "found 3", lambda: variables({3: uniform(0, 1)}))


if __name__ == "__main__":
    unittest.main()
