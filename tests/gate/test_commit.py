"""The commit that `hodo` tells is the last one that changed what it is built of, and no other commit builds it again."""

import pytest
import toy

MEMBER = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2024"\n'


@pytest.fixture
def repository(tmp_path):
    repository = toy.Repository(tmp_path)
    repository.take("crates/cli/build.rs")
    repository.write("Cargo.toml", '[workspace]\nresolver = "3"\nmembers = ["crates/*", "protocols/*/*"]\n')
    repository.write("crates/cli/Cargo.toml", MEMBER.format("cli"))
    repository.write("crates/cli/src/main.rs", 'fn main() { println!("{}", option_env!("HODO_COMMIT").unwrap_or("none")); }')
    repository.write("protocols/toy/host/Cargo.toml", MEMBER.format("toy"))
    repository.write("protocols/toy/host/src/lib.rs", "")
    repository.write("protocols/toy/host/tests/all.rs", "")
    repository.write("README.md", "A toy.")
    repository.write(".gitignore", "/target\n")
    assert repository.run("cargo", "generate-lockfile", "--offline").returncode == 0
    return repository


def told(repository):
    """Builds, runs it, and returns the commit that it tells, and whether it was compiled."""
    built = repository.run("cargo", "build", "--offline", "-p", "cli")
    assert built.returncode == 0, built.stdout
    return repository.run("target/debug/cli").stdout.strip(), "Compiling cli" in built.stdout


def head(repository):
    return repository.git("rev-parse", "--short=12", "HEAD")


def test_only_a_commit_of_what_it_is_built_of_builds_it_again(repository):
    repository.commit()
    first = head(repository)
    assert told(repository) == (first, True)
    for path in ("README.md", "protocols/toy/host/tests/all.rs"):
        repository.write(path, "// Other words.")
        repository.commit()
        assert head(repository) != first
        assert told(repository) == (first, False)
    repository.write("protocols/toy/host/src/lib.rs", "//! Other words.")
    repository.commit()
    assert told(repository) == (head(repository), True)


def test_changes_that_are_not_committed_are_told_until_they_are(repository):
    repository.commit()
    first = head(repository)
    told(repository)
    repository.write("protocols/toy/host/src/other.rs", "")
    assert told(repository) == (f"{first}-dirty", True)
    repository.commit()
    assert told(repository) == (head(repository), True)
    assert told(repository) == (head(repository), False)


def test_without_git_there_is_none(repository):
    assert told(repository) == ("none", True)
    # As where the sources stand, ignored, in a repository of something else.
    repository.write(".gitignore", "*\n!.gitignore\n")
    repository.commit()
    repository.write("crates/cli/src/main.rs", (repository.folder / "crates/cli/src/main.rs").read_text() + "\n")
    assert told(repository) == ("none", True)
