"""What failed is run once more, alone: what passes then is unsteady, and nothing passes that did not run."""

import re
import shutil
import sys

import pytest
import toy

TEST = """#!/usr/bin/env bash
set -uo pipefail
cd "$(dirname "$0")" || exit 2
. tests/gate/runner.sh
STAGES=(crate folder other) LONG=() ASKED_FOR=() LIMIT_MIN=10 LOGS=$STATE/logs
declare -A BESIDE=() NEEDS=() ABOUT=([crate]="cargo" [folder]="pytest" [other]="no tests")
PATH=$PWD/tests/gate:$PATH
stage_crate() { recorded limited cargo test --offline --no-fail-fast $CRATE; }
stage_folder() { recorded limited "$PYTHON" tests/gate/hodo-pytest -p no:cacheprovider -q --tb=short $FOLDER; }
stage_other() { $OTHER; }
run_stages "$@"
"""

RUST = """use std::{fs::OpenOptions, process, thread, time::Duration};

/// Whether this name is asked for the first time in a run.
fn is_first(name: &str) -> bool {
    assert!(std::path::Path::new("Cargo.toml").exists(), "the folder is not the crate's");
    let file = format!("{}/{}-{name}", std::env::var("STATE").unwrap(), env!("CARGO_CRATE_NAME"));
    OpenOptions::new().write(true).create_new(true).open(file).is_ok()
}
"""
PASSES = '#[test] fn passes() { assert!(is_first("passes"), "it was run again"); }\n'
PROGRAMS = {
    "once": PASSES + '#[test] fn fails() { println!("a word"); assert!(!is_first("fails"), "the first time"); }',
    "twice": PASSES + "#[test] fn fails() { let found = 1; assert_eq!(found, 2); }",
    "eleven": "\n".join(f'#[test] fn number_{n}() {{ assert!(!is_first("{n}")); }}' for n in range(11)),
    # In the order of their names, one after the other.
    "aborts": PASSES.replace("passes", "a_passes") + '#[test] #[ignore = "timing"] fn b_left_out() {}\n#[test] fn c_aborts() { if is_first("c") { process::abort() } }\n#[test] fn d_waits() { is_first("d"); }',
    "aborts_twice": PASSES.replace("passes", "a_passes") + '#[test] #[ignore = "timing"] fn b_left_out() {}\n#[test] fn c_aborts() { process::abort() }\n#[test] fn d_waits() {}',
    "exits": '#[test] fn exits() { if is_first("exits") { process::exit(0) } }',
    "exits_late": 'unsafe extern "C" { fn atexit(end: extern "C" fn()) -> i32; fn _exit(status: i32) -> !; }\n'
    + 'extern "C" fn end() { unsafe { _exit(7) } }\n#[test] fn passes() { unsafe { atexit(end) }; }',
    "hangs": '#[test] fn hangs() { loop { thread::sleep(Duration::from_secs(1)) } }',
    "simulated": '#[test] fn fails() { assert!(!is_first("fails")); }',
    "broken": "fn nothing() -> u32 {}",
}  # fmt: skip

