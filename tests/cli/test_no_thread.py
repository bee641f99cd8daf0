"""Where the system starts no thread, a command says so and ends, with no panic."""

import command
import pytest

# No memory has room for a stack of this size, so that every thread that asks for the usual one is refused.
STACK = "100000000000000"
PAGES = ["--metrics", "127.0.0.1:0"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "tcp", "--until-stdin-closes"],
        ["serve", "tcp", "--threads", "2"],
        ["bench", "tcp", *command.SHORT],
        ["farm", "controller", "--listen", "127.0.0.1:0"],
        ["farm", "controller", "--listen", "127.0.0.1:0", "--store", "STORE"],
        ["farm", "node", "--to", "127.0.0.1:1", "--until-stdin-closes"],
        ["farm", "node", "--to", "127.0.0.1:1", "--exec", "true"],
        ["hub", "--listen", "127.0.0.1:0", "--until-stdin-closes"],
    ],
    ids=" ".join,
)
def test_a_thread_that_cannot_be_started_is_an_error_with_a_message(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("RUST_MIN_STACK", STACK)
    arguments = [str(tmp_path / "store") if word == "STORE" else word for word in arguments]
    pages = PAGES if "--listen" in arguments else []
    command.refused(*arguments, *pages, status=1, says=["thread|Resource temporarily unavailable"], within=20)


@pytest.mark.parametrize("daemon", [["hub"], ["farm", "controller"]], ids=" ".join)
def test_pages_without_a_thread_name_what_to_raise(daemon, monkeypatch):
    monkeypatch.setenv("RUST_MIN_STACK", STACK)
    says = ["no thread can be started for the pages at http://", "raise the limit on threads or memory"]
    command.refused(*daemon, "--listen", "127.0.0.1:0", *PAGES, status=1, says=says, within=20)


def test_a_run_over_several_links_says_that_no_thread_drives_them(monkeypatch):
    with command.serving("tcp://127.0.0.1:0") as far_end:
        monkeypatch.setenv("RUST_MIN_STACK", STACK)
        plan = ["--cpu", "0,1", "--channels", "2", *command.SHORT]
        command.refused("bench", far_end.uri, *plan, status=1, says=["no thread can be started for each of 2 links"])
