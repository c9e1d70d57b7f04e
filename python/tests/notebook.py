#!/usr/bin/env python3
"""tune() in a notebook, as Jupyter runs it: functions of a cell in worker processes, the table and the chart, a data
frame, and an interrupt. Needs nbclient, ipykernel and pandas: notebook.sh installs them."""

import os
import pathlib
import signal
import threading
import time
import unittest

import nbclient
import nbformat
from program import ENVIRONMENT, InAFolder

TUNE = """
import fettle, os
def train(x):
    return x * x if x < 0.5 else float("nan")
result = fettle.tune(train, {"x": fettle.uniform(-1, 1)}, minimize="loss", trials=12, workers=%s)
result
"""
LONG = """
import os, pathlib, time
def slow(x):
    pathlib.Path("began").touch()
    time.sleep(0.2)
    return x
fettle.tune(slow, {"x": fettle.uniform(-1, 1)}, minimize="loss", trials=1000, workers=%s)
"""


class Notebook(InAFolder):
    def run_cells(self, *cells, **options):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        os.environ.update(ENVIRONMENT)
        client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", **options)
        client.execute()
        return [cell.outputs for cell in notebook.cells]

    def test_workers_and_what_is_shown(self):
        for workers in ("1", "2", "'threads:2'"):
            with self.subTest(workers=workers):
                outputs = self.run_cells(TUNE % workers, "result.to_pandas().shape")
                shown = next(one.data for one in outputs[0] if one.output_type == "execute_result")
                self.assertIn("<svg", shown["text/html"])
                self.assertIn("fettle result: 12 trials", shown["text/plain"])
                self.assertEqual(outputs[1][0].data["text/plain"], "(12, 6)")

    def test_an_interrupt_of_a_cell(self):
        for workers in ("1", "2"):
            with self.subTest(workers=workers):
                pathlib.Path("began").unlink(missing_ok=True)

                def interrupt():
                    while not pathlib.Path("began").exists() or not pathlib.Path("pid").exists():
                        time.sleep(0.05)
                    time.sleep(0.5)
                    os.kill(int(pathlib.Path("pid").read_text()), signal.SIGINT)

                thread = threading.Thread(target=interrupt)
                thread.start()
                outputs = self.run_cells("import os, pathlib; n = pathlib.Path('pid').write_text(str(os.getpid()))",
                                         "import fettle" + LONG % workers,
                                         "import sys; sys.last_value.result.ended_by", allow_errors=True)
                thread.join()
                pathlib.Path("pid").unlink()
                self.assertEqual([one.ename for one in outputs[1] if one.output_type == "error"], ["KeyboardInterrupt"])
                self.assertEqual(outputs[2][0].data["text/plain"], "'interrupt'")


if __name__ == "__main__":
    unittest.main()
