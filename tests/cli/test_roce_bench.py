"""`hodo bench roce`: every operation against a server in another process; what is gone is noticed, and what cannot be names its remedy."""

import os
import pathlib
import re
import signal
import socket

import command
import contract
import pytest

RUN = command.SHORT
LONG = ["--duration", "30s", "--warmup", "0ms", "--repeat", "1", "--quiet"]
# All retries of an acknowledgement take two seconds, and a loaded machine is slow.
NOTICED_S = 30


@pytest.fixture(scope="module")
def far_end():
    with command.serving("roce://127.0.0.1:0") as process:
        yield process.uri


def measured(*arguments):
    """The measurements of a run in which nothing was lost."""
    found = command.bench(*arguments, *RUN)
    for one in found:
        assert one["operations"] > 0 and one["loss"]["lost"] == one["loss"]["refused"] == 0, one
        assert one["verdict"]["state"] not in ("failed", "interrupted"), one["verdict"]
        assert one["cpu"]["remote"] is not None, "the far end reports its CPU"
    return found


OPERATIONS = [*((operation, mode) for mode in contract.MODES for operation in ("send", "write")), ("read", "receive")]
TESTS = [
    "rate --sizes 1,7,64K --window 8",
    "random --sizes 8,64K",
    "channels --sizes 64 --channels 50",
    "open --sizes 80 --rate 2000",
    "latency --sizes 64",
]


@pytest.mark.parametrize(("operation", "test"), command.spread(OPERATIONS, TESTS), ids=lambda value: value.split()[0] if isinstance(value, str) else "-".join(value))
def test_every_operation_and_pattern(far_end, operation, test):
    kind, mode = operation
    measured(f"{far_end}?operation={kind}", "--mode", mode, "--test", *test.split())


def test_updates_at_a_rate_and_as_fast_as_they_come(far_end):
    (one,) = command.bench(far_end, "--test", "updates", "--sizes", "64", "--channels", "10", "--rate", "5000", *RUN)
    assert one["operations"] > 0 and one["clock_difference"]["error_ns"] == 0, "two processes of one host"
    (one,) = command.bench(far_end, "--test", "updates", "--sizes", "64", "--channels", "4", *RUN)
    assert one["operations"] > 0 and one["loss"]["overrun"] == 0, one


OPTIONS = [
    "mtu=256",
    "mtu=4096",
    "depth=1",
    "receive-depth=1",
    "inline=128",
    "send-entries=4&receive-entries=3",
    "address=127.0.0.9",
    "timeout=18",
    "operation=write&mtu=512&send-entries=2&inline=64",
]


@pytest.mark.parametrize(("options", "mode"), command.spread(OPTIONS, ["both", "send"]))
def test_every_option_of_a_link(far_end, options, mode):
    measured(f"{far_end}?{options}", "--mode", mode, "--test", "rate", "--sizes", "100,10K", "--window", "4")


@pytest.mark.parametrize("wait", ["adaptive", "block", "spin", "spin:50us"])
def test_every_wait(far_end, wait):
    measured(far_end, "--test", "latency", "--sizes", "64", "--wait", wait)


def test_the_suite_with_a_far_end_of_its_own_in_every_form(tmp_path):
    done = command.hodo("bench", "roce", "--out", tmp_path, *RUN)
    assert done.returncode == 0, done.stderr
    found = contract.parse((tmp_path / "result.json").read_text(encoding="utf-8"))["measurements"]
    assert {one["test"] for one in found} == {"latency", "rate", "channels"}
    assert all(one["protocol"] == "roce" and one["loss"]["lost"] == 0 for one in found)
    assert "roce" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_limit_of_a_line_counts_every_header():
    link = ["roce://?mtu=1024", "--test", "rate", "--mode", "send", "--sizes", "64K", "--line-rate", "100G", "--mtu", "9000"]
    (one,) = command.bench(*link, *RUN)
    # 64 packets of 1106 byte times for 64 KiB.
    assert one["limit"]["kind"] == "line" and "70784 B on the line" in one["limit"]["formula"].replace(",", ""), one["limit"]


