"""`hodo pva serve` reads its file again on SIGHUP."""

import queue
import signal

import command
import pva
import pytest
from p4p.client.thread import Disconnected, RemoteError

BEFORE = """
[[pv]]
name = "SAME:{1,2}"
put = "accept"
[[pv]]
name = "COUNT"
type = "long"
source = "ramp"
to = 1_000_000_000
every = "5ms"
[[pv]]
name = "LIMITED"
value = 5
put = "accept"
control = [0, 10]
[[pv]]
name = "FROZEN"
put = "accept"
[[pv]]
name = "TYPED"
type = "int"
value = 1
[[pv]]
name = "GONE"
[[pv]]
name = "WAVES"
[[call]]
name = "CALLED"
command = ["echo", "1"]
"""


class Watched:
    """The updates and lost connections of a PV, in their order."""

    def __init__(self, context, name):
        self.seen = queue.Queue()
        self.subscription = context.monitor(name, self.seen.put, notify_disconnect=True)

    def next(self):
        return self.seen.get(timeout=30)

    def all(self):
        """Everything so far."""
        return [self.seen.get() for _ in range(self.seen.qsize())]


def first_value(watched):
    """The first update, behind the note that there is no connection yet."""
    value = watched.next()
    return watched.next() if isinstance(value, Disconnected) else value


def reload(process, says):
    """Has the server read its file again, and waits until the log says so."""
    start = len(process.log)
    process.send_signal(signal.SIGHUP)
    command.wait_until(lambda: any(says in line for line in process.log[start:]), says)


def test_what_is_the_same_stays_and_all_else_follows_the_file(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(BEFORE)
    with pva.serving(file) as process, pva.client(process.at) as context:
        names = ["SAME:1", "COUNT", "LIMITED", "TYPED", "GONE", "WAVES"]
        context.put(["SAME:1", "LIMITED", "FROZEN"], [1.5, 7, 3])
        watched = {name: Watched(context, name) for name in names}
        first = {name: first_value(watched[name]) for name in names}
        assert (first["SAME:1"], first["LIMITED"], first["TYPED"]) == (1.5, 7, 1)
        after = BEFORE.replace('"SAME:{1,2}"', '"SAME:{1..3}"').replace("[0, 10]", "[0, 100]")
        after = after.replace('name = "FROZEN"\nput = "accept"', 'name = "FROZEN"')
        after = after.replace('type = "int"\nvalue = 1', 'type = "string"\nvalue = "x"').replace('[[pv]]\nname = "GONE"\n', "")
        after = after.replace('name = "WAVES"', 'name = "WAVES"\nsource = "sine"\nfrom = 20\nto = 30').replace('"1"]', '"2"]')
        file.write_text(after)
        reload(process, "1 PVs are new, 5 changed, 1 removed, 3 as before")

        assert context.get("SAME:3") == 0
        context.put("SAME:1", 2.5)
        assert watched["SAME:1"].next() == 2.5, "nothing came between"
        counts = watched["COUNT"].all()
        assert not any(isinstance(count, Disconnected) for count in counts)
        assert counts == sorted(counts)
        # Other limits, the same value, and the subscriber is told.
        limited = watched["LIMITED"].next()
        assert (limited, limited.raw.control.limitHigh) == (7, 100)
        context.put("LIMITED", 50)
        assert watched["LIMITED"].next() == 50
        with pytest.raises(RemoteError, match="can only be read"):
            context.put("FROZEN", 4)
        assert context.get("FROZEN") == 3
        assert isinstance(watched["TYPED"].next(), Disconnected)
        assert watched["TYPED"].next() == "x"
        assert isinstance(watched["GONE"].next(), Disconnected)
        wave = watched["WAVES"].next()
        assert not isinstance(wave, Disconnected)
        command.wait_until(lambda: 20 <= context.get("WAVES") <= 30, "the source runs")
        assert context.rpc("CALLED", None) == 2
        assert "pva_server_pvs 9" in pva.page(process, "/metrics")

        # Sources end with their table.
        file.write_text(after.replace('\nsource = "sine"\nfrom = 20\nto = 30', ""))
        reload(process, "0 PVs are new, 1 changed, 0 removed, 8 as before")
        at_rest = context.get("WAVES").raw
        watched["WAVES"].all()
        context.put("SAME:1", 3.5)
        assert watched["SAME:1"].next() == 3.5
        assert context.get("WAVES").raw.timeStamp.nanoseconds == at_rest.timeStamp.nanoseconds
        for one in watched.values():
            one.subscription.close()


def test_a_bad_file_changes_nothing_and_changed_rules_count(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(BEFORE)
    with pva.serving(file) as process, pva.client(process.at) as context:
        context.put("SAME:1", 1.5)
        watched = Watched(context, "SAME:1")
        assert first_value(watched) == 1.5
        for bad, says in {
            BEFORE.replace('"SAME:{1,2}"', '"SAME:{1.."'): "pvs.toml:3: [[pv]] SAME:{1..: { without }",
            BEFORE + "[[pv": "the PVs stay as they were",
            "": "there is no PV",
        }.items():
            file.write_text(bad)
            reload(process, says)
        context.put("SAME:1", 2.5)
        assert watched.next() == 2.5
        assert pva.page(process, "/health").strip() == "ready"

        file.write_text('[server]\nqueue = 7\n[[access]]\nrights = ["read"]\n' + BEFORE)
        reload(process, "[server] has changed: restart the server for it")
        # Who has lost a right opens the PV again with what is left.
        assert isinstance(watched.next(), Disconnected)
        assert watched.next() == 2.5
        with pytest.raises(RemoteError):
            context.put("SAME:1", 3.5)
        file.write_text(BEFORE)
        reload(process, "9 as before")
        context.put("SAME:1", 3.5, timeout=10)
        assert watched.next() == 3.5, "more rights disturb nobody"
        watched.subscription.close()
