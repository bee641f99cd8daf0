"""Closed files of a store are copied elsewhere, and nothing waits for that."""

import command
import farms

GIVEN = ["--events", 3000, "--size", 2000]
# However slow the disk is, no commit holds more than two segments do.
KEEP = ["--segment", "64K", "--uncommitted", 64]


def segments(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.name.startswith("segment-")}


def uploads(controller):
    return controller.farm()["store"]["uploads"]


def fill(controller, *options):
    with farms.node(controller, "--accept", "0.2"):
        farms.source(controller, *GIVEN, *options)
        return controller.balanced()


def test_closed_segments_are_uploaded_while_the_farm_runs_and_the_last_one_at_its_end(tmp_path):
    store, there = tmp_path / "store", tmp_path / "there"
    with farms.controller("--store", store, "--upload", there, *KEEP) as controller:
        fill(controller)
        # The last one grows, unless the last commit has just closed it.
        closed = len(segments(store)) - 1
        assert closed > 5
        command.wait_until(lambda: uploads(controller)["segments"] >= closed, "what is closed is there")
        command.wait_until(lambda: uploads(controller)["waiting"] == 0, "nothing else is to be copied")
        uploaded = uploads(controller)["segments"]
        assert uploaded <= closed + 1 and uploads(controller)["failures"] == 0
        assert uploads(controller)["bytes"] == sum(map(len, segments(there).values()))
        metrics = controller.page("/metrics")
        assert f"\nfarm_uploaded_segments_total {uploaded}\n" in metrics and "\nfarm_uploads_waiting 0\n" in metrics
        assert controller.end()[0] == 0
    assert segments(there) == segments(store)
    done = command.hodo("farm", "verify", there)
    assert "run 1: 3000 events" in done.stdout, done.stdout


def test_a_controller_after_it_goes_on_with_what_is_left(tmp_path):
    store, there = tmp_path / "store", tmp_path / "there"
    with farms.controller("--store", store, *KEEP) as controller:
        assert uploads(controller) is None and "farm_upload" not in controller.page("/metrics")
        fill(controller)
        assert controller.end()[0] == 0
    for first in (3000, 6000):
        with farms.controller("--store", store, "--upload", there, *KEEP) as controller:
            fill(controller, "--first", first)
            assert controller.end()[0] == 0
        if first == 3000:
            assert segments(there) == segments(store)
            (there / "segment-00000001.hodo").write_bytes(b"")
    assert segments(there) == segments(store) | {"segment-00000001.hodo": b""}, "none is uploaded a second time"


def test_a_place_that_cannot_be_written_holds_nothing_up(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder has to be", encoding="ascii")
    there = blocked / "there"
    with farms.controller("--store", tmp_path / "store", "--upload", there, *KEEP) as controller:
        assert fill(controller)["uncommitted"] == 0
        command.wait_until(lambda: uploads(controller)["failures"] > 0, "it was tried")
        seen = uploads(controller)
        assert seen["segments"] == 0 and seen["waiting"] > 5 and str(there) in seen["last_failure"]
        blocked.unlink()
        command.wait_until(lambda: uploads(controller)["waiting"] == 0, "it was tried again")
        status, said = controller.end()
        assert status == 0 and "retrying, and the farm goes on" in said, said
        assert "uploads work again" in said
    assert segments(there) == segments(tmp_path / "store")


def test_what_is_left_at_the_end_is_told(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("", encoding="ascii")
    with farms.controller("--store", tmp_path / "store", "--upload", blocked / "there", *KEEP) as controller:
        fill(controller)
        status, said = controller.end()
    assert status == 0 and "segments are left to be uploaded by the next controller" in said, said


def test_uploads_that_make_no_sense_are_refused(tmp_path):
    refused = ["farm", "controller", "--no-metrics", "--listen", "127.0.0.1:0", "--upload", tmp_path]
    command.refused(*refused, status=2, says=["--store"])
    command.refused(*refused, "--store", tmp_path, status=2, says=["the store itself"])
