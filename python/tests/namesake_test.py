"""Another project's distribution, `fettle`, beside fettle-tune: in a folder as pip leaves it."""
import pathlib
import shutil
import subprocess
import sys
import unittest

from program import ENVIRONMENT, PACKAGE, InAFolder

SEARCH = "import fettle; fettle.Search({'x': fettle.uniform(0, 1)}, minimize='loss').close()"
REPAIR = "pip uninstall fettle; pip install --force-reinstall --no-deps fettle-tune"


class NamesakeTest(InAFolder):
    def setUp(self):
        super().setUp()
        self.site = self.folder / "site"
        shutil.copytree(PACKAGE / "fettle", self.site / "fettle", ignore=shutil.ignore_patterns("__pycache__"))
        self.add("fettle_tune-0.1.0.dist-info", "fettle_trainer-0.1.0.dist-info")

    def add(self, *names):
        for name in names:
            (self.site / name).mkdir()

    def python(self, code, *arguments, flags=("-B",), exit_code=0):
        done = subprocess.run([sys.executable, *flags, "-c", code, *arguments], env=ENVIRONMENT | {"PYTHONPATH": str(self.site)},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done

    def test_alone_it_says_nothing(self):
        self.add("fettle_others-1.dist-info", "fettle-is-great.txt")
        self.assertEqual(self.python(SEARCH).stderr, "")

    def test_a_search_warns_once(self):
        self.add("fettle-0.0.2.dist-info")
        said = self.python(SEARCH + SEARCH.replace("import fettle", "")).stderr
        self.assertEqual(said.count("another project"), 1, said)
        self.assertIn(f"RuntimeWarning: fettle 0.0.2 in {self.site} is another project", said)
        self.assertIn(REPAIR, said)

    def test_the_command_warns_and_works(self):
        self.add("Fettle-1.0rc1.egg-info")
        done = self.python("from fettle._command import main; main()", "--version")
        self.assertRegex(done.stdout, r"\d+\.\d+\.\d+")
        self.assertTrue(done.stderr.startswith("fettle: warning: fettle 1.0rc1 in "), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_integrations_name_what_was_replaced(self):
        own = self.site / "fettle" / "__init__.py"
        own.write_text('__version__ = "0.0.2"\n')  # as fettle 0.0.2 has it
        for change in (lambda: None, own.unlink):
            change()
            said = self.python("import fettle.integrations", exit_code=1).stderr
            self.assertRegex(said, "ImportError: another project's distribution, fettle, has replaced or removed")
            self.assertIn(REPAIR, said)

    def test_importing_fettle_looks_for_nothing(self):
        self.add("fettle-0.0.2.dist-info")
        self.python("import sys, fettle; fettle.report(1, loss=1); sys.exit('fettle._namesake' in sys.modules)", flags=("-B", "-W", "error"))

    def test_a_package_inside_of_an_archive(self):
        archive = shutil.make_archive(str(self.folder / "site"), "zip", self.site)
        self.site = pathlib.Path(archive)
        self.assertEqual(self.python(SEARCH).stderr, "")


if __name__ == "__main__":
    unittest.main()
