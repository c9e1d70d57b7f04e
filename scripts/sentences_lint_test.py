#!/usr/bin/env python3
"""scripts/sentences_lint.py finds each turn of phrase, in comments alone, and refuses more than AT_MOST."""

import pathlib
import tempfile
import unittest

import sentences_lint


class SentencesLint(unittest.TestCase):
    def found(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cpp"
            path.write_text(text)
            return {turn: len(places) for turn, places in sentences_lint.find([path]).items() if places}

    def test_each_turn(self):
        for turn, comment in [
                ("begins with What, Of or Where", "Of the trials that still run."),
                ("begins with What, Of or Where", "It runs. Where the memory is unknown it fits."),
                ("what is, it or they", "Says what is lost."),
                ("those, ones", "Indices of those on the front."),
                ("there is none", "Empty if there is none."),
                ("is told, of which", "Workers of which each has a GPU."),
        ]:
            self.assertEqual(self.found(f"// {comment}\n"), {turn: 1}, comment)

    def test_sentences_pass(self):
        self.assertEqual(self.found("// Indices into means_ of the Pareto front. Returns where it ends.\n"), {})

    def test_a_comment_of_several_lines_is_one_text(self):
        self.assertEqual(self.found("// Says what\n// is lost.\nint i;\n"), {"what is, it or they": 1})

    def test_code_and_texts_are_no_comments(self):
        self.assertEqual(self.found('auto s = "what is // Of it";\nint those;\n'), {})
        self.assertEqual(self.found('auto s = "a";  // what is s\n'), {"what is, it or they": 1})

    def test_the_ratchet(self):
        one = {turn: [""] for turn in sentences_lint.TURNS}
        self.assertEqual(len(list(sentences_lint.too_many(one, dict.fromkeys(sentences_lint.TURNS, 1)))), 0)
        self.assertEqual(len(list(sentences_lint.too_many(one, dict.fromkeys(sentences_lint.TURNS, 0)))), 5)


if __name__ == "__main__":
    unittest.main()
