"""A wire between a network namespace and the guest, which may lose packets, on any kernel: no queueing discipline is needed."""

import contextlib
import errno
import fcntl
import os
import random
import select
import socket
import struct
import threading

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
# Bytes of the largest frame.
FRAME = 65536
# Bytes of the smallest, without its checksum: a card counts a shorter one as damaged, and a tap does not fill it up.
SMALLEST = 60


class Wire:
    """Carries frames between the network device `host`, made in the namespace that the caller is in, and `socket`, which QEMU takes."""

    def __init__(self):
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", b"host", IFF_TAP | IFF_NO_PI))
        self.near, self.socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.near.setblocking(False)
        # The share of packets that is lost in each direction, and how many were.
        self.loss, self.lost = 0.0, 0
        self.random = random.Random(12)
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def carry(self):
        """Carries frames until QEMU is gone or the device is closed."""
        while True:
            select.select([self.tap, self.near], [], [])
            with contextlib.suppress(BlockingIOError):
                for _ in range(64):
                    self.pass_on(os.read(self.tap, FRAME), self.to_guest)
            with contextlib.suppress(BlockingIOError):
                for _ in range(64):
                    frame = self.near.recv(FRAME)
                    if not frame:
                        return
                    self.pass_on(frame, self.to_host)

    def pass_on(self, frame, to):
        """Passes a frame on, or loses it: only what RDMA sends, so that the tests' own commands stay quick."""
        if self.loss and rdma(frame) and self.random.random() < self.loss:
            self.lost += 1
        else:
            to(frame)

    def to_guest(self, frame):
        """Waits for room: what does not fit meanwhile is kept by the device's own queue."""
        select.select([], [self.near], [])
        try:
            self.near.send(frame.ljust(SMALLEST, b"\0"))
        except OSError as error:
            # QEMU is gone: `carry` ends with its next look. The first send hears of a refused connection, a later one of none.
            if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                raise

    def to_host(self, frame):
        """The kernel takes any frame while the device is up."""
        with contextlib.suppress(OSError):
            os.write(self.tap, frame)


def rdma(frame):
    """Whether a frame carries RoCEv2: UDP to port 4791, by IPv4 or IPv6."""
    kind = frame[12:14]
    if kind == b"\x08\x00":
        return frame[23] == 17 and frame[36:38] == b"\x12\xb7"
    return kind == b"\x86\xdd" and frame[20] == 17 and frame[56:58] == b"\x12\xb7"
