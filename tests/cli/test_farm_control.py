"""What an operator does with a farm that runs, over HTTP and with `hodo farm`."""

import json
import re
import signal
import statistics
import time
import urllib.request

import command
import farms
import pytest
import terminal

ENDLESS = ["--size", "1000", "--rate", "2000", "--numbered"]


def hodo(*arguments, status=0):
    done = command.hodo("farm", *arguments)
    assert done.returncode == status, f"{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_pause_and_resume():
    with farms.controller("--configured") as controller, farms.node(controller):
        with command.started("farm", "source", "--to", controller.at, *ENDLESS):
            assert controller.farm()["state"] == "configured"
            controller.wait_for(lambda farm: farm["events"]["waiting"] > 0, "an event has come")
            assert controller.events()["given"] == 0
            assert hodo("resume", controller.pages) == "run 1: running\n"
            controller.wait_for(lambda farm: farm["events"]["rejected"] > 100, "events are decided")
            assert hodo("pause", f"http://{controller.pages}/") == "run 1: paused\n"
            given = controller.events()["given"]
            controller.wait_for(lambda farm: farm["events"]["waiting"] > 100, "events wait")
            assert controller.events()["given"] == given
            assert controller.act("/resume") == "run 1: running\n"
            controller.wait_for(lambda farm: farm["events"]["given"] > given + 100, "events are given again")


def test_an_idle_controller_carries_out_an_order_within_20_ms():
    def span(act):
        began = time.monotonic()
        act()
        return time.monotonic() - began

    with farms.controller("--configured") as controller:
        orders = [span(lambda: controller.act("/resume")) for _ in range(9)]
        looks = [span(controller.farm) for _ in range(9)]
    assert statistics.median(orders) < 0.02 and statistics.median(looks) < 0.02, (orders, looks)


def test_after_drain_nothing_is_in_hand_and_it_goes_on_when_told_to():
    with farms.controller() as controller, farms.node(controller, "--time", "5ms", "--credits", 4):
        with command.started("farm", "source", "--to", controller.at, "--rate", 150) as source:
            controller.wait_for(lambda farm: farm["events"]["rejected"] > 50, "events are decided")
            assert hodo("drain", controller.pages) == "run 1: drained\n"
            events = controller.balanced()
            assert controller.events() == events, "nothing goes on any more"
            assert controller.act("/run?number=8") == "run 8: drained\n"
            assert controller.act("/resume") == "run 8: running\n"
            controller.wait_for(lambda farm: farm["events"]["taken_in"] > events["taken_in"] + 50, "it goes on")
            assert source.poll() is None
            assert controller.act("/drain") in ("run 8: draining\n", "run 8: drained\n")
            controller.wait_for(lambda farm: farm["state"] == "drained", "it is drained again")
            assert controller.balanced()["duplicates"] == 0


def test_runs_of_events_that_are_made_here_have_the_number_that_is_set(tmp_path):
    made = ["--events", 10**9, "--rate", 2000, "--size", 100]
    with farms.controller("--run", 5, "--store", tmp_path / "store", *made) as controller:
        with farms.node(controller, "--accept", "1"):
            controller.wait_for(lambda farm: farm["events"]["accepted"] > 100, "events are accepted")
            assert hodo("set-run", 6, controller.pages) == "run 6: running\n"
            before = controller.events()["accepted"]
            controller.wait_for(lambda farm: farm["events"]["accepted"] > before + 100, "more are")
            assert controller.farm()["run"] == 6
            assert 'farm_run_number 6' in controller.page("/metrics")
            assert hodo("stop", controller.pages) == "stopped\n"
            assert controller.process.wait(10) == 0


def test_stop_ends_what_is_in_hand_and_the_process():
    with farms.controller() as controller, farms.node(controller, "--time", "300ms", "--credits", 2):
        with command.started("farm", "source", "--to", controller.at, "--rate", 5):
            controller.wait_for(lambda farm: farm["events"]["in_hand"] > 0, "a node has events")
            assert hodo("stop", controller.pages) == "stopped\n"
            assert controller.process.wait(10) == 0
    said = hodo("status", controller.pages, status=1)
    assert controller.pages in said and "refused" in said


def test_a_drained_controller_that_was_to_end_by_itself_waits_to_go_on():
    made = ["--events", 3000, "--rate", 2000, "--until-done"]
    with farms.controller(*made) as controller, farms.node(controller):
        hodo("drain", controller.pages)
        assert controller.process.poll() is None and controller.events()["taken_in"] < 3000
        controller.act("/resume")
        assert controller.process.wait(30) == 0


