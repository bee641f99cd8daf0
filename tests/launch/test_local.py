"""Farms on this machine: what the file says is what runs, and nothing is left of it, however it ends."""

import os
import re
import signal

import command
import farms
import pytest

SMALL = """
[run]
number = 7
events = 20_000
store = "{store}"
[controller]
no_metrics = true
[[source]]
count = 2
[[node]]
count = 5
accept = 0.01
"""
# Until it is told to end: 200 events/s.
ENDLESS = """
[controller]
no_metrics = true
[[source]]
rate = 200
[[node]]
count = 3
"""


def test_a_farm_runs_to_its_end(tmp_path):
    done = farms.run(farms.write(tmp_path, SMALL.format(store=tmp_path / "store")))
    farms.is_well(done, 20_000)
    assert any((tmp_path / "store").iterdir()), "accepted events are stored"
    assert "1 controller, 5 nodes, 2 sources" in done.stdout


def test_the_controllers_own_events_run_to_their_end(tmp_path):
    text = "[run]\nevents = 5_000\n[controller]\nno_metrics = true\n[[node]]\ncount = 2\nper_process = 3\n"
    done = farms.run(farms.write(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert re.search(r"5000 events in .* events/s$", done.stdout, re.MULTILINE), done.stdout


def test_the_example_runs(tmp_path):
    example = (command.ROOT / "docs/examples/farm.toml").read_text(encoding="utf-8")
    text = example.replace("farm-data", str(tmp_path / "farm-data")).replace("127.0.0.1:9205", "127.0.0.1:0")
    text = text.replace("200_000", "20_000")
    assert text.count("127.0.0.1:0") == 1 and text.count("20_000") == 1
    farms.is_well(farms.run(farms.write(tmp_path, text)), 20_000)


def test_a_dry_run_shows_commands_and_defaults(tmp_path):
    file = farms.write(tmp_path, SMALL.format(store="data"))
    for option in ("--dry-run", "--print"):
        done = farms.run(file, option)
        assert done.returncode == 0, done.stderr
        assert len(re.findall(r"^\S+ farm node --until-stdin-closes --to=CONTROLLER ", done.stdout, re.M)) == 5
        assert re.search(r"^# node: .*--weight=1\b", done.stdout, re.M), done.stdout
    done = farms.run(file, "--dry-run", "--launch", "slurm")
    assert "srun --jobid=JOB --job-name=node.4 --overlap" in done.stdout
    command.refused("farm", "run", file, "--dry-run", "--launch", "ssh", status=2, says=["without a host"])


def test_what_is_wrong_with_a_file_is_named(tmp_path):
    for line, says in (
        ("credit = 2", r"farm.toml:2: \[\[node\]\] has no key `credit`; did you mean `credits`\? There is: accept, "),
        ("credits = 0", r"farm.toml:1: \[\[node\]\]: invalid value '0' for '--credits"),
        ("accept = 2", r"farm.toml:1: \[\[node\]\]: invalid value '2' for '--accept"),
        ("accept = ", r"farm.toml:2: "),
    ):
        file = farms.write(tmp_path, f"[[node]]\n{line}\n[run]\nevents = 1\n[controller]\n")
        command.refused("farm", "run", file, status=2, says=[says])
    command.refused("farm", "run", tmp_path / "none.toml", status=2, says=["none.toml: cannot be read"])


def test_a_node_that_dies_is_started_again(tmp_path):
    text = SMALL.format(store=tmp_path / "store") + "restart = true\n"
    text = text.replace("[[source]]", "[[source]]\nrate = 4_000")
    with farms.running(farms.write(tmp_path, text)) as farm:
        victim = farm.connected("node", 5)[1]
        os.kill(victim, signal.SIGKILL)
        command.wait_until(lambda: len(farm.of("node")) == 5 and victim not in farm.of("node"), "it is started again")
        done = farm.end()
    farms.is_well(done, 20_000)
    assert "1 process restarted" in done.stdout
    assert re.search(r"node\.\d on localhost ended \(signal: 9 \(SIGKILL\)\); restarting it in 250ms", done.stderr)


def test_a_node_that_dies_for_good_is_a_failure_but_not_the_end(tmp_path):
    text = SMALL.format(store=tmp_path / "store").replace("[[source]]", "[[source]]\nrate = 4_000")
    with farms.running(farms.write(tmp_path, text)) as farm:
        os.kill(farm.connected("node", 5)[1], signal.SIGKILL)
        done = farm.end()
    assert done.returncode == 1
    assert farms.decided(done) == 20_000
    assert re.search(r"^hodo farm run: node\.\d on localhost ended \(signal: 9 \(SIGKILL\)\)", done.stderr, re.M)


def test_a_controller_that_dies_ends_the_run(tmp_path):
    with farms.running(farms.write(tmp_path, ENDLESS)) as farm:
        farm.connected("node", 3)
        children = command.children(farm.process.pid)
        os.kill(farm.of("controller")[0], signal.SIGKILL)
        done = farm.end()
    assert done.returncode == 1
    assert "controller on localhost ended (signal: 9 (SIGKILL))" in done.stderr
    assert not any(map(command.is_there, children))


def test_a_controller_that_is_started_again_is_found_where_it_was(tmp_path):
    text = SMALL.format(store=tmp_path / "store").replace("[controller]", "[controller]\nrestart = true")
    text = text.replace("[[source]]", "[[source]]\nrate = 4_000")
    with farms.running(farms.write(tmp_path, text)) as farm:
        farm.connected("node", 5)
        os.kill(farm.of("controller")[0], signal.SIGKILL)
        done = farm.end()
    farms.is_well(done, 20_000)


def test_a_role_that_cannot_start_is_named(tmp_path):
    text = SMALL.format(store="/proc/none")
    done = farms.run(farms.write(tmp_path, text))
    assert done.returncode == 1
    assert "hodo farm run: controller on localhost ended (exit status: 1)" in done.stderr
    assert "/proc/none" in done.stderr


def test_nothing_outlives_a_launcher_that_is_killed(tmp_path):
    with farms.running(farms.write(tmp_path, ENDLESS)) as farm:
        farm.connected("node", 3)
        children = command.children(farm.process.pid)
        assert len(children) == 5
        farm.process.kill()
        command.wait_until(lambda: not any(map(command.is_there, children)), "all have ended")


@pytest.mark.parametrize("rate", ["rate = 200", ""])
def test_an_interrupt_ends_an_endless_run_in_order(tmp_path, rate):
    with farms.running(farms.write(tmp_path, ENDLESS.replace("rate = 200", rate))) as farm:
        farm.connected("node", 3)
        children = command.children(farm.process.pid)
        farm.process.send_signal(signal.SIGINT)
        done = farm.end()
    assert done.returncode == 0, done.stderr
    assert "farm: interrupted after " in done.stdout
    # What was given has its verdict, however much that is.
    farms.decided(done)
    assert not any(map(command.is_there, children))


def test_a_run_ends_after_its_time(tmp_path):
    done = farms.run(farms.write(tmp_path, ENDLESS + "[run]\ntime = '1s'\n"))
    assert done.returncode == 0, done.stderr
    assert "farm: done after " in done.stdout


def test_the_sources_of_a_builder_end_together(tmp_path):
    """One of them is slow, and the others are thousands of events ahead."""
    source = "[[source]]\nsize = 100\ndrain = '30s'\n"
    sources = f"[builder]\nno_metrics = true\npatience = '30s'\n{source}count = 2\n{source}"
    store = tmp_path / "store"
    text = ENDLESS.replace("[[source]]\n", sources) + f"accept = 1\n[run]\nstore = '{store}'\n"
    with farms.running(farms.write(tmp_path, text)) as farm:
        # Once all give there are events.
        command.wait_until(lambda: sum(file.stat().st_size for file in store.glob("segment-*")) > 20_000, "events are stored")
        farm.process.send_signal(signal.SIGINT)
        done = farm.end()
    assert done.returncode == 0, done.stderr
    said = re.findall(r"source\.\d \| source \d: (.*)", done.stdout)
    assert len(said) == 3 and len(set(said)) == 1, done.stdout
    assert "partial" not in done.stdout + done.stderr, "no event lacks a fragment"


def test_a_second_interrupt_kills_what_does_not_end(tmp_path):
    with farms.running(farms.write(tmp_path, ENDLESS)) as farm:
        farm.connected("node", 3)
        children = command.children(farm.process.pid)
        (source,) = farm.of("source")
        os.kill(source, signal.SIGSTOP)
        farm.process.send_signal(signal.SIGINT)
        # The source's input is closed when it is asked to end.
        stdin = f"/proc/{source}/fd/0"
        command.wait_until(lambda: is_closed(stdin, farm.process.pid), "the source is asked to end")
        farm.process.send_signal(signal.SIGINT)
        farm.end(within=20)
    assert not any(map(command.is_there, children))


def is_closed(pipe, pid):
    """Whether a process no longer has the other end of a pipe."""
    return os.readlink(pipe) not in command.open_files(pid)


def test_a_farm_with_a_builder_runs_to_its_end(tmp_path):
    text = SMALL.replace("count = 2", "count = 3\nsize = 1_000").replace("20_000", "5_000")
    text = text.replace("[[source]]", "[builder]\nno_metrics = true\npatience = '5s'\n[[source]]")
    done = farms.run(farms.write(tmp_path, text.format(store=tmp_path / "store")))
    assert done.returncode == 0, done.stderr
    assert farms.decided(done) == 3 * 5_000, "each source is told of every event"
    assert "1 controller, 1 builder, 5 nodes, 3 sources" in done.stdout
    assert re.search(r"; 5000 events in .* events/s$", done.stdout, re.MULTILINE), done.stdout
    checked = command.hodo("farm", "verify", tmp_path / "store")
    assert re.search(r"run 7: 5000 events = \d+ accepted \+ \d+ rejected \+ 0 q", checked.stdout), checked.stdout
