"""The options of a link's sockets, as the far end finds them and as the results have them."""

import contextlib
import socket
import struct

import command
import pytest

AT_ONCE_S = 2
EF, LE = 46, 1
# An address of loopback that is not the usual one.
OWN = "127.0.0.9"
ONE = ["--test", "latency", "--sizes", "64"]
IP_RECVTTL, IP_RECVTOS, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS = 12, 13, 51, 66
# What a far end in Python asks its kernel for, and how the answers are called.
ASKED = {
    socket.AF_INET: (socket.IPPROTO_IP, [IP_RECVTOS, IP_RECVTTL], (socket.IP_TOS, socket.IP_TTL)),
    socket.AF_INET6: (socket.IPPROTO_IPV6, [IPV6_RECVTCLASS, IPV6_RECVHOPLIMIT], (67, 52)),
}


@contextlib.contextmanager
def silent(family, kind):
    """A far end that answers nothing, at a free port."""
    with socket.socket(family, kind) as far:
        far.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        far.settimeout(10)
        yield far


def uri_of(scheme, far):
    host, port = far.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize(("dscp", "code", "ttl"), [("ef", EF, 9), ("1", LE, 255), ("af11", 10, 1)])
def test_datagrams_carry_code_point_and_time_to_live(family, dscp, code, ttl):
    level, options, (class_name, ttl_name) = ASKED[family]
    with silent(family, socket.SOCK_DGRAM) as far:
        for option in options:
            far.setsockopt(level, option, 1)
        with command.started("bench", uri_of("udp", far), *ONE, "--dscp", dscp, "--ttl", ttl, *command.SHORT):
            _, controls, _, _ = far.recvmsg(2048, 256)
    found = {kind: data for at, kind, data in controls if at == level}
    assert found[class_name][0] >> 2 == code
    assert struct.unpack("i", found[ttl_name])[0] == ttl


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_the_far_end_finds_the_address_and_port_that_are_bound(kind):
    scheme = "udp" if kind == socket.SOCK_DGRAM else "tcp"
    port = command.free_port(kind)
    with silent(socket.AF_INET, kind) as far:
        if kind == socket.SOCK_STREAM:
            far.listen()
        with command.started("bench", uri_of(scheme, far), *ONE, "--bind", f"{OWN}:{port}", *command.SHORT):
            if kind == socket.SOCK_STREAM:
                connection, found = far.accept()
                connection.close()
            else:
                _, found = far.recvfrom(2048)
    assert found == (OWN, port)