def test_threads_do_what_is_ordered_together():
    made = ["--threads", 3, "--events", 10**9, "--size", 100]
    with farms.controller(*made) as controller, farms.node(controller, "--count", 6):
        controller.wait_for_nodes(6)
        assert controller.act("/pause") == "run 1: paused\n"
        controller.wait_for(lambda farm: farm["events"]["in_hand"] < 6, "tokens have come back")
        given = controller.events()["given"]
        assert controller.act("/run?number=2") == "run 2: paused\n" and controller.events()["given"] == given
        assert hodo("drain", controller.pages) == "run 2: drained\n"
        controller.balanced()


@pytest.mark.parametrize(
    ("path", "method", "headers", "data", "status", "says"),
    [
        ("/stop", "GET", {}, None, 405, "POST only"),
        ("/farm", "POST", {}, None, 405, "GET, HEAD only"),
        ("/stop", "POST", {"Origin": "http://evil.example"}, None, 403, "browsers"),
        ("/stop", "POST", {"Sec-Fetch-Site": "cross-site"}, None, 403, "browsers"),
        ("/stop", "POST", {}, b"a=b", 413, "bodies"),
        ("/stop", "DELETE", {}, None, 405, "Not Allowed"),
        ("/none", "POST", {}, None, 404, "Actions, with POST: /pause /resume /drain /run /stop"),
        ("/run", "POST", {}, None, 400, "number=N"),
        ("/run?number=-1", "POST", {}, None, 400, "not a run number"),
    ],
)
def test_what_is_not_done(path, method, headers, data, status, says):
    with farms.controller() as controller:
        answered, text = controller.ask(path, method, headers, data)
        assert answered == status and says in text, text
        assert controller.farm()["state"] == "running" and controller.process.poll() is None


def test_nobody_may_where_nobody_is_to():
    with farms.controller("--control", "nobody") as controller:
        assert controller.ask("/pause", "POST")[0] == 403
        said = hodo("pause", controller.pages, status=1)
        assert "403" in said and controller.farm()["state"] == "running"


def test_the_table_of_nodes_says_how_events_are_shared_out():
    with farms.controller() as controller:
        with farms.node(controller, "--count", 3, "--number", 10), farms.node(controller) as leaving:
            controller.wait_for_nodes(4)
            farms.source(controller, "--events", 4000, "--size", 100)
            leaving.send_signal(signal.SIGTERM)
            controller.wait_for_nodes(3)
            table = controller.page("/nodes")
            rows = [line.split() for line in table.splitlines()]
            assert [row[0] for row in rows[1:5]] == ["10", "11", "12", "0"] and rows[4][-1] == "gone", table
            assert sum(int(row[1]) for row in rows[1:5]) == 4000
            assert re.search(r"3 nodes with \d+ to \d+ events: min/max [01]\.\d+, Jain [01]\.\d+, CV", table), table
            status = hodo("status", controller.pages)
            assert table in status and "4000 events in = " in status and "3 nodes (1 lost)" in status
            # A series is there once, whoever has the number of a node.
            metrics = [line.split()[0] for line in controller.page("/metrics").splitlines() if line[:1] != "#"]
            assert len(metrics) == len(set(metrics)) and 'farm_node_events_total{node="0"}' in metrics


def test_top_shows_rates():
    made = ["--events", 10**9, "--rate", 5000, "--size", 1000, "--drain", "100ms"]
    with farms.controller(*made) as controller, farms.node(controller, "--count", 2):
        controller.wait_for_nodes(2)
        shown = hodo("top", controller.pages, "--once", "--every", "500ms")
        rate = float(re.search(r"^events/s +([\d.]+) ", shown, re.MULTILINE)[1])
        assert 3000 < rate < 7000, shown
        assert "\x1b" not in shown and re.search(r"^ +1 +\d+ +\d+\.\d+ %", shown, re.MULTILINE), shown
        with command.started("farm", "top", controller.pages, "--every", "100ms") as top:
            lines = [top.stdout.readline() for _ in range(40)]
            assert sum(line.startswith("farm ") for line in lines) >= 3, lines
            top.send_signal(signal.SIGINT)
            assert top.wait(10) == 0
    hodo("top", controller.pages, status=1)


def test_top_takes_the_screen_of_a_terminal_and_gives_it_back():
    with farms.controller("--events", 10**9, "--rate", 1000, "--drain", "100ms") as controller, farms.node(controller):
        # Of 24 rows as a terminal of no size has: no screen scrolls.
        with terminal.started(0, 0, "farm", "top", controller.pages, "--every", "50ms") as top:
            command.wait_until(lambda: len(top.pictures()) >= 3, "it draws")
            top.process.send_signal(signal.SIGINT)
            assert top.end() == 0
        assert top.text().startswith(terminal.ENTER) and top.text().endswith(terminal.LEAVE)
        assert any("token-fifo" in line for line in top.picture())
        assert all(len(lines) < 24 for lines in top.pictures())


def test_the_page_is_json_by_its_type():
    with farms.controller() as controller:
        with urllib.request.urlopen(f"http://{controller.pages}/farm", timeout=20) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            assert json.loads(answer.read())["state"] == "running"
