"""The power goes: the disk has what its image has at that moment, and nothing of what the kernel meant to write later."""

import contextlib
import shutil

import ledger
from disks import Ext4

EVENTS = ["--accept", "every:1"]


def test_under_disk_what_was_told_survives_a_loss_of_power_whoever_wrote_it(farm, tmp_path):
    image = tmp_path / "image"
    with contextlib.closing(Ext4.made(tmp_path / "disk", image)) as disk:
        options = ["--store", disk.path / "store"]
        # Written, told, and not synced: what a controller leaves that is killed before its sync ends.
        controller = farm.controller(*options, "--durability", "process", prefix=disk.inside)
        farm.nodes(controller.at, 2, *EVENTS)
        first = farm.source(controller.at, "--size", "1K", "--events", "1000")
        assert first.done() == 0 and ledger.given(first) == 1000
        controller.kill()
        on_disk = events_in(tmp_path, image, "before")
        assert on_disk < 1000, f"{on_disk} events are on the disk already: this tests nothing"
        # The next controller knows them from the kernel alone, and tells their source that they are stored.
        controller = farm.controller(*options, "--durability", "disk", listen=controller.at, prefix=disk.inside)
        again = farm.source(controller.at, "--size", "1K", "--events", "1000")
        assert again.done() == 0 and "1000 given twice" in again.text()
        assert events_in(tmp_path, image, "after") == 1000


def events_in(tmp_path, image, name):
    """How many events of run 1 have a verdict on the disk as it is now."""
    shutil.copyfile(image, tmp_path / name)
    with contextlib.closing(Ext4(tmp_path / f"{name}-disk", tmp_path / name)) as disk:
        store = disk.seen / "store"
        return len(ledger.verdicts(store)) if store.exists() else 0
