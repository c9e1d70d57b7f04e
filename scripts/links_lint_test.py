#!/usr/bin/env python3
"""scripts/links_lint.py sees one broken name of each kind, and none where all lead somewhere."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import links_lint


class LinksLint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        subprocess.run(["git", "init", "-q"], check=True)
        for path, text in {"Makefile": "run:\n\ttrue\n", "docs/commands.md": "## fettle run\n",
                           "docs/gpus.md": "# GPUs\n## `memory: auto`, or not\n", "docs/img/loop.svg": "<svg/>",
                           "core/plan.h": "", "core/facts.h": ""}.items():
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).write_text(text)

    def findings(self, text, path="README.md"):
        pathlib.Path(path).write_text(text)
        return [line.removeprefix(path + ":") for line in links_lint.findings()]

    def test_links(self):
        self.assertEqual(self.findings("a\n[b](docs/gone.md)"), ["2: the link leads nowhere: docs/gone.md"])
        self.assertEqual(self.findings("![b](docs/img/gone.png)"), ["1: the link leads nowhere: docs/img/gone.png"])
        self.assertEqual(self.findings('<img src="docs/gone.svg">'), ["1: the link leads nowhere: docs/gone.svg"])
        self.assertEqual(self.findings("[a\nb](docs/gone.md)"), ["1: the link leads nowhere: docs/gone.md"])
        self.assertEqual(self.findings("[a](docs/gpus.md) ![b](docs/img/loop.svg) [c](https://example.com)"), [])

    def test_links_are_relative_to_the_document(self):
        self.assertEqual(self.findings("[a](gpus.md) [b](../core/plan.h)", "docs/a.md"), [])
        self.assertEqual(len(self.findings("[a](docs/gpus.md)", "docs/a.md")), 1)

    def test_headings(self):
        self.assertEqual(self.findings("[a](docs/gpus.md#gone)"), ["1: there is no such heading: docs/gpus.md#gone"])
        self.assertEqual(self.findings("# Two words\n# Two words\n[a](#two-words-1)"), [])
        self.assertEqual(self.findings("[a](docs/gpus.md#memory-auto-or-not)"), [])

    def test_paths(self):
        self.assertEqual(self.findings("`core/gone.h`"), ["1: there is no core/gone.h"])
        self.assertEqual(self.findings("```\ncp core/gone.h .\n```"), ["2: there is no core/gone.h"])
        self.assertEqual(self.findings("`core/{plan,gone}.h`"), ["1: there is no core/gone.h"])
        self.assertEqual(self.findings("`gone.h`"), ["1: no file is called gone.h"])
        self.assertEqual(self.findings("`core/{plan,facts}.h` `core/*.h` `plan.h`"), [])
        self.assertEqual(self.findings("`other/gone.h` `$work/core/gone.h`"), [])

    def test_names_in_comments(self):
        self.assertEqual(self.findings("// See gone.h.\n", "core/a.cpp"), ["1: no file is called gone.h"])
        self.assertEqual(self.findings("int i;  // as in deep/plan.h\n", "core/a.cpp"),
                         ["1: no file is called deep/plan.h"])
        self.assertEqual(self.findings("// See plan.h, core/facts.h and <errno.h>; /tmp/gone.h\n", "core/a.cpp"), [])
        self.assertEqual(self.findings("#include <unistd.h>\n// getpid of unistd.h\n", "core/a.cpp"), [])
        self.assertEqual(self.findings('auto s = "gone.h";\n', "core/a.cpp"), [])

    def test_commands(self):
        self.assertEqual(self.findings("`fettle fly`"), ["1: fettle has no command fly"])
        self.assertEqual(self.findings("```\n$ kubectl fettle fly\n```"), ["2: fettle has no command fly"])
        self.assertEqual(self.findings("`make fly`"), ["1: the Makefile has no target fly"])
        self.assertEqual(self.findings("`fettle run FILE` `fettle COMMAND --help` `make run`"), [])

    def test_links_in_code_are_none(self):
        self.assertEqual(self.findings("`[a](gone.md)`\n```\n[a](gone.md)\n```"), [])


if __name__ == "__main__":
    unittest.main()
