"""`.ci/run` tests the commit of its caller in a folder that keeps what was built, and in place where that cannot be."""

import os
import pathlib
import signal
import subprocess

import pytest
import toy

# In place of ./test. It says where it runs and with what, builds a file where there is none, and does what the commit says.
TEST = """#!/usr/bin/env bash
cd "$(dirname "$0")" && mkdir -p target/test target/debug
[[ -e target/debug/built ]] || mktemp -u >target/debug/built
{ pwd; cat target/debug/built; stat -c %y kept; } >target/test/said.log
env >target/test/environment.log
git rev-parse 'HEAD^{tree}' >target/test/passed
. ./does
"""
GIVE_UP_S = 60


@pytest.fixture
def caller(tmp_path):
    return clone(tmp_path, "caller")


def clone(tmp_path, name):
    """Returns a repository in a folder with that name, in a home of its own; the second is a clone of the first."""
    repository = toy.Repository(tmp_path / name)
    first = next((other for other in tmp_path.iterdir() if (other / ".git").exists()), None)
    if first is not None:
        repository.git("clone", "--quiet", first, ".")
        return repository
    repository.take(".ci/run")
    repository.write("test", TEST, 0o755)
    for name in ("kept", "does"):
        repository.write(name, "")
    repository.write("Cargo.toml", "[workspace]\n\n[profile.dev]\ndebug = false\n")
    repository.write(".gitignore", "/target\n")
    repository.commit()
    return repository


def ci(repository, status=0, **variables):
    """Runs .ci/run, with its folder beside the repository unless said otherwise; returns where it ran, what was built, and its output."""
    variables.setdefault("HODO_CI", str(repository.folder.parent / "ci"))
    ended = repository.run(".ci/run", **variables)
    assert ended.returncode == status, ended.stdout
    folder, built, changed = said(repository)
    return folder, built, changed, ended.stdout


def said(repository):
    return (repository.folder / "target/test/said.log").read_text().splitlines()


def in_place(repository, reason, **variables):
    folder, *_, output = ci(repository, **variables)
    assert folder == str(repository.folder) and "in place" in output and reason in output, (folder, output)


def environment(repository):
    return dict(line.split("=", 1) for line in (repository.folder / "target/test/environment.log").read_text().splitlines() if "=" in line)


