"""Report pages of Studies of every size, for tests/report_page.sh: in pages/.

Usage: report_studies.py FETTLE, in an empty folder. Runs a few small Studies; the largest page is
one of them with its trials repeated.
"""

import json
import pathlib
import re
import subprocess
import sys

SCRIPT = r"""
for step in 1 2 3 4 5 6 7 8 9; do
  awk -v lr="$FETTLE_PARAM_LEARNING_RATE" -v depth="$FETTLE_PARAM_DEPTH" \
      -v kind="$FETTLE_PARAM_OPTIMIZER" -v momentum="$FETTLE_PARAM_MOMENTUM" -v step="$step" 'BEGIN {
    best = kind == "sgd" ? -1.5 + momentum : -3
    off = log(lr) / log(10) - best
    loss = 0.05 + 0.04 * off * off + 0.01 * (depth - 5) * (depth - 5) + 0.6 / step
    printf "{\"step\": %d, \"loss\": %.6f, \"seconds\": %.4f}\n", step, loss, depth * (1 + 0.05 * off * off)
  }'
  sleep 0.02
done
"""

STUDY = """
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: NAME}
spec:
  objectives: OBJECTIVES
  parameters:
  - {name: learning_rate, type: Double, min: 1e-5, max: 1, scale: Log}
  - {name: depth, type: Integer, min: 1, max: 9}
  - {name: optimizer, type: Categorical, values: [sgd, adam, "</script><b id=broken>"]}
  - {name: momentum, type: Double, min: 0, max: 1, when: {parameter: optimizer, in: [sgd]}}
  - {name: nesterov, type: Boolean, when: {parameter: optimizer, in: [sgd]}}
  - {name: unused, type: Double, min: 0, max: 1}
  resource: {unit: epoch, min: 1, max: 9}
  algorithm: {name: tpe, seed: 3}
  earlyStopping: {name: asha, reductionFactor: 3}
  budget: {trials: TRIALS, parallelism: 6}
  suspend: SUSPEND
  trial:
    template:
      spec:
        containers:
        - name: trial
          image: busybox
          resources: {requests: {cpu: 100m}}
          command: [/bin/sh, -c, SCRIPT]
"""

ONE = "[{metric: loss, direction: Minimize, goal: 0.06}]"
TWO = "[{metric: loss, direction: Minimize}, {metric: seconds, direction: Minimize}]"


# More parameters than the page asks the forest about, one with a name that every object knows.
CROWD = "".join(f"  - {{name: p{i}, type: Double, min: 0, max: 1}}\n" for i in range(14)) + (
    "  - {name: constructor, type: Double, min: 0, max: 1, when: {parameter: optimizer, in: [sgd]}}\n"
)


# Fails of two causes, one with a number that differs and with markup.
BROKEN = r"""
case $FETTLE_PARAM_DEPTH in
  [12]) echo "no memory for <b id=broken> $FETTLE_PARAM_UNUSED bytes" >&2; exit 3;;
  [34]) exit 4;;
esac
"""


def page_of(fettle, name, trials, objectives=ONE, suspend=False, stopping=True, crowd="", script=SCRIPT):
    text = STUDY.replace("SUSPEND", str(suspend).lower()).replace("SCRIPT", json.dumps(script))
    text = text.replace("NAME", name).replace("OBJECTIVES", objectives)
    text = text.replace("TRIALS", str(trials)).replace("  resource:", crowd + "  resource:")
    if not stopping:
        text = re.sub("  earlyStopping.*\n", "", text)
    pathlib.Path(name + ".yaml").write_text(text)
    run = subprocess.run([fettle, "run", name + ".yaml"], capture_output=True, text=True)
    if run.returncode not in (0, 130):
        sys.exit(f"{name}: {run.stdout}{run.stderr}")
    page = f"pages/{name}.html"
    subprocess.run([fettle, "report", name, "-o", page], check=True, stdout=subprocess.DEVNULL)
    return page


def with_data(page, name, change):
    """The same page with changed data, as pages/NAME.html."""
    html = pathlib.Path(page).read_text()
    opening = '<script type="application/json" id="data">'
    start = html.index(opening) + len(opening)
    end = html.index("</script>", start)
    data = json.loads(html[start:end])
    change(data)
    text = json.dumps(data).replace("<", "\\u003c")
    pathlib.Path(f"pages/{name}.html").write_text(html[:start] + text + html[end:])


def repeat_trials(page, name, count):
    """The same page with `count` trials, each a little different, on GPUs."""

    def repeat(data):
        some = data["trials"]
        data["trials"] = []
        for i in range(count):
            trial = json.loads(json.dumps(some[i % len(some)]))
            factor = 1 + 0.1 * ((i * 37) % 101) / 101
            later = (i // len(some)) * 3000
            trial.update(name=f"{name}-{i}", index=i)
            trial["values"] = [v and v * factor for v in trial["values"]]
            trial["curve"] = [[p[0]] + [v and v * factor for v in p[1:]] for p in trial["curve"]]
            trial["runs"] = [[run[0] + later, run[1] + later, run[2], 3.6] for run in trial["runs"]]
            trial["endedAt"] += later
            data["trials"].append(trial)
        data["study"]["gpuHours"] = sum(len(trial["runs"]) for trial in data["trials"]) / 1000

    with_data(page, name, repeat)


def hostile_texts(page, name):
    """The same page with long texts that are markup, or reverse what stands beside them."""

    def spoil(data):
        markup = "\u202e<b id=broken onclick=alert(1)>{{data}}"
        data["study"]["message"] = markup + "m" * 300
        data["study"]["algorithm"] = "tpe: " + markup + "a" * 300
        data["study"]["objectives"][0]["metric"] = markup.ljust(64, "w")
        for trial in data["trials"][::2]:
            trial.update(phase="Failed", ending=markup + "e" * 500)

    with_data(page, name, spoil)


def main():
    fettle = sys.argv[1]
    pathlib.Path("pages").mkdir()
    page_of(fettle, "none", 5, suspend=True)
    page_of(fettle, "one", 1)
    sixty = page_of(fettle, "sixty", 60)
    page_of(fettle, "crowd", 12, crowd=CROWD)
    page_of(fettle, "broken", 20, stopping=False, script=BROKEN + SCRIPT)
    page_of(fettle, "front", 60, objectives=TWO, stopping=False)
    hostile_texts(sixty, "hostile")
    repeat_trials(sixty, "thousands", 2000)


if __name__ == "__main__":
    main()
