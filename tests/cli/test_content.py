"""`--payload FILE` and `--check`: what operations carry, and whether it arrives as it was sent."""

import contextlib
import random
import socket
import threading

import command
import pytest

SHORT = ["--duration", "60ms", "--warmup", "10ms", "--repeat", "1", "--quiet"]
# As many operations as a test needs, however long they take.
COUNTED = ["--count", "2000", "--warmup", "10ms", "--repeat", "1", "--quiet"]


TESTS = ["rate --mode send", "rate --mode receive", "latency --mode both", "updates --rate 5K"]
LINKS = ["tcp", "udp", "unix", "sim+tcp://?delay=10us", "sim+udp://?delay=10us"]


@pytest.mark.parametrize(("test", "link"), command.spread(TESTS, LINKS))
def test_an_honest_link_damages_nothing(test, link):
    rows = command.bench(link, *SHORT, "--test", *test.split(), "--sizes", "16,20,9000", "--check")
    assert [row["loss"]["damaged"] for row in rows] == [0] * 3
    assert all(row["operations"] > 0 and row["verdict"]["state"] != "failed" for row in rows)


def test_nobody_looks_unless_asked():
    assert all("damaged" not in row["loss"] for row in command.bench("tcp", *SHORT, "--test", "latency", "--sizes", "64"))


def test_a_connection_of_its_own_is_looked_at_too():
    (row,) = command.bench("tcp", *SHORT, "--test", "latency", "--sizes", "1K", "--reconnect", "--check")
    assert row["loss"]["damaged"] == 0 and row["operations"] > 0


class Relay:
    """Stands between a client and a server, keeps the first of what each connection sends there, and changes a byte of it now and then."""

    def __init__(self, server, every=None):
        self.server, self.every, self.kept = server, every, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def uri(self):
        return f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.server)
            self.kept.append(bytearray())
            threading.Thread(target=self.carry, args=(client, server, self.kept[-1]), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, None), daemon=True).start()

    def carry(self, one, other, kept):
        passed = 0
        with contextlib.suppress(OSError):
            while piece := bytearray(one.recv(65536)):
                if kept is not None:
                    kept += piece[: max(0, 100_000 - len(kept))]
                    place = self.every - passed % self.every if self.every and 0 < passed < 20 * self.every else len(piece)
                    if place < len(piece):
                        piece[place] ^= 0x20
                passed += len(piece)
                other.sendall(piece)
            other.shutdown(socket.SHUT_WR)


def test_what_is_changed_on_the_way_fails_the_row():
    with command.serving("tcp://127.0.0.1:0") as server:
        # The greeting and 1,000 operations from there on: never a header.
        relay = Relay(command.place(server.uri), 32 + 4096 * 1000 + 2000)
        done = command.hodo("bench", relay.uri(), "--test", "rate", "--mode", "send", "--sizes", "4096", *COUNTED, "--check", "--json", "-")
    (row,) = command.contract.parse(done.stdout)["measurements"]
    assert row["loss"]["damaged"] > 0, row["loss"]
    assert row["verdict"]["state"] == "failed" and "came otherwise than they were sent" in row["verdict"]["text"]
    assert done.returncode == 1, done.stderr


def payloads(stream):
    """The payloads of the SENDs in a stream, as docs/protocols/raw.md has them."""
    at = 0
    while at + 16 <= len(stream):
        kind, length = stream[at], int.from_bytes(stream[at + 4 : at + 8], "little")
        end = at + (max(16, length) if kind == 0xA4 else 16 + length)
        if kind == 0xA4 and end <= len(stream):
            yield stream[at + 16 : end]
        at = end


def test_the_bytes_of_the_file_go_out_one_after_the_other(tmp_path):
    content = random.Random(1).randbytes(10_000)
    file = tmp_path / "payload"
    file.write_bytes(content)
    with command.serving("tcp://127.0.0.1:0") as server:
        relay = Relay(command.place(server.uri))
        command.bench(relay.uri(), *COUNTED, "--test", "rate", "--mode", "send", "--sizes", "1016", "--payload", file)
    for stream in relay.kept:
        bodies = b"".join(payloads(stream))
        assert len(bodies) > 20_000
        assert bodies == (content * (len(bodies) // len(content) + 1))[: len(bodies)]


@pytest.mark.parametrize("mode", ["send", "receive", "both"])
def test_a_file_is_carried_both_ways_and_looked_at(tmp_path, mode):
    file = tmp_path / "payload"
    file.write_bytes(b"three")
    (row,) = command.bench("tcp", *SHORT, "--test", "rate", "--mode", mode, "--sizes", "5000", "--payload", file, "--check")
    assert row["loss"]["damaged"] == 0 and row["operations"] > 0


def test_what_cannot_be_carried_says_why(tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((256 << 20) + 1)
    for words, says in [
        (["ipbus", "--check"], "use a raw link, as tcp, udp or unix"),
        (["pva", "--payload", empty], "empty"),
        (["tcp", "--payload", empty], "it is empty"),
        (["tcp", "--payload", tmp_path / "none"], "No such file"),
        (["tcp", "--payload", large], "more than 256 MiB"),
        (["tcp", "--payload", "/dev/zero"], "more than 256 MiB"),
        (["tcp", "--check", "--under", "ipbus"], "--check: operations of ipbus"),
    ]:
        done = command.hodo("bench", *words, "--test", "rate")
        assert done.returncode == 2 and says in done.stderr, done.stderr
    command.refused("serve", "ipbusudp-2.0", "--payload", __file__, status=2, says=["use a raw link"])
