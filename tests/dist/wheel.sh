#!/usr/bin/env bash
# Tries the wheels of `make wheel` in a clean Debian 12, as an ordinary user with a virtual environment: the commands,
# tune() in processes, and the built-in trainer. Needs root, and a Debian mirror.
# Usage: wheel.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
wheels=$(realpath "$1")/wheels
scripts/setup.sh mmdebstrap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HOME/.cache/fettle/wheel-1/bin/python" -B scripts/bind_older_test.py
python3 -m zipfile -l "$(echo "$wheels"/hydra_fettle_sweeper-*.whl)" | grep '^hydra_plugins/hydra_fettle_sweeper/' > /dev/null

mmdebstrap --quiet --variant=minbase --include=python3,python3-venv bookworm "$work/root"
echo 'someone:x:1000:1000::/home/someone:/bin/bash' >> "$work/root/etc/passwd"
mkdir -p "$work/root/home/someone/wheels"
install -m 644 "$wheels"/fettle_*.whl "$work/root/home/someone/wheels"
cat > "$work/root/home/someone/first.py" << 'PROGRAM'
import fettle

def train(x, trial):
    for step in trial.steps():
        trial.report(step, x * x + 1 / step)

result = fettle.tune(train, {"x": fettle.uniform(-1, 1)}, minimize="loss", trials=20, workers=2, resource=(1, 9))
print(len(result.trials), "trials", {one.state for one in result.trials} == {"completed", "stopped"})
PROGRAM

chown -R 1000:1000 "$work/root/home/someone"
# shellcheck disable=SC2016 # the inner shell expands them
unshare --mount --pid --fork --kill-child sh -c \
  'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && exec chroot --userspec=1000:1000 "$0" /bin/bash -c "$1"' \
  "$work/root" 'set -e; export HOME=/home/someone; cd; python3 -m venv venv; . venv/bin/activate
    pip install --quiet --no-index wheels/*.whl
    fettle --version; kubectl-fettle --help > /dev/null; python first.py | grep "20 trials True"
    fettle init python > /dev/null; fettle run study.yaml | tail -40 > said; grep -q "^python succeeded" said
    if pip show --quiet fettle-trainer; then
      mkdir trainer; cd trainer; fettle init trainer > /dev/null; fettle run study.yaml | grep "^Best: "
    fi'
echo 'wheel: passed'
