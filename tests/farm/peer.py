"""A peer of the farm on a bare socket, written from the wire's description; it can do what `hodo` never would."""

import socket
import struct

HELLO, EVENT, TOKEN, RUN, PING, PONG, DRAIN, REFUSED = 1, 2, 5, 6, 7, 8, 9, 10
SOURCE, CONTROLLER, NODE = 1, 3, 4
ACCEPTED, REJECTED, FAILED, QUARANTINED, INCOMPLETE = 0, 1, 2, 3, 4
# Flags of a token.
DUPLICATE, CONFLICT, LATE = 1, 4, 8
HEADER = struct.Struct("<IQ")
BODY = struct.Struct("<HBBIIQIIQ")
TOKEN_REST = struct.Struct("<BBBBIII")
MAGIC = int.from_bytes(b"hodofarm", "little")
# The codes of REFUSED.
ANOTHER_PROTOCOL, VERSION, NO_VERDICT, UNEXPECTED, TOO_LARGE, OVER_CREDIT, UNASKED, BEHIND = 1, 2, 5, 7, 8, 9, 10, 26


class Gone(Exception):
    """The far end has closed the connection."""


def message(kind, value=0, body=b"", length=None):
    return HEADER.pack(kind << 28 | (len(body) if length is None else length), value) + body


def hello(role, number=0, credits=0, version=1, window=0, instance=1):
    return message(HELLO, MAGIC, BODY.pack(version, role, 0, number, credits, window, 1 << 24, 1, instance))


def hello_of(datagram):
    """The credits and the window of a greeting that is alone in a datagram; None for anything else."""
    if len(datagram) != HEADER.size + BODY.size or HEADER.unpack_from(datagram)[0] >> 28 != HELLO:
        return None
    return BODY.unpack_from(datagram, HEADER.size)[4:6]


def token(event, verdict, credits=1, run=1, data=b"", length=None):
    return HEADER.pack(TOKEN << 28 | (len(data) if length is None else length), event) + TOKEN_REST.pack(verdict, credits, 0, 0, run, 0, 0) + data


class Peer:
    """A connection. Messages come as (kind, value, body); tokens as (TOKEN, event, (verdict, flags))."""

    def __init__(self, at, source=None, within=20):
        """Connects; or takes a connection, where `at` is a socket that listens."""
        if isinstance(at, socket.socket):
            self.socket, _ = at.accept()
            self.socket.settimeout(within)
        else:
            host, port = at.rsplit(":", 1)
            bound = (source, 0) if source else None
            self.socket = socket.create_connection((host, int(port)), timeout=within, source_address=bound)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, *messages):
        try:
            self.socket.sendall(b"".join(messages))
        except ConnectionError as error:
            raise Gone from error

    def exactly(self, count):
        parts = []
        while count:
            try:
                part = self.socket.recv(count)
            except ConnectionError as error:
                raise Gone from error
            if not part:
                raise Gone
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def next(self):
        """The next message that is no PING; those are answered."""
        while True:
            word, value = HEADER.unpack(self.exactly(HEADER.size))
            kind, length = word >> 28, word & 0xFFFFFFF
            if kind == TOKEN:
                verdict, _, flags, *_ = TOKEN_REST.unpack(self.exactly(TOKEN_REST.size))
                self.exactly(length)
                return kind, value, (verdict, flags)
            body = self.exactly(length)
            if kind != PING:
                return kind, value, body
            self.send(message(PONG, value))

    def of(self, *kinds):
        """The next message of these kinds."""
        while True:
            found = self.next()
            if found[0] in kinds:
                return found

    def answered(self, value):
        """Asks whether the far end is there, and returns the value of its answer."""
        self.send(message(PING, value))
        return self.of(PONG)[1]

    def refused(self):
        """The reason why the far end sends this peer away: its code, and its words."""
        _, code, words = self.of(REFUSED)
        return code, words.decode()

    def wait_for_the_end(self):
        """Until the far end has closed."""
        try:
            while True:
                self.next()
        except Gone:
            pass

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def greeted(at, role, number=0, credits=0, source=None):
    """A peer that has greeted and was greeted."""
    made = Peer(at, source)
    made.send(hello(role, number, credits))
    made.of(HELLO)
    return made
