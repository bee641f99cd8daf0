"""The disk is full: events stop, the state says so; the disk is freed, and all goes on with nothing lost."""

import contextlib
import pathlib
import re

import ledger
import pytest
from disks import SmallDisk


@pytest.fixture
def disk(tmp_path):
    with contextlib.closing(SmallDisk(tmp_path / "disk", 8)) as made:
        yield made


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_a_full_disk_holds_events_up_and_loses_none(farm, disk, durability):
    ballast = disk.seen / "ballast"
    ballast.write_bytes(bytes(6 << 20))
    store = disk.path / "store"
    options = ["--store", store, "--segment", "512K", "--durability", durability]
    controller = farm.controller(*options, prefix=disk.inside)
    farm.nodes(controller.at, 3, "--accept", "every:2")
    source = farm.source(controller.at, "--size", "uniform:1K..8K", "--rate", "2000", "--events", "2000")
    page = controller.until(lambda page: page["store"]["failing"], "the state says that the store is full")
    assert "space" in page["store"]["failing"], page["store"]
    assert controller.metrics()["farm_store_failing"] == 1
    # What has no verdict that will survive has no token: the source is held up before all is given.
    page = controller.until(lambda now: settled(controller, now), "events stop")
    assert page["events"]["uncommitted"] > 0
    assert source.process.poll() is None
    ballast.unlink()
    controller.until(lambda page: not page["store"]["failing"], "it goes on")
    assert controller.metrics()["farm_store_failing"] == 0
    assert source.done() == 0, source.text()
    assert ledger.given(source) == 2000
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    counted = ledger.balances(disk.seen / "store", 2000, 2)
    ledger.agrees(page, counted)
    assert "no event is acknowledged until this is fixed" in controller.text()
    assert controller.end() == 0, controller.text()


def test_memory_is_bounded_while_nothing_is_committed(farm, tmp_path):
    with contextlib.closing(SmallDisk(tmp_path / "disk", 128)) as disk:
        (disk.seen / "ballast").write_bytes(bytes(127 << 20))
        is_bounded(farm, disk, bound=32 << 20, size=1 << 20, nodes=4)


def is_bounded(farm, disk, bound, size, nodes):
    options = ["--store", disk.path / "store", "--uncommitted-bytes", bound, "--events", 1_000_000, "--size", 1000]
    controller = farm.controller(*options, prefix=disk.inside)
    # The answers of nodes are what takes memory: without a bound, 64 GiB of them.
    farm.nodes(controller.at, nodes, "--accept", "1", "--output", size)
    controller.until(lambda page: page["store"]["failing"], "the store is full")
    controller.until(lambda page: page["events"]["uncommitted_bytes"] >= bound, "the bound is reached")
    page = controller.until(lambda now: settled(controller, now), "events stop")
    # What the nodes had then they still answer: two events each.
    assert page["events"]["uncommitted_bytes"] <= bound + 2 * nodes * size, page["events"]
    assert resident_bytes(controller.pid) < bound + (64 << 20)
    (disk.seen / "ballast").unlink()
    controller.until(lambda now: now["events"]["accepted"] > page["events"]["accepted"], "it goes on")


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


def settled(controller, page):
    """Whether nothing more is committed while the store tries again, twice."""
    later = controller.until(lambda now: now["uptime_s"] > page["uptime_s"] + 0.5, "time passes")
    return later["store"]["commits"] == page["store"]["commits"] and later["store"]["failing"]


def test_a_controller_that_is_killed_with_a_full_disk_goes_on_when_it_is_freed(farm, disk):
    ballast = disk.seen / "ballast"
    ballast.write_bytes(bytes(7 << 20))
    options = ["--store", disk.path / "store", "--segment", "256K"]
    controller = farm.controller(*options, prefix=disk.inside)
    farm.nodes(controller.at, 3, "--accept", "every:2")
    source = farm.source(controller.at, "--size", "uniform:1K..8K", "--rate", "2000", "--events", "1000")
    controller.until(lambda page: page["store"]["failing"], "the store is full")
    controller.kill()
    ballast.unlink()
    controller = farm.controller(*options, listen=controller.at, prefix=disk.inside)
    assert source.done() == 0, source.text()
    assert ledger.given(source) == 1000
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    ledger.agrees(page, ledger.balances(disk.seen / "store", 1000, 2))
