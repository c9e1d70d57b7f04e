#!/usr/bin/env python3
"""Tests of Result: rows, and how it looks in a notebook."""

import sys
import unittest
import xml.etree.ElementTree
from unittest import mock

from program import InAFolder

from fettle.notebook import best_so_far
from fettle.result import Result, TrialRecord
from fettle.search import Best


def record(id, value, state="completed", **parameters):
    return TrialRecord(id, parameters or {"x": 0.5}, state, None if value is None else (value,),
                       "<error>" if value is None else None)


TRIALS = [record(2, 0.2), record(0, 0.5), record(1, None, "failed"), record(3, 0.3, "stopped", x=1, kind="<b>")]


class Rows(unittest.TestCase):
    def test_one_row_a_trial(self):
        result = Result({"loss": "minimize"}, TRIALS, [Best(2, {"x": 0.5}, (0.2,))], None, "trials")
        self.assertEqual(result.rows()[3], {"id": 3, "state": "stopped", "loss": 0.3, "x": 1, "kind": "<b>", "seconds": 0,
                                            "error": None})
        self.assertEqual(repr(result), "<fettle result: 4 trials, best 0.2 with {'x': 0.5}>")

    def test_names_that_are_taken(self):
        result = Result({"loss": "minimize"}, [record(0, 1.0, loss=3, state_=1)], [], None, "trials")
        self.assertEqual(result.rows()[0]["param.loss"], 3)

    def test_without_pandas(self):
        with mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaisesRegex(ImportError, "rows"):
            Result({"loss": "minimize"}, TRIALS, [], None, "trials").to_pandas()


class Notebook(InAFolder):
    def page(self, trials, front, objectives=None):
        text = Result(objectives or {"loss": "minimize"}, trials, front, "a<b", "trials")._repr_html_()
        return text, xml.etree.ElementTree.fromstring(text)  # well formed, so that everything is escaped

    def test_a_table_and_a_chart(self):
        text, page = self.page(TRIALS, [Best(2, {"x": 0.5}, (0.2,))])
        self.assertEqual(len(page.findall(".//tbody/tr")), 4)
        self.assertEqual(page.find(".//tbody/tr/td").text, "2")
        self.assertEqual(len(page.findall(".//circle")), 3)
        self.assertIn("a&lt;b", text)
        self.assertIn("Best loss so far: 0.2 after 4 trials", text)

    def test_no_result(self):
        text, page = self.page([record(0, None, "failed")], [])
        self.assertIn("none has a result", text)
        self.assertIsNone(page.find(".//svg"))
        self.page([], [])

    def test_several_objectives(self):
        trial = TrialRecord(0, {"x": 1}, "completed", (1.0, 2.0))
        text, _ = self.page([trial], [Best(0, {"x": 1}, (1.0, 2.0))], {"loss": "minimize", "size": "maximize"})
        self.assertIn("1 on the front", text)

    def test_many_trials(self):
        text, page = self.page([record(id, float(id)) for id in range(50)], [Best(0, {"x": 0.5}, (0.0,))])
        self.assertEqual(len(page.findall(".//tbody/tr")), 20)
        self.assertIn("30 more", text)

    def test_best_so_far(self):
        trials = [record(id, value) for id, value in enumerate([3.0, 4.0, 3.0, 1.0])]
        self.assertEqual(best_so_far(trials, "minimize"), [(0, 3.0), (3, 1.0)])
        self.assertEqual(best_so_far(trials, "maximize"), [(0, 3.0), (1, 4.0)])


if __name__ == "__main__":
    unittest.main()
