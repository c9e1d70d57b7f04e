#!/usr/bin/env python3
"""Installs the CUDA toolchain of cuda_packages.txt: 1.2 GB to fetch, 1.8 GB on disk, no root, no GPU.

    scripts/cuda.py           (prints the folder)

The folder is ~/.cache/fettle/cuda-13.0.2 (in XDG_CACHE_HOME where that is set), outside every checkout.
Does nothing when it is there. It is made under another name and renamed when whole, so what is there is
complete; an installation from another list of packages is replaced.

Exit code 3: it cannot be installed on this machine; 2: it takes no arguments.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

VERSION = "13.0.2"  # of the toolkit, as its makers number the whole
LIST = pathlib.Path(__file__).resolve().parent / "cuda_packages.txt"
FRONTEND = "nvidia-cudnn-frontend=="  # each version goes into a folder of its own, cudnn-frontend-VERSION
FETCHED_MB = 1200
NEEDED_MB = 3200  # on disk while it is installed: what is fetched and what is unpacked


def cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fettle"


def is_installed(folder):
    stamp = folder / "packages.txt"
    return stamp.is_file() and stamp.read_bytes() == LIST.read_bytes()


def fail(message, code=3):
    print(f"cuda: {message}", file=sys.stderr)
    sys.exit(code)


def check_ways(folder):
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        fail(f"{sys.executable} has no pip; install it with: scripts/setup.sh python3-pip")
    free_mb = shutil.disk_usage(folder).free >> 20
    if free_mb < NEEDED_MB:
        fail(f"{folder} has {free_mb} MB free; installing the toolchain takes {NEEDED_MB} MB. "
             "Free some, or set XDG_CACHE_HOME to a folder on another disk")


def megabytes(folder):
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # pip moves what it has fetched
                pass
    return total >> 20


def groups():
    """What is installed together: folder below the toolchain's, and packages."""
    lines = [line.strip() for line in LIST.read_text().splitlines()]
    packages = [line for line in lines if line and not line.startswith("#")]
    frontends = [package for package in packages if package.startswith(FRONTEND)]
    yield "", [package for package in packages if package not in frontends]
    for package in frontends:
        yield f"cudnn-frontend-{package.removeprefix(FRONTEND)}", [package]


def install(staging):
    (staging / "tmp").mkdir()
    for folder, packages in groups():
        install_group(staging, staging / "site" / folder, packages)


def install_group(staging, target, packages):
    """Runs pip, and says every few seconds how far it is."""
    environment = dict(os.environ, TMPDIR=str(staging / "tmp"), PIP_DISABLE_PIP_VERSION_CHECK="1")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-cache-dir",
               "--only-binary", ":all:", "--target", str(target), *packages]
    log = staging / "log"
    with open(log, "wb") as out:
        pip = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        said = time.monotonic()
        while pip.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - said > 5:
                said = time.monotonic()
                print(f"cuda: {megabytes(staging)} MB so far", file=sys.stderr, flush=True)
    if pip.returncode != 0:
        sys.stderr.write("".join(log.read_text(errors="replace").splitlines(True)[-15:]))
        fail(f"pip could not install the packages of {LIST.name} (above: its last words). Check that this machine "
             "reaches a package index (PIP_INDEX_URL names another one), then run scripts/cuda.py again; or build "
             "with a toolkit that is there: docs/decisions/0016-cuda-toolchain.md")


def main():
    if len(sys.argv) > 1:
        fail(f"takes no arguments, found '{sys.argv[1]}'", code=2)
    folder = cache() / f"cuda-{VERSION}"
    if not is_installed(folder):
        cache().mkdir(parents=True, exist_ok=True)
        check_ways(cache())
        print(f"cuda: fetching the CUDA {VERSION} toolchain, about {FETCHED_MB} MB, into {folder}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix=f"cuda-{VERSION}.partial-", dir=cache()) as staging:
            staging = pathlib.Path(staging)
            install(staging)
            shutil.copyfile(LIST, staging / "site" / "packages.txt")
            if folder.exists() and not is_installed(folder):  # from another list
                folder.rename(staging / "replaced")
            try:
                (staging / "site").rename(folder)
            except OSError:  # another process was faster
                if not is_installed(folder):
                    raise
    print(folder)


if __name__ == "__main__":
    main()
