"""`hodo spacewire` at boxes that nobody here wrote: ones that talk all the time, answer wrongly, and vanish."""

import contextlib
import os
import socket
import struct
import threading
import time

import command
import pytest
import spacewire

EOP, EEP = 0x00, 0x01
TELEMETRY = bytes([0x50]) + bytes(50)


def frame(flag, body):
    """A frame of SSDTP2: flag, a reserved byte, 80 bits of length."""
    return struct.pack(">BBHQ", flag, 0, 0, len(body)) + body


def receive(connection, count):
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise EOFError(got)
        got += more
    return got


def packet(connection):
    flag, _, _, length = struct.unpack(">BBHQ", receive(connection, 12))
    return flag, receive(connection, length)


@contextlib.contextmanager
def box(serve):
    """A box with SSDTP2: `serve` has each connection for as long as it wants it."""

    def one(connection):
        with connection, contextlib.suppress(OSError, EOFError):
            connection.settimeout(command.BOUND_S)
            serve(connection)

    def accept(listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"ssdtp2://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def babble(connection):
    """Sends telemetry as fast as it is taken."""
    many = frame(EOP, TELEMETRY) * 1000
    while True:
        connection.sendall(many)


def crc(data):
    code = 0
    for byte in data:
        code ^= byte
        for _ in range(8):
            code = code >> 1 ^ 0xE0 if code & 1 else code >> 1
    return code


def reply(told, status=0, transaction=None, data=None, damage=0):
    """The reply to a read command without reply address."""
    length = int.from_bytes(told[12:15], "big")
    data = bytes(length) if data is None else data
    head = bytes([told[4], 0x01, told[2] & 0x3F, status, told[0]])
    head += told[5:7] if transaction is None else transaction.to_bytes(2, "big")
    head += b"\0" + len(data).to_bytes(3, "big")
    return head + bytes([crc(head) ^ damage]) + data + bytes([crc(data)])


@pytest.mark.parametrize("what", ["receive", "sniff"])
def test_a_time_ends_it_however_much_arrives(what, tmp_path):
    with box(babble) as port, open(os.devnull, "w") as nowhere:
        done = command.hodo("spacewire", what, port, "--for", "300ms", within=20, stdout=nowhere)
        assert done.returncode == 0, done.stderr
        done = command.hodo("spacewire", "receive", port, "--for", "300ms", "--count", 1 << 40, within=20, stdout=nowhere)
        assert done.returncode == 1


@pytest.mark.parametrize("what", ["receive", "sniff"])
def test_it_ends_with_its_reader(what):
    with box(babble) as port, command.started("spacewire", what, port) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 0


def test_a_read_has_its_deadline_however_much_arrives():
    with box(babble) as port:
        command.refused("spacewire", "read", port, "0", "--timeout", "200ms", within=20, status=1, says=["no reply"])


def test_what_has_arrived_is_written_when_the_box_vanishes(tmp_path):
    with box(lambda connection: connection.sendall(frame(EOP, b"abc") + frame(EEP, b"de"))) as port:
        done = command.hodo("spacewire", "receive", port, "--count", 3, "--output", tmp_path / "out")
    assert done.returncode == 1 and "closed by the far end" in done.stderr
    assert (tmp_path / "out").read_bytes() == b"abcde"


def test_nothing_is_lost_at_a_box_that_talks_meanwhile():
    """A close with bytes that nobody has read resets the connection, which takes with it what the box has not received yet."""
    got, count = [], 1000

    def talk(connection):
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(frame(EOP, TELEMETRY))
                time.sleep(0.001)

    def slow(connection):
        threading.Thread(target=talk, args=(connection,), daemon=True).start()
        time.sleep(0.3)
        while True:
            got.append(packet(connection)[1])

    with box(slow) as port:
        done = command.hodo("spacewire", "send", port, "--count", count, "20" * 2000)
        assert done.returncode == 0, done.stderr
        command.wait_until(lambda: len(got) == count, "all packets are there")
        got.clear()
        assert command.hodo("spacewire", "write", port, "0", "aa", "--no-reply").returncode == 0
        command.wait_until(lambda: len(got) == 1, "the write is there")
        got.clear()
        assert command.hodo("spacewire", "time-code", port, "--count", 3, "--rate", 1000).returncode == 0
        command.wait_until(lambda: len(got) == 3, "the time-codes are there")


def test_packets_that_come_back_do_not_hold_the_sender_up():
    # More than a port keeps for a program that does not read, in packets and in bytes.
    got, count = [0], 100_000

    def echo(connection):
        while True:
            flag, data = packet(connection)
            got[0] += 1
            connection.sendall(frame(flag, data))

    with box(echo) as port:
        sent = command.hodo("spacewire", "send", port, "--count", count, "20" * 300)
        assert sent.returncode == 0, sent.stderr
        assert got[0] == count


def test_a_box_that_leaves_the_connection_open_does_not_hold_the_sender_up():
    over = threading.Event()
    with box(lambda connection: over.wait(command.BOUND_S)) as port:
        begin = time.monotonic()
        done = command.hodo("spacewire", "send", port, "20 01", "--timeout", "200ms")
        assert done.returncode == 0 and "did not close" in done.stderr
        assert time.monotonic() - begin < 20
        over.set()


@pytest.mark.parametrize(("change", "says"), [
    ({"damage": 1}, ["no reply", "arrived instead: 1", "header CRC", "draft E"]),
    ({"transaction": 999}, ["no reply", "reply to transaction 999"]),
    ({"status": 3, "data": b""}, ["refused", "key"]),
])
def test_a_wrong_reply_is_told(change, says):
    def serve(connection):
        while True:
            connection.sendall(frame(EOP, reply(packet(connection)[1], **change)))

    with box(serve) as port:
        command.refused("spacewire", "read", port, "0", "--timeout", "200ms", status=1, says=says)


def test_a_refusal_counts_though_its_data_is_cut():
    """Some targets refuse a read without the data CRC that the standard puts behind no data."""
    with box(lambda connection: connection.sendall(frame(EOP, reply(packet(connection)[1], status=3, data=b"")[:12]))) as port:
        command.refused("spacewire", "read", port, "0", status=1, says=["refused", "key"])


@pytest.mark.parametrize("arguments", [
    ["send", "PORT", ""],
    ["send", "PORT", "--input", "/dev/null"],
    ["rmw", "PORT", "0", "", ""],
])
def test_what_a_link_cannot_carry_is_not_sent(arguments):
    with box(lambda connection: connection.recv(1)) as port:
        told = [port if argument == "PORT" else argument for argument in arguments]
        command.refused("spacewire", *told, status=2, says=["byte"])


def test_lines_from_windows_are_lines(tmp_path):
    got = []

    def serve(connection):
        while True:
            got.append(packet(connection))

    (tmp_path / "lines").write_bytes(b"\xef\xbb\xbf20 01\r\n20 02 EEP\r\n")
    with box(serve) as port:
        assert command.hodo("spacewire", "send", port, "--lines", tmp_path / "lines").returncode == 0
        command.wait_until(lambda: len(got) == 2, "both are there")
    assert got == [(EOP, b"\x20\x01"), (EEP, b"\x20\x02")]
    (tmp_path / "lines").write_text("20\nEEP\n")
    command.refused("spacewire", "send", port, "--lines", tmp_path / "lines", status=2, says=["line 2", "byte"])
