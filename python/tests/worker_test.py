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
        self.command = [sys.executable, *arguments]
        reading, self.assignments = os.pipe()
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), FETTLE_WORKER_FD=str(reading), FETTLE_WORKER_NONCE=NONCE,
                           FETTLE_WORKER_VERSION="1", FETTLE_WORKER_SLOTS="1")
        self.process = subprocess.Popen(self.command, cwd=folder, env=environment, pass_fds=[reading],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        os.close(reading)

    def send(self, message):
        os.write(self.assignments, (json.dumps(message) + "\n").encode())

    def assign(self, run, command=None, **parameters):
        """Gives the worker a run. `command`: its command line; by default the one that the worker was started with."""
        path = pathlib.Path(self.folder, run + ".json")
        path.write_text(json.dumps({"study": "s", "trial": run[:-3], "seed": 7, "parameters": parameters, "untilStep": 3,
                                    "checkpoints": {"directory": "c"}}))
        environment = {"FETTLE_TRIAL": str(path), "FETTLE_UNTIL_STEP": "3"}
        environment |= {f"FETTLE_PARAM_{name.upper()}": str(value) for name, value in parameters.items()}
        self.send({"run": run, "environment": environment, "arguments": command or self.command})

    def line(self):
        return self.process.stdout.readline().replace(NONCE, "N")

    def lines_until(self, end):
        lines = []
        while not lines or not lines[-1].endswith(end + "\n"):
            lines.append(self.line())
            if not lines[-1]:
                break
        return lines

    def lines_of(self, *runs, **parameters):
        """Assigns each run with its arguments; returns what was printed, in one text."""
        for run in runs:
            self.assign(run, **parameters)
        return "".join(self.lines_until(f"end {runs[-1]} 0"))

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

    def test_each_run_begins_in_the_directory_of_the_worker(self):
        worker = self.start("""
            import os, fettle
            for trial in fettle.trials():
                print(os.path.exists("train.py"))
                os.mkdir("gone")
                os.chdir("gone")
                os.rmdir("../gone")
        """)
        self.assertEqual(worker.lines_of("s-0-r0", "s-1-r0").count("True"), 2)
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
            f"{RS}N ready 1 1 arguments\n", f"{RS}N begin s-0-r0\n", "__main__ ['--fast', 'x'] 1 False\n", f"{RS}N end s-0-r0 0\n",
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

    def warm_at_work(self):
        """A worker in the middle of the run s-0-r0, whose script saves when SIGTERM comes."""
        worker = self.warm("""
            import signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: (print("saves", flush=True), sys.exit(143)))
            print("trains", flush=True)
            time.sleep(60)
        """)
        worker.assign("s-0-r0")
        worker.lines_until("trains")
        return worker

    def test_a_stop_is_sigterm_to_the_script(self):
        worker = self.warm_at_work()
        worker.send({"stop": "s-0-r0"})
        self.assertEqual(worker.lines_until("end s-0-r0 143"), ["saves\n", f"{RS}N end s-0-r0 143\n"])
        worker.finish()

    def test_sigterm_reaches_the_script_and_ends_the_worker(self):
        worker = self.warm_at_work()
        worker.process.terminate()
        self.assertEqual(worker.finish(), (143, "saves\n", ""))

    def test_sigterm_ends_an_idle_worker(self):
        worker = self.warm("")
        self.assertIn("end s-0-r0 0", worker.lines_of("s-0-r0"))
        worker.process.terminate()
        self.assertEqual(worker.process.wait(60), 143)
        worker.finish()

    def test_a_worker_ends_like_a_script_that_sigterm_killed(self):
        worker = self.warm("import time\nprint('trains', flush=True)\ntime.sleep(60)")
        worker.assign("s-0-r0")
        worker.lines_until("trains")
        worker.process.terminate()
        self.assertEqual(worker.finish(), (-signal.SIGTERM, "", ""))

    def test_the_end_of_a_script_is_that_of_an_interpreter(self):
        worker = self.warm("""
            import atexit, threading, time
            atexit.register(print, "at exit")
            threading.Thread(target=lambda: (time.sleep(0.05), print("a thread"))).start()
            file = open("result.txt", "w")
            file.write("not closed")
            print("main")
        """)
        self.assertIn("main\na thread\nat exit\n", worker.lines_of("s-0-r0"))
        self.assertEqual(pathlib.Path(worker.folder, "result.txt").read_text(), "not closed")
        worker.finish()

    def test_exit_handlers_of_a_preloaded_module_run_once(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "shared.py").write_text(textwrap.dedent("""
                import atexit, tempfile
                atexit.register(print, "of the worker")
                place = tempfile.TemporaryDirectory()
            """))
            pathlib.Path(folder, "train.py").write_text(textwrap.dedent("""
                import os, tempfile, shared
                own = tempfile.TemporaryDirectory()
                print(os.path.exists(shared.place.name), own.name, shared.place.name)
            """))
            worker = Worker(folder, ["-m", "fettle.warm", "--preload", "shared", "train.py"])
            words = worker.lines_of("s-0-r0", "s-1-r0").split()
            places = [words[words.index("True", words.index(run)) + n] for run in ("s-0-r0", "s-1-r0") for n in (0, 1, 2)]
            self.assertEqual((places[0], places[3], os.path.exists(places[1]), os.path.exists(places[2])),
                             ("True", "True", False, True))
            self.assertEqual(worker.finish(), (0, "of the worker\n", ""))
            self.assertFalse(os.path.exists(places[2]))

    def test_a_traceback_shows_the_script_alone(self):
        worker = self.warm("""
            def build():
                raise ValueError("no such layer")
            build()
        """)
        worker.assign("s-0-r0")
        _, _, err = worker.finish()
        self.assertIn('Traceback (most recent call last):\n  File "train.py", line 4, in <module>', err)
        self.assertNotIn("warm.py", err)

    def test_what_a_script_leaves_running_ends_with_its_run(self):
        worker = self.warm("""
            import os, subprocess, time
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    open("daemon", "w").write(str(os.getpid()))
                    time.sleep(60)
                os._exit(0)
            os.wait()
            child = subprocess.Popen(["sleep", "60"])
            open("child", "w").write(str(child.pid))
            while not os.path.exists("daemon") or not open("daemon").read():
                time.sleep(0.01)
        """)
        self.assertIn("end s-0-r0 0", worker.lines_of("s-0-r0"))
        for name in ("daemon", "child"):
            process = pathlib.Path(worker.folder, name).read_text()
            self.assertFalse(os.path.exists(f"/proc/{process}"), name)
        worker.finish()

    def test_a_script_that_kills_its_group_ends_alone(self):
        worker = self.warm("import os, signal\nos.killpg(0, signal.SIGKILL)")
        worker.assign("s-0-r0")
        worker.assign("s-1-r0")
        code, out, _ = worker.finish()
        self.assertIn("end s-1-r0 137", out)
        self.assertEqual(code, 0)

    def test_directory_and_environment_of_a_run_end_with_it(self):
        worker = self.warm("""
            import os
            print(os.path.basename(os.getcwd()), os.environ.get("LEFT"), os.path.exists("train.py"))
            os.environ["LEFT"] = "this"
            os.chdir("/")
        """)
        out = worker.lines_of("s-0-r0", "s-1-r0")
        self.assertEqual(out.count(f"{pathlib.Path(worker.folder).name} None True\n"), 2)
        worker.finish()

    def test_random_numbers_without_a_seed_differ(self):
        worker = self.start("""
            import random
            import numpy.random
            print("drew", random.random(), numpy.random.state)
        """, module=["-m", "fettle.warm", "--preload", "random,numpy.random"])
        folder = pathlib.Path(worker.folder, "numpy")
        worker.process.kill()
        worker.finish()
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "random.py").write_text("import os\ndef seed():\n    global state\n    state = os.urandom(4).hex()\nseed()")
        worker = Worker(worker.folder, worker.command[1:])
        drawn = [line.split() for line in worker.lines_of("s-0-r0", "s-1-r0").splitlines() if line.startswith("drew")]
        self.assertEqual(len(drawn), 2)
        self.assertNotEqual(drawn[0][1], drawn[1][1])
        self.assertNotEqual(drawn[0][2], drawn[1][2])
        worker.finish()

    def test_each_run_has_its_own_arguments(self):
        worker = self.warm("import sys\nprint(sys.argv)", "--lr=1")
        before = worker.command[:-1]
        worker.assign("s-0-r0")
        worker.assign("s-1-r0", command=[*before, "--lr=2", "-x"])
        self.assertEqual(worker.lines_until("end s-1-r0 0"), [
            f"{RS}N ready 1 1 arguments\n", f"{RS}N begin s-0-r0\n", "['train.py', '--lr=1']\n", f"{RS}N end s-0-r0 0\n",
            f"{RS}N begin s-1-r0\n", "['train.py', '--lr=2', '-x']\n", f"{RS}N end s-1-r0 0\n"])
        worker.finish()

    def test_arguments_are_found_behind_a_launcher(self):
        worker = self.warm("import sys\nprint(sys.argv)", "--lr=1")
        worker.assign("s-0-r0", command=["/usr/bin/env", "A=1", *worker.command])
        worker.assign("s-1-r0", command=["/usr/bin/env", "A=1", *worker.command[:-1], "--lr=2"])
        self.assertIn("['train.py', '--lr=2']\n", worker.lines_until("end s-1-r0 0"))
        worker.finish()

    def test_behind_a_shell_all_runs_have_the_same_arguments(self):
        worker = self.warm("import sys\nprint(sys.argv)", "--lr=1")
        worker.assign("s-0-r0", command=["sh", "-c", "python3 -m fettle.warm --preload json train.py --lr=1"])
        self.assertEqual(worker.lines_until("end s-0-r0 0"), [
            f"{RS}N ready 1 1\n", f"{RS}N begin s-0-r0\n", "['train.py', '--lr=1']\n", f"{RS}N end s-0-r0 0\n"])
        worker.finish()

    def test_a_run_that_needs_another_process_is_refused(self):
        worker = self.warm("", "--lr=1")
        python, module = worker.command[0], ["-m", "fettle.warm"]
        refused = {"its --preload differs": [python, *module, "--preload", "csv", "train.py"],
                   "its command line differs before": [python, "-O", *module, "--preload", "json", "train.py"],
                   "its arguments cannot be read": [python, *module, "--no-such-option", "train.py"]}
        worker.lines_of("s-0-r0")
        for number, (reason, command) in enumerate(refused.items(), 1):
            worker.assign(f"s-{number}-r0", command=command)
            self.assertTrue(worker.line().startswith(f"{RS}N refuse s-{number}-r0 {reason}"), reason)
        self.assertIn("end s-9-r0 0", worker.lines_of("s-9-r0"))
        worker.finish()

    def test_a_module_can_be_the_script(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "package").mkdir()
            pathlib.Path(folder, "package", "train.py").write_text("import sys\nprint(__name__, __package__, sys.argv[1:])")
            worker = Worker(folder, ["-m", "fettle.warm", "-m", "package.train", "--fast"])
            self.assertIn("__main__ package ['--fast']\n", worker.lines_of("s-0-r0"))
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

    def late(self, module):
        """What two trials find of shared.late, whose source this is, and of a module that is not of a preloaded one."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "shared").mkdir()
            pathlib.Path(folder, "shared", "__init__.py").write_text("")
            pathlib.Path(folder, "shared", "late.py").write_text(module)
            pathlib.Path(folder, "own.py").write_text("")
            pathlib.Path(folder, "train.py").write_text(
                "import sys\nprint('here', 'shared.late' in sys.modules, 'own' in sys.modules)\nimport own, shared.late\n")
            worker = Worker(folder, ["-m", "fettle.warm", "--preload", "shared", "train.py"])
            out = worker.lines_of("s-0-r0", "s-1-r0").splitlines()
            self.assertEqual(worker.finish()[0], 0)
            return [line.split()[1:] for line in out if line.startswith("here")]

    def test_modules_that_preloaded_ones_import_late_are_imported_once(self):
        self.assertEqual(self.late(""), [["False", "False"], ["True", "False"]])

    def test_a_late_module_that_starts_a_thread_stays_out(self):
        thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(2,), daemon=True).start()\n"
        self.assertEqual(self.late(thread), [["False", "False"], ["False", "False"]])

    def test_a_module_that_is_missing_is_named(self):
        code, _, err = self.warm("", preload="no_such_module").finish()
        self.assertEqual(code, 2)
        self.assertIn("fettle.warm: --preload no_such_module: No module named 'no_such_module'", err)


if __name__ == "__main__":
    signal.alarm(300)
    unittest.main()
