"""Events that are thrown away are counted and said, and the run is no success."""

import re

import command
import ledger


def test_two_sources_with_one_number_are_not_taken_for_one(farm):
    controller = farm.controller()
    farm.nodes(controller.at, 2, "--accept", "every:2")
    first = farm.source(controller.at, "--size", "100", "--rate", "500")
    controller.has_decided(100)
    second = farm.source(controller.at, "--size", "100", "--events", "50")
    second.said(r"code 14\)|has number 0")
    assert controller.page()["events"]["duplicates"] == 0 and first.process.poll() is None
    # One that is started again with the number has it once the other is gone.
    assert first.end() == 0, first.text()
    assert second.done() == 0 and " 50 given twice" in second.text(), "what it makes is the same"


def test_an_event_that_the_controller_does_not_take_makes_its_builder_fail(farm):
    controller = farm.controller("--event-max", "64K")
    farm.nodes(controller.at, 2)
    builder = farm.part("builder", "--listen", "127.0.0.1:0", "--no-metrics", "--sources", 2, "--to", controller.at)
    at = builder.said(r"listening on (\S+)")[1]
    sources = [farm.source(at, "--number", number, "--size", "40K", "--events", "20") for number in range(2)]
    for source in sources:
        source.done()
        assert "20 incomplete" in source.text(), source.text()
    assert builder.end() == 1
    assert "20 events were thrown away: the controller takes at most 65536 bytes; raise its --event-max" in builder.text()


def test_an_event_that_no_node_takes_costs_no_node_and_is_stored_and_said(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    nodes = farm.nodes(controller.at, 2, "--event-max", "50K")
    controller.has_nodes(2)
    source = farm.source(controller.at, "--size", "uniform:1K..64K", "--events", "200")
    source.done()
    page = controller.page()
    events = page["events"]
    assert 0 < events["too_large"] == events["quarantined"] < 200 and page["connections"]["nodes_lost"] == 0, page
    assert controller.end() == 1
    told = f"{events['too_large']} events were quarantined: no node takes more than 51200 bytes; raise --event-max of the nodes"
    assert told in controller.text() and "events with a verdict: 200\n" in controller.text() + "\n", controller.text()
    assert f"+ {events['too_large']} quarantined" in ledger.verified(tmp_path)
    assert all(node.process.poll() is None for node in nodes)


def test_an_event_goes_to_the_nodes_that_take_it(farm):
    controller = farm.controller()
    farm.node(controller.at, 0, "--event-max", "10K")
    farm.node(controller.at, 1)
    controller.has_nodes(2)
    source = farm.source(controller.at, "--size", "uniform:1K..64K", "--events", "500")
    assert source.done() == 0
    assert " 0 quarantined" in source.text(), source.text()
    page = controller.page()
    assert page["connections"]["nodes_lost"] == 0 and min(node["answered"] for node in page["nodes"]) > 0, page
    assert controller.end() == 0


def test_partial_events_are_counted_wherever_the_balance_stands(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 1, "--accept", "every:2")
    listen = ["--listen", "127.0.0.1:0", "--no-metrics", "--sources", 2, "--patience", "100ms", "--start-without"]
    builder = farm.part("builder", *listen, "--to", controller.at)
    at = builder.said(r"listening on (\S+)")[1]
    for number, events in ((0, 20), (1, 10)):
        source = farm.source(at, "--number", number, "--events", events, "--size", 100)
        assert source.done() == number, "the second one is late for all"
    builder.end()
    page = controller.page()
    assert (page["events"]["partial"], page["events"]["taken_in"], page["events"]["incomplete"]) == (20, 20, 0), page
    status = command.hodo("farm", "status", controller.pages).stdout
    assert "20 of the accepted, rejected and quarantined events were partial" in status, status
    assert controller.metrics()["farm_events_partial_total"] == 20
    assert controller.end() == 0
    assert "events with a verdict: 20, 20 of them partial" in controller.text()
    assert "run 1: 20 events = 10 accepted + 10 rejected + 0 quarantined + 0 incomplete; 10 of those with data are partial" in (
        ledger.verified(tmp_path)
    )


CONTROLLER = "[controller]\nno_metrics = true\n"


def ran(tmp_path, text, *options, status=1):
    file = tmp_path / "farm.toml"
    file.write_text(text, encoding="utf-8")
    done = command.hodo("farm", "run", file, *options)
    assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_a_run_counts_what_has_a_verdict_and_not_what_was_configured(tmp_path):
    nodes = "[[node]]\ncount = 2\n"
    text = ran(tmp_path, f"[run]\nevents = 2000\n{CONTROLLER}event-max = 1000\n[[source]]\nsize = 'normal:900,100'\n{nodes}")
    decided, last = re.search(r"only (\d+) of 2000 events have a verdict", text), re.search(r"; (\d+) events in ", text)
    assert decided and last and 1000 < int(decided[1]) < 2000 and decided[1] == last[1], text
    text = ran(tmp_path, f"[run]\nevents = 2000\n{CONTROLLER}[[source]]\ncount = 2\n{nodes}", status=0)
    assert "; 2000 events in " in text, text


def test_a_run_with_events_that_no_node_takes_fails_once(tmp_path):
    made = f"{CONTROLLER}restart = true\nsize = 'normal:900,100'\n[[node]]\ncount = 2\nevent-max = 1000\n"
    text = ran(tmp_path, f"[run]\nevents = 500\n{made}")
    assert "no node takes more than 1000 bytes" in text and "restarting" not in text, text
    assert "; 500 events in " in text, text


def test_a_dry_run_finds_events_that_somebody_does_not_take(tmp_path):
    source, node = "[[source]]\nsize = 'uniform:1K..64K'\n", "[[node]]\n"
    for roles, says in (
        (f"[controller]\nevent-max = '50K'\n{source}{node}", "events of 65536 bytes, of which [controller] takes at most 51200"),
        (f"[controller]\n{source}{node}event-max = '50K'\n", "[node] takes at most 51200"),
        (f"[controller]\n[builder]\nevent-max = '50K'\n{source}{node}", "[builder] takes at most 51200"),
        (f"[controller]\nevent-max = '100K'\n[builder]\n{source}{source}{node}", "events of 131088 bytes"),
    ):
        text = ran(tmp_path, f"[run]\nevents = 10\n{roles}", "--dry-run", status=2)
        assert says in text and "raise its event-max" in text, text
    ran(tmp_path, f"[run]\nevents = 10\n[controller]\n{source}{node}", "--dry-run", status=0)
