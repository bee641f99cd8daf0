"""The report of a run: the same document and page as of every measurement."""

import contract

import command
import pytest
import farms


def reported(of, folder, name, *options):
    page, document = folder / f"{name}.html", folder / f"{name}.json"
    done = command.hodo("farm", "report", of, "--html", page, "--json", document, *options)
    assert done.returncode == 0, done.stderr
    (measurement,) = contract.parse(document.read_text(encoding="utf-8"))["measurements"]
    return page.read_text(encoding="utf-8"), measurement


def test_a_run_is_reported_from_the_controller_and_from_what_it_told(tmp_path):
    made = ["--events", 10**9, "--rate", 2000, "--size", 1000, "--run", 12]
    with farms.controller(*made) as controller, farms.node(controller, "--count", 3):
        controller.wait_for(lambda farm: len(farm["timeline"]) > 14, "it has run for some seconds")
        kept = tmp_path / "run12.json"
        kept.write_text(controller.page("/farm"), encoding="utf-8")
        page, measurement = reported(controller.pages, tmp_path, "live")
    assert "Events of run 12" in page and ">Nodes<" in page and "min/max" in page
    assert measurement["protocol"] == "farm" and measurement["channels"] == 3 and measurement["window"] == 2
    assert 1500 < measurement["rate"]["operations_per_s"]["median"] < 2500
    assert measurement["size_bytes"] == 1000 and len(measurement["intervals"]) > 8
    assert measurement["limit"] is None
    assert 0 < measurement["latency_ns"]["p50"] <= measurement["latency_ns"]["p99"] < 10**9
    assert measurement["cpu"]["local_ns_per_operation"] > 0 and "CPU of the controller" in page
    page, again = reported(kept, tmp_path, "kept", "--line-rate", "100M")
    assert again["limit"]["binds"] == "line" and abs(again["limit"]["operations_per_s"] - 11_628) < 10
    reached = again["share_of_limit"] * again["limit"]["operations_per_s"]
    assert reached == pytest.approx(again["rate"]["operations_per_s"]["median"], rel=0.005)
    assert "Events of run 12" in page and again["operations"] <= measurement["operations"]
    table = command.hodo("farm", "report", kept)
    assert table.returncode == 0 and "farm" in table.stdout
    command.refused("farm", "report", tmp_path / "none.json", status=2, says=["neither an address", "none.json"])
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    command.refused("farm", "report", other, status=2, says=["not the status of"])


def test_a_run_that_nothing_was_done_in_is_none(tmp_path):
    with farms.controller() as controller:
        page, measurement = reported(controller.pages, tmp_path, "empty")
    assert measurement["verdict"]["state"] == "failed" and "no nodes are there" in page
