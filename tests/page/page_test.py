#!/usr/bin/env python3
"""Uses the report page as a person would, in Chromium by Playwright.

Usage: run.sh FETTLE [TEST...]   (tests as unittest names them; FETTLE_PAGE_URL: only the page at this address)
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


# Whether the focus went on to an element further down, told of each that had it.
GOES_ON = """() => {
  const [before, here] = [window.focused_before, document.activeElement];
  window.focused_before = here;
  return !before || Boolean(before.compareDocumentPosition(here) & Node.DOCUMENT_POSITION_FOLLOWING);
}"""


class AnyPage:
    """What holds for a page of a Study with trials, whoever serves it."""

    def address(self):
        raise NotImplementedError

    def test_opens(self):
        page = self.open(self.address())
        self.assertEqual(page.locator("h1").evaluate("(h1) => h1.firstChild.data"), page.evaluate("() => study.name"))
        self.assert_fits(page)
        for canvas in page.locator("section:not([hidden]) canvas").all():
            self.assertGreater(len(canvas.get_attribute("aria-label")), 20)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('button, input, select')].filter((each) => !(each.ariaLabel ||
                 each.closest('label')?.textContent || each.textContent).trim()).map((each) => each.outerHTML)"""
        )
        self.assertEqual(nameless, [])

    def test_filters(self):
        page = self.open(self.address())
        page.fill("#filter", "depth>=5")
        wanted = page.evaluate("() => trials.filter((trial) => trial.parameters.depth >= 5).length")
        expect(page.locator("#selection-text")).to_contain_text(f"{wanted} of ")
        expect(page.locator("#shown")).to_contain_text(f"{wanted} of ")
        page.click("#clear")
        expect(page.locator("#selection")).to_be_hidden()
        self.assertEqual(page.input_value("#filter"), "")

    def test_selects_on_an_axis(self):
        page = self.open(self.address())
        canvas = page.locator("#parallel canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        top, bottom = page.evaluate("() => { const l = parallel_layout(document.querySelector('#parallel canvas'));"
                                    " return [l.y(1), l.y(0.5)]; }")  # fmt: skip
        left = box["x"] + page.evaluate("() => parallel_layout(document.querySelector('#parallel canvas')).x(0)")
        page.mouse.move(left, box["y"] + bottom)
        page.mouse.down()
        page.mouse.move(left, box["y"] + top, steps=4)
        page.mouse.up()
        expect(page.locator("#selection")).to_be_visible()
        self.assertEqual(page.evaluate("() => chosen_ranges.size"), 1)
        page.mouse.click(left, box["y"] + bottom - 20)
        expect(page.locator("#selection")).to_be_hidden()

    def test_keyboard_alone(self):
        page = self.open(self.address())
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("() => document.activeElement.className"), "skip")
        while not page.evaluate("() => document.activeElement.dataset.trial"):
            self.assertTrue(page.evaluate(GOES_ON), page.evaluate("() => document.activeElement.outerHTML"))
            page.keyboard.press("Tab")
        self.assertNotEqual(page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle"), "none")
        first = page.evaluate("() => document.activeElement.dataset.trial")
        page.keyboard.press("ArrowDown")
        second = page.evaluate("() => document.activeElement.dataset.trial")
        self.assertNotEqual(first, second)
        page.keyboard.press("Enter")
        expect(page.locator("#detail")).to_be_visible()
        expect(page.locator("#detail-title")).to_have_text(second)
        self.assertEqual(page.evaluate("() => document.activeElement.className"), "close")
        self.assertTrue(page.url.endswith("#trial=" + second))
        page.keyboard.press("Escape")
        expect(page.locator("#detail")).to_be_hidden()
        self.assertEqual(page.evaluate("() => document.activeElement.dataset.trial"), second)
        page.keyboard.press("End")
        last = page.evaluate("() => rows_of.at(-1).name")
        self.assertEqual(page.evaluate("() => document.activeElement.dataset.trial"), last)

    def test_sorts_by_keys(self):
        page = self.open(self.address())
        head = page.locator("#trials th").nth(3)
        head.focus()
        page.keyboard.press("Enter")
        self.assertEqual(head.get_attribute("aria-sort"), "ascending")
        page.keyboard.press("Enter")
        self.assertEqual(head.get_attribute("aria-sort"), "descending")
        self.assertEqual(page.evaluate("() => document.activeElement.tagName"), "TH")

    def test_phone(self):
        page = self.open(self.address(), viewport=PHONE)
        self.assert_fits(page)
        page.locator("#trials tr[data-trial]").first.click()
        expect(page.locator("#detail")).to_be_visible()
        self.assert_fits(page)

    def test_dark(self):
        page = self.open(self.address(), color_scheme="dark")
        back = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + Number(b), 0)"
        charts = "() => [...drawn.values()].map((chart) => chart.id).join()"
        self.assertLess(page.evaluate(back), 200)
        before = page.evaluate(charts)
        color = page.evaluate("() => colors.accent")
        page.click("#theme")
        self.assertGreater(page.evaluate(back), 600)
        self.assertNotEqual(page.evaluate("() => colors.accent"), color)
        page.evaluate("() => draw_now()")
        self.assertEqual(page.evaluate(charts), before, "charts stay")

    def test_is_accessible(self):
        page = self.open(self.address())
        self.assert_accessible(page)
        page.click("#theme")
        page.locator("#trials tr[data-trial]").first.click()
        self.assert_accessible(page)


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


if __name__ == "__main__":
    unittest.main()