PYTHON = """import os, pathlib, time, pytest
def is_first(name):
    file = pathlib.Path(os.environ["STATE"], f"{__name__}-{name}")
    first = not file.exists()
    file.touch()
    return first
"""
FILES = {
    "once": "def test_it():\n    assert not is_first('it'), 'the first time'\ndef test_other():\n    assert is_first('other'), 'it was run again'",
    "twice": "def test_it():\n    assert 1 == 2, 'each time'",
    "eleven": "@pytest.mark.parametrize('number', range(11))\ndef test_it(number):\n    assert not is_first(str(number))",
    "fixture": "@pytest.fixture(scope='module')\ndef shared():\n    assert not is_first('shared'), 'the first time'\n"
    + "\n".join(f"def test_{n}(shared):\n    pass" for n in range(12)),
    "skipped": "def test_it():\n    if not is_first('it'):\n        pytest.skip('not twice')\n    assert False",
    "gone": "if is_first('gone'):\n    @pytest.mark.parametrize('number', [1])\n    def test_it(number):\n        assert False",
    "exits": "def test_it():\n    assert not is_first('it')\ndef test_exits():\n    if is_first('exits'):\n        os._exit(1)",
    "hangs": "def test_it():\n    if is_first('it'):\n        time.sleep(1000)",
    "broken": "import there_is_no_such_module",
    "ends": "@pytest.fixture\ndef ending():\n    yield\n    assert not is_first('ending')\ndef test_it(ending):\n    assert not is_first('it')",
    "names": "@pytest.mark.parametrize('word', ['a b', 'c, d[::]', '-x'])\ndef test_it(word):\n    assert word == '-x' or not is_first(word)",
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A repository with a crate and a folder of tests, whose programs of tests are built."""
    repository = toy.Repository(tmp_path_factory.mktemp("again"))
    repository.take("tests/gate/runner.sh", "tests/gate/hodo-test-runner", "tests/gate/hodo-pytest", "tests/gate/hodo-again")
    repository.write("test", TEST, 0o755)
    repository.write("Cargo.toml", '[package]\nname = "toy"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\nmembers = ["crates/machine"]\n[profile.dev]\ndebug = 0\n')
    repository.write("crates/machine/Cargo.toml", '[package]\nname = "machine"\nversion = "0.1.0"\nedition = "2024"\n')
    repository.write("crates/machine/src/lib.rs", f"{RUST}{PROGRAMS['simulated']}\n")
    repository.write("src/lib.rs", "")
    for name, text in PROGRAMS.items():
        repository.write(f"tests/{name}.rs", f"#![allow(unused)]\n{RUST}{text}\n")
    for name, text in FILES.items():
        repository.write(f"tests/test_{name}.py", f"{PYTHON}{text}\n")
    programs = [word for name in PROGRAMS if name != "broken" for word in ("--test", name)]
    host = re.search(r"^host: (.+)$", repository.run("rustc", "-vV").stdout, re.MULTILINE)[1]
    repository.runner = f"CARGO_TARGET_{host.upper().replace('-', '_')}_RUNNER"
    built = repository.run("cargo", "test", "--offline", "--no-run", "--lib", *programs)
    assert built.returncode == 0, built.stdout
    return repository


@pytest.fixture
def run(built, tmp_path):
    """A run of stages: its status and what it says after the word that what failed is run once more."""

    def run(status, *stages, **variables):
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        (tmp_path / "state").mkdir()
        variables |= {"STATE": str(tmp_path / "state"), "PYTHON": sys.executable, "RUST_TEST_THREADS": "1", "CARGO_TERM_COLOR": "never", built.runner: "hodo-test-runner"}
        ended = built.run("./test", *stages, **variables)
        assert ended.returncode == status, ended.stdout
        return ended.stdout[ended.stdout.find("what failed, once more, alone:") :]

    run.logs = tmp_path / "state/logs"
    return run


def test_what_fails_once_is_unsteady(run):
    said = run(0, "crate", "folder", CRATE="--test once", FOLDER="tests/test_once.py")
    names = [". once fails", "tests/test_once.py::test_it"]
    assert f"\n2 passed, 0 failed\n2 unsteady: {', '.join(names)}\n" in said, said
    kept = [file for file in run.logs.rglob("*") if file.is_file() and str(run.logs.parent) in file.read_text() and "environment" in file.read_text()]
    assert not kept, "the caller's environment is its own"
    rows = [line.split("\t") for line in (run.logs / "unsteady.tsv").read_text().splitlines()]
    assert [name for name, *_ in rows] == names and all("the first time" in known for *_, known in rows), rows
    assert "\t".join(rows[0]) in said, said
    for file in ("unsteady/once-fails.log", "unsteady/tests-test_once.py-test_it.log"):
        first, again = (run.logs / file).read_text().split("Run again, alone:")
        assert "the first time" in first and "1 passed" in again, (first, again)


def test_of_two_at_a_time_it_is_the_same(run):
    assert "\n1 passed, 0 failed\n1 unsteady: tests/test_once.py::test_it\n" in run(0, "folder", FOLDER="tests/test_once.py --numprocesses 2 --dist loadfile -m not(alone)")


def test_what_fails_twice_has_failed(run):
    said = run(1, "crate", "folder", CRATE="--test twice --test once", FOLDER="tests/test_twice.py")
    assert "\n2 passed, 2 failed\n1 unsteady: . once fails\n" in said, said
    assert "first: assertion `left == right` failed left: 1 right: 2" in said and "first: AssertionError: each time assert 1 == 2" in said, said


@pytest.mark.parametrize("stage", ["crate", "folder"])
def test_eleven_are_not_run_again(run, stage):
    said = run(1, stage, CRATE="--test eleven", FOLDER="tests/test_eleven.py")
    assert "11 failures, more than 10: none is run again" in said and "\n0 passed, 11 failed\n" in said and "unsteady:" not in said, said


def test_more_than_three_unsteady_ones_are_a_failure(run):
    said = run(1, "crate", CRATE="--test eleven -- number_1 number_2 number_3")
    assert "\n0 passed, 0 failed\n4 unsteady: " in said and "more than 3" in said, said


@pytest.mark.parametrize(("program", "end"), [("aborts", "1 passed, 0 failed\n1 unsteady: . aborts (2 tests)\n"), ("aborts_twice", "1 passed, 2 failed\n")], ids=["once", "twice"])
def test_of_a_program_that_aborts_what_has_not_ended_is_run_again(run, program, end):
    said = run("unsteady" not in end, "crate", CRATE=f"--test {program}")
    assert f"\n{end}" in said and "was ended by SIGABRT" in said and ("c_aborts failed again" in said) == (program == "aborts_twice"), said


def test_a_program_that_ends_without_its_result_has_failed(run):
    said = run(1, "crate", "folder", CRATE="--test exits", FOLDER="tests/test_exits.py")
    assert ". exits (1 tests): not run again" in said and "folder: not run again" in said and "\n0 passed, 2 failed\n" in said, said
    assert "tests/test_exits.py::test_exits: pytest ended in it" in said, said


def test_a_status_that_the_result_does_not_say_is_a_failure(run):
    said = run(1, "crate", CRATE="--test exits_late")
    assert "\n1 passed, 1 failed\n" in said and "unsteady:" not in said, said
    said = run(1, "crate", CRATE="--test exits_late --test once")
    assert "crate: not run again" in said and "\n2 passed, 1 failed\n" in said and "unsteady:" not in said, said


def test_what_hangs_is_ended_and_run_again(run):
    said = run(1, "crate", "folder", CRATE="--test hangs", FOLDER="tests/test_hangs.py --timeout 3", HODO_SILENCE_S="2")
    assert "first: had written nothing for 2 s" in said and "\n0 passed, 1 failed\n1 unsteady: tests/test_hangs.py::test_it\n" in said, said


def test_an_error_of_a_fixture_is_one_failure(run):
    said = run(0, "folder", FOLDER="tests/test_fixture.py")
    assert "\n0 passed, 0 failed\n1 unsteady: tests/test_fixture.py\n" in said, said


def test_an_error_at_the_end_belongs_to_its_test(run):
    assert "1 unsteady: tests/test_ends.py::test_it\n" in run(0, "folder", FOLDER="tests/test_ends.py")


@pytest.mark.parametrize("name", ["skipped", "gone"])
def test_what_is_left_out_the_second_time_has_failed(run, name):
    said = run(1, "folder", FOLDER=f"tests/test_{name}.py")
    assert "failed again" in said and "\n0 passed, 1 failed\n" in said and "unsteady:" not in said, said


def test_a_name_of_any_characters_is_run_again(run):
    said = run(0, "folder", FOLDER="tests/test_names.py")
    assert "\n1 passed, 0 failed\n2 unsteady: tests/test_names.py::test_it[a b], tests/test_names.py::test_it[c, d[::]]\n" in said, said


@pytest.mark.parametrize("crate", ["--test simulated", "-p machine --lib"])
def test_what_has_no_clock_is_not_run_again(run, crate):
    assert "fails: not run again, for it has no clock" in run(1, "crate", CRATE=crate)
    assert not (run.logs / "records").exists(), "they hold the caller's environment"


@pytest.mark.parametrize(
    ("stage", "variables"),
    [
        ("crate", {"CRATE": "--test broken"}),
        ("folder", {"FOLDER": "tests/test_broken.py"}),
        ("folder", {"FOLDER": "tests/test_broken.py tests/test_once.py"}),
        ("folder", {"FOLDER": "tests/test_once.py --no-such-option"}),
        ("other", {"OTHER": "false"}),
    ],
)
def test_what_is_no_test_is_not_run_again(run, stage, variables):
    said = run(1, stage, **variables)
    assert f"{stage}: not run again" in said and "unsteady:" not in said, said


def test_a_failure_beside_what_is_no_test_is_run_again(run):
    said = run(1, "crate", "other", CRATE="--test once", OTHER="false")
    assert "\n1 passed, 1 failed\n1 unsteady: . once fails\n" in said, said
