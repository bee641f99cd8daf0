"""Completions and manual pages, in the shells and the reader that they are for."""

import os
import subprocess

import command
import pytest
import terminal

# A command line whose last word is to be completed, and what is offered.
LINES = [
    ("hodo be", "bench"),
    ("hodo bench spa", "spacewire"),
    ("hodo bench ipbustcp-2", "ipbustcp-2.0"),
    ("hodo bench tcp --socket-b", "--socket-buffer"),
    ("hodo bench tcp --mode rec", "receive"),
    ("hodo pva mon", "monitor"),
    ("hodo ipbus block read --for", "--form"),
    ("hodo ipbus block read --form li", "little"),
    ("hodo help ben", "bench"),
    ("hodo compare befo", "before.json"),
]
# A word that can be anything, and an option of another command.
NOTHING = ["hodo bench tcp --duration b", "hodo ipbus block read --input"]
BASH = r'''. "$1"; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_clap_complete_hodo hodo "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; printf '%s\n' "${COMPREPLY[@]}"'''
FISH = "source $argv[1]; complete -C $argv[2]"


@pytest.fixture
def script(tmp_path):
    def written(shell):
        (tmp_path / "before.json").touch()
        file = tmp_path / f"completions.{shell}"
        done = command.hodo("completions", shell)
        assert (done.returncode, done.stderr) == (0, "")
        file.write_text(done.stdout, encoding="utf-8")
        return file

    return written


def run(*program, folder=None, **variables):
    settings = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", **variables}
    done = subprocess.run(program, cwd=folder, env=settings, capture_output=True, text=True, timeout=command.BOUND_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_bash_completes(script):
    file = script("bash")
    for line, word in [*LINES, *((line, "") for line in NOTHING)]:
        assert run("bash", "--norc", "-c", BASH, "bash", file, line, folder=file.parent).splitlines() == [word], line


def test_fish_completes_and_describes(script):
    file = script("fish")
    for line, word in [*LINES, *((line, "") for line in NOTHING)]:
        offered = run("fish", "--no-config", "-c", FISH, file, line, folder=file.parent)
        assert [one.split("\t")[0] for one in offered.splitlines()] == ([word] if word else []), line
    assert run("fish", "--no-config", "-c", FISH, file, "hodo be") == "bench\tMeasure how fast a link is\n"


def test_zsh_completes(script, tmp_path):
    file = script("zsh")
    with terminal.beside(24, 200, ["zsh", "-f", "-i"], HOME=str(tmp_path), PS1="$ ") as shell:
        shell.key(f"autoload -Uz compinit && compinit -D -u && . {file} && cd {tmp_path} && print rea''dy\n".encode())
        command.wait_until(lambda: "\nready" in shell.text(), "the shell is ready")
        for line, word in LINES:
            shell.key(f"{line}\t".encode())
            whole = f"{line.rpartition(' ')[0]} {word}"
            command.wait_until(lambda whole=whole: whole in terminal.plain(shell.text()), whole)
            # The line is taken away. Ctrl-C would take what is typed behind it, too.
            shell.key(b"\x15")


def test_a_line_that_has_no_answer_is_no_error():
    for words in (["hodo"], ["hodo", "nonesuch", ""], ["hodo", "bench", "tcp", "--", ""], []):
        run(command.HODO, "--", *words, HODO_COMPLETE="bash", _CLAP_COMPLETE_INDEX="7")
    # What no shell asks is not answered.
    assert run(command.HODO, "-V", HODO_COMPLETE="1").startswith("hodo 0.1.0\n")


def test_every_command_has_a_manual_page(tmp_path):
    folder = tmp_path / "share" / "man1"
    done = command.hodo("man", "--out", folder)
    pages = sorted(folder.iterdir())
    assert (done.returncode, done.stdout) == (0, f"{len(pages)} pages in {folder}\n")
    assert {"hodo.1", "hodo-bench.1", "hodo-pva-get.1", "hodo-ipbus-block-read.1"} <= {page.name for page in pages}
    for page in pages:
        shown = run("man", "--warnings", "-l", page)
        assert shown.startswith(f"{page.stem}(1)") and f"SYNOPSIS\n       {page.stem.split('-')[0]}" in shown, shown
    bench = run("man", "-l", folder / "hodo-bench.1")
    for words in ("--socket-buffer <SIZE>", "netperf", "SEE ALSO\n       hodo(1)"):
        assert words in bench


def test_manual_pages_need_a_folder(tmp_path):
    file = tmp_path / "file"
    file.touch()
    command.refused("man", "--out", file / "below", status=1, says=["below", "cannot be written"])
    command.refused("man", "bench", status=2, says=["bench"])
    command.refused("completions", "tcsh", status=2, says=["tcsh", "bash, zsh, fish"])