def test_many_clients_one_after_another_and_at_the_same_time(far_end):
    for _ in range(5):
        measured(far_end, "--test", "latency", "--sizes", "64")
    run = ["bench", far_end, "--test", "rate", "--mode", "send", "--sizes", "1K", *RUN]
    clients = [command.started(*run) for _ in range(4)]
    with clients[0] as one, clients[1] as two, clients[2] as three, clients[3] as four:
        for client in (one, two, three, four):
            said, _ = client.communicate(timeout=60)
            assert client.returncode == 0, said


def queue_pairs_fit(uri, count):
    return command.hodo("bench", uri, "--test", "channels", "--channels", str(count), "--sizes", "64", *RUN).returncode == 0


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_is_gone_makes_room(harm):
    with command.serving("roce://127.0.0.1:0", "--peers-max", "10") as server:
        run = ["bench", server.uri, "--test", "channels", "--channels", "10", "--mode", "send", "--sizes", "1K", *LONG]
        with command.started(*run) as tester:
            command.wait_until_busy(tester.pid)
            command.refused("bench", server.uri, "--test", "latency", *RUN, status=1, says=["no room", "--peers-max"])
            tester.send_signal(harm)
            tester.communicate(timeout=NOTICED_S)
        command.wait_until(lambda: queue_pairs_fit(server.uri, 10), "its queue pairs are destroyed")
        assert server.poll() is None


def test_a_client_that_is_stopped_holds_up_nobody(far_end):
    run = ["bench", far_end, "--test", "rate", "--mode", "both", "--sizes", "4K", "--window", "64", *LONG]
    with command.started(*run) as tester:
        command.wait_until_busy(tester.pid)
        tester.send_signal(signal.SIGSTOP)
        measured(far_end, "--test", "latency", "--sizes", "64")
        tester.send_signal(signal.SIGKILL)
    measured(far_end, "--test", "latency", "--sizes", "64")


