"""`./test python`: the virtual environment is that of the packages and of the Python of today, or made anew."""

import sys

import pytest
import toy

# A Python of another version, as after an upgrade of the system.
UPGRADED = f"""#!/bin/sh
[ "$1" != -c ] || set -- -c "import sys; sys.version = '9.9'; $2"
exec {sys.executable} "$@"
"""


@pytest.fixture
def repository(tmp_path):
    repository = toy.Repository(tmp_path)
    repository.take("test", "tests/gate/runner.sh")
    repository.write("tests/requirements.txt", "# nothing\n")
    return repository


def kept(repository, **variables):
    """Runs the stage; returns whether a file that stands in the environment was kept."""
    ended = repository.run("./test", "python", **variables)
    assert ended.returncode == 0, ended.stdout
    venv = repository.folder / "target/venv"
    was_kept = (venv / "mark").exists()
    assert repository.run(venv / "bin/python", "-m", "pip", "--version").returncode == 0
    (venv / "mark").touch()
    return was_kept


def test_it_is_made_anew_where_packages_or_python_changed(repository, tmp_path):
    assert not kept(repository)
    assert kept(repository)
    repository.write("tests/requirements.txt", "# nothing else\n")
    assert not kept(repository)
    assert kept(repository)
    repository.write("programs/python3", UPGRADED, 0o755)
    upgraded = f"{tmp_path}/programs:{toy.ENVIRONMENT['PATH']}"
    assert not kept(repository, PATH=upgraded)
    assert kept(repository, PATH=upgraded)


def test_one_that_was_not_finished_is_made_anew(repository):
    assert not kept(repository)
    (repository.folder / "target/venv/installed.txt").unlink()
    assert not kept(repository)
