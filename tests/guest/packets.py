"""A queue pair in Python, which sends what it is told to, right or wrong. It shares no code with ours."""

import secrets
import socket
import struct
import zlib

PORT = 4791
SEND_ONLY, ACKNOWLEDGE = 0x04, 0x11


def icrc(source, destination, ports, packet):
    """Returns the CRC of a packet over IPv4 as a plain socket sends it: not fragmented, identification 0."""
    length = len(packet) + 4
    address = socket.inet_aton(source) + socket.inet_aton(destination)
    ip = struct.pack("!BBHHHBBH", 0x45, 0xFF, 28 + length, 0, 0x4000, 0xFF, 17, 0xFFFF) + address
    udp = struct.pack("!HHHH", *ports, 8 + length, 0xFFFF)
    covered = b"\xff" * 8 + ip + udp + packet[:4] + b"\xff" + packet[5:]
    return struct.pack("<I", zlib.crc32(covered))


class QueuePair:
    """One end, which has told the other end of itself as `ibv_rc_pingpong` does."""

    def __init__(self, here, there, port):
        self.here, self.there, self.psn = here, there, secrets.randbelow(1 << 24)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Not fragmented, so that the identification is 0.
        self.socket.setsockopt(socket.IPPROTO_IP, 10, 2)
        self.socket.bind((here, PORT))
        gid = (b"\0" * 10 + b"\xff\xff" + socket.inet_aton(here)).hex()
        with socket.create_connection((there, port), timeout=20) as exchange:
            exchange.sendall(f"0000:{0x123456:06x}:{self.psn:06x}:{gid}\0".encode())
            answer = b""
            while len(answer) < 52:
                chunk = exchange.recv(52 - len(answer))
                assert chunk, answer
                answer += chunk
            exchange.sendall(b"done\0")
        self.to = int(answer.split(b":")[1], 16)

    def send(self, payload, psn, harm=None):
        """Sends a message of one packet; `harm` changes its bytes when the CRC has been computed."""
        padding = -len(payload) % 4
        head = struct.pack("!BBHI", SEND_ONLY, 0x40 | padding << 4, 0xFFFF, self.to) + struct.pack("!I", 1 << 31 | psn)
        packet = head + payload + b"\0" * padding
        packet += icrc(self.here, self.there, (PORT, PORT), packet)
        self.socket.sendto(harm(packet) if harm else packet, (self.there, PORT))

    def acknowledgement(self, within):
        """Returns the sequence number and the syndrome of the next acknowledgement, or `None` if none comes in time."""
        self.socket.settimeout(within)
        try:
            while True:
                packet = self.socket.recv(65536)
                if packet[0] == ACKNOWLEDGE:
                    return int.from_bytes(packet[9:12], "big"), packet[12]
        except TimeoutError:
            return None

    def close(self):
        self.socket.close()
