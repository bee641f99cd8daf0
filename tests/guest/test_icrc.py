"""A packet with a wrong CRC is discarded, by the kernel's rxe and by ours alike; the same packet with the right one is not."""

import contextlib
import subprocess
import time

import command
import pytest

from guest import GUEST, HOST, UNTIL_IT_LISTENS, inside
from packets import QueuePair

SIZE = 60
HARMS = {
    "a bit of the payload": lambda packet: packet[:30] + bytes([packet[30] ^ 1]) + packet[31:],
    "a bit of the sequence number": lambda packet: packet[:9] + bytes([packet[9] ^ 1]) + packet[10:],
    "a bit of the CRC": lambda packet: packet[:-1] + bytes([packet[-1] ^ 0x80]),
    "the CRC in the other byte order": lambda packet: packet[:-4] + packet[:-5:-1],
    "no CRC": lambda packet: packet[:-4] + bytes(4),
}


@contextlib.contextmanager
def rxe(guest):
    server = guest.start(f"timeout 30 ibv_rc_pingpong -g 1 -s {SIZE} -n 2")
    guest.run(UNTIL_IT_LISTENS)
    with inside(guest.namespace):
        pair = QueuePair(HOST, GUEST, 18515)
    yield pair
    pair.close()
    guest.run("kill $(cat /proc/[0-9]*/stat | grep \"(ibv_rc_pingpong)\" | sed \"s/ .*//\")")
    server.wait()


def once_it_listens(*ends):
    """A queue pair to a server that has just been started."""
    give_up = time.monotonic() + 20
    while True:
        try:
            return QueuePair(*ends)
        except ConnectionRefusedError:
            assert time.monotonic() < give_up, "nothing listens"
            time.sleep(0.02)


@contextlib.contextmanager
def ours(guest):
    line = [*guest.at_host(), command.HODO, "pingpong", "--listen", "127.0.0.1", "-s", str(SIZE), "-n", "2"]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with inside(guest.namespace):
            pair = once_it_listens("127.0.0.2", "127.0.0.1", 18515)
        yield pair
        pair.close()
        process.kill()


@pytest.mark.parametrize("server", [rxe, ours])
def test_only_the_right_crc_is_taken(guest, server):
    with server(guest) as pair:
        for what, harm in HARMS.items():
            pair.send(b"x" * SIZE, pair.psn, harm)
            assert pair.acknowledgement(0.3) is None, what
        pair.send(b"x" * SIZE, pair.psn)
        assert pair.acknowledgement(5) == (pair.psn, 0x1F)
