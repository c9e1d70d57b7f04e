"""What holds for a page of a Study with trials, whoever serves it."""

from browser import PHONE
from playwright.sync_api import expect

# Whether the focus went on to an element further down, told of each that had it.
GOES_ON = """() => {
  const [before, here] = [window.focused_before, document.activeElement];
  window.focused_before = here;
  return !before || Boolean(before.compareDocumentPosition(here) & Node.DOCUMENT_POSITION_FOLLOWING);
}"""


class AnyPage:
    """Mixed into a BrowserTest that has address()."""

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
