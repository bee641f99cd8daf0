"""Sources that are misconfigured, or worse: they end nothing but themselves, and what they have put in can be taken out."""

import ledger
import peer
import pytest

SKIP = 4
TOO_MANY_GAPS, NO_SUCH_RUN = 11, 12


def given(taker, *messages, number=9):
    """Gives messages as a source, some at a time, until the far end refuses one; the reason, or None."""
    with peer.greeted(taker.at, peer.SOURCE, number=number) as link:
        for at in range(0, len(messages), 1000):
            some = messages[at : at + 1000]
            link.send(*some)
            for _ in some:
                kind, code, body = link.of(peer.TOKEN, peer.REFUSED)
                if kind == peer.REFUSED:
                    return code, body.decode()
    return None


def source(farm, controller, events, first=0):
    return farm.source(controller.at, "--size", "100", "--events", events, "--first", first)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_runs_that_nobody_has_opened_end_no_other(farm, tmp_path, is_restarted):
    controller = farm.controller("--store", tmp_path / "store")
    farm.nodes(controller.at, 2, "--accept", "every:2")
    assert source(farm, controller, 1000).done() == 0
    before = controller.page()["events"]
    for run in range(100, 120):
        code, words = given(controller, peer.message(peer.RUN, run), peer.message(peer.EVENT, 0, b"x" * 12))
        assert code == NO_SUCH_RUN and f"hodo farm set-run {run}" in words, words
    assert controller.page()["events"] == before, "a refusal changes nothing"
    if is_restarted:
        controller.kill()
        controller = farm.controller("--store", tmp_path / "store", listen=controller.at)
    assert source(farm, controller, 1000, 1000).done() == 0
    # What the operator has opened is taken.
    assert farm.part("set-run", 100, controller.pages).done() == 0
    other = farm.source(controller.at, "--size", "100", "--events", "10", "--run", 100)
    assert other.done() == 0 and ledger.given(other) == 10


def test_a_builder_takes_the_runs_that_the_operator_has_opened_at_its_controller(farm):
    controller = farm.controller("--open", "5")
    farm.nodes(controller.at, 2, "--accept", "every:2")
    options = ["--listen", "127.0.0.1:0", "--no-metrics", "--sources", 2, "--patience", "200ms"]
    builder = farm.part("builder", *options, "--to", controller.at)
    builder.at = builder.said(r"listening on (\S+)")[1]

    def runs(*options):
        sources = [farm.source(builder.at, "--number", number, "--events", 100, *options) for number in range(2)]
        assert [source.done() for source in sources] == [0, 0], sources[0].text()

    runs("--run", 5)
    for run in range(100, 110):
        code, words = given(builder, peer.message(peer.RUN, run), peer.message(peer.EVENT, 0, b"x" * 12), number=1)
        assert code == NO_SUCH_RUN and f"hodo farm set-run {run}" in words, words
    # Neither its controller nor the other sources have heard of them.
    runs("--first", 1000)
    assert farm.part("set-run", 100, controller.pages).done() == 0
    runs("--run", 100)
    assert controller.page()["events"]["taken_in"] == 300


def test_gaps_end_only_who_opens_too_many_and_a_repair_undoes_them(farm, tmp_path):
    controller = farm.controller("--store", tmp_path / "store")
    farm.nodes(controller.at, 2, "--accept", "every:2")
    assert source(farm, controller, 1000).done() == 0
    code, _ = given(controller, *(peer.message(SKIP, 5000 + 2 * number) for number in range(70_000)))
    assert code == TOO_MANY_GAPS
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    assert 60_000 < page["events"]["incomplete"] <= 65_536
    # Others may still be ahead of each other, now and after a restart.
    assert source(farm, controller, 1000, 200_000).done() == 0
    assert given(controller, *(peer.message(SKIP, 300_000 + 2 * number) for number in range(1000)))[0] == TOO_MANY_GAPS
    controller.kill()
    controller = farm.controller("--store", tmp_path / "store", listen=controller.at)
    assert source(farm, controller, 1000, 201_000).done() == 0
    # Those that were skipped can be given by who has them, once it is repaired.
    assert farm.part("repair", tmp_path / "store", tmp_path / "new", "--again", 1).done() == 1, "a writer is at work"
    assert controller.end() == 0
    done = farm.part("repair", tmp_path / "store", tmp_path / "new", "--again", 1)
    assert done.done() == 0 and "left out" in done.text(), done.text()
    found = ledger.verdicts(tmp_path / "new")
    assert len(found) == 3000 and "incomplete" not in found.values()
    ledger.verified(tmp_path / "new")
    controller = farm.controller("--store", tmp_path / "new", listen=controller.at)
    missing = source(farm, controller, 9000, 1000)
    assert missing.done() == 0 and ledger.given(missing) == 9000
    assert " 0 given twice" in missing.text(), "none of them had a verdict"
