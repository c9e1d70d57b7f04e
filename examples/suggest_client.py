"""Tunes a descent with Fettle's search: suggest_client.py [path of fettle]"""
import json
import sys
from subprocess import PIPE, Popen

fettle = Popen([*(sys.argv[1:] or ["fettle"]), "suggest"], text=True,
               stdin=PIPE, stdout=PIPE)
rate = {"name": "rate", "type": "float", "low": 1e-4, "high": 1, "log": True}
study = {"space": [rate], "resource": {"min": 1, "max": 27}}
lines, trials = [{"study": study}, {"ask": 1}], {}
while len(trials) < 100:
    print(*map(json.dumps, lines), sep="\n", file=fettle.stdin, flush=True)
    reply, lines = json.loads(fettle.stdout.readline()), [{"ask": 1}]
    for asked in reply.get("trials", []):  # a new one, or one that resumes
        trial = trials.setdefault(asked["id"], asked | {"step": 0, "value": 1})
    if reply.get("decision", "continue") == "continue" and trial["step"] < 27:
        trial["step"] += 1
        trial["value"] *= (1 - 5 * trial["params"]["rate"]) ** 2
        lines = [{"report": trial}]
print(len(trials), min(trials.values(), key=lambda trial: trial["value"]))
