"""`target/test/passed` holds the tree that a whole `./test` has passed on, and nothing else makes it stay."""

import pytest
import toy

TEST = """#!/usr/bin/env bash
set -uo pipefail
cd "$(dirname "$0")" || exit 2
. tests/gate/runner.sh
STAGES=(first second) LONG=() ASKED_FOR=() LIMIT_MIN=1 LOGS=$PWD/target/test
declare -A BESIDE=() NEEDS=([second]=first) ABOUT=([first]="a stage" [second]="another" [long_third]="one of ./test long")
stage_first() { cat first; }
stage_second() { sh second; }
if [[ $# -gt 0 ]]; then run_stages "$@"; else run_everything; fi
"""


@pytest.fixture
def repository(tmp_path):
    repository = toy.Repository(tmp_path)
    repository.take("tests/gate/runner.sh")
    repository.write("test", TEST, 0o755)
    repository.write("first", "test result: ok. 3 passed; 0 failed; 0 ignored\n")
    repository.write("second", "true\n")
    repository.write(".gitignore", "/target\n")
    repository.commit()
    return repository


def noted(repository):
    """Returns what `target/test/passed` holds, or `None` where it is not there."""
    file = repository.folder / "target/test/passed"
    return file.read_text() if file.exists() else None


def passes(repository, *stages, **variables):
    ended = repository.run("./test", *stages, **variables)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def test_a_whole_run_that_passed_on_a_commit_notes_its_tree(repository):
    assert "\n4 passed, 0 failed\n" in passes(repository)
    assert noted(repository) == repository.git("rev-parse", "HEAD^{tree}") + "\n"


@pytest.mark.parametrize("stages", [["first"], ["first", "second"]])
def test_a_run_of_stages_removes_the_note(repository, stages):
    passes(repository)
    passes(repository, *stages)
    assert noted(repository) is None


def test_a_stage_that_is_not_there_is_told(repository):
    for stage in ("third", "long_third"):
        ended = repository.run("./test", "first", stage)
        assert ended.returncode == 2 and ended.stdout == "unknown stage 'third'; ./test --list names the stages\n", ended.stdout


def test_a_whole_run_that_failed_removes_the_note(repository):
    passes(repository)
    repository.write("second", "exit 3\n")
    repository.commit()
    ended = repository.run("./test")
    assert ended.returncode == 1 and "\n3 passed, 1 failed\n" in ended.stdout, ended.stdout
    assert noted(repository) is None


CHANGES = ["echo more >>first", "echo new >untracked", "git rm -q --cached first", "rm -r .git"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_a_commit_is_not_noted(repository, change):
    passes(repository)
    assert repository.run("sh", "-c", change).returncode == 0
    assert "not noted" in passes(repository)
    assert noted(repository) is None


@pytest.mark.parametrize("change", [*CHANGES, "git commit -q --allow-empty -m another"])
def test_what_changed_during_the_run_is_not_noted(repository, change):
    # In a file that git does not look at, since it belongs to no commit.
    repository.write(".git/info/exclude", "second\n")
    repository.git("rm", "-q", "--cached", "second")
    repository.commit()
    repository.write("second", change)
    assert "not noted" in passes(repository)
    assert noted(repository) is None


def test_what_the_caller_set_for_the_tests_is_not_the_whole_run(repository):
    assert "HODO_CHAOS_SEEDS is set" in passes(repository, HODO_CHAOS_SEEDS="1", HODO_CI="/elsewhere")
    assert noted(repository) is None
    passes(repository, HODO_CI="/elsewhere")
    assert noted(repository)


CARGO = """\
    Finished `gate` profile [optimized] target(s) in 1m 02s
running 1 test
test finished::it_is ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 7.00s
    Finished `gate` profile [optimized] target(s) in 0.61s
all doctests ran in 5.02s; merged doctests compilation took 2.10s
"""


def test_a_stage_has_what_it_compiled_and_what_its_processes_computed(repository):
    repository.write("log", CARGO)
    repository.write("times", "9m9.000s 9m9.000s\n0m1.250s 1m0.500s\n")
    said = repository.run("bash", "-c", ". tests/gate/runner.sh; compiling log; children times; row unit 1 0 100 passed 65 62").stdout
    assert said.splitlines()[:2] == ["65", "62"]
    assert said.splitlines()[2].split() == "unit 1 passed 0 failed 65 s 35 s 62 s passed".split()
