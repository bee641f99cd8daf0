"""`./test quick` chooses by what a change is about, and builds what `./test` builds; `./test long` runs what is marked so, wherever the mark is set."""

import re
import shutil
import subprocess
import sys

import pytest
import toy

ABOUT = {"crates", *(folder.name for folder in (toy.ROOT / "protocols").iterdir())}
CHOOSES = """#!/usr/bin/env bash
cd "$(dirname "$0")" && . tests/gate/quick.sh
PROFILE=the-profile
quick "$@"
echo "stages: ${CHOSEN[*]}"
echo "built: $BUILT"
echo "run: $CLI"
"""
STAGES = {"format", "style", "licences"}
ALWAYS = "the-profile -p hodo-cli -p hodo-catalog -p hodo-toy"


@pytest.fixture
def repository(tmp_path):
    """A repository with two protocols and a crate, and a clone of it, whose upstream it is; `./choose` says what `./test quick` chooses."""
    upstream = toy.Repository(tmp_path / "upstream")
    upstream.take("tests/gate/quick.sh")
    upstream.write("choose", CHOOSES, 0o755)
    for folder, name in (("protocols/one/machines", "one"), ("protocols/one/host", "one-host"), ("protocols/two/host", "two"), ("crates/io", "io"), ("crates/sim", "sim")):
        upstream.write(f"{folder}/Cargo.toml", f'[package]\nname = "{name}"\n[[test]]\nname = "all"\n')
    upstream.write("tests/cli/test_one.py", "")
    upstream.commit()
    upstream.git("clone", "--quiet", str(upstream.folder), str(tmp_path / "clone"))
    return toy.Repository(tmp_path / "clone")


def chosen(repository, *names):
    """Returns the stages, the packages and the tests of the command that are chosen, and what is said before."""
    ended = repository.run("./choose", *names)
    assert ended.returncode == 0, ended.stdout
    said, stages, built, run = re.fullmatch(r"(.*?)stages: (.*)\nbuilt: (.*)\nrun: (.*)\n", ended.stdout, re.DOTALL).groups()
    return set(stages.split()), sorted(built.removeprefix(ALWAYS).split(" -p ")[1:]), sorted(re.findall("--about=([^ ]+)", run)), said


def test_a_protocol_is_chosen_by_its_name(repository):
    assert chosen(repository, "one") == (STAGES | {"unit", "cli"}, ["one", "one-host"], ["one"], "")
    assert chosen(repository, "two", "crates") == (STAGES | {"unit", "cli"}, ["io", "sim", "two"], ["crates", "two"], "")
    for name in ("three", "one/host", "."):
        ended = repository.run("./choose", name)
        assert ended.returncode == 2 and ended.stdout == f"there is no '{name}': ./test quick NAME, with a name of these: crates one two\n"


def test_what_has_changed_is_chosen(repository):
    ended = repository.run("./choose")
    assert ended.returncode == 2 and ended.stdout.startswith("nothing differs from origin/"), ended.stdout
    # One that is committed, one that is not, and one that git has not been told of.
    repository.write("README.md", "changed\n")
    repository.commit()
    assert chosen(repository)[:3] == (STAGES, [], [])
    repository.write("protocols/one/machines/Cargo.toml", '[package]\nname = "one"\n')
    assert chosen(repository)[:3] == (STAGES | {"unit", "cli"}, ["one", "one-host"], ["one"])
    repository.write("crates/io/src/new.rs", "")
    repository.write("tests/netns/test_new.py", "")
    *what, said = chosen(repository)
    assert what == [STAGES | {"unit", "cli"}, ["io", "one", "one-host"], ["crates", "one"]]
    assert re.fullmatch(r"what differs from origin/\w+ is about: (crates one|one crates)\nleft to ./test: tests/netns/test_new.py\n", said)
    repository.commit()
    repository.git("branch", "--unset-upstream")
    assert repository.run("./choose").stdout.startswith("nothing differs from HEAD")
    repository.write("tests/cli/test_one.py", "changed\n")
    repository.write("tests/gate/test_new.py", "")
    assert chosen(repository)[:3] == (STAGES | {"cli", "gate"}, [], ["tests/cli/test_one.py"])
    # Nothing is asked for of what is no longer there.
    (repository.folder / "tests/cli/test_one.py").unlink()
    shutil.rmtree(repository.folder / "protocols/one")
    assert chosen(repository)[:3] == (STAGES | {"gate", "unit"}, [], [])


@pytest.mark.parametrize(("protocol", "count"), [("ipbus", 2), ("raw", 0)])
def test_files_are_chosen_by_what_they_are_about(protocol, count):
    """Two files of one protocol: all of their tests are chosen for it, and none for another. One more is chosen by its name."""
    files = ["tests/cli/test_hub.py", "tests/cli/test_controlhub.py", "tests/cli/test_log.py"]
    chosen = {name.split("::")[0] for name in names(f"--about={protocol}", f"--about={files[2]}", *files)}
    assert chosen == {*files[:count], files[2]}


@pytest.mark.parametrize("about", sorted(ABOUT))
def test_what_is_chosen_has_the_features_of_the_whole_workspace(about):
    """Otherwise it would be built beside it, a second time."""
    repository = toy.Repository(toy.ROOT)
    script = 'PROFILE= && . tests/gate/quick.sh && quick "$1" && echo $BUILT'
    packages = subprocess.run(["bash", "-c", script, "quick", about], cwd=toy.ROOT, check=True, capture_output=True, text=True).stdout.split()
    assert len(packages) > 6
    missing = features(repository, *packages) - features(repository, "--workspace", "--exclude", "hodo-style")
    assert not missing


def features(repository, *packages):
    """Returns each package that these are built and tested with, with its features."""
    tree = repository.run("cargo", "tree", "--quiet", "--locked", "--offline", "--prefix", "none", "--edges", "normal,build,dev", "--format", "{p} [{f}]", *packages)
    assert tree.returncode == 0, tree.stdout
    return {line.removesuffix(" (*)") for line in tree.stdout.splitlines() if line}


def test_what_a_folder_marks_for_long_is_not_of_the_gate():
    """The guest's own conftest marks most of its tests."""
    gate, long = names("tests/guest"), names("tests/guest", "--stage", "guest")
    assert gate and not gate & long
    assert "tests/guest/test_pingpong.py::test_ipv6_both_ways[64-1024]" in gate
    assert "tests/guest/test_pingpong.py::test_ipv6_both_ways[65536-1024]" in long


def names(*arguments):
    """Returns the names of the tests that these arguments choose."""
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--collect-only", *arguments]
    return {name for name in toy.Repository(toy.ROOT).run(*line, HODO="/bin/true").stdout.splitlines() if "::" in name}
