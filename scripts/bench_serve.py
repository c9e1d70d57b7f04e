#!/usr/bin/env python3
"""How well the live page follows a Study of quick trials, and what that costs.

Starts a Study and `fettle serve`, opens the page in Chromium by Playwright, and follows the Study to its end at several
places of the page: how long after the end of a trial the page has it, tasks over 50 ms, and times between frames. Then
a slow Study, first alone and then followed: processor time of its runner and of the server.

Usage: bench_serve.py FETTLE [--trials N] [--rate R] [--seconds S]   (by a Python that has Playwright: make bench-serve)
"""

import argparse
import os
import pathlib
import sys
import time

from playwright.sync_api import sync_playwright

PAGE_TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests/page"
PLACES = ["cards", "curves", "expectation", "parameters", "parallel", "timeline", "trials"]
AT_ONCE = 8

DRAWN_ONCE = """() => data !== null && ![...views.values()].some((view) => is_waiting(view) && view.drawn_at < 0)"""

# Keeps tasks, frames, and how long after its end each trial was there.
WATCH = """() => {
  window.seen = {tasks: [], frames: [], delays: []};
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => seen.tasks.push(entry.duration)))
    .observe({entryTypes: ['longtask']});
  let last = performance.now();
  const frame = (now) => {
    seen.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const begun = Date.parse(study.begun);
  const merge = merge_trial;
  merge_trial = (row) => {
    const merged = merge(row);
    const was_over = merged.before && merged.before.phase === 'Completed';
    if (row.phase === 'Completed' && !was_over) seen.delays.push(Date.now() - begun - row.endedAt);
    return merged;
  };
}"""


def quick_study(served, name, trials, program):
    document = served.study(name, trials, "/", at_once=AT_ONCE)
    document["spec"]["trial"]["template"]["spec"]["containers"][0]["command"] = ["/bin/sh", "-c", program]
    return document


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def print_seen(place, seen):
    frames, tasks, delays = seen["frames"], seen["tasks"], seen["delays"]
    under = sum(frame < 50 for frame in frames) / max(len(frames), 1)
    late = f"{quantile(delays, 0.5):.0f} ms, at most {max(delays):.0f} ms" if delays else "-"
    print(f"{place:12}: {len(delays):4} ends of trials on the page after {late}; {100 * under:5.1f} % of {len(frames)} "
          f"frames under 50 ms; {len(tasks)} tasks over 50 ms, the longest {max(tasks, default=0):.0f} ms", flush=True)  # fmt: skip


def open_study(page, server, name):
    """Opens the page of a Study that has just been started."""
    page.goto(server.address())
    page.wait_for_selector(f"a[href^='/study/{name}']")
    page.goto(server.address(f"/study/{name}"))
    page.wait_for_function(DRAWN_ONCE)


def follow_quick(served, page, folder, options):
    """Follows a Study of quick trials to its end, at each place of the page for a share of it."""
    program = f'sleep {AT_ONCE / options.rate}; echo "{{\\"step\\": 1, \\"loss\\": $FETTLE_PARAM_MOMENTUM}}"'
    began = time.monotonic()
    runner = folder.run(quick_study(served, "quick", options.trials, program))
    open_study(page, folder.server, "quick")
    page.evaluate(WATCH)
    total = {"tasks": [], "frames": [], "delays": []}
    for i, place in enumerate(PLACES):
        page.evaluate("(id) => document.getElementById(id).scrollIntoView({block: 'center'})", place)
        count = (i + 1) * options.trials // len(PLACES)
        page.wait_for_function("(count) => study.counts.completed >= count", arg=count, timeout=0, polling=200)
        seen = page.evaluate("() => { const now = seen; seen = {tasks: [], frames: [], delays: []}; return now; }")
        print_seen(place, seen)
        for kind, values in seen.items():
            total[kind] += values
    runner.wait()
    print_seen("all together", total)
    print(f"{options.trials} trials in {time.monotonic() - began:.0f} s", flush=True)


def follow_slow(served, page, folder, seconds):
    """Processor time of the runner of trials that report twice a second, without a page and with one."""
    program = 'for s in $(seq 9999); do echo "{\\"step\\": $s, \\"loss\\": 1}"; sleep 0.5; done'
    document = quick_study(served, "slow", 4, program)
    document["spec"]["resource"]["max"] = 9999
    runner = folder.run(document)
    for followed in (False, True):
        if followed:
            open_study(page, folder.server, "slow")
        before = [processor_seconds(one) for one in (runner, folder.server.process)]
        time.sleep(seconds)
        after = [processor_seconds(one) for one in (runner, folder.server.process)]
        shares = [100 * (b - a) / seconds for a, b in zip(before, after, strict=True)]
        print(f"{'followed' if followed else 'alone':12}: the runner {shares[0]:.2f} % of a core, "
              f"the server {shares[1]:.2f} %", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=25, help="trials a second, at most")
    parser.add_argument("--seconds", type=float, default=20, help="of the slow Study, alone and followed")
    options = parser.parse_args()
    os.environ["FETTLE"] = os.path.realpath(options.fettle)
    sys.path.insert(0, str(PAGE_TESTS))
    import served

    folder = served.Folder()
    folder.server = served.Server(folder)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            follow_quick(served, page, folder, options)
            follow_slow(served, page, folder, options.seconds)
            browser.close()
    finally:
        folder.server.close()
        folder.close()


if __name__ == "__main__":
    main()
