#!/usr/bin/env python3
"""What scripts/gpu_day.sh does when steps fail, hang, have no time or are killed: with programs that only pretend."""

import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent
# Notes what it is asked for and which library it has; fails or hangs at what the file says; has a plan to keep.
TRAINER = r"""#!/bin/bash
case $1 in --version) exit 0 ;; esac
root=$(dirname "$0")/../..
said="$* in $(basename "$FETTLE_CUDA_LIBRARY") branches ${FETTLE_CUDA_BRANCHES:-}"
echo "$said" >> "$root/asked.txt"
echo plan > "$FETTLE_KERNEL_CACHE/plans.json" 2> /dev/null
! grep -qE "$(cat "$root/hangs.txt" 2> /dev/null || echo nothing)" <<< "$said" || sleep 600
! grep -qE "$(cat "$root/fails.txt" 2> /dev/null || echo nothing)" <<< "$said" || { echo 'it failed'; exit 1; }
echo 'note: no plan'
echo '{"model": "mlp"}'
"""
TESTS = r"""#!/bin/bash
if [ "$1" = --gtest_list_tests ]; then printf 'Suite.\n  Works\n'; exit 0; fi
printf '[ RUN      ] Suite.Works\n[       OK ] Suite.Works (1 ms)\n'
"""
# As CUDA's does, it returns what the program returned unless it is told otherwise.
CHECKER = r"""#!/bin/bash
[ "$1" = --error-exitcode ] && exit "$2"
exit 0
"""
BENCHMARKS = r"""
import pathlib, sys
results = pathlib.Path(sys.argv[sys.argv.index("--results") + 1])
curves = [f"curve-{name}.svg" for name in ("mlp", "resnet9", "resnet9-fp32")] if "curves" in " ".join(sys.argv) else []
for name in ("benchmarks.json", "benchmarks.md", *curves):
    with (results / name).open("a") as file:
        file.write("x")
"""
MOST_FILES = 8


class GpuDay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "scripts").mkdir()
        for name in ("gpu_day.sh", "gpu_tests.py"):
            shutil.copy(SCRIPTS / name, self.root / "scripts" / name)
        self.program("scripts/gpu_same_bits.py", "#!/bin/bash\necho 'the same bits'\n")
        (self.root / "scripts" / "bench_gpu.py").write_text(BENCHMARKS)
        for name in ("fettle-trainer", "kernels_bench"):
            self.program(f".gpu/bin/{name}", TRAINER)
        for name in ("kernels_gpu_test", "trainer_pytorch_test"):
            self.program(f".gpu/bin/{name}", TESTS)
        self.write(".gpu/bin/commit.txt", "1234567\n")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def program(self, name, text):
        self.write(name, text)
        (self.root / name).chmod(0o755)

    def start(self, call, out, **variables):
        tools = self.root / "tools"
        tools.mkdir(exist_ok=True)
        environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"} | variables
        return subprocess.Popen([self.root / "scripts" / "gpu_day.sh", call, self.root / out], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def run_call(self, call, out="out", **variables):
        """Its exit code and what it asked the trainer for."""
        (self.root / "asked.txt").unlink(missing_ok=True)
        run = self.start(call, out, **variables)
        self.said, _ = run.communicate(timeout=300)
        asked = self.root / "asked.txt"
        return run.returncode, asked.read_text().splitlines() if asked.exists() else []

    def summary(self, out="out"):
        return (self.root / out / "summary.txt").read_text()

    def bring_back(self, out):
        """As a session does between two calls."""
        for name in ("summary.txt", "plans.tgz", "benchmarks.json"):
            if (self.root / out / name).exists():
                shutil.copy(self.root / out / name, self.root / ".gpu" / name)

    def test_each_call_brings_few_files_and_ends_well(self):
        for call in ("call1", "call2", "call3"):
            code, asked = self.run_call(call, call)
            self.assertEqual(code, 0, self.said)
            self.assertTrue(asked)
            self.assertLessEqual(len(list((self.root / call).iterdir())), MOST_FILES)
            self.assertIn("note: no plan", self.summary(call))
            self.assertIn("NOT RUN" if call != "call3" else "rc   0", self.summary(call))
        with tarfile.open(self.root / "call3" / "curves.tgz") as curves:
            self.assertEqual(len(curves.getnames()), 3)

    def test_a_step_that_fails_fails_the_call_and_only_itself(self):
        self.write("fails.txt", "resnet9 --batch 64 .*fp16")
        code, asked = self.run_call("call1")
        self.assertEqual(code, 1)
        self.assertRegex(self.summary(), r"call1-convolutions-fp16 +rc +1 ")
        self.assertTrue(any("gpt2" in line for line in asked))
        self.bring_back("out")
        (self.root / "fails.txt").unlink()
        code, asked = self.run_call("call1", "again")
        self.assertEqual((code, len(asked)), (0, 1), asked)

    def test_a_call_that_is_killed_goes_on_with_the_step_that_it_was_in(self):
        self.write("hangs.txt", "precision tf32")
        run = self.start("call1", "out")
        for _ in range(600):
            if (self.root / "asked.txt").exists() and "tf32" in (self.root / "asked.txt").read_text():
                break
            time.sleep(0.1)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        self.assertTrue((self.root / "out" / "logs.tgz").exists())
        with tarfile.open(self.root / "out" / "plans.tgz") as plans:
            plans.getnames()
        self.bring_back("out")
        (self.root / "hangs.txt").unlink()
        code, asked = self.run_call("call1", "again")
        self.assertEqual(code, 0, self.said)
        self.assertIn("tf32", asked[0])
        self.assertIn("call1-own-serial", self.summary("again"), "what was done before is said again")

    def test_another_commit_begins_anew(self):
        _, first = self.run_call("call1")
        self.bring_back("out")
        self.write(".gpu/bin/commit.txt", "7654321\n")
        _, again = self.run_call("call1", "again")
        self.assertEqual(len(first), len(again))

    def test_without_time_each_step_says_so(self):
        code, asked = self.run_call("call1", LIMIT="10")
        self.assertEqual((code, asked), (1, []))
        self.assertIn("call1-kernels SKIPPED: no time left", self.summary())

    def test_what_a_checker_finds_fails_the_call(self):
        self.program("tools/compute-sanitizer", CHECKER)
        code, _ = self.run_call("call1")
        self.assertEqual(code, 1)
        for name in ("memcheck-own-1", "memcheck-own-0", "racecheck"):
            self.assertRegex(self.summary(), rf"call1-{name} +rc +1 ")

    def test_later_calls_take_the_frontend_that_plans_attention(self):
        self.write("fails.txt", r"chargpt .* in libfettle_cuda\.so")
        self.run_call("call1")
        self.assertRegex(self.summary(), r"call1-attention-1.19 +rc +0 ")
        self.bring_back("out")
        code, asked = self.run_call("call2", "again")
        self.assertEqual(code, 0, self.said)
        self.assertTrue(all("libfettle_cuda-1.19.0.so" in line for line in asked), asked)

    def test_an_unknown_call_is_refused(self):
        self.assertEqual(self.run_call("call4")[0], 2)


if __name__ == "__main__":
    unittest.main()
