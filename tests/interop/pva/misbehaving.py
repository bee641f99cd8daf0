"""Servers of pvAccess that refuse, are silent or go away at a chosen step, and answers to searches that name any server."""

import contextlib
import os
import socket
import struct
import threading

GREETING = struct.pack("<BBBBI", 0xCA, 2, 0x41, 2, 0)
# A structure with one field, the double `value`, and 2.5 for it.
TYPE = b"\xfd\x01\x00\x80\x00\x01\x05value\x43"
VALUE = b"\x01\x01" + struct.pack("<d", 2.5)
OK = b"\xff"
SEARCH, RESPONSE = 3, 4
HEADER = 8
VALIDATION, CREATE, GET_FIELD = 1, 7, 17
MONITOR = 13
INIT = 0x08


def message(command, payload):
    return struct.pack("<BBBBI", 0xCA, 2, 0x40, command, len(payload)) + payload


def refusal(text):
    return b"\x02" + bytes([len(text)]) + text.encode() + b"\0"


class Server:
    """Serves one double under any name until a step: `accept`, `greet`, `validate`, `create`, `init` or `execute`, where it does what it is told.

    That is to `close`, to be `mute`, to `refuse`, or to send bytes.
    """

    def __init__(self, step, deed):
        self.step, self.deed = step, deed
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self.open.append(connection)
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        for one in [self.listener, *self.open]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def does(self, connection, step, refused=None):
        """Does what is to be done at a step; returns whether the server goes on as usual."""
        if step != self.step:
            return True
        if isinstance(self.deed, bytes):
            connection.sendall(self.deed)
        elif self.deed == "refuse":
            connection.sendall(refused)
        elif self.deed == "close":
            connection.shutdown(socket.SHUT_RDWR)
        return False

    def serve(self, connection):
        with contextlib.suppress(OSError, ValueError):
            if not self.does(connection, "accept"):
                return
            if self.does(connection, "greet"):
                connection.sendall(GREETING + message(VALIDATION, struct.pack("<IH", 0x10000, 0x7FFF) + b"\x01\x09anonymous"))
            stream = connection.makefile("rb")
            while head := stream.read(HEADER):
                _, _, flags, command, size = struct.unpack("<BBBBI", head)
                if not flags & 1:
                    self.answer(connection, command, stream.read(size))

    def answer(self, connection, command, payload):
        if command == VALIDATION:
            if self.does(connection, "validate", message(9, refusal("no way"))):
                connection.sendall(message(9, OK))
        elif command == CREATE:
            cid = payload[2:6]
            if self.does(connection, "create", message(CREATE, cid + bytes(4) + refusal("go away"))):
                connection.sendall(message(CREATE, cid + struct.pack("<I", 1) + OK))
        elif command == GET_FIELD:
            connection.sendall(message(GET_FIELD, payload[4:8] + OK + b"\x43"))
        elif len(payload) >= 9:
            ioid, flags = payload[4:8], payload[8]
            step = "init" if flags & INIT else "execute"
            if self.does(connection, step, message(command, ioid + bytes([flags & INIT]) + refusal("not so"))):
                body = OK + TYPE if step == "init" else VALUE + b"\0" if command == MONITOR else OK + VALUE
                connection.sendall(message(command, ioid + bytes([flags & INIT]) + body))


@contextlib.contextmanager
def server(step="", deed="close"):
    one = Server(step, deed)
    try:
        yield one
    finally:
        one.close()


def nobody():
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(request, ports):
    """Answers to a search: one for each port, in turn, each of a server of its own."""
    order = ">" if request[2] & 0x80 else "<"
    (sequence,) = struct.unpack_from(order + "I", request, HEADER)
    at = HEADER + 26
    protocols, at = request[at], at + 1
    for _ in range(protocols):
        at += 1 + request[at]
    (count,), at = struct.unpack_from(order + "H", request, at), at + 2
    numbers = b""
    for _ in range(count):
        numbers += struct.pack(">I", *struct.unpack_from(order + "I", request, at))
        at += 5 + request[at + 4]
    for place, port in enumerate(ports):
        body = bytes([place + 1]) * 12 + struct.pack(">I", sequence) + bytes(16) + struct.pack(">H", port) + b"\x03tcp\x01"
        body += struct.pack(">H", count) + numbers
        yield struct.pack(">BBBBI", 0xCA, 2, 0xC0, RESPONSE, len(body)) + body


@contextlib.contextmanager
def found(*ports):
    """The environment of a client whose searches are answered with these TCP ports, in this order."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as responder:
        responder.bind(("127.0.0.1", 0))

        def respond():
            with contextlib.suppress(OSError):
                while True:
                    request, sender = responder.recvfrom(65536)
                    if len(request) > HEADER and request[3] == SEARCH:
                        for answer in answers(request, ports):
                            responder.sendto(answer, sender)

        threading.Thread(target=respond, daemon=True).start()
        place = {"EPICS_PVA_BROADCAST_PORT": str(responder.getsockname()[1]), "EPICS_PVA_ADDR_LIST": "127.0.0.1"}
        yield {**os.environ, **place, "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_NAME_SERVERS": ""}
        # What waits in the thread is woken.
        with contextlib.suppress(OSError):
            responder.shutdown(socket.SHUT_RDWR)
