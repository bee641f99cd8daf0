"""A `max_payload_size` over the board's buffers says so: at the client, in the hub's log, and in that of a device in software."""

import socket
import time

import command
import pytest
from test_hub import ask, packet, running

WORDS = 1900


@pytest.fixture
def device():
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        yield device


def line_with(log, word):
    """The line of a log with this word, once it is there."""
    lines = lambda: [line for line in log.read_text(encoding="utf-8").splitlines() if word in line]  # noqa: E731
    command.wait_until(lambda: log.exists() and lines(), f"a line with {word!r}")
    return lines()[0]


@pytest.mark.parametrize("reliable", ["", "&reliable=false"])
def test_the_client_names_the_board_both_sizes_and_the_remedy(device, reliable):
    uri = f"{device.uri}?max_payload_size=8000{reliable}"
    says = [device.uri, "7636 bytes|7668 bytes", "buffers of 2040", "max_payload_size=2040"]
    for arguments in (["write", uri, 0, *range(WORDS)], ["read", uri, 0, "-n", WORDS]):
        began = time.monotonic()
        command.refused("ipbus", "block", *arguments, status=1, says=says)
        assert time.monotonic() - began < 0.9, "it is no time-out"
    # Nothing of it was sent.
    done = command.hodo("ipbus", "block", "read", device.uri, 0, "-n", 4)
    assert done.returncode == 0 and "1" not in done.stdout.replace("0x", ""), done.stdout


@pytest.mark.parametrize("options", ["?max_payload_size=2040", "?max_payload_size=8000&reliable=true"])
def test_packets_that_fit_are_sent_and_numbered_ones_are_cut_to_fit(device, options):
    uri = device.uri + options
    assert command.hodo("ipbus", "block", "write", uri, 0, *range(WORDS)).returncode == 0
    done = command.hodo("ipbus", "block", "read", uri, 0, "-n", WORDS)
    assert done.returncode == 0, done.stderr


def test_larger_buffers_take_larger_packets():
    with command.serving("ipbusudp-2.0://127.0.0.1:0?buffer_bytes=9000") as device:
        uri = f"{device.uri}?max_payload_size=8000"
        assert command.hodo("ipbus", "block", "write", uri, 0, *range(WORDS)).returncode == 0
        assert command.hodo("ipbus", "block", "read", uri, 0, "-n", WORDS).returncode == 0


def test_the_hub_names_the_board_and_both_sizes_in_its_log_and_no_packet_of_another_waits(device, tmp_path):
    port, log = command.place(device.uri)[1], tmp_path / "log"
    with running("--log", log) as hub:
        connection = hub.connect()
        too_long = packet(1, 0, *range(255)) + packet(1, 0, *range(255))[4:] + packet(1, 0, *range(4))[4:]
        for _ in range(5):
            began = time.monotonic()
            assert ask(connection, (port, too_long)) == [(2, b"")]
            assert time.monotonic() - began < 0.5
            assert ask(connection, (port, packet(0, 0, count=1)))[0][0] == 0
        said = line_with(log, "buffers of 2040")
        assert f"127.0.0.1:{port}" in said and f"{len(too_long)}" in said and "max_payload_size" in said
        assert f'ipbus_hub_board_too_long_total{{board="127.0.0.1:{port}",version="2.0"}} 5' in hub.page("/metrics")


def test_a_device_says_what_it_drops(tmp_path):
    log = tmp_path / "log"
    with (
        command.serving("ipbusudp-2.0://127.0.0.1:0", "--log", log) as device,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        client.connect(command.place(device.uri))
        client.send(packet(1, 0, *range(255)) * 3)
        said = line_with(log, "longer than a buffer")
        assert f"127.0.0.1:{client.getsockname()[1]}" in said
    assert "3096 bytes" in said and "2040" in said and "max_payload_size" in said