@pytest.mark.parametrize(
    ("harm", "says", "wait"),
    [(signal.SIGKILL, "closed|reset|no answer", "block"), (signal.SIGTERM, "stopped|closed|reset", "spin"), (signal.SIGSTOP, "stalled|no answer", "spin")],
)
def test_a_server_that_is_gone_ends_the_run_and_keeps_what_was_measured(harm, says, wait, tmp_path):
    result = tmp_path / "result.json"
    with command.serving("roce://127.0.0.1:0") as server:
        run = ["bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "1K", "--wait", wait, "--json", result, *LONG]
        with command.started(*run) as tester:
            command.wait_until_busy(server.pid)
            server.send_signal(harm)
            said, _ = tester.communicate(timeout=NOTICED_S)
        assert tester.returncode == 1 and re.search(says, said) and "panicked" not in said, said
    found = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert found[-1]["verdict"]["state"] in ("interrupted", "failed") and found[-1]["operations"] > 0


def test_nothing_and_something_else_on_the_port(far_end):
    port = command.free_port()
    command.refused("bench", f"roce://127.0.0.1:{port}", *RUN, status=1, says=["refused", f"hodo serve roce://127.0.0.1:{port}"])
    with command.serving("tcp://127.0.0.1:0") as other:
        link = other.uri.replace("tcp", "roce")
        command.refused("bench", link, "--timeout", "500ms", *RUN, status=1, says=["hodo serve"])
    address = far_end.removeprefix("roce://").split(":")
    done = command.hodo("pingpong", address[0], "-p", address[1], "-n", "10", "--timeout", "2")
    assert done.returncode == 1 and "panicked" not in done.stderr, done.stderr


def test_garbage_on_the_tcp_port_and_the_udp_port_is_no_trouble(far_end):
    host, port = far_end.removeprefix("roce://").split(":")
    for garbage in (b"", b"GET / HTTP/1.1\r\n\r\n", b"hodo " + b"x" * 5000, b"hodo link=1\n", os.urandom(4096), b"\0" * 52):
        with socket.create_connection((host, int(port)), timeout=5) as stranger:
            stranger.sendall(garbage)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for length in (0, 1, 12, 16, 60, 1400):
            stranger.sendto(os.urandom(length), (host, 4791))
    measured(far_end, "--test", "latency", "--sizes", "64")


def test_nobody_has_updates_sent_to_a_third_host(far_end):
    host, port = far_end.removeprefix("roce://").split(":")
    wish = "hodo link=1 channels=1 size=64 receive_depth=16 operation=send mtu=1024 inline=0 send_entries=1 receive_entries=1 "
    wish += "timeout=14 reads=1 udp=4792 address=4096 key=1\n"
    for gids in (["127.0.0.1", "127.0.0.77"], ["127.0.0.77"] * 2, ["127.0.0.1"] * 2):
        places = [f"0000:000011:f946cf:{'0' * 20}ffff{socket.inet_aton(gid).hex()}\0" for gid in gids]
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.sendall((wish + "".join(places)).encode())
            said = client.recv(1024).decode()
        refused = "queue_pairs_are_at_::ffff:127.0.0.77,_and_the_connection_comes_from_127.0.0.1:_connect_over_the_network" in said
        assert refused == ("127.0.0.77" in gids), said
        assert refused or said.startswith("hodo link=1 "), said


def test_silent_strangers_hold_up_nobody(far_end):
    host, port = far_end.removeprefix("roce://").split(":")
    silent = [socket.create_connection((host, int(port)), timeout=5) for _ in range(100)]
    measured(far_end, "--test", "latency", "--sizes", "64")
    for stranger in silent:
        stranger.close()


def test_a_port_that_is_taken(far_end):
    port = far_end.rsplit(":", 1)[1]
    command.refused("serve", f"roce://127.0.0.1:{port}", status=1, says=["cannot listen", port, "another port"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", 0))
        udp = holder.getsockname()[1]
        link = f"roce://127.0.0.1:0?udp-port={udp}"
        command.refused("serve", link, status=1, says=[f"127.0.0.1:{udp}", "another program", "another port"])
        command.refused("bench", f"{far_end}?udp-port={udp}", *RUN, status=1, says=[str(udp), "another program"])


def test_an_address_that_is_not_of_this_host(far_end):
    command.refused("bench", f"{far_end}?address=192.0.2.1", *RUN, status=1, says=["192.0.2.1", "an address of this host"])
    command.refused("bench", f"{far_end}?address=::1", *RUN, status=1, says=["::1", "both have to be IPv4, or both IPv6"])


@pytest.mark.parametrize(
    "options, says",
    [
        ("mtu=1000", ["mtu=1000", "256, 512, 1024, 2048 or 4096"]),
        ("operation=sing", ["operation=sing", "send, write or read"]),
        ("depth=0", ["depth=0", "1..=65536"]),
        ("receive-depth=a", ["receive-depth=a", "1..=65536"]),
        ("send-entries=100", ["send-entries=100", "1..=32"]),
        ("inline=1M", ["inline=1M", "65536"]),
        ("udp-port=0", ["udp-port=0", "1..=65535"]),
        ("address=here", ["address=here", "IP address"]),
        ("timeout=32", ["timeout=32", "1..=31"]),
        ("gid=3", ["no option `gid`", "udp-port"]),
        ("speed=9", ["no option `speed`", "receive-depth"]),
    ],
)
def test_a_wrong_option_is_named_with_its_remedy(options, says):
    command.refused("bench", f"roce://?{options}", *RUN, status=2, says=says)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["roce://?operation=read", "--mode", "send"], ["--mode send", "receive"]),
        (["roce://?operation=write", "--test", "updates"], ["updates are sends", "operation=write"]),
        (["roce", "--reconnect", "--test", "latency"], ["--reconnect"]),
        (["roce", "--congestion", "cubic"], ["--congestion", "no TCP"]),
        (["sim+roce://"], ["not simulated"]),
        (["roce", "--batch", "2"], ["--batch 2"]),
    ],
)
def test_what_a_link_cannot_do_is_refused(arguments, says):
    command.refused("bench", *arguments, *RUN, status=2, says=says)


