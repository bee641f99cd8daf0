"""GHDL, a simulator of hardware, for the tests."""

import subprocess

import pytest

# The LLVM backend: the others cannot link foreign objects.
GHDL = "ghdl-llvm"
BOUND_S = 300


def run(*arguments, **options):
    try:
        done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=BOUND_S, check=False, **options)
    except FileNotFoundError:
        pytest.fail(f"{arguments[0]} is not there: ./test tools, or apt-get install {arguments[0]}")
    assert done.returncode == 0, f"{' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
