"""The ReFrame test of docs/examples, run by ReFrame: here and on a Slurm."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import command

EXAMPLE = command.ROOT / "docs/examples/reframe"


def test_reframe_runs_a_farm_and_checks_its_rate(cluster, tmp_path):
    example = shutil.copytree(EXAMPLE, tmp_path / "example")
    farm = example / "farm.toml"
    # The cluster of the test binds no processors.
    text = farm.read_text(encoding="utf-8").replace("[slurm]", "[slurm]\nstep_options = []")
    farm.write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hodo").symlink_to(command.HODO)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    reframe = pathlib.Path(sys.executable).with_name("reframe")
    words = [reframe, "-C", example / "settings.py", "-c", example / "farm_rate.py", "--prefix", tmp_path / "out", "-r"]
    done = subprocess.run(
        [*words, "--performance-report"], cwd=tmp_path, env={**cluster.environment, "PATH": path, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr}"
    assert re.search(r"Ran 4/4 test case\(s\)", done.stdout), done.stdout
    for partition in ("here:local", "here:slurm"):
        assert partition in done.stdout
