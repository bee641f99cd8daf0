"""What is built to be tested is linted as it is compiled, and checks what it computes."""

import re

import pytest
import toy

CHECKED = """//! A test.
use std::{hint::black_box, panic::catch_unwind};

#[test]
fn what_is_computed_is_checked() {
    assert!(catch_unwind(|| black_box(u8::MAX) + 1).is_err());
    assert!(catch_unwind(|| debug_assert!(black_box(false))).is_err());
}
"""


@pytest.fixture
def repository(tmp_path):
    """A repository with `./test`, and this project's profiles and lints."""
    repository = toy.Repository(tmp_path)
    repository.take("test", "tests/gate/runner.sh", "tests/gate/hodo-test-runner", "tests/gate/hodo-again", "tests/gate/lints.toml")
    tables = re.split(r"^(?=\[)", (toy.ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE)
    taken = "".join(table for table in tables if table.startswith(("[workspace.lints", "[profile.dev]", "[profile.gate]")))
    repository.write("Cargo.toml", f'[workspace]\nresolver = "3"\nmembers = ["toy", "tests/style"]\n{taken}')
    for folder, name in (("toy", "toy"), ("tests/style", "hodo-style")):
        repository.write(f"{folder}/Cargo.toml", f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n[lints]\nworkspace = true\n')
        repository.write(f"{folder}/src/lib.rs", "//! A library.\n")
    # The stages choose programs of tests by their names.
    repository.write("toy/tests/all.rs", CHECKED)
    repository.write("toy/tests/checked.rs", CHECKED)
    repository.write("toy/examples/example.rs", "//! An example.\nfn main() {}\n")
    repository.write("toy/benches/bench.rs", "//! A benchmark.\nfn main() {}\n")
    with (tmp_path / "toy/Cargo.toml").open("a") as manifest:
        manifest.write('[[bench]]\nname = "bench"\nharness = false\n')
    assert repository.run("cargo", "generate-lockfile", "--offline").returncode == 0
    return repository


def test_a_warning_fails_the_build(repository):
    ended = repository.run("./test", "build")
    assert ended.returncode == 0 and "1 passed, 0 failed" in ended.stdout, ended.stdout
    assert (repository.folder / "target/gate/examples/example").exists() and not (repository.folder / "target/debug").exists()
    planted = {
        "toy/src/lib.rs": ("/// Plants one.\npub fn planted() {\n    let x = 1;\n}\n", "unused-variables"),
        "toy/tests/checked.rs": ("#[test]\nfn planted() {\n    assert!(vec![1, 2].iter().len() == 2);\n}\n", "clippy::useless-vec"),
        "toy/examples/example.rs": ("fn planted() {}\n", "dead-code"),
        "toy/benches/bench.rs": ("fn planted() {}\n", "dead-code"),
        "tests/style/src/lib.rs": ("pub fn planted() {}\n", "missing-docs"),
    }
    for path, (text, lint) in planted.items():
        file = repository.folder / path
        before = file.read_text()
        file.write_text(before + text)
        ended = repository.run("./test", "build")
        assert ended.returncode == 1 and re.search(r"^build +0 passed +1 failed", ended.stdout, re.MULTILINE), ended.stdout
        assert f"`-D {lint}` implied by `-D warnings`" in ended.stdout, ended.stdout
        file.write_text(before)


def test_what_is_built_checks_what_it_computes(repository):
    ended = repository.run("./test", "unit")
    assert ended.returncode == 0 and re.search(r"^unit +2 passed +0 failed", ended.stdout, re.MULTILINE), ended.stdout


def test_nothing_runs_of_what_could_not_be_built(repository):
    repository.write("toy/src/lib.rs", "//! A library.\nfn planted() {}\n")
    ended = repository.run("./test", "unit")
    assert ended.returncode == 1 and "not run (build failed)" in ended.stdout, ended.stdout
