"""The disk is full: events stop, the state says so; the disk is freed, and all goes on with nothing lost."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error

import ledger
import pytest
from disks import Ext4, LateDisk, SmallDisk, fill


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
    controller.said("no event is acknowledged until this is fixed")
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


def health(controller):
    """What `/health` says, and its status."""
    try:
        return 200, controller.fetch("/health").strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


def failing(controller, why="No space"):
    page = controller.until(lambda page: page["store"]["failing"], "the state says that nothing can be stored")
    assert re.search(why, page["store"]["failing"]), page["store"]
    status, text = health(controller)
    assert status == 503 and re.search(f"nothing can be stored: .*({why})", text), text
    return page


@contextlib.contextmanager
def on_a_late_disk(farm, tmp_path, *options):
    """A disk that can fail late, and how a controller with two nodes is started on it, as often as it dies."""
    with contextlib.closing(LateDisk(tmp_path / "late")) as disk:

        def start(**how):
            controller = farm.controller("--store", disk.path / "store", *options, prefix=disk.inside, **how)
            farm.nodes(controller.at, 2, "--accept", "every:1")
            return controller

        yield disk, start


# Long enough that a source has given all its events before the first: of one in their midst the rest would wait, as they should.
LATE = ["--sync-every", "500ms"]


def gives_all(farm, controller, events, size="4K"):
    """A source gives so many events, and each has its verdict."""
    source = farm.source(controller.at, "--size", size, "--events", events)
    assert source.done() == 0 and ledger.given(source) == events


def test_under_process_a_disk_that_fails_late_is_heard_of_and_goes_on_when_it_can(farm, tmp_path):
    with on_a_late_disk(farm, tmp_path, *LATE) as (disk, start):
        controller = start()
        disk.room(False)
        # The system takes these, and their source is told; only then does the disk fail.
        gives_all(farm, controller, 100)
        failing(controller)
        controller.said("no event is acknowledged until this is fixed")
        source = farm.source(controller.at, "--size", "4K", "--events", "200")
        page = controller.until(lambda page: page["events"]["uncommitted"] >= 100, "verdicts wait")
        assert page["events"]["accepted"] == 200 and page["store"]["events"] == 100 and source.process.poll() is None
        # What was in doubt is written again, and then all goes on.
        disk.room(True)
        controller.until(lambda page: not page["store"]["failing"], "the store works again")
        assert source.done() == 0 and ledger.given(source) == 200, controller.text()
        assert controller.end() == 0, controller.text()
        ledger.balances(disk.seen / "disk/store", 200, 1)
        assert on_disk(disk.image, tmp_path) == 200


def on_disk(image, tmp_path):
    """The events with a verdict on the disk as it is now, whatever the kernel still holds."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
    shutil.copyfile(image, folder / "image")
    with contextlib.closing(Ext4(folder / "copy", folder / "image")) as copy:
        return len(ledger.verdicts(copy.seen / "store"))


def test_under_disk_the_retry_of_a_commit_that_fails_late_tears_nothing_before_it(farm, tmp_path):
    with on_a_late_disk(farm, tmp_path, "--durability", "disk") as (disk, start):
        controller = start()
        gives_all(farm, controller, 40, "uniform:100..3K")
        disk.room(False)
        source = farm.source(controller.at, "--size", "uniform:1K..30K", "--first", 40, "--events", 100)
        failing(controller, "No space|Input/output error")
        assert on_disk(disk.image, tmp_path) == 40, "what was told is there, and nothing else"
        disk.room(True)
        assert source.done() == 0 and ledger.given(source) == 100
        assert on_disk(disk.image, tmp_path) == 140, "before the controller has ended"
        ledger.balances(disk.seen / "disk/store", 140, 1)


def test_what_a_failed_disk_does_not_have_is_written_by_the_next_controller_before_it_is_called_stored(farm, tmp_path):
    with on_a_late_disk(farm, tmp_path, *LATE) as (disk, start):
        controller = start()
        disk.room(False)
        gives_all(farm, controller, 100)
        failing(controller)
        controller.kill()
        disk.room(True)
        # The kernel now holds for clean what the disk does not have.
        start(listen=controller.at)
        assert on_disk(disk.image, tmp_path) == 100


def test_a_controller_that_ends_while_a_disk_has_failed_late_ends_in_failure(farm, tmp_path):
    with on_a_late_disk(farm, tmp_path) as (disk, start):
        controller = start()
        disk.room(False)
        gives_all(farm, controller, 100)
        # The sync is seconds away, but nothing is called stored at the end that is not.
        assert controller.end() == 1, controller.text()
        assert re.search(r"cannot sync .*segment-00000001.hodo: No space", controller.text())


def test_with_its_log_on_the_disk_that_is_full_a_controller_goes_on_when_there_is_room(farm, disk):
    options = ["--store", disk.path / "store", "--log", disk.path / "log"]
    controller = farm.controller(*options, prefix=disk.inside)
    farm.nodes(controller.at, 3, "--accept", "every:2")
    fill(disk.seen / "ballast")
    source = farm.source(controller.at, "--size", "uniform:1K..8K", "--rate", "2000", "--events", "1000")
    failing(controller)
    (disk.seen / "ballast").unlink()
    assert source.done() == 0 and ledger.given(source) == 1000
    assert health(controller) == (200, "ready")
    ledger.balances(disk.seen / "store", 1000, 2)
    assert controller.end() == 0, controller.text()


@pytest.mark.parametrize("how", ["signal", "farm stop"])
def test_ending_with_verdicts_that_are_not_stored_is_a_failure(farm, disk, how):
    options = ["--store", disk.path / "store", "--log", disk.path / "log", "--drain", "300ms"]
    controller = farm.controller(*options, prefix=disk.inside)
    farm.nodes(controller.at, 3, "--accept", "every:2")
    fill(disk.seen / "ballast")
    farm.source(controller.at, "--size", "1K", "--events", "1000")
    failing(controller)
    if how == "farm stop":
        stop = farm.part("stop", controller.pages)
        assert stop.done() == 1 and "not all that it had decided is stored" in stop.text(), stop.text()
        assert controller.done() == 1
    else:
        assert controller.end() == 1
    controller.said(r"\d+ verdicts are not stored: .*No space")


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_what_the_disk_has_leaves_the_memory_of_the_system(farm, tmp_path, durability):
    with contextlib.closing(Ext4.made(tmp_path / "disk", tmp_path / "image", 128)) as disk:
        options = ["--store", disk.path / "store", "--durability", durability, "--segment", "40M"]
        options += ["--sync-every", "1h", "--sync-bytes", "4M"]
        controller = farm.controller(*options, prefix=disk.inside)
        farm.nodes(controller.at, 2, "--accept", "every:1")
        source = farm.source(controller.at, "--size", "64K", "--events", "1000")
        assert source.done() == 0 and ledger.given(source) == 1000
        controller.until(lambda _: cached_bytes(disk.seen / "store") < 8 << 20, "it has left")
        ledger.balances(disk.seen / "store", 1000, 1)


def cached_bytes(folder):
    """What the system keeps in memory of the segments in a folder."""
    command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *folder.glob("segment-*")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sum(map(int, found))