def test_a_far_end_has_no_options_of_a_link_and_no_trace(tmp_path):
    command.refused("serve", "roce://127.0.0.1:0?mtu=512", status=2, says=["`mtu`", "leave"])
    command.refused("serve", "roce://127.0.0.1:0", "--trace", tmp_path / "trace.pcapng", "--threads", "1", status=2, says=["--trace", "tcpdump"])


def test_operations_above_the_bound_of_the_far_end():
    with command.serving("roce://127.0.0.1:0", "--size-max", "1000") as server:
        command.refused("bench", server.uri, "--test", "latency", "--sizes", "1001", *RUN, status=1, says=["1000", "1001", "--sizes"])
        measured(server.uri, "--test", "latency", "--sizes", "1000")


def test_a_daemon_listens_on_loopback_unless_told_otherwise():
    with command.serving("roce") as server:
        assert server.uri.startswith("roce://127.0.0.1:")
    with command.serving("roce://0.0.0.0:0") as server:
        port = server.uri.rsplit(":", 1)[1]
        measured(f"roce://127.0.0.1:{port}", "--test", "latency", "--sizes", "64")


def test_without_an_adapter_verbs_names_what_is_missing():
    if pathlib.Path("/sys/class/infiniband").is_dir() and any(pathlib.Path("/sys/class/infiniband").iterdir()):
        pytest.skip("this host has an adapter")
    command.refused("bench", "verbs", *RUN, status=1, says=["libibverbs|no rdma device|device"])


def test_the_published_study_stands_beside_each_figure():
    found = command.bench("roce", "--preset", "rc-study", "--count", "50", "--warmup", "1ms", "--repeat", "1", "--quiet")
    links = {one["link"] for one in found}
    assert {f"roce://?mtu={mtu}" for mtu in (256, 512, 1024, 2048, 4096)} < links
    assert {f"roce://?receive-depth={depth}" for depth in (1, 10, 100, 200, 400, 800)} < links
    assert {f"roce://?entries={entries}" for entries in (1, 32)} < links
    assert len(found) == 3 + 35 + 6 + 3 + 2 + 4 + 3
    assert sum(1 for one in found if one.get("published")) == 50
    events = [one for one in found if one["wait"] == "block"]
    assert len(events) == 1 and round(1e6 / events[0]["published"][0]["operations_per_s"], 2) == 10.05
    assert any(one["stages"] for one in found), "with timestamps"
    command.refused("bench", "roce://?operation=write", "--preset", "rc-study", *RUN, status=2, says=["not for", "operation=write"])


def test_shared_memory_carries_every_operation():
    with command.serving("shm://127.0.0.1:0") as server:
        for (operation, mode), test in command.spread(OPERATIONS, ["rate --sizes 1,64K --window 8", "channels --sizes 64 --channels 20"]):
            measured(f"{server.uri}?operation={operation}", "--mode", mode, "--test", *test.split())


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGTERM])
def test_shared_memory_of_an_end_that_is_gone(harm):
    with command.serving("shm://127.0.0.1:0") as server:
        with command.started("bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "1K", *LONG) as tester:
            command.wait_until_busy(tester.pid)
            tester.send_signal(signal.SIGKILL)
        measured(server.uri, "--test", "latency", "--sizes", "64")
        with command.started("bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "1K", *LONG) as tester:
            command.wait_until_busy(server.pid)
            server.send_signal(harm)
            said, _ = tester.communicate(timeout=NOTICED_S)
            assert tester.returncode == 1 and "panicked" not in said and said.strip(), said


def test_naks_and_packets_sent_again_are_in_the_result(far_end):
    (one,) = command.bench(f"{far_end}?receive-depth=1", "--test", "rate", "--mode", "send", "--sizes", "64", "--window", "16", *RUN)
    assert one["loss"]["not_ready"] > 0 and one["loss"]["retransmitted"] > 0 and one["loss"]["lost"] == 0, one["loss"]


@pytest.mark.skipif(not pathlib.Path("/proc/net/if_inet6").exists(), reason="this host has no IPv6")
def test_links_over_ipv6():
    with command.serving("roce://[::1]:0") as server:
        measured(server.uri, "--test", "rate", "--mode", "both", "--sizes", "64,16K", "--window", "4")
