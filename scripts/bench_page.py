#!/usr/bin/env python3
"""How fast the report page draws a Study of thousands of trials, and how smoothly it follows one.

Makes a page as bench_report.py does, opens it in Chromium by Playwright, and measures: until the first window is drawn
and until all is; the theme button; then, at several places of the page, some seconds of 10 changes a second (each a
report of a running trial, the end of another or a new one): tasks over 50 ms, and times between frames.

Usage: bench_page.py FETTLE [--trials N] [--seconds S] [--page FILE]   (by a Python that has Playwright: make bench-page)
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

HERE = pathlib.Path(__file__).resolve().parent
PLACES = ["cards", "curves", "expectation", "parameters", "parallel", "timeline", "trials"]
CHANGES_A_SECOND = 10

IN_VIEW = """() => data !== null && is_observed && ![...views.values()].some((view) => view.near && is_waiting(view))"""

# A click, and how long until everything in view has its colours.
THEME = """() => new Promise((done) => {
  const began = performance.now();
  document.getElementById('theme').click();
  const clicked = performance.now() - began;
  const look = () => [...views.values()].some((view) => view.near && is_waiting(view))
    ? requestAnimationFrame(look) : done([clicked, performance.now() - began]);
  requestAnimationFrame(look);
})"""

# Changes for some seconds, as a runner of 8 trials at once makes them; returns tasks and frames in ms.
FOLLOW = """([seconds, rate]) => new Promise((done) => {
  const [frames, tasks, applied] = [[], [], []];
  const watcher = new PerformanceObserver((list) => list.getEntries().forEach((entry) => tasks.push(entry.duration)));
  watcher.observe({entryTypes: ['longtask']});
  const running = Array.from({length: 8}, (_, i) => trials[i]);
  let count = 0;
  const change = () => {
    const began = performance.now();
    const kind = ++count % 10;
    const row = (trial, more) => ({...trial, ...more, curve: trial.curve.map((point) => [...point])});
    let rows;
    if (kind === 0) {
      const model = trials[(count * 37) % trials.length];
      rows = [row(model, {name: 'new-' + trials.length, index: trials.length, phase: 'Running', runs: [
        [model.endedAt ?? 0, (model.endedAt ?? 0) + 100, 'Running', 0]]})];
    } else if (kind === 5) {
      const model = trials[(count * 53) % trials.length];
      rows = [row(model, {phase: 'Completed', seq: 1e6 + count, values: model.values.map((v) => v && v * 1.01)})];
    } else {
      const model = running[count % 8];
      rows = [row(model, {phase: 'Running', step: (count >> 3) % study.maxStep, values: model.values.map((v) => v && v * 0.999)})];
    }
    apply_changes({trials: rows, study: {...study, counts: {...study.counts, created: trials.length},
      tookSeconds: study.tookSeconds + count / rate}});
    applied.push(performance.now() - began);
  };
  const timer = setInterval(change, 1000 / rate);
  let last = performance.now();
  const end = last + 1000 * seconds;
  const frame = (now) => {
    frames.push(now - last);
    last = now;
    if (now < end) return requestAnimationFrame(frame);
    clearInterval(timer);
    watcher.disconnect();
    done({frames: frames.slice(1), tasks, applied});
  };
  requestAnimationFrame(frame);
})"""


def make_page(fettle, trials, folder):
    subprocess.run([sys.executable, str(HERE / "bench_report.py"), fettle, "--trials", str(trials), "--times", "1",
                    "--keep", str(folder)], check=True)  # fmt: skip
    return folder / "many.html"


def wait_until(page, condition):
    while not page.evaluate(condition):
        time.sleep(0.01)


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def measure_opening(page, file):
    began = time.monotonic()
    page.goto(f"file://{file}")
    wait_until(page, IN_VIEW)
    in_view = time.monotonic() - began
    wait_until(page, "() => document.documentElement.dataset.drawn !== undefined")
    print(f"first window drawn after {in_view:.2f} s, all after {time.monotonic() - began:.2f} s", flush=True)


def measure_following(page, seconds):
    frames, tasks = [], []
    for place in PLACES:
        page.evaluate("(id) => document.getElementById(id).scrollIntoView({block: 'center'})", place)
        wait_until(page, IN_VIEW)
        seen = page.evaluate(FOLLOW, [seconds, CHANGES_A_SECOND])
        frames += seen["frames"]
        tasks += seen["tasks"]
        under = sum(frame < 50 for frame in seen["frames"]) / len(seen["frames"])
        print(f"{place:12}: {len(seen['frames']) / seconds:5.1f} frames a second, {100 * under:5.1f} % under 50 ms; "
              f"{len(seen['tasks'])} tasks over 50 ms, the longest {max(seen['tasks'], default=0):.0f} ms; a change "
              f"is merged in {quantile(seen['applied'], 0.5):.2f} ms", flush=True)  # fmt: skip
    under = sum(frame < 50 for frame in frames) / len(frames)
    print(f"all together: {100 * under:.1f} % of {len(frames)} frames under 50 ms, "
          f"{sum(task > 100 for task in tasks)} tasks over 100 ms, the longest {max(tasks, default=0):.0f} ms")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle")
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=5, help="at each place of the page")
    parser.add_argument("--page", type=pathlib.Path, help="one that is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = options.page or make_page(options.fettle, options.trials, pathlib.Path(folder))
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        measure_opening(page, file.resolve())
        clicked, done = page.evaluate(THEME)
        print(f"theme: {clicked:.0f} ms in the click, {done:.0f} ms until all in view has its colours", flush=True)
        measure_following(page, options.seconds)
        browser.close()
        if errors:
            sys.exit(json.dumps(errors))


if __name__ == "__main__":
    main()
