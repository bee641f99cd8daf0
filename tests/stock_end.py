"""Far ends of `hodo pingpong` that are not of this program: as an adapter, a host receives at one UDP port and sends from others.

Messages fit in one packet. What is lost is sent again after a while, as the kernel's rxe does.
"""

import contextlib
import ipaddress
import queue
import random
import socket
import struct
import threading
import time
import zlib

SEND_ONLY, ACKNOWLEDGE = 4, 17
PATIENCE_S = 30
AGAIN_S = 0.1
# IP_MTU_DISCOVER and IP_PMTUDISC_DO: packets are not fragmented, and have the identification 0.
NEVER_FRAGMENT = (socket.IPPROTO_IP, 10, 2)


def icrc(source, destination, packet, identification=0):
    """The invariant CRC of a packet without it, between two IPv4 addresses with their ports."""
    length = len(packet) + 4
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0xFF, length + 28, identification, 0x4000, 0xFF, 17, 0xFFFF, *(socket.inet_aton(at[0]) for at in (source, destination)))
    udp = struct.pack(">HHHH", source[1], destination[1], length + 8, 0xFFFF)
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + packet[:4] + b"\xff" + packet[5:]))


class Host:
    """A host with an adapter at an address: it receives at one port for all of its queue pairs."""

    def __init__(self, address, port):
        self.at = (address, port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(self.at)
        self.pairs = {}
        self.wrong = 0
        threading.Thread(target=self.receive, daemon=True).start()

    def receive(self):
        with contextlib.suppress(OSError):
            while True:
                datagram, source = self.socket.recvfrom(65536)
                packet, crc = datagram[:-4], datagram[-4:]
                # What leaves in one call is numbered.
                if all(icrc(source, self.at, packet, number) != crc for number in range(64)):
                    self.wrong += 1
                elif pair := self.pairs.get(int.from_bytes(packet[5:8], "big")):
                    pair.put(packet)

    def close(self):
        self.socket.close()


class StockEnd:
    """A queue pair of a host, and the exchange of `ibv_rc_pingpong` over it."""

    def __init__(self, host, size):
        self.host, self.size = host, size
        self.number, self.psn = random.randrange(2, 1 << 24), random.randrange(1 << 24)
        self.packets = host.pairs[self.number] = queue.Queue()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(*NEVER_FRAGMENT)
        self.socket.bind((host.at[0], 0))
        self.received = self.sent = 0

    def address(self):
        gid = b"\0" * 10 + b"\xff\xff" + ipaddress.ip_address(self.host.at[0]).packed
        return f"0000:{self.number:06x}:{self.psn:06x}:{gid.hex()}\0".encode()

    def hear(self, connection):
        with connection.makefile("rb") as file:
            text = file.read(52)
        assert len(text) == 52, f"the far end closed the connection behind {text}"
        _, number, psn, gid = text.rstrip(b"\0").split(b":")
        self.far_number, self.expected = int(number, 16), int(psn, 16)
        # A stock end sends to the one port that adapters have.
        self.far = (str(ipaddress.ip_address(bytes.fromhex(gid.decode())[12:])), self.host.at[1])

    def connect(self, port):
        """Connects to a server on loopback."""
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            connection.sendall(self.address())
            self.hear(connection)
            connection.sendall(b"done\0")

    def accept(self, listener):
        """Waits for a client."""
        listener.settimeout(PATIENCE_S)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            self.hear(connection)
            connection.sendall(self.address())
            assert connection.recv(5) == b"done\0"

    def packet(self, opcode, psn, rest, asks=False):
        """A packet with its CRC."""
        header = struct.pack(">BBHII", opcode, 0x40, 0xFFFF, self.far_number, asks << 31 | psn)
        packet = header + rest
        return packet + icrc(self.socket.getsockname(), self.far, packet)

    def message(self):
        return self.packet(SEND_ONLY, self.psn, b"\x7b" * self.size, asks=True)

    def send(self):
        self.socket.sendto(self.message(), self.far)

    def take(self, packet):
        """Takes a packet. Returns whether it acknowledges the message that was sent."""
        opcode, psn = packet[0], int.from_bytes(packet[9:12], "big")
        if opcode == ACKNOWLEDGE:
            assert packet[12] >> 5 == 0, f"refused: syndrome {packet[12]:#04x}"
            return psn == self.psn
        assert opcode == SEND_ONLY and len(packet) == 12 + self.size, packet.hex()
        if psn == self.expected:
            self.expected = (self.expected + 1) % (1 << 24)
            self.received += 1
        # One that comes again is acknowledged again.
        self.socket.sendto(self.packet(ACKNOWLEDGE, psn, struct.pack(">I", 0x1F << 24 | self.received)), self.far)
        return False

    def exchange(self, messages, is_client=True):
        """Exchanges messages, each of which is answered by one. The far end's next one may have come before."""
        until = time.monotonic() + PATIENCE_S
        for _ in range(messages):
            is_sent = is_acknowledged = False
            while not (is_acknowledged and self.received > self.sent):
                assert time.monotonic() < until, f"no answer to message {self.sent}, {self.received} received"
                if not is_sent and (is_client or self.received > self.sent):
                    is_sent = True
                    self.send()
                try:
                    is_acknowledged |= self.take(self.packets.get(timeout=AGAIN_S))
                except queue.Empty:
                    if is_sent and not is_acknowledged:
                        self.send()
            self.psn = (self.psn + 1) % (1 << 24)
            self.sent += 1

    def close(self):
        self.socket.close()
