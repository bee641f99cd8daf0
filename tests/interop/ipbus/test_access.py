"""Every kind of access by uHAL, by address: what comes back is compared word by word."""

import random

import command
import pytest
import uhal
from boards import WAYS, board, is_version_2, signed, words

LAST = 0xFFFF_FFFF
KIB = 256
MIB = 1024 * KIB
# Around the most words of a transaction (255, 511) and of a packet (345 to 348), then long ones.
SIZES = [1, 2, 254, 255, 256, 345, 346, 347, 348, 349, 510, 511, 512, 1000, KIB, MIB, 10 * MIB]


@pytest.fixture
def hardware(device):
    return board(device.uri)


@pytest.mark.parametrize(("address", "scheme"), command.spread([0, 1, 0x10, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, LAST], WAYS))
def test_a_word_is_read_as_it_was_written(hardware, address):
    client = hardware.getClient()
    before = client.read(address)
    client.write(address, 0xDEAD_BEEF)
    after = client.read(address)
    client.write(address, 0)
    again = client.read(address)
    hardware.dispatch()
    assert (int(before), int(after), int(again)) == (0, 0xDEAD_BEEF, 0)


# Each size in two ways.
@pytest.mark.parametrize(("size", "scheme"), command.spread(SIZES * 2, WAYS))
def test_a_block_is_read_as_it_was_written(hardware, size):
    client = hardware.getClient()
    data = words(size)
    client.writeBlock(0x1000, data)
    block = client.readBlock(0x1000, size)
    around = [client.read(0x0FFF), client.read(0x1000 + size)]
    hardware.dispatch()
    assert block.valid() and list(block) == data
    assert [int(word) for word in around] == [0, 0]


def test_no_words_at_all(hardware):
    client = hardware.getClient()
    client.writeBlock(0x1000, [])
    block = client.readBlock(0x1000, 0)
    word = client.read(0x1000)
    hardware.dispatch()
    assert (list(block), int(word)) == ([], 0)


@pytest.mark.parametrize(("size", "scheme"), command.spread([1, 255, 256, 700], WAYS))
def test_one_address_again_and_again(hardware, size):
    client, mode = hardware.getClient(), uhal.BlockReadWriteMode.NON_INCREMENTAL
    data = words(size)
    client.writeBlock(0x20, data, mode)
    block = client.readBlock(0x20, size, mode)
    beside = client.read(0x21)
    hardware.dispatch()
    assert (list(block), int(beside)) == ([data[-1]] * size, 0)


def test_bits_and_sums_change_a_word_and_tell_what_the_version_says(hardware):
    client = hardware.getClient()
    client.write(0x30, 0x1234_5678)
    bits = client.rmw_bits(0x30, 0xFFFF_0000, 0x9ABC)
    between = client.read(0x30)
    total = client.rmw_sum(0x30, signed(0xF000_0001))
    end = client.read(0x30)
    hardware.dispatch()
    assert (int(between), int(end)) == (0x1234_9ABC, 0x0234_9ABD)
    told = (0x1234_5678, 0x1234_9ABC) if is_version_2(hardware.uri()) else (0x1234_9ABC, 0x0234_9ABD)
    assert (int(bits), int(total)) == told


def test_masks_shift_and_keep_the_other_bits(hardware):
    client = hardware.getClient()
    client.write(0x40, 0xFFFF_FFFF)
    client.write(0x40, 0x12, 0x0000_FF00)
    masked = client.read(0x40, 0x000F_FF00)
    whole = client.read(0x40)
    hardware.dispatch()
    assert (int(masked), int(whole)) == (0xF12, 0xFFFF_12FF)


def test_thousands_of_transactions_of_every_kind_in_one_dispatch(hardware):
    """Against a dictionary that does the same."""
    client, draw, memory = hardware.getClient(), random.Random(7), {}
    before = is_version_2(hardware.uri())
    expected = []

    def expect(told, value):
        expected.append((told, value))

    for _ in range(5000):
        address, value = draw.randrange(64), draw.getrandbits(32)
        old = memory.get(address, 0)
        match draw.randrange(6):
            case 0:
                expect(client.read(address), old)
            case 1:
                client.write(address, value)
                memory[address] = value
            case 2:
                memory[address] = (old + value) & LAST
                expect(client.rmw_sum(address, signed(value)), old if before else memory[address])
            case 3:
                memory[address] = old & value | 0x10
                expect(client.rmw_bits(address, value, 0x10), old if before else memory[address])
            case 4:
                data = [draw.getrandbits(32) for _ in range(draw.randrange(1, 40))]
                client.writeBlock(address, data)
                memory.update(zip(range(address, address + len(data)), data))
            case _:
                size = draw.randrange(1, 40)
                expect(client.readBlock(address, size), [memory.get(address + step, 0) for step in range(size)])
    hardware.dispatch()
    for told, value in expected:
        assert told.valid() and (list(told) if isinstance(value, list) else int(told)) == value


def test_the_configuration_space(serve, scheme):
    hardware = board(serve(configuration="0xC0A80001,0x20").uri)
    client = hardware.getClient()
    if not is_version_2(scheme):
        with pytest.raises(uhal.exception, match="undefined in IPbus version 1"):
            client.readConfigurationSpace(0)
        return
    found = [client.readConfigurationSpace(address) for address in (0, 1)]
    masked = client.readConfigurationSpace(0, 0x00FF_0000)
    memory = client.read(0)
    hardware.dispatch()
    assert [int(word) for word in found] == [0xC0A8_0001, 0x20]
    assert (int(masked), int(memory)) == (0xA8, 0)
    client.readConfigurationSpace(2)
    with pytest.raises(uhal.exception, match="bus error on read"):
        hardware.dispatch()


@pytest.mark.parametrize(("payload", "scheme"), command.spread([68, 500, 1400, 8000], WAYS))
def test_packets_of_other_sizes(serve, payload):
    """uHAL fills packets of the size that its URI asks for, where the device takes them."""
    device = serve(buffer_bytes=9000)
    hardware = board(f"{device.uri}{'&' if '?' in device.uri else '?'}max_payload_size={payload}")
    client, data = hardware.getClient(), words(5000)
    client.writeBlock(0, data)
    block = client.readBlock(0, len(data))
    hardware.dispatch()
    assert list(block) == data
