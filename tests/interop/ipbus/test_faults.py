"""Devices with which something goes wrong: uHAL says what its documentation promises."""

import socket

import command
import pytest
import uhal
from boards import IMPATIENCE_MS, PATIENCE_MS, SCHEMES, WAYS, beyond, board, is_version_2, kind_of, timeout_of, words

# What a hub makes of it is in test_through_hub.py.
direct = pytest.mark.parametrize("scheme", SCHEMES)


def dispatched(hardware):
    """Whether a read comes back."""
    try:
        word = hardware.getClient().read(0x10)
        hardware.dispatch()
        return word.valid()
    except timeout_of(hardware.uri()):
        return False


@pytest.mark.parametrize(("what", "scheme"), command.spread(["out.loss", "back.loss"], WAYS))
def test_a_device_that_does_not_answer_is_a_timeout(serve, what):
    hardware = board(serve(**{what: 1}).uri, patience_ms=IMPATIENCE_MS)
    word = hardware.getClient().read(0x10)
    with pytest.raises(timeout_of(hardware.uri())):
        hardware.dispatch()
    with pytest.raises(uhal.NonValidatedMemory):
        int(word)
    assert not dispatched(hardware), "and again"


@pytest.mark.parametrize("scheme", ["ipbusudp-2.0", "ipbustcp-1.3"])
def test_the_same_seed_loses_the_same_packets(serve):
    runs = []
    for seed in (3, 3, 4):
        device = serve(**{"back.loss": 0.2, "seed": seed})
        hardware = board(device.uri, patience_ms=IMPATIENCE_MS)
        runs.append([dispatched(hardware) for _ in range(24)])
    assert runs[0] == runs[1] != runs[2]
    assert 0 < runs[0].count(False) < 12


def test_an_answer_that_is_late_is_an_answer(serve, scheme):
    # The packets of a stream keep their order, and a hub restores it; datagrams do not, and uHAL wants them to.
    jitter = {} if scheme.startswith("ipbusudp") else {"jitter": "5ms"}
    hardware = board(serve(delay="20ms", **jitter).uri)
    client, data = hardware.getClient(), words(1000)
    client.writeBlock(0, data)
    block = client.readBlock(0, 1000)
    hardware.dispatch()
    assert list(block) == data


@pytest.mark.parametrize(("option", "scheme"), command.spread(["bus_error", "bus_timeout"], WAYS))
def test_bus_errors_name_the_address(serve, option):
    hardware = board(serve(**{option: "0x100-0x1FF"}).uri)
    client = hardware.getClient()
    cause = "bus error" if option == "bus_error" else "bus timeout"
    accesses = {
        "on read": [lambda: client.read(0x100), lambda: client.readBlock(0xF0, 300), lambda: client.rmw_sum(0x150, 1)],
        "on write": [lambda: client.write(0x1FF, 1), lambda: client.writeBlock(0xF0, [1] * 300)],
    }
    for way, each in accesses.items():
        for access in each:
            access()
            says = f"{cause} {way}" if is_version_2(hardware.uri()) else "failure|partial"
            with pytest.raises(uhal.exception, match=says):
                hardware.dispatch()
            client.write(0x10, 7)
            word = client.read(0x10)
            hardware.dispatch()
            assert int(word) == 7, "the next packet is none the worse"


def test_an_error_ends_its_packet(serve):
    """What stood behind it in the packet is not done."""
    hardware = board(serve(bus_error="0x100").uri)
    client = hardware.getClient()
    client.write(0x10, 1)
    client.write(0x100, 2)
    client.write(0x11, 3)
    with pytest.raises(uhal.exception):
        hardware.dispatch()
    found = [client.read(address) for address in (0x10, 0x11)]
    hardware.dispatch()
    assert [int(word) for word in found] == [1, 0]


@direct
def test_a_reply_with_another_number_is_refused(serve, scheme):
    if not is_version_2(scheme):
        assert dispatched(board(serve(wrong_id=1).uri)), "version 1.3 has no numbers"
        return
    hardware = board(serve(wrong_id=1).uri)
    hardware.getClient().read(0x10)
    with pytest.raises(uhal.exception) as raised:
        hardware.dispatch()
    assert not isinstance(raised.value, timeout_of(hardware.uri()))


def test_nothing_listens_there(scheme, way):
    with socket.socket(socket.AF_INET, kind_of(scheme)) as free:
        # A port that is taken and does not listen: nobody else gets it meanwhile.
        free.bind(("127.0.0.1", 0))
        hardware = board(way(f"{beyond(scheme)}://127.0.0.1:{free.getsockname()[1]}"), patience_ms=IMPATIENCE_MS)
        hardware.getClient().read(0x10)
        with pytest.raises(uhal.exception):
            hardware.dispatch()


@direct
def test_a_device_that_ends_and_begins_again_is_found_again(serve):
    device = serve()
    hardware = board(device.uri, patience_ms=IMPATIENCE_MS)
    assert dispatched(hardware)
    device.terminate()
    device.wait()
    hardware.getClient().read(0x10)
    with pytest.raises(uhal.exception):
        hardware.dispatch()
    with command.serving(device.uri) as again:
        assert again.uri == device.uri
        hardware.setTimeoutPeriod(PATIENCE_MS)
        assert dispatched(hardware)
