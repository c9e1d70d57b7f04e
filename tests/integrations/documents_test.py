"""Every snippet of docs/integrations.md runs, alone; those with a callback also as trials of a Study."""
import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import unittest

import support

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
MODULES = {"Lightning": "lightning", "transformers": "transformers", "Keras": "keras", "XGBoost": "xgboost",
           "LightGBM": "lightgbm", "scikit-learn": "sklearn", "Optuna": "optuna"}  # fmt: skip
CALLBACKS = ("Lightning", "transformers", "Keras", "XGBoost", "LightGBM")


def snippets():
    """Heading -> the program below it."""
    parts = re.split(r"^##+ (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    found = {heading: re.search(r"```python\n(.*?)```", text, re.DOTALL) for heading, text in zip(parts[1::2], parts[2::2])}
    return {heading: block.group(1) for heading, block in found.items() if block}


class DocumentsTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.program = pathlib.Path(folder) / "train.py"

    def each(self, names, check):
        """Writes the program of each library that is installed, and calls check()."""
        for name in names:
            module, text = MODULES[name], snippets()[name]
            if name == "Lightning" and importlib.util.find_spec("lightning") is None:
                module, text = "pytorch_lightning", text.replace("lightning.pytorch", "pytorch_lightning")
            with self.subTest(name):
                if importlib.util.find_spec(module) is None:
                    self.assertNotEqual(os.environ.get("FETTLE_INTEGRATIONS"), "all", f"{module} is not installed")
                else:
                    self.program.write_text(text)
                    check()

    def test_each_library_has_a_snippet(self):
        self.assertEqual(set(snippets()), set(MODULES))

    def test_snippets_run_alone_and_report_nothing(self):
        self.each(MODULES, lambda: self.assertEqual(
            support.reports_in(support.run_program(self.program, cwd=self.program.parent)), []))

    def test_callbacks_report_to_a_study(self):
        self.each(CALLBACKS, self.check_study)

    def check_study(self):
        trials = support.run_study([sys.executable, str(self.program)], "loss")
        for trial in trials:
            self.assertEqual(trial["phase"], "Completed")
            # Not the lines of the log: there the progress bar of a library may stand before a report.
            self.assertEqual([point["step"] for point in trial["curve"]], [1, 2, 3], trial["log"])


if __name__ == "__main__":
    unittest.main()
