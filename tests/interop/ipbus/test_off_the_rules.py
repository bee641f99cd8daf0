"""Boards that are off the rules in one way each, over real sockets: uHAL works with them, and so do the hub and `hodo ipbus`."""

import random
import socket
import time

import command
import pytest
from bare import Board, Client, control, read, write
from boards import through
from traffic import SUMS, Worker, account, working

HEADER_BYTES, WORD_BYTES = 4, 4
ROUNDS = 20
# The status, replies from before, and the status again.
OPENING = 6
# Packets for each of a caller's.
PACKETS = 4


def behind_odd_words(_, reply):
    """As a data path of 64 bits leaves them."""
    return [reply + bytes(WORD_BYTES)] if len(reply) // WORD_BYTES % 2 else [reply]


def padded(_, reply):
    return [reply.ljust(64, b"\0")]


def one_byte_behind(_, reply):
    return [reply + b"\x01"]


def noise_behind(_, reply):
    return [reply + random.Random(len(reply)).randbytes(12)]


def slow(_, reply):
    time.sleep(0.012)
    return [reply]


def twice(_, reply):
    return [reply, reply]


def no_second_time(request, reply):
    """A reply is not sent again."""
    return [] if request[0] & 0xF == 2 or request[3] & 0xF == 2 else [reply]


WAYS = (behind_odd_words, padded, one_byte_behind, noise_behind, slow, twice, no_second_time)


class Counted(Board):
    """A board that counts what comes."""

    def __init__(self, mangle):
        super().__init__()
        self.came, self.mangle = 0, mangle

    def answer(self, datagram):
        self.came += 1
        return super().answer(datagram)


@pytest.mark.parametrize("way", WAYS)
def test_uhal_through_the_hub_is_served(way):
    with Counted(way) as device, command.hub() as hub:
        with working([Worker(through(hub.at, f"ipbusudp-2.0://{device.at}"))]) as rounds:
            command.wait_until(lambda: device.memory[SUMS] >= ROUNDS, "it is served")
            (mine,) = rounds()
        assert not any(each.failed for each in mine)
        account(device, {0: mine})
        assert device.came <= OPENING + PACKETS * len(mine), f"{device.came} packets for {len(mine)}"


@pytest.mark.parametrize("way", WAYS)
def test_ours_is_served(way):
    with Counted(way) as device:
        uri = f"ipbusudp-2.0://{device.at}"
        for turn in range(3):
            command.hodo("ipbus", "write", uri, "0x10", str(turn)).check_returncode()
            done = command.hodo("ipbus", "read", uri, "0x10")
            assert (done.returncode, int(done.stdout.split()[-1], 0)) == (0, turn), done
        assert device.came <= 6 * (OPENING + PACKETS), f"{device.came} packets for six commands"


@pytest.mark.parametrize("delay_s", [0, 0.01])
def test_a_client_that_has_ended_what_it_sends_gets_its_answers(delay_s):
    """As `nc` does, and any program that says by it that it asks nothing more."""
    with Board() as device, command.hub() as hub, Client(hub.at, device.at) as client:
        device.mangle = lambda _, reply: time.sleep(delay_s) or [reply]
        client.send(control([read(0x10)]), control([write(0x10, 5)]))
        client.send(control([read(0x10)]))
        client.stream.shutdown(socket.SHUT_WR)
        assert [code for code, _ in client.receive()] == [0, 0]
        assert [code for code, _ in client.receive()] == [0]
        assert client.stream.recv(1) == b""