@pytest.mark.parametrize(("scheme", "kind"), [("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)])
def test_each_channel_has_the_next_port_in_every_step(scheme, kind):
    first = command.free_port(kind, together=3)
    plan = ["--test", "channels", "--channels", "3", "--sizes", "64,1K", "--bind", f"{OWN}:{first}"]
    with command.serving(scheme) as server:
        rows = command.bench(server.uri, *plan, *command.SHORT)
    assert len(rows) == 2 and all(one["operations"] > 0 for one in rows)
    assert {one["connection"]["bind"] for one in rows} == {f"{OWN}:{first}"}


def test_a_connection_for_each_operation_has_the_address():
    (one,) = command.bench("tcp", *ONE, "--reconnect", "--bind", OWN, *command.SHORT)
    assert one["operations"] > 0 and one["connection"]["bind"] == OWN


@pytest.mark.parametrize("mode", ["send", "receive"])
def test_segments_are_no_longer_than_asked(mode):
    plan = ["--test", "rate", "--mode", mode, "--sizes", "32K"]
    (usual,) = command.bench("tcp", *plan, *command.SHORT)
    (short,) = command.bench("tcp", *plan, "--mss", "600", *command.SHORT)
    assert usual["connection"] == {"mss": usual["connection"]["mss"]} and usual["connection"]["mss"] > 1400
    assert 500 <= short["connection"]["mss"] <= 600 and short["connection"]["mss_asked"] == 600
    if mode == "send":
        # All that this side sent in the counted time; acknowledgements without payload only lower the mean.
        assert short["payload_bytes"] / short["tcp"]["segments"] <= 600


@pytest.mark.parametrize("link", ["tcp", "udp", "ipbus", "chtcp-2.0", "pva", "farm"])
def test_what_was_set_stands_in_the_results(link, tmp_path):
    table = tmp_path / "rows.tsv"
    options = ["--dscp", "af41", "--ttl", "12", "--device", "lo", "--ipv4"]
    test = ["--test", "latency", *([] if link == "farm" else ["--mode", "send"])]
    (one,) = command.bench(link, *test, "--sizes", "64", *options, "--tsv", table, *command.SHORT)
    found = one["connection"]
    assert {name: found[name] for name in ("dscp", "ttl", "device", "ip_version")} == {"dscp": 34, "ttl": 12, "device": "lo", "ip_version": 4}
    head, row = (line.split("\t") for line in table.read_text(encoding="utf-8").splitlines())
    cells = dict(zip(head, row, strict=True))
    assert (cells["dscp"], cells["ttl"], cells["device"]) == ("34", "12", "lo")


@pytest.mark.parametrize("link", ["tcp", "udp", "ipbus", "pva", "farm", "roce"])
def test_over_ipv6(link):
    (one,) = command.bench(link, "--test", "latency", "--sizes", "64", "-6", "--dscp", "ef", *command.SHORT)
    assert one["operations"] > 0 and one["connection"]["ip_version"] == 6


def test_a_server_is_at_loopback_of_the_version_that_is_asked_for():
    with command.serving("tcp", "-6") as server:
        assert server.uri.startswith("tcp://[::1]:")
        done = command.hodo("bench", server.uri, *ONE, "-4", *command.SHORT)
        assert done.returncode == 2 and "has no IPv4 address" in done.stderr, done.stderr
        assert command.bench(server.uri, *ONE, "--bind", "::1", *command.SHORT)[0]["operations"] > 0


def test_other_marks_are_another_plan(tmp_path):
    files = []
    for name, options in (("plain", []), ("marked", ["--dscp", "ef"])):
        files.append(tmp_path / f"{name}.json")
        command.hodo("bench", "tcp", *ONE, *options, *command.SHORT, "--json", files[-1])
    done = command.hodo("compare", *files)
    assert "only in B" in done.stdout and "DSCP 46" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tcp", "--dscp", "64"], ["`64` is no code point", r"0\.\.63"]),
        (["tcp", "--dscp", "best"], ["best", "af11..af43"]),
        (["tcp", "--ttl", "0"], ["--ttl", "0"]),
        (["tcp", "--ttl", "256"], ["--ttl", "256"]),
        (["tcp", "--mss", "10"], ["--mss", "88"]),
        (["tcp", "--bind", "127.0.0.1:99999"], ["127.0.0.1:99999", "not an address"]),
        (["tcp", "--bind", "192.0.2.1"], ["--bind 192.0.2.1", "does not have", "ip address"]),
        (["tcp", "--bind", "127.0.0.9:65535", "--test", "channels", "--channels", "2"], ["--bind", "65535", "lower port"]),
        (["tcp", *ONE, "--reconnect", "--bind", "127.0.0.9:5000"], ["--bind 127.0.0.9:5000", "leave the port out"]),
        (["tcp", "--device", "nonesuch0"], ["--device", "loopback", "name the host"]),
        (["tcp://127.0.0.1:9", "--device", "nonesuch0"], ["--device nonesuch0", "no interface", "ip link"]),
        (["tcp", "-4", "-6"], ["--ipv4", "--ipv6"]),
        (["tcp", "-6", "--bind", "127.0.0.1"], ["--bind 127.0.0.1", "no IPv6 address", "leave --ipv6 out"]),
        (["tcp://127.0.0.1:9", "-6"], ["127.0.0.1", "has no IPv6 address"]),
        (["tcp://[::1]:9", "--bind", "127.0.0.1"], ["::1", "has no IPv4 address"]),
        (["chtcp-2.0", "-6"], ["IPv4", "leave --ipv6 out"]),
        (["udp", "--mss", "600"], ["--mss", "no TCP sockets", "leave it out"]),
        (["unix", "--dscp", "ef"], ["--dscp", "no IP packets", "leave it out"]),
        (["sim+tcp", "--ttl", "5"], ["--ttl", "simulated", "leave it out"]),
        (["sim+udp", "-6"], ["--ipv6", "simulated"]),
        (["roce", "--device", "lo"], ["--device", "adapter"]),
        (["verbs", "--dscp", "ef"], ["--dscp", "made by an adapter"]),
        (["shm", "--bind", "127.0.0.1"], ["--bind", "no IP packets"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_is_turned_down_at_once(arguments, says):
    done = command.refused("bench", *arguments, status=2, says=says, within=AT_ONCE_S)
    assert done.stdout == "", "the error comes before any header"


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind((OWN, 0))
        taken.listen()
        place = f"{OWN}:{taken.getsockname()[1]}"
        command.refused("bench", "tcp", *ONE, "--bind", place, status=2, says=[f"--bind {place}", "in use", "another port"], within=AT_ONCE_S)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["udp", "--mss", "600"], ["--mss", "no TCP sockets"]),
        (["unix", "--ttl", "5"], ["--ttl", "no IP packets"]),
        (["tcp://127.0.0.1:0", "--device", "nonesuch0"], ["--device nonesuch0", "no interface"]),
        (["tcp://127.0.0.1:0", "-6"], ["has no IPv6 address"]),
    ],
)
def test_a_server_turns_them_down_too(arguments, says):
    command.refused("serve", *arguments, status=2, says=says, within=AT_ONCE_S)
