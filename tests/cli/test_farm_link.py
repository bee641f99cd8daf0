"""The hop from a farm's controller to its nodes, measured as every other link is."""

import command
import contract
import pytest

PLANS = [
    ["--test", "latency", "--sizes", "64,32000"],
    ["--test", "rate", "--sizes", "32000", "--window", "8"],
    ["--test", "random", "--sizes", "64..4096*8"],
    ["--test", "channels", "--sizes", "32000", "--channels", "20", "--window", "2"],
    ["--test", "open", "--sizes", "1K", "--rate", "2000"],
]
SIMULATED = "sim+farm://?delay=50us&rate=1G&mtu=1500&overhead=38&seed=3&accept=every:200&output=64K"


@pytest.mark.parametrize("link", ["farm", SIMULATED], ids=["farm", "sim+farm"])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan[1])
def test_every_test_over_nodes(link, plan):
    document = command.document(link, *plan, *command.SHORT)
    contract.check_filled(document)
    for one in document["measurements"]:
        assert (one["protocol"], one["mode"], one["loss"]["lost"]) == ("farm", "send", 0)
        assert one["verdict"]["state"] not in ("interrupted", "failed"), one["verdict"]
        assert one["limit"]["kind"] in (("line", "plain_loop") if link == "farm" else ("model",))
        assert one["times_plain_loop"] if link == "farm" else one["share_of_limit"]
        assert [node["number"] for node in one["nodes"]] == list(range(one["channels"]))
        if one["channels"] > 1:
            assert "shares of nodes" in one["verdict"]["text"] and one["fairness"]["min_over_max"] > 0
        assert link != "farm" or one["cpu"]["remote"], "the nodes tell what they use"


def test_nodes_that_are_served_elsewhere():
    options = "?accept=every:200&output=64K&time=100us"
    with command.serving(f"farm://127.0.0.1:0{options}") as nodes:
        plan = ["--test", "channels", "--sizes", "32000", "--channels", "4", "--window", "2"]
        (one,) = command.bench(f"{nodes.uri}{options}", *plan, *command.SHORT)
        assert one["operations"] > 0 and one["rate"]["operations_per_s"]["median"] < 41_000
        assert "4 nodes / 100.000 us a decision" in one["limit"]["formula"], one["limit"]
        (line,) = command.bench(f"{nodes.uri}?{options[1:]}", *plan, "--line-rate", "1G", *command.SHORT)
        assert line["limit"]["binds"] == "line" and line["limit"]["operations_per_s"] == pytest.approx(3676, abs=1)


def test_the_stages_of_an_event():
    (one,) = command.bench("farm?time=300us", "--test", "latency", "--sizes", "64", "--stages", *command.SHORT)
    names = [(stage["name"], stage["side"]) for stage in one["stages"]]
    far = [("wait", "remote"), ("decide", "remote"), ("network, waking", "remote")]
    assert names == [("queue", "local"), ("send", "local"), ("wire and node", "local"), *far, ("completion", "local")]
    decide = next(stage for stage in one["stages"] if stage["name"] == "decide")
    assert 300e3 <= decide["mean_ns"] < one["latency_ns"]["mean"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["farm", "--mode", "both"], ["--mode both", "one way, send"]),
        (["farm?nodes=20"], ["nodes", "policy, ahead, accept, output, time"]),
        (["farm?policy=fair"], ["token-fifo"]),
        (["farm", "--test", "latency", "--reconnect"], ["--reconnect"]),
        (["farm", "--batch", "2"], ["--batch"]),
    ],
    ids=lambda words: " ".join(words),
)
def test_what_a_farm_does_not_do_is_named(words, says):
    command.refused("bench", *words, status=2, says=says)
