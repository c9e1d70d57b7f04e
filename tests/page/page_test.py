"""Uses the report page as a person would, in Chromium by Playwright.

run.sh runs it.
"""

import atexit
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from playwright.sync_api import expect

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import report_studies  # noqa: E402
from any_page import AnyPage  # noqa: E402
from browser import PHONE, BrowserTest  # noqa: E402

URL = os.environ.get("FETTLE_PAGE_URL")
_pages = {}


def pages():
    """Addresses of the pages of small Studies, made once."""
    if not _pages:
        folder = tempfile.mkdtemp(prefix="fettle-page-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        fettle = os.environ["FETTLE"]
        with contextlib.chdir(folder):
            pathlib.Path("pages").mkdir()
            sixty = report_studies.page_of(fettle, "sixty", 60)
            report_studies.page_of(fettle, "none", 1, suspend=True)
            report_studies.hostile_texts(sixty, "hostile")
            report_studies.repeat_trials(sixty, "thousands", 2000)
        for file in pathlib.Path(folder, "pages").iterdir():
            _pages[file.stem] = file.as_uri()
    return _pages


class FilePage(AnyPage, BrowserTest):
    """The file that `fettle report` writes."""

    def address(self):
        return pages()["sixty"]

    def test_hostile_texts_stay_text(self):
        page = self.open(pages()["hostile"])
        self.assert_fits(page)
        self.assertEqual(page.locator("#broken").count(), 0)
        self.assertNotIn("\u202e", page.inner_text("body"))
        page.set_viewport_size(PHONE)
        self.assert_fits(page)

    def test_without_trials(self):
        page = self.open(pages()["none"])
        expect(page.locator("#best-so-far .empty")).to_have_text("No result yet.")
        outside = page.evaluate(
            """() => [...document.querySelectorAll('section:not([hidden]) h2')].filter((head) =>
                 head.getBoundingClientRect().top < head.closest('section').getBoundingClientRect().top + 10)
                 .map((head) => head.textContent)"""
        )
        self.assertEqual(outside, [], "heads that stand on the edge of their section")
        self.assert_accessible(page)

    def test_changes_under_an_open_panel(self):
        page = self.open(self.address())
        page.fill("#filter", "epoch>=1")
        page.locator("#trials th").nth(3).click()
        row = page.locator("#trials tr[data-trial]").nth(2)
        name = row.get_attribute("data-trial")
        row.click()
        page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 700); }")
        page.locator("#detail .close").focus()
        before = page.evaluate("() => [scrollY, document.querySelector('#best-so-far canvas').id = 'same']")
        page.evaluate(
            """(name) => apply_changes({study: {...study, message: 'changed'}, trials: [
                 {...names.get(name), step: 4321, ending: '<b id=broken>\u202ebad'},
                 {...trials[0], name: '</script><b id=broken>', index: trials.length, phase: 'Running', step: 3}]})""",
            name,
        )
        expect(page.locator("#message")).to_have_text("changed")
        expect(page.locator("#detail dl")).to_contain_text("4321")
        expect(page.locator("#detail-title")).to_have_text(name)
        self.assertEqual(page.evaluate("() => document.activeElement.className"), "close")
        self.assertEqual(page.evaluate("() => [scrollY, document.querySelector('#best-so-far canvas').id]"), before)
        self.assertEqual(page.input_value("#filter"), "epoch>=1")
        self.assertEqual(page.locator("#trials th").nth(3).get_attribute("aria-sort"), "ascending")
        page.locator("#trials").scroll_into_view_if_needed()
        expect(page.locator(f"tr[data-trial={name}]")).to_contain_text("4321")
        self.assertEqual(page.locator("#broken").count(), 0)
        self.assertTrue(page.evaluate("() => selected_names.has('</script><b id=broken>')"))

    def test_another_document(self):
        page = self.open(self.address())
        page.fill("#filter", "completed")
        page.select_option("#along", "time")
        page.evaluate("() => load_document({...data, trials: data.trials.slice(0, 9).map((trial) => ({...trial}))})")
        expect(page.locator("#shown")).to_contain_text(" of 9 trials")
        self.assertEqual(page.input_value("#along"), "time")
        self.assertEqual(page.input_value("#filter"), "completed")

    def test_what_is_off_screen_waits(self):
        page = self.open(self.address())
        page.evaluate("() => scrollTo(0, 0)")
        wait = """([id, until]) => new Promise((done) => {
          const look = () => views.get(document.getElementById(id)).drawn_at > until ? done()
            : requestAnimationFrame(look);
          look();
        })"""
        # All were drawn long ago, so nothing but their place keeps them from being drawn.
        page.evaluate(
            """() => {
              for (const view of views.values()) view.drawn_at = 1;
              apply_changes({trials: [{...trials[0], step: 9}]});
            }"""
        )
        page.evaluate(
            """() => new Promise((done) => {
              const look = () => [...views.values()].some((view) => view.near && is_waiting(view))
                ? requestAnimationFrame(look) : done();
              look();
            })"""
        )
        self.assertGreater(page.evaluate("() => views.get(document.getElementById('legend')).drawn_at"), 1)
        self.assertEqual(page.evaluate("() => views.get(document.getElementById('timeline')).drawn_at"), 1)
        page.locator("#timeline").scroll_into_view_if_needed()
        page.evaluate(wait, ["timeline", 1])

    def test_thousands_of_rows(self):
        page = self.open(pages()["thousands"])
        expect(page.locator("#shown")).to_have_text("2000 trials")
        self.assertLess(page.locator("#trials tr[data-trial]").count(), 200)
        page.locator("#trials tr[data-trial]").first.focus()
        page.keyboard.press("End")
        last = page.evaluate("() => document.activeElement.dataset.trial")
        self.assertEqual(last, "thousands-1999")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.locator("#detail-title")).to_have_text("thousands-1998")
        place = "() => document.querySelector('#trials .scroll').scrollTop"
        before = page.evaluate(place)
        page.evaluate("() => apply_changes({trials: [{...trials[1998], step: 777}]})")
        expect(page.locator("tr[data-trial=thousands-1998]")).to_contain_text("777")
        self.assertEqual(page.evaluate(place), before)
        self.assertEqual(page.locator("tr[data-trial=thousands-1998]").get_attribute("aria-rowindex"), "2000")


class PageAtUrl(AnyPage, BrowserTest):
    """The page at FETTLE_PAGE_URL, of a Study with a parameter `depth`."""

    def address(self):
        return URL


def load_tests(loader, _tests, _pattern):
    return loader.loadTestsFromTestCase(PageAtUrl if URL else FilePage)

