#!/usr/bin/env bash
# Prints a Python that has the libraries of tests/integrations/pins/PINS.txt: a virtual environment in ~/.cache/fettle,
# made once for each content of that file. Those with PyTorch find it in the environment of torch_python.sh.
# Usage: integrations_python.sh newest|oldest|sample
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pins=$here/../tests/integrations/pins/${1:?newest, oldest or sample}.txt
[ -f "$pins" ] || { echo "$pins is missing: name newest, oldest or sample" >&2; exit 1; }

python3 -m venv --help > /dev/null || "$here/setup.sh" python3-venv >&2
key=$({ python3 --version; cat "$pins"; } | sha256sum | cut -c1-12)
folder=$HOME/.cache/fettle/integrations-$key
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder"
  python3 -m venv "$folder"
  if grep -q lightning "$pins"; then
    torch=$("$here/torch_python.sh")
    "$torch" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' > \
      "$(echo "$folder"/lib/python3*/site-packages)/torch.pth"
  fi
  "$folder/bin/pip" install --quiet --no-compile --requirement "$pins" >&2
  touch "$folder/complete"
fi
echo "$folder/bin/python"
