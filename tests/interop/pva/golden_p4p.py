"""What a p4p server answers to hand-made messages: the types of p4p's normative builders, searches, beacons and forwarded searches."""

import socket
import struct
import time

from p4p import Value, nt
from p4p.client.thread import Context
from p4p.server import Server
from p4p.server.thread import SharedPV

LOOPBACK = "127.0.0.1"
FORWARDED = ("224.0.0.128", LOOPBACK)
HEADER = 8
SEARCH, CREATE_CHANNEL, VALIDATION, GET_FIELD = 3, 7, 1, 17


def normative():
    """Returns a type for each name: those that p4p builds as other servers of the field do."""
    return {
        "text": nt.NTScalar.buildType("s"),
        "array": nt.NTScalar.buildType("ad"),
        "enum": nt.NTEnum.buildType(),
        "table": nt.NTTable.buildType([("n", "ai"), ("name", "as")]),
        "image": nt.NTNDArray.buildType(),
        "channels": nt.NTMultiChannel.buildType("av"),
    }


def message(command, payload, order="<"):
    flags = 0x80 if order == ">" else 0
    return struct.pack(f"{order}BBBBI", 0xCA, 2, flags, command, len(payload)) + payload


def text(value):
    return bytes([len(value)]) + value.encode()


def exactly(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        assert more, "the server has closed the connection"
        data += more
    return data


def reply(sock, command):
    """Returns the payload of the next message of a command; others are skipped."""
    while True:
        header = exactly(sock, HEADER)
        size = 0 if header[2] & 1 else struct.unpack("<I", header[4:])[0]
        payload = exactly(sock, size)
        if header[3] == command and not header[2] & 1:
            return payload


def served(*, beacons=None):
    """Returns a running server of all normative types, on loopback and on ports of its own."""
    pvs = {name: SharedPV(initial=Value(of)) for name, of in normative().items()}
    conf = {
        "EPICS_PVAS_INTF_ADDR_LIST": LOOPBACK,
        "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO",
        "EPICS_PVAS_SERVER_PORT": "0",
        "EPICS_PVAS_BROADCAST_PORT": "0",
    }
    if beacons:
        conf["EPICS_PVAS_BEACON_ADDR_LIST"] = f"{LOOPBACK}:{beacons}"
    return Server(providers=[pvs], conf=conf, useenv=False)


def types():
    """Returns the type of each channel, as its bytes."""
    found = {}
    with served() as server:
        sock = socket.create_connection((LOOPBACK, int(server.conf()["EPICS_PVAS_SERVER_PORT"])))
        reply(sock, VALIDATION)
        sock.sendall(message(VALIDATION, struct.pack("<IHH", 1 << 16, 0, 0) + text("anonymous") + b"\xff"))
        for number, name in enumerate(normative()):
            sock.sendall(message(CREATE_CHANNEL, struct.pack("<HI", 1, number) + text(name)))
            sid = reply(sock, CREATE_CHANNEL)[4:8]
            sock.sendall(message(GET_FIELD, sid + struct.pack("<I", number) + text("")))
            found[name] = reply(sock, GET_FIELD)[5:]
        sock.close()
    return found


def receiver():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((LOOPBACK, 0))
    sock.settimeout(20)
    return sock


def forwarded(port):
    """Returns a socket that gets what a server passes on to the others of its host."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((FORWARDED[0], port))
    group = socket.inet_aton(FORWARDED[0]) + socket.inet_aton(FORWARDED[1])
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    sock.settimeout(5)
    return sock


def search(order, port):
    """Returns a hand-made search for one channel that is there and one that is not, which wants an answer."""
    sequence, unicast, none = 0x01020304, 0x81, bytes(16)
    payload = struct.pack(f"{order}IB3x16sH", sequence, unicast, none, port) + bytes([1]) + text("tcp")
    payload += struct.pack(f"{order}HI", 2, 7) + text("enum") + struct.pack(f"{order}I", 8) + text("absent")
    return message(SEARCH, payload, order)


def discovery():
    """Returns datagrams with their names: a beacon, searches of a client, forwarded searches, answers."""
    said = []
    beacons = receiver()
    with served(beacons=beacons.getsockname()[1]) as server:
        port = int(server.conf()["EPICS_PVAS_BROADCAST_PORT"])
        others = forwarded(port)
        said.append(("beacon", beacons.recv(4096)))
        for order in "<>":
            asker = receiver()
            asker.sendto(search(order, asker.getsockname()[1]), (LOOPBACK, port))
            said += [("answer", asker.recv(4096)), ("forwarded", others.recv(4096))]
    asked = receiver()
    conf = {"EPICS_PVA_ADDR_LIST": f"{LOOPBACK}:{asked.getsockname()[1]}", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
    conf["EPICS_PVA_BROADCAST_PORT"] = "0"
    with Context("pva", conf=conf, useenv=False) as context:
        subscriptions = [context.monitor(name, lambda value: None) for name in ("one", "two")]
        time.sleep(1.5)
        said.append(("search", asked.recv(4096)))
        for subscription in subscriptions:
            subscription.close()
    return said
