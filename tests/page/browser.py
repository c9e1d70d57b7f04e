"""A browser for tests of pages: opens them, collects what went wrong in them, and asks axe-core about them."""

import atexit
import contextlib
import os
import pathlib
import unittest

from playwright.sync_api import TimeoutError as Late
from playwright.sync_api import expect, sync_playwright

PATIENCE = 120_000  # ms after which what is waited for never comes
TOOLS = pathlib.Path(os.environ["FETTLE_PAGE_TOOLS"])
WIDE = {"width": 1400, "height": 1000}
PHONE = {"width": 420, "height": 900}

_started = []


def browser():
    """One for all tests."""
    if not _started:
        playwright = sync_playwright().start()
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        _started.append(chromium)
        atexit.register(playwright.stop)
        atexit.register(chromium.close)
        expect.set_options(timeout=PATIENCE)
    return _started[0]


class BrowserTest(unittest.TestCase):
    """Every page that a test opens must end without errors on its console, but for those that it allows."""

    def open(self, url, until="html[data-drawn]", allow=None, **options):
        context = browser().new_context(viewport=options.pop("viewport", WIDE), **options)
        self.addCleanup(context.close)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        errors = []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: (errors.append("dialog: " + dialog.message), dialog.dismiss()))
        self.addCleanup(lambda: self.assertEqual([one for one in errors if not (allow and allow in one)], []))
        page.goto(url)
        page.wait_for_selector(until)
        return page

    def assert_fits(self, page):
        """Nothing is wider than the window, once the charts have followed its size."""
        with contextlib.suppress(Late):
            page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
        wide = page.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
                 .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
                 .map((each) => each.outerHTML.slice(0, 100))"""
        )
        self.assertEqual(wide, [])

    def assert_accessible(self, page):
        """axe-core finds nothing serious."""
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate((TOOLS / "node_modules/axe-core/axe.min.js").read_text())
        found = page.evaluate("() => axe.run({resultTypes: ['violations']})")
        bad = [
            f"{one['impact']}: {one['id']}: {node['html'][:160]}: {node['failureSummary'][:300]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]
        self.assertEqual(bad, [])
