#!/usr/bin/env python3
"""Workers written in Python speak the protocol of docs/worker-protocol.md."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
NONCE = "0123456789abcdef0123456789abcdef"
RS = "\x1e"


class Worker:
    """A worker process and the runner's ends of its pipes."""

    def __init__(self, folder, arguments):
        self.folder = folder
        reading, self.assignments = os.pipe()
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), FETTLE_WORKER_FD=str(reading), FETTLE_WORKER_NONCE=NONCE,
                           FETTLE_WORKER_VERSION="1", FETTLE_WORKER_SLOTS="1")
        self.process = subprocess.Popen([sys.executable, *arguments], cwd=folder, env=environment, pass_fds=[reading],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(reading)

    def send(self, message):
        os.write(self.assignments, (json.dumps(message) + "\n").encode())

    def assign(self, run, **parameters):
        path = pathlib.Path(self.folder, run + ".json")
        path.write_text(json.dumps({"study": "s", "trial": run[:-3], "seed": 7, "parameters": parameters, "untilStep": 3,
                                    "checkpoints": {"directory": "c"}}))
        environment = {"FETTLE_TRIAL": str(path), "FETTLE_UNTIL_STEP": "3"}
        environment |= {f"FETTLE_PARAM_{name.upper()}": str(value) for name, value in parameters.items()}
        self.send({"run": run, "environment": environment})

    def line(self):
        return self.process.stdout.readline().replace(NONCE, "N")

    def lines_until(self, end):
        lines = []
        while not lines or not lines[-1].endswith(end + "\n"):
            lines.append(self.line())
            if not lines[-1]:
                break
        return lines

    def finish(self):
        """Ends the assignments; returns (exit code, further output, standard error)."""
        os.close(self.assignments)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.replace(NONCE, "N"), err


class WorkerTest(unittest.TestCase):
    def start(self, script, *arguments, module=()):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pathlib.Path(folder.name, "train.py").write_text(textwrap.dedent(script))
        return Worker(folder.name, [*module, "train.py", *arguments])


class Trials(WorkerTest):
    LOOP = """
        import fettle
        for trial in fettle.trials():
            with trial:
                for step in trial.steps():
                    trial.report(step, loss=trial["lr"] / step)
    """

    def test_trains_one_run_after_another(self):
        worker = self.start(self.LOOP)
        worker.assign("s-0-r0", lr=3)
        worker.assign("s-1-r0", lr=6)
        self.assertEqual(worker.lines_until("end s-1-r0 0"), [
            f"{RS}N ready 1 1\n", f"{RS}N begin s-0-r0\n", '{"step": 1, "loss": 3.0}\n', '{"step": 2, "loss": 1.5}\n',
            '{"step": 3, "loss": 1.0}\n', f"{RS}N end s-0-r0 0\n", f"{RS}N begin s-1-r0\n", '{"step": 1, "loss": 6.0}\n',
            '{"step": 2, "loss": 3.0}\n', '{"step": 3, "loss": 2.0}\n', f"{RS}N end s-1-r0 0\n"])
        self.assertEqual(worker.finish(), (0, "", ""))

    def test_a_stop_ends_the_run_and_the_next_one_trains(self):
        worker = self.start("""
            import time, fettle
            for trial in fettle.trials():
                with trial:
                    step = 0
                    while trial["forever"] or step < 1:
                        step += 1
                        trial.report(step, loss=1)
                        time.sleep(0.001)
        """)
        worker.assign("s-0-r0", forever=True)
        self.assertEqual([worker.line() for _ in range(3)][2], '{"step": 1, "loss": 1.0}\n')
        worker.send({"stop": "s-0-r0"})
        self.assertEqual(worker.lines_until("end s-0-r0 143")[-1], f"{RS}N end s-0-r0 143\n")
        worker.assign("s-1-r0", forever=False)
        self.assertEqual(worker.lines_until("end s-1-r0 0")[-1], f"{RS}N end s-1-r0 0\n")
        self.assertEqual(worker.finish(), (0, "", ""))

    def test_report_says_so_where_the_trial_is_not_entered(self):
        worker = self.start("""
            import fettle
            for trial in fettle.trials():
                step = 1
                while trial.report(step, loss=1):
                    step += 1
        """)
        worker.assign("s-0-r0")
        worker.line(), worker.line(), worker.line()
        worker.send({"stop": "s-0-r0"})
        self.assertEqual(worker.lines_until("143")[-1], f"{RS}N end s-0-r0 143\n")
        self.assertEqual(worker.finish()[0], 0)

    def test_frames_follow_what_was_printed_before(self):
        worker = self.start("""
            import fettle
            for trial in fettle.trials():
                print("half a line", end="")
        """)
        worker.assign("s-0-r0")
        self.assertEqual(worker.lines_until("end s-0-r0 0"),
                         [f"{RS}N ready 1 1\n", f"{RS}N begin s-0-r0\n", f"half a line{RS}N end s-0-r0 0\n"])
        worker.finish()

    def test_variables_of_a_run_do_not_reach_the_next(self):
        worker = self.start("""
            import os, fettle
            for trial in fettle.trials():
                print(sorted(name for name in os.environ if name.startswith("FETTLE_")))
        """)
        worker.assign("s-0-r0", lr=1)
        worker.assign("s-1-r0", momentum=1)
        out = worker.lines_until("end s-1-r0 0")
        self.assertEqual(out[2], "['FETTLE_PARAM_LR', 'FETTLE_TRIAL', 'FETTLE_UNTIL_STEP']\n")
        self.assertEqual(out[5], "['FETTLE_PARAM_MOMENTUM', 'FETTLE_TRIAL', 'FETTLE_UNTIL_STEP']\n")
        worker.finish()

    def test_an_exception_ends_the_worker(self):
        worker = self.start("""
            import fettle
            for trial in fettle.trials():
                with trial:
                    raise ValueError("no such layer")
        """)
        worker.assign("s-0-r0")
        code, out, err = worker.finish()
        self.assertEqual((code, out.count("end")), (1, 0))
        self.assertIn("ValueError: no such layer", err)

    def test_without_a_worker_the_only_trial_is_trained(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            path.write_text(json.dumps({"study": "s", "trial": "s-0", "seed": 7, "parameters": {"lr": 3}, "untilStep": 2,
                                        "checkpoints": {"directory": "c"}}))
            environment = dict(os.environ, PYTHONPATH=str(PACKAGE), FETTLE_TRIAL=str(path))
            ran = subprocess.run([sys.executable, "-c", textwrap.dedent(self.LOOP)], env=environment, text=True,
                                 capture_output=True)
        self.assertEqual(ran.stdout, '{"step": 1, "loss": 3.0}\n{"step": 2, "loss": 1.5}\n')

    def test_without_fettle_it_says_what_to_do(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FETTLE_")}
        ran = subprocess.run([sys.executable, "-c", "import fettle\nnext(fettle.trials())"], text=True,
                             env=environment | {"PYTHONPATH": str(PACKAGE)}, capture_output=True)
        self.assertIn("start this program by `fettle run study.yaml`", ran.stderr)


class Warm(WorkerTest):
    def warm(self, script, *arguments, preload="json"):
        return self.start(script, *arguments, module=["-m", "fettle.warm", "--preload", preload])

    def test_runs_an_unmodified_script_for_each_run(self):
        worker = self.warm("""
            import os, sys
            print(__name__, sys.argv[1:], os.environ["FETTLE_PARAM_LR"], "leak" in globals())
            leak = 1
        """, "--fast", "x")
        worker.assign("s-0-r0", lr=1)
        worker.assign("s-1-r0", lr=2)
        self.assertEqual(worker.lines_until("end s-1-r0 0"), [
            f"{RS}N ready 1 1\n", f"{RS}N begin s-0-r0\n", "__main__ ['--fast', 'x'] 1 False\n", f"{RS}N end s-0-r0 0\n",
            f"{RS}N begin s-1-r0\n", "__main__ ['--fast', 'x'] 2 False\n", f"{RS}N end s-1-r0 0\n"])
        self.assertEqual(worker.finish(), (0, "", ""))

    def test_exit_codes_are_those_of_a_process(self):
        worker = self.warm("""
            import os, sys, signal
            how = os.environ["FETTLE_PARAM_HOW"]
            if how == "killed": os.kill(os.getpid(), signal.SIGKILL)
            if how == "raises": raise ValueError(how)
            if how == "says": sys.exit("no data")
            sys.exit(int(how))
        """)
        codes = {"0": 0, "3": 3, "killed": 137, "raises": 1, "says": 1}
        for number, how in enumerate(codes):
            worker.assign(f"s-{number}-r0", how=how)
        _, out, err = worker.finish()
        for number, (how, code) in enumerate(codes.items()):
            self.assertIn(f"{RS}N end s-{number}-r0 {code}\n", out, how)
        self.assertIn("ValueError: raises", err)
        self.assertIn("no data\n", err)

    def test_a_stop_is_sigterm_to_the_script(self):
        worker = self.warm("""
            import signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: (print("saves", flush=True), sys.exit(143)))
            print("trains", flush=True)
            time.sleep(60)
        """)
        worker.assign("s-0-r0")
        worker.lines_until("trains")
        worker.send({"stop": "s-0-r0"})
        self.assertEqual(worker.lines_until("end s-0-r0 143"), ["saves\n", f"{RS}N end s-0-r0 143\n"])
        worker.finish()

    def test_a_module_that_starts_a_thread_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "threaded.py").write_text(
                "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n")
            pathlib.Path(folder, "train.py").write_text("")
            other = Worker(folder, ["-m", "fettle.warm", "--preload", "json,threaded", "train.py"])
            code, out, err = other.finish()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--preload threaded: importing it started a thread", err)

    def test_a_module_that_is_missing_is_named(self):
        code, _, err = self.warm("", preload="no_such_module").finish()
        self.assertEqual(code, 2)
        self.assertIn("fettle.warm: --preload no_such_module: No module named 'no_such_module'", err)


if __name__ == "__main__":
    signal.alarm(300)
    unittest.main()
