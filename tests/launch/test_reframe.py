"""The ReFrame test of docs/examples, run by ReFrame: here and on a Slurm."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import command
import pytest

pytestmark = pytest.mark.long("launch")

EXAMPLE = command.ROOT / "docs/examples/reframe"


def test_reframe_runs_a_farm_and_checks_its_rate(cluster, tmp_path):
    example = shutil.copytree(EXAMPLE, tmp_path / "example")
    farm = example / "farm.toml"
    # The cluster of the test binds no processors.
    text = farm.read_text(encoding="utf-8").replace("[slurm]", "[slurm]\nstep_options = []")
    farm.write_text(text, encoding="utf-8")
    done = reframe(cluster, tmp_path, "--performance-report")
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr}"
    assert "Ran 4/4 test case(s)" in done.stdout, done.stdout
    assert all(partition in done.stdout for partition in ("here:local", "here:slurm"))

    check = example / "farm_rate.py"
    check.write_text(check.read_text(encoding="utf-8").replace("4_000", "4_000_000_000"), encoding="utf-8")
    slow = reframe(cluster, tmp_path, "--system", "here:local")
    assert slow.returncode != 0
    assert "failed to meet reference(s): rate=" in slow.stdout, slow.stdout


def reframe(cluster, folder, *options):
    """Runs the example with ReFrame, which finds `hodo` in its path."""
    (folder / "bin").mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "bin/hodo").symlink_to(command.HODO)
    here = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder)}
    program = pathlib.Path(sys.executable).with_name("reframe")
    example = folder / "example"
    words = ["-C", example / "settings.py", "-c", example / "farm_rate.py", "--prefix", folder / "out", "-r"]
    return subprocess.run(
        [program, *words, *options], cwd=folder, env={**cluster.environment, **here},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )
