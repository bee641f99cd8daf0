"""`hodo spacewire` as a user sees it, and the bridge as hosts see it that nobody here wrote: broken, slow, greedy, two at once."""

import pathlib
import random
import re
import socket
import struct
import time

import command
import pytest
import spacewire

COMPLETE, EEP, FRAGMENT, SEND_TIME, GOT_TIME, SPEED = 0x00, 0x01, 0x02, 0x30, 0x31, 0x38


def frame(flag, body, length=None):
    """A frame of SSDTP2: flag, a reserved byte, 80 bits of length."""
    return struct.pack(">BBHQ", flag, 0, 0, len(body) if length is None else length) + body


@pytest.fixture
def bridge(tmp_path):
    with spacewire.bridge(tmp_path) as started:
        yield started


def host(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def receive(connection, count):
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        assert more, f"closed after {got!r}"
        got += more
    return got


def packet(connection):
    flag, _, _, length = struct.unpack(">BBHQ", receive(connection, 12))
    return flag, receive(connection, length)


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def rss(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


def test_memory_is_written_read_and_modified(bridge, tmp_path):
    route = ["--path", spacewire.MEMORY, "--reply-path", spacewire.HOST]
    data = random.Random(0).randbytes(300_000)
    (tmp_path / "in").write_bytes(data)
    run = lambda *arguments: command.hodo("spacewire", *arguments, *route)
    assert run("write", bridge.host, "0x100", "--input", tmp_path / "in").stdout == "300000 bytes written at 0x100\n"
    assert run("read", bridge.host, "0x100", len(data), "--output", tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_bytes() == data
    assert run("write", bridge.host, "0", "de ad", "beef", "--no-reply").returncode == 0
    assert run("rmw", bridge.host, "0", "ff00", "0ff0").stdout == "0x0  before de ad  after df 0d\n"
    assert run("read", bridge.host, "0").stdout == "0x00000000  df 0d be ef                                      |....|\n"
    # By logical address, too, and the reply by that of the initiator.
    done = command.hodo("spacewire", "read", bridge.host, "0", "--initiator", 33)
    assert "df 0d be ef" in done.stdout, done.stderr


def test_the_target_and_the_network_tell_what_is_wrong(bridge):
    route = ["--path", spacewire.MEMORY, "--reply-path", spacewire.HOST]
    read = lambda *arguments, says, status=1: command.refused("spacewire", "read", bridge.host, *arguments, status=status, says=says)
    read("0x1000000", *route, says=["not implemented or not authorised", "0x1000000", bridge.host])
    read("0", *route, "--key", 7, says=["key"])
    read("0", "--path", 6, "--reply-path", 1, "--timeout", "200ms", says=["no reply", "path"])
    read("0", *route, "--crc", "draft-e", "--timeout", "200ms", says=["no reply"])
    command.refused("spacewire", "rmw", bridge.host, "0", "ff", "ffff", status=2, says=["1 bytes of data and 2 of mask"])


def test_a_target_without_a_path_is_answered_with_the_paths_of_the_bridge(tmp_path):
    pages = command.free_port()
    with spacewire.bridge(tmp_path, pages=pages) as started:
        paths = [f"--path {spacewire.MEMORY} --reply-path {back}" for back in (spacewire.HOST, spacewire.SECOND, spacewire.GRESB)]
        for port, path in zip((started.host, started.second, started.gresb), paths, strict=True):
            asked = [port, "0", "--timeout", "200ms", "--pages", f"127.0.0.1:{pages}"]
            done = command.refused("spacewire", "read", *asked, status=1, says=["no reply", rf"{path} +to memory"])
            assert not any(other in done.stderr for other in paths if other != path), done.stderr
            # It is an answer that works.
            assert command.hodo("spacewire", "read", *asked, *path.split()).returncode == 0
        wrong = ["spacewire", "rmw", started.host, "0", "00", "00", "--path", 6, *asked[2:]]
        command.refused(*wrong, status=1, says=["no reply", f"{paths[0]} +to memory"])
        # A bridge of others has no such page.
        nobody = f"127.0.0.1:{command.free_port()}"
        command.refused("spacewire", "write", *asked[:2], "00", "--timeout", "200ms", "--pages", nobody, status=1, says=["--reply-path", f"http://{nobody}/paths"])


def test_a_router_is_configured(bridge):
    registers = ["--path", 0, "--key", "0x20"]
    run = lambda *arguments: command.hodo("spacewire", *arguments, *registers)
    value = lambda address, length=4: spacewire.hex_bytes(run("read", bridge.host, address, length, "--part", 892).stdout)
    # A router, asked from port 1, with the five ports of the preset running.
    assert value(256) == bytes([0, 0, 0b11_1110, 0x11])
    assert len(value(32, 892)) == 892
    assert run("write", bridge.host, "100", f"{1 << spacewire.SECOND:08x}").returncode == 0
    with command.started("spacewire", "receive", bridge.second, "-n", 1, "--for", "20s", stderr=None) as receiver:
        command.wait_until(lambda: any("second" in line for line in bridge.log), "the receiver is there")
        assert command.hodo("spacewire", "send", bridge.host, "64 05").returncode == 0
        assert receiver.wait(20) == 0
        assert receiver.stdout.read() == "64 05\n"
    assert run("write", bridge.host, str(spacewire.MEMORY), "00004000").returncode == 0
    route = ["--path", spacewire.MEMORY, "--reply-path", spacewire.HOST, "--timeout", "200ms"]
    command.refused("spacewire", "read", bridge.host, "0", *route, status=1, says=["no reply"])
    assert run("write", bridge.host, str(spacewire.MEMORY), "00003000").returncode == 0
    assert command.hodo("spacewire", "read", bridge.host, "0", *route[:4]).returncode == 0
    assert value(256)[2] == 0b11_1110
    command.refused("spacewire", "read", bridge.host, "256", "--path", 0, status=1, says=["invalid key"])
    command.refused("spacewire", "read", bridge.host, "300", *registers, status=1, says=["not authorised"])


@pytest.mark.parametrize(("arguments", "says"), [
    (["read", "127.0.0.1", "0"], ["ssdtp2://host"]),
    (["read", "ssdtp2://127.0.0.1:1?x=y", "0"], ["x=y"]),
    (["read", "gresb://127.0.0.1?link=6", "0"], ["0 to 5"]),
    (["read", "ssdtp2://127.0.0.1", "0x10000000000"], ["40 bits"]),
    (["read", "ssdtp2://127.0.0.1", "0xFFFFFFFFFF", "2"], ["40 bits"]),
    (["write", "ssdtp2://127.0.0.1", "0", "abc"], ["hexadecimal"]),
    (["write", "ssdtp2://127.0.0.1", "0", "--input", "/no/such/file"], ["/no/such/file"]),
    (["send", "ssdtp2://127.0.0.1", "--path", "32", "00"], ["0 to 31"]),
    (["time-code", "ssdtp2://127.0.0.1", "256"], ["0xFF"]),
    (["bridge", "--preset", "none"], ["lab"]),
    (["bridge", "/no/such/network.toml"], ["/no/such/network.toml"]),
])
def test_a_wrong_command_line_is_told(arguments, says):
    command.refused("spacewire", *arguments, status=2, says=says)


def test_nobody_there_is_told():
    port = command.free_port()
    command.refused("spacewire", "read", f"ssdtp2://127.0.0.1:{port}", "0", status=1, says=[str(port), "refused", "hodo spacewire bridge"])


def test_packets_time_codes_and_eeps_cross_the_network(bridge, tmp_path):
    with command.started("spacewire", "receive", bridge.second, "-n", 5, "--for", "20s", "--time-codes", stderr=None) as receiver:
        command.wait_until(lambda: any("second" in line for line in bridge.log), "the receiver is there")
        (tmp_path / "lines").write_text("# two packets\n 20 01 02\n\n200304 EEP\n")
        send = lambda *arguments: command.hodo("spacewire", "send", *arguments)
        assert send(bridge.host, "--path", spacewire.SECOND, "--lines", tmp_path / "lines").returncode == 0
        assert send(bridge.gresb, "--path", spacewire.SECOND, "20").returncode == 0
        assert command.hodo("spacewire", "time-code", bridge.host, 1, "--count", 2, "--rate", 200).returncode == 0
        assert receiver.wait(20) == 0
        got = receiver.stdout.read().splitlines()
    assert sorted(got) == sorted(["20 01 02", "20 03 04 EEP", "20", "time-code 0x01", "time-code 0x02"])


def test_one_program_sends_while_another_receives_at_the_same_port_of_gresb(bridge):
    """Each opens the connection of its direction alone, so that neither takes the place of the other."""
    with command.started("spacewire", "receive", bridge.gresb, "-n", 3, "--for", "20s", stderr=None) as receiver:
        command.wait_until(lambda: any("connected" in line for line in bridge.log), "the receiver is there")
        for byte in ["21", "22", "23"]:
            done = command.hodo("spacewire", "send", bridge.gresb, "--path", spacewire.GRESB, byte)
            assert done.returncode == 0, done.stderr
        assert receiver.wait(20) == 0
        assert receiver.stdout.read().splitlines() == ["21", "22", "23"]
    assert not any("taken the place" in line for line in bridge.log)


def test_what_arrives_is_decoded(bridge):
    with command.started("spacewire", "sniff", bridge.second, "-n", 2, "--for", "20s", stderr=None) as sniffer:
        command.wait_until(lambda: any("second" in line for line in bridge.log), "the sniffer is there")
        done = command.hodo("spacewire", "read", bridge.host, "0x42", 9, "--path", spacewire.SECOND, "--timeout", "100ms")
        assert done.returncode == 1
        command.hodo("spacewire", "send", bridge.host, "--path", spacewire.SECOND, "40 02 00 00 08 2a c0 05 00 01 01 02")
        assert sniffer.wait(20) == 0
        read, space_packet = sniffer.stdout.read().splitlines()
    assert re.fullmatch(r" +\d+\.\d{6}  RMAP read 0 from 0xfe to 0xfe: 9 bytes at 0x42", read)
    assert space_packet.endswith("space packet to 0x40: APID 42, sequence 5, 2 bytes")


@pytest.mark.parametrize("stream", [
    pytest.param(frame(0x77, b""), id="flag"),
    pytest.param(frame(COMPLETE, b"", length=1 << 63), id="length of 64 bits"),
    pytest.param(b"\0\0\xff\xff" + b"\xff" * 8, id="length of 80 bits"),
    pytest.param(frame(SEND_TIME, b"123"), id="long time-code"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="HTTP"),
])
def test_a_stream_that_nobody_understands_ends_the_connection_alone(bridge, stream):
    with host(bridge.ports[0]) as broken, host(bridge.ports[1]) as good:
        broken.sendall(stream)
        assert is_closed(broken)
        with host(bridge.ports[0]) as again:
            again.sendall(frame(COMPLETE, bytes([spacewire.SECOND, 7])))
            assert packet(good) == (COMPLETE, b"\x07")


def test_frames_arrive_whole_however_they_are_cut(bridge):
    with host(bridge.ports[0]) as one, host(bridge.ports[1]) as other:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = frame(FRAGMENT, bytes([spacewire.SECOND, 1])) + frame(SEND_TIME, b"\x01\0") + frame(FRAGMENT, b"\2") + frame(EEP, b"\3")
        for byte in stream:
            one.sendall(bytes([byte]))
        got = [packet(other), packet(other)]
    assert sorted(got) == [(EEP, b"\1\2\3"), (GOT_TIME, b"\1\0")]


def test_a_newer_host_takes_the_place_of_an_older_one(bridge):
    with host(bridge.ports[0]) as older:
        command.wait_until(lambda: any("connected to host" in line for line in bridge.log), "the first is there")
        with host(bridge.ports[0]) as newer, host(bridge.ports[1]) as other:
            assert is_closed(older)
            other.sendall(frame(COMPLETE, bytes([spacewire.HOST, 5])))
            assert packet(newer) == (COMPLETE, b"\5")


def test_a_host_that_does_not_read_holds_the_sender_back_and_takes_no_memory(bridge):
    with host(bridge.ports[0]) as sender, socket.socket() as stopped:
        stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        stopped.connect(("127.0.0.1", bridge.ports[1]))
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)
        stream = frame(COMPLETE, bytes([spacewire.SECOND]) + bytes(1000)) * 100
        before, sent = rss(bridge.pid), 0
        sender.settimeout(1)
        give_up = time.monotonic() + 20
        with pytest.raises(TimeoutError):
            while time.monotonic() < give_up:
                sent += sender.send(stream[sent % len(stream):])
        assert rss(bridge.pid) - before < 64 << 20, f"after {sent} bytes"
        # Once it reads, everything goes on, and nothing is missing.
        stopped.settimeout(10)
        got = 0
        while got < (sent - 2000) // 1013:
            flag, data = packet(stopped)
            assert (flag, len(data)) == (COMPLETE, 1000)
            got += 1


def network(links, nodes="ab", routers="r"):
    text = "".join(f'[[node]]\nname = "{node}"\nssdtp2 = {{ port = {10_900 + at} }}\n' for at, node in enumerate(nodes))
    text += "".join(f'[[router]]\nname = "{router}"\nports = 4\n' for router in routers)
    return text + "".join(f'[[link]]\nbetween = ["{one}", "{other}"]\n' for one, other in links)


@pytest.mark.parametrize(("text", "says"), [
    (network([("a", "r:1"), ("b", "r:1")]), ["r:1|port 1"]),
    (network([("a", "r:1"), ("b", "r:9")]), ["r", "9"]),
    (network([("a", "r:1"), ("c", "r:2")]), ["no node c"]),
    (network([("a", "r:1"), ("b", "r:2")]).replace("10901", "10900"), ["10900"]),
    (network([("a", "r:1"), ("b", "r:2")], nodes="aa"), ["`a`"]),
    (network([("a", "r:1")]) + "speed = 3\n", ["speed"]),
    ("[[node]\n", ["network.toml"]),
])
def test_a_wrong_network_is_told(tmp_path, text, says):
    (tmp_path / "network.toml").write_text(text)
    command.refused("spacewire", "bridge", tmp_path / "network.toml", "--check", status=2, says=says)


def test_a_network_with_a_cycle_is_no_mistake(tmp_path):
    (tmp_path / "network.toml").write_text(network([("a", "r:1"), ("b", "s:1"), ("r:2", "s:2"), ("r:3", "s:3")], routers="rs"))
    done = command.hodo("spacewire", "bridge", tmp_path / "network.toml", "--check")
    assert done.returncode == 0 and "4 links" in done.stdout, done.stderr