def test_another_clone_finds_what_was_built(caller, tmp_path):
    first = ci(caller)
    assert first[0] == str(tmp_path / "ci/tree") and first[3] == ""
    another = clone(tmp_path, "another")
    assert ci(another) == first
    assert (another.folder / "target/test/passed").read_text().strip() == another.git("rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("command", [["clone", "--quiet", "--depth", "1"], ["worktree", "add", "--quiet", "--detach"]])
def test_a_shallow_clone_and_a_worktree_use_it_too(caller, tmp_path, command):
    caller.write("kept", "changed")
    caller.commit()
    ci(caller)
    caller.write("kept", "once more")
    caller.commit()
    from_here = [caller.folder.as_uri()] if command[0] == "clone" else []
    caller.git(*command, *from_here, tmp_path / "another")
    folder, *_ = ci(toy.Repository(tmp_path / "another"))
    assert folder == str(tmp_path / "ci/tree") and (tmp_path / "ci/tree/kept").read_text() == "once more"
    assert ci(caller)[0] == folder


def test_only_what_changed_gets_a_new_time_and_what_is_not_the_commits_goes(caller, tmp_path):
    first = ci(caller)
    tree = tmp_path / "ci/tree"
    (tree / "left").write_text("over")
    (tree / "does").write_text("exit 9")
    assert ci(caller) == first
    assert not (tree / "left").exists() and (tree / "does").read_text() == ""
    caller.write("kept", "changed")
    caller.commit()
    folder, built, changed, _ = ci(caller)
    assert (folder, built) == first[:2] and changed != first[2]


def test_the_callers_settings_and_old_logs_do_not_reach_it(caller, tmp_path):
    caller.write("elsewhere/test/old.log", "old")
    caller.write(".git/info/exclude", "/elsewhere\n")
    ended = caller.run(".ci/run", HODO_CI=str(tmp_path / "ci"), HODO="/bin/false", HODO_CHAOS_SEEDS="1", CARGO_TARGET_DIR="elsewhere")
    assert ended.returncode == 0, ended.stdout
    assert sorted(file.name for file in (caller.folder / "elsewhere/test").iterdir()) == ["environment.log", "passed", "said.log"]
    seen = (caller.folder / "elsewhere/test/environment.log").read_text()
    assert "HODO" not in seen.replace(f"{tmp_path}", "") and "CARGO_TARGET_DIR" not in seen and "CARGO_INCREMENTAL=0" in seen


def test_the_status_is_that_of_the_tests_and_the_logs_come_back(caller):
    caller.write("does", "exit 7")
    caller.commit()
    ci(caller, status=7)


def test_a_folder_that_git_refuses_is_made_anew(caller, tmp_path):
    first = ci(caller)
    (tmp_path / "ci/tree/.git/HEAD").write_text("nonsense")
    folder, built, _, output = ci(caller)
    assert folder == first[0] and built != first[1] and "made anew" in output


@pytest.mark.parametrize("change", ["compiler", "profile", "size"])
def test_what_was_built_with_another_compiler_or_profile_or_is_too_large_goes(caller, tmp_path, change):
    built = ci(caller)[1]
    variables = {}
    if change == "profile":
        caller.write("Cargo.toml", "[workspace]\n\n[profile.dev]\ndebug = true\n")
        caller.commit()
    else:
        program, text = {"compiler": ("rustc", "echo rustc 2.0"), "size": ("du", "echo 20001 target")}[change]
        caller.write(f"../programs/{program}", f"#!/bin/sh\n{text}\n", 0o755)
        variables["PATH"] = f"{tmp_path}/programs:{toy.ENVIRONMENT['PATH']}"
    assert ci(caller, **variables)[1] != built
    caller.write("Cargo.toml", (caller.folder / "Cargo.toml").read_text() + "[dependencies]\n")
    caller.commit()
    built = ci(caller, **variables if change == "compiler" else {})[1]
    assert ci(caller, **variables if change == "compiler" else {})[1] == built


def test_changes_that_are_not_committed_are_tested_in_place(caller):
    caller.write("does", "exit 7")
    ended = caller.run(".ci/run", HODO_CI=str(caller.folder.parent / "ci"))
    assert ended.returncode == 7 and "not committed" in ended.stdout
    assert "HODO_CI" not in environment(caller)


def test_a_folder_without_git_is_tested_in_place(caller, tmp_path):
    (caller.folder / ".git").rename(tmp_path / "git")
    in_place(caller, "git")


def test_a_folder_that_holds_something_else_is_not_touched(caller, tmp_path):
    toy.Repository(tmp_path / "ci").write("tree/precious", "work")
    in_place(caller, "something else")
    assert sorted(str(file.relative_to(tmp_path / "ci")) for file in (tmp_path / "ci").rglob("*")) == ["tree", "tree/precious"]


def test_a_folder_that_cannot_be_written_is_not_needed(caller):
    in_place(caller, "cannot be written", HODO_CI="/proc/hodo-ci")
    in_place(caller, "HOME is not set", HODO_CI="", HOME="", XDG_CACHE_HOME="")


def test_a_disk_without_room_is_not_filled(caller, tmp_path):
    caller.write("../programs/df", "#!/bin/sh\necho Avail\necho 9000\n", 0o755)
    in_place(caller, "room", PATH=f"{tmp_path}/programs:{toy.ENVIRONMENT['PATH']}")


def test_it_is_found_in_the_cache_and_run_there_in_place(caller, tmp_path):
    cache, home = {"HODO_CI": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}, {"HODO_CI": "", "XDG_CACHE_HOME": "", "HOME": str(tmp_path / "home")}
    # Where rustup finds its compiler without that home.
    home |= {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))}
    assert ci(caller, **cache)[0] == str(tmp_path / "cache/hodo-ci/tree")
    kept = ci(caller, **home)[0]
    assert kept == str(tmp_path / "home/.cache/hodo-ci/tree")
    in_place(toy.Repository(pathlib.Path(kept)), "this is that folder", **home)


def begin(repository):
    """Starts .ci/run in the background."""
    variables = toy.ENVIRONMENT | {"HODO_CI": str(repository.folder.parent / "ci")}
    return subprocess.Popen([".ci/run"], cwd=repository.folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def fifo(path):
    """Makes a FIFO: who reads waits for the one who writes."""
    os.mkfifo(path)
    return path


def test_two_do_not_use_it_at_once(caller, tmp_path):
    begun, go_on = fifo(tmp_path / "begun"), fifo(tmp_path / "go-on")
    # The first of them waits; a daemon that it leaves behind does not keep the folder.
    caller.write("does", f"mkdir {tmp_path}/first || exit 0; (exec sleep 1000 >/dev/null 2>&1 & echo $! >{tmp_path}/left); echo >{begun}; cat {go_on}")
    caller.commit()
    first = begin(caller)
    begun.read_text()
    second = begin(caller)
    assert "waits for another" in second.stdout.readline()
    assert first.poll() is None and second.poll() is None
    go_on.write_text("")
    for process in (first, second):
        output, _ = process.communicate(timeout=GIVE_UP_S)
        assert process.returncode == 0, output
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_who_ends_it_ends_the_tests(caller, tmp_path, number):
    begun, heard = fifo(tmp_path / "begun"), fifo(tmp_path / "heard")
    caller.write("does", f"trap 'kill $!; echo interrupted >{heard}; exit 1' INT TERM; sleep 1000 & echo >{begun}; wait")
    caller.commit()
    process = begin(caller)
    begun.read_text()
    process.send_signal(number)
    assert heard.read_text() == "interrupted\n"
    process.communicate(timeout=GIVE_UP_S)
    assert process.returncode == (-number if number == signal.SIGKILL else 1)
    assert (caller.folder / "target/test/said.log").exists() == (number != signal.SIGKILL)
