"""Uses the pages of `fettle serve` as a person would, in Chromium by Playwright, while Studies run, die and go on.

run.sh runs it.
"""

import atexit
import functools
import json
import pathlib
import sys
import unittest

from playwright.sync_api import expect

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from any_page import GOES_ON, AnyPage  # noqa: E402
from browser import PHONE, BrowserTest  # noqa: E402
from served import LOSS, SECONDS, Folder, Proxy, Server  # noqa: E402

LIST = "#list:not([hidden])"
NO_CONNECTION = "net::ERR_"  # what Chromium says of a server that is not there


@functools.cache
def ended():
    """A folder of Studies that have ended, and its server."""
    folder = Folder()
    atexit.register(folder.close)
    folder.release("all")
    folder.start("quick", 24)
    folder.start("other", 12, seed=4)
    folder.start("front", 16, objectives=[SECONDS, LOSS])
    folder.finish("quick", "other", "front")
    server = Server(folder)
    atexit.register(server.close)
    return folder, server


class LiveTest(BrowserTest):
    def serve(self):
        """A folder of this test alone, and its server."""
        folder = Folder()
        self.addCleanup(folder.close)
        server = Server(folder)
        self.addCleanup(server.close)
        return folder, server

    def phase(self, page, trial):
        return page.evaluate("(name) => names.get(name)?.phase", trial)

    def expect_phase(self, page, trial, phase):
        page.wait_for_function("([name, phase]) => names.get(name)?.phase === phase", arg=[trial, phase])

    def best_value(self, folder, study):
        return json.loads(folder.fettle("best", study, "--output", "json"))["objectives"]["loss"]


class StudyPage(AnyPage, LiveTest):
    """The page of a Study that has ended: all that holds for a report."""

    def address(self):
        return ended()[1].address("/study/quick")

    def open(self, url, **options):
        page = super().open(url, **options)
        if "until" not in options:  # importance comes a little later, and its charts with it
            page.wait_for_function("() => data.insights.some((one) => one.importance)")
        return page

    def test_two_objectives(self):
        page = self.open(ended()[1].address("/study/front"))
        expect(page.locator("#front")).to_be_visible()
        expect(page.locator("#volume")).to_be_visible()
        page.select_option("#objective", label="loss")
        expect(page.locator("#cards .card").first).to_contain_text("Best loss")
        self.assert_fits(page)
        self.assert_accessible(page)

    def test_a_study_that_is_not_there(self):
        page = self.open(ended()[1].address("/study/nothing"), until="html.waiting")
        expect(page.locator("#message")).to_contain_text("as soon as there is one")
        self.assert_accessible(page)


