#!/usr/bin/env python3
"""Gets the files of megatron-core that the tests run, of each release in versions.txt: fetch.py CACHE-FOLDER

Wheels come from the package index by pip, without their dependencies; three files of each are kept. What is in the
folder already is not fetched again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile

KEPT = (
    "megatron/core/timers.py",
    "megatron/core/parallel_state.py",
    "megatron/core/transformer/attention.py",
)
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_24_x86_64", "any")


def releases() -> list[list[str]]:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "versions.txt"), encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


def pip_of(folder: str) -> list[str]:
    """A pip: this Python's, or that of an environment made for it."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True).returncode == 0:
        return own
    environment = os.path.join(folder, "environment")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, capture_output=True)
    return [os.path.join(environment, "bin", "python3"), "-m", "pip"]


def fetch(release: str, python: str, cache: str) -> None:
    folder = os.path.join(cache, f"megatron-core-{release}")
    if os.path.isdir(folder):
        return
    # Unpacked beside and renamed, so that it is there whole.
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=cache) as beside:
        command = [*pip_of(beside), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
        command += ["--implementation", "cp", "--python-version", python, "--dest", beside]
        for platform in PLATFORMS:
            command += ["--platform", platform]
        subprocess.run([*command, f"megatron-core=={release}"], check=True)
        wheel = next(name for name in os.listdir(beside) if name.endswith(".whl"))
        unpacked = os.path.join(beside, "unpacked")
        with zipfile.ZipFile(os.path.join(beside, wheel)) as archive:
            archive.extractall(unpacked, KEPT)
        try:
            os.rename(unpacked, folder)
        except OSError:
            # Whoever was quicker has the same.
            if not os.path.isdir(folder):
                raise


def main() -> None:
    cache = sys.argv[1]
    os.makedirs(cache, exist_ok=True)
    for release, python in releases():
        fetch(release, python, cache)


if __name__ == "__main__":
    main()
