"""A board and a client of a hub that nobody here wrote the machines of: sockets and a few words, IPbus 2.0, big-endian."""

import collections
import socket
import struct
import threading
import time

HEADER = 0x200000F0
STATUS = 0x200000F1
READ, WRITE, FIFO_READ, FIFO_WRITE, SUM = 0, 1, 2, 3, 5
BUFFERS = 16
# Headers of packets received, and of replies sent, that the status tells.
HEADERS = 4


def control(transactions, number=0, first=0):
    """A control packet of these transactions, each (type, words, body)."""
    words = [HEADER | number << 8]
    for place, (kind, count, body) in enumerate(transactions):
        words += [0x2000000F | (first + place) % 4096 << 16 | count << 8 | kind << 4, *body]
    return struct.pack(f">{len(words)}I", *words)


def read(address, count=1):
    return READ, count, [address]


def write(address, *data):
    return WRITE, len(data), [address, *data]


def add(address, addend=1):
    return SUM, 1, [address, addend]


class Board:
    """A board with memory; whoever reads an address as a FIFO takes numbers, one after the other. It keeps the rules of the protocol, and does what else it is told to do to a packet."""

    def __init__(self):
        self.line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.line.bind(("127.0.0.1", 0))
        self.at = f"127.0.0.1:{self.line.getsockname()[1]}"
        self.memory = collections.Counter()
        self.restart()
        # When status requests came, and how many control packets were dropped for their number.
        self.statuses, self.refused = [], 0
        # Each word that was written, and each that was put into a FIFO.
        self.written, self.fifo = [], []
        self.away = False
        # From a request and its reply to the datagrams that are sent back.
        self.mangle = lambda _, reply: [reply]
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.line.getsockname())
        self.thread.join()
        self.line.close()

    def restart(self):
        """Forgets numbers and replies, and keeps its memory so that what was done can be counted."""
        self.next, self.kept = 1, collections.OrderedDict()
        self.received, self.sent = (collections.deque([0] * HEADERS, HEADERS) for _ in range(2))

    def run(self):
        while True:
            datagram, sender = self.line.recvfrom(65536)
            if not datagram:
                return
            if self.away:
                self.note(datagram)
                continue
            reply = self.answer(datagram)
            for each in self.mangle(datagram, reply) if reply else []:
                self.line.sendto(each, sender)

    def note(self, datagram):
        if datagram[:4] == struct.pack(">I", STATUS):
            self.statuses.append(time.monotonic())

    def answer(self, datagram):
        order = ">" if datagram[0] == 0x20 else "<"
        words = struct.unpack(f"{order}{len(datagram) // 4}I", datagram)
        kind, number = words[0] & 0xF, words[0] >> 8 & 0xFFFF
        self.note(datagram)
        if kind == 1:
            told = [2040, BUFFERS, HEADER | self.next << 8, *[0] * 4, *self.received, *self.sent]
            return struct.pack(">16I", STATUS, *told)
        if kind == 2:
            return self.kept.get(number)
        self.received.append(words[0])
        if number not in (0, self.next):
            self.refused += 1
            return None
        self.sent.append(words[0])
        done = [words[0], *self.carry_out(words[1:])]
        reply = struct.pack(f"{order}{len(done)}I", *done)
        if number:
            self.next = number % 0xFFFF + 1
            self.kept[number] = reply
            while len(self.kept) > BUFFERS:
                self.kept.popitem(last=False)
        return reply

    def carry_out(self, words):
        while words:
            header, address = words[0], words[1]
            count, kind = header >> 8 & 0xFF, header >> 4 & 0xF
            yield header & ~0xF
            if kind == READ:
                yield from (self.memory[address + place] for place in range(count))
                words = words[2:]
            elif kind == FIFO_READ:
                for _ in range(count):
                    yield self.memory[address]
                    self.memory[address] += 1
                words = words[2:]
            elif kind == FIFO_WRITE:
                self.fifo += words[2 : 2 + count]
                words = words[2 + count :]
            elif kind == WRITE:
                for place, word in enumerate(words[2 : 2 + count]):
                    self.memory[address + place] = word
                    self.written.append(word)
                words = words[2 + count :]
            else:
                assert kind == SUM, f"a transaction of type {kind}"
                yield self.memory[address]
                self.memory[address] = (self.memory[address] + words[2]) & 0xFFFFFFFF
                words = words[3:]


class Client:
    """A client of a hub, that asks for one board."""

    def __init__(self, hub, board, patience_s=20):
        self.stream = socket.create_connection(split(hub), timeout=patience_s)
        self.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = split(board)
        self.target = socket.inet_aton(host) + struct.pack(">H", port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def send(self, *packets):
        entries = b"".join(self.target + struct.pack(">H", len(packet) // 4) + packet for packet in packets)
        self.stream.sendall(struct.pack(">I", len(entries)) + entries)

    def receive(self):
        """The next chunk of answers: (code, packet) of each."""
        (length,) = struct.unpack(">I", self.exactly(4))
        chunk, answers = self.exactly(length), []
        while chunk:
            (follow,) = struct.unpack_from(">I", chunk)
            (code,) = struct.unpack_from(">H", chunk, 10)
            answers.append((code, chunk[12 : 4 + follow]))
            chunk = chunk[4 + follow :]
        return answers

    def exactly(self, count):
        parts = b""
        while len(parts) < count:
            part = self.stream.recv(count - len(parts))
            if not part:
                raise EOFError("the hub has closed the connection")
            parts += part
        return parts

    def ask(self, *packets):
        self.send(*packets)
        return self.receive()

    def codes(self, *packets):
        return [code for code, _ in self.ask(*packets)]


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)