class RunningStudy(LiveTest):
    def test_follows(self):
        folder, server = self.serve()
        overview = self.open(server.address(), until="#start:not([hidden])")
        folder.start("live", 12)
        line = overview.locator("table.studies tbody tr")
        expect(line).to_contain_text("running")
        overview.evaluate("() => { window.same = true; }")

        page = self.open(server.address("/study/live"))
        expect(page.locator("#name .pill")).to_have_text("running")
        expect(page.locator("#best-so-far .empty")).to_have_text("No result yet.")
        page.wait_for_function(  # curves of one point, as no line shows them
            """() => drawn.get(document.querySelector('#curves .plot'))?.data.datasets
                 .some((set) => set.type === 'scatter' && set.data.length === 4)"""
        )
        page.evaluate("() => { window.same = true; }")
        folder.release("live-0")
        self.expect_phase(page, "live-0", "Completed")
        page.locator("#trials").scroll_into_view_if_needed()  # what is off screen is not drawn again
        expect(page.locator("tr[data-trial=live-0]")).to_contain_text("Completed")
        page.locator("#best-so-far").scroll_into_view_if_needed()
        expect(page.locator("#cards .value.best")).not_to_have_text("–")
        expect(page.locator("#best-so-far canvas")).to_be_visible()
        self.expect_phase(page, "live-4", "Running")  # has taken its place

        folder.release("all")
        expect(page.locator("#name .pill")).to_have_text("succeeded")
        self.assertEqual(page.evaluate("() => [trials.length, window.same]"), [12, True], "without a reload")
        expect(line).to_contain_text("succeeded")
        best = overview.evaluate("(value) => number_text(value)", self.best_value(folder, "live"))
        expect(line.locator(".value")).to_have_text(best)
        expect(page.locator("#cards .value.best")).to_have_text(best)
        self.assertEqual(overview.evaluate("() => window.same"), True)

    def test_the_panel_follows_a_trial(self):
        folder, server = self.serve()
        folder.start("live", 6)
        page = self.open(server.address("/study/live"))
        page.locator("tr[data-trial=live-1]").click()
        log = page.locator("#detail pre.log")
        expect(log).to_contain_text("waits 3\n")
        last = int(log.inner_text().split()[-1])
        expect(log).to_contain_text(f"waits {last + 20}\n")
        expect(page.locator("#detail pre.why")).to_contain_text("chosen    by random")
        self.assertTrue(page.evaluate("""() => [...document.querySelectorAll('#detail pre')].every(
            (each) => each.scrollWidth <= each.clientWidth)"""))
        self.assertTrue(page.url.endswith("/study/live#trial=live-1"), page.url)
        self.assert_accessible(page)

        other = page.context.new_page()
        other.goto(page.url)  # the link, sent to somebody
        expect(other.locator("#detail-title")).to_have_text("live-1")
        expect(other.locator("#detail pre.log")).to_contain_text(f"waits {last + 20}\n")
        other.close()

        folder.release("live-1")
        expect(page.locator("#detail dl")).to_contain_text("Completed, epoch 4")
        expect(log).to_contain_text('"step": 4')
        page.keyboard.press("Escape")
        expect(page.locator("#detail")).to_be_hidden()

    def test_runner_is_killed_and_resumed(self):
        folder, server = self.serve()
        folder.start("live", 6)
        page = self.open(server.address("/study/live"))
        page.evaluate("() => { window.same = true; }")
        folder.release("live-0")
        self.expect_phase(page, "live-0", "Completed")
        folder.kill("live")
        expect(page.locator("#name .pill")).to_have_text("interrupted")
        folder.resume("live")
        expect(page.locator("#name .pill")).to_have_text("running")
        folder.release("live-2")
        self.expect_phase(page, "live-2", "Completed")
        self.assertEqual(self.phase(page, "live-0"), "Completed")
        folder.release("all")
        expect(page.locator("#name .pill")).to_have_text("succeeded")
        self.assertEqual(page.evaluate("() => trials.map((trial) => trial.phase)"), ["Completed"] * 6)
        self.assertEqual(page.evaluate("() => window.same"), True)

    def test_stream_is_dropped(self):
        folder, server = self.serve()
        folder.start("live", 12)
        proxy = Proxy(server.port)
        self.addCleanup(proxy.cut)
        page = self.open(server.address("/study/live", proxy.port), allow=NO_CONNECTION)
        direct = self.open(server.address("/study/live"))
        page.evaluate("""() => {
          window.documents = 0;
          const load = load_document;
          load_document = (loaded) => { ++window.documents; load(loaded); };
        }""")
        self.expect_phase(page, "live-3", "Running")
        proxy.cut()
        expect(page.locator("#banner")).to_contain_text("The connection was lost")
        expect(page.locator("#following")).to_have_text("not connected")
        self.assert_accessible(page)
        folder.release("live-0", "live-2")
        for trial in ("live-0", "live-2"):
            self.expect_phase(direct, trial, "Completed")
        self.expect_phase(direct, "live-5", "Running")
        self.assertEqual(self.phase(page, "live-0"), "Running")
        proxy.restore()
        self.expect_phase(page, "live-2", "Completed")
        self.expect_phase(page, "live-5", "Running")
        expect(page.locator("#banner")).to_be_hidden()
        expect(page.locator("#following")).to_have_text("live")
        self.assertGreaterEqual(len(proxy.resumed), 1)
        self.assertEqual(page.evaluate("() => window.documents"), 0, "resumed, not begun anew")
        folder.release("all")
        for one in (page, direct):
            expect(one.locator("#name .pill")).to_have_text("succeeded")
            one.locator("#trials").scroll_into_view_if_needed()
            expect(one.locator("#shown")).to_have_text("12 trials")
        rows = "() => trials.map((trial) => [trial.name, trial.phase, trial.values])"
        self.assertEqual(page.evaluate(rows), direct.evaluate(rows))
        self.assertEqual(page.locator("tr[data-trial]").count(), 12)

    def test_server_ends_and_another_one_begins(self):
        folder, server = self.serve()
        folder.start("live", 4)
        page = self.open(server.address("/study/live"), allow="Failed to load resource")
        server.close()
        expect(page.locator("#banner")).to_contain_text("The connection was lost")
        other = Server(folder, server.port)
        self.addCleanup(other.close)
        expect(page.locator("#banner")).to_contain_text("Open the address that fettle serve prints")
        page.goto(other.address("/study/live"))
        expect(page.locator("#following")).to_have_text("live")

    def test_study_is_deleted(self):
        folder, server = self.serve()
        folder.start("live", 4)
        page = self.open(server.address("/study/live"))
        page.evaluate("() => { window.same = true; }")
        overview = self.open(server.address(), until=LIST)
        folder.fettle("stop", "live", "--now")
        folder.fettle("delete", "live")
        expect(page.locator("#banner")).to_have_text("This study was deleted. The page shows what it last was.")
        self.assertEqual(page.evaluate("() => trials.length"), 4)
        expect(overview.locator("#start")).to_be_visible()
        self.assert_accessible(page)
        folder.resume("live")  # another study of that name
        page.wait_for_function("() => !window.same && data !== null && study.state === 'running'")
        expect(page.locator("#banner")).to_be_hidden()


    def test_study_cannot_be_read(self):
        folder, server = self.serve()
        folder.release("all")
        folder.start("live", 4)
        folder.finish("live")
        page = self.open(server.address("/study/live"))
        overview = self.open(server.address(), until=LIST)
        compared = self.open(server.address(), until=LIST, viewport=PHONE)
        compared.goto(f"http://127.0.0.1:{server.port}/compare?study=live&study=nothing")
        folder.spoil("live")
        expect(page.locator("#banner")).to_contain_text("This is as it was; it cannot be read now: ")
        self.assertEqual(page.evaluate("() => trials.length"), 4)
        expect(overview.locator("tbody tr .error")).to_contain_text("no SQLite database")
        expect(compared.locator("#message")).to_have_text("Not there: nothing. Cannot be read now: live.")
        for each in (page, overview, compared):
            self.assert_fits(each)
            self.assert_accessible(each)


class ListPage(LiveTest):
    def open_list(self, **options):
        return self.open(ended()[1].address(), until=LIST, **options)

    def test_shows_the_best(self):
        folder, _ = ended()
        page = self.open_list()
        for study in ("quick", "other"):
            line = page.locator("table.studies tr", has=page.get_by_role("link", name=study))
            best = page.evaluate("(value) => number_text(value)", self.best_value(folder, study))
            expect(line.locator(".value")).to_have_text(best)
            expect(line).to_contain_text("succeeded")
            expect(line.locator("svg.spark polyline")).to_have_count(1)
        page.get_by_role("link", name="quick").click()
        expect(page.locator("#shown")).to_have_text("24 trials")
        page.get_by_role("link", name="All studies").click()
        expect(page.locator("table.studies tbody tr")).to_have_count(3)

    def test_filters(self):
        page = self.open_list()
        page.fill("#filter", "qui succ")
        expect(page.locator("table.studies tbody tr:visible")).to_have_count(1)
        expect(page.locator("#shown")).to_have_text("1 of 3")
        page.fill("#filter", "failed")
        expect(page.locator("table.studies tbody tr:visible")).to_have_count(0)
        page.fill("#filter", "")
        expect(page.locator("table.studies tbody tr:visible")).to_have_count(3)

    def test_keyboard_alone(self):
        page = self.open_list()
        for name in ("quick", "other"):
            while page.evaluate("() => document.activeElement.getAttribute('aria-label')") != f"Compare {name}":
                page.keyboard.press("Tab")
                self.assertNotEqual(page.evaluate("() => document.activeElement.tagName"), "BODY", "not found")
            page.keyboard.press("Space")
            page.keyboard.press("Shift+Tab")
            while page.evaluate("() => document.activeElement.id") != "filter":
                page.keyboard.press("Shift+Tab")
        expect(page.locator("#compare")).to_have_text("Compare 2")
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("() => document.activeElement.id"), "compare")
        self.assertNotEqual(page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle"), "none")
        page.keyboard.press("Enter")
        expect(page.locator("#chips .chip")).to_have_count(2)

    def test_phone(self):
        page = self.open_list(viewport=PHONE)
        self.assert_fits(page)
        self.assert_accessible(page)

    def test_is_accessible(self):
        page = self.open_list(color_scheme="dark")
        self.assert_accessible(page)
        page.click("#theme")
        self.assert_accessible(page)

    def test_empty_folder(self):
        _, server = self.serve()
        page = self.open(server.address(), until="#start:not([hidden])", viewport=PHONE)
        expect(page.locator("#start")).to_contain_text("fettle init")
        expect(page.locator("#list")).to_be_hidden()
        self.assert_fits(page)
        self.assert_accessible(page)


class ComparisonPage(LiveTest):
    def open_comparison(self, *names, **options):
        address = ended()[1].address("/compare")
        page = self.open(ended()[1].address(), until=LIST, **options)
        page.goto(address.partition("?")[0] + "?" + "&".join("study=" + name for name in names))
        expect(page.locator("#chips .chip")).to_have_count(len(names))
        return page

    def test_two(self):
        folder, _ = ended()
        page = self.open_comparison("quick", "other")
        expect(page.locator("#progress canvas")).to_be_visible()
        values = {name: self.best_value(folder, name) for name in ("quick", "other")}
        leader = min(values, key=values.get)
        column = page.locator("table.compare thead th").all_inner_texts().index(leader)
        best = page.locator("table.compare tbody tr", has_text="best").first.locator("td").nth(column)
        expect(best).to_have_class("leads")
        expect(best).to_contain_text(page.evaluate("(value) => number_text(value)", values[leader]))
        points = "() => [...drawn.values()][0].data.datasets.map((set) => set.data.at(-1).x)"
        self.assertEqual(page.evaluate(points), [24, 12])
        page.select_option("#along", "time")
        self.assertNotEqual(page.evaluate(points), [24, 12])
        self.assert_fits(page)
        self.assert_accessible(page)

    def test_another_objective(self):
        page = self.open_comparison("quick", "other", "front")
        expect(page.locator("#left-out")).to_have_text("Not drawn, since the objective is another one: front.")
        self.assertEqual(page.evaluate("() => [...drawn.values()][0].data.datasets.length"), 2)

    def test_adds_and_leaves_out(self):
        page = self.open_comparison("quick")
        page.select_option("#chips select", "other")
        expect(page.locator("#chips .chip")).to_have_count(2)
        self.assertTrue(page.url.endswith("/compare?study=quick&study=other"), page.url)
        page.get_by_role("button", name="Leave out quick").click()
        expect(page.locator("#chips .chip")).to_have_count(1)
        self.assertTrue(page.url.endswith("/compare?study=other"), page.url)

    def test_keyboard_alone(self):
        page = self.open_comparison("quick", "other")
        page.evaluate("() => document.body.focus()")
        while page.evaluate("() => document.activeElement.id") != "along":
            page.keyboard.press("Tab")
            self.assertTrue(page.evaluate(GOES_ON), page.evaluate("() => document.activeElement.outerHTML"))
        page.keyboard.press("ArrowDown")
        self.assertEqual(page.input_value("#along"), "time")

    def test_phone_and_dark(self):
        page = self.open_comparison("quick", "other", viewport=PHONE, color_scheme="dark")
        self.assert_fits(page)
        self.assert_accessible(page)

    def test_not_there(self):
        page = self.open_comparison("quick", "nothing")
        expect(page.locator("#message")).to_have_text("Not there: nothing.")


def load_tests(loader, _tests, _pattern):
    cases = (StudyPage, RunningStudy, ListPage, ComparisonPage)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)

