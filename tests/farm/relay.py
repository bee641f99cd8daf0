"""Between two processes: passes their bytes on, and resets their connections when it is told to."""

import contextlib
import ctypes
import socket
import struct
import threading


class Relay:
    def __init__(self, to):
        host, port = to.rsplit(":", 1)
        self.to = host, int(port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.at = "127.0.0.1:{}".format(self.listener.getsockname()[1])
        self.lock = threading.Lock()
        self.pairs = set()
        self.over = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def carry(self, near):
        try:
            far = socket.create_connection(self.to)
        except OSError:
            near.close()
            return
        pair = near, far
        with self.lock:
            self.pairs.add(pair)
        backward = threading.Thread(target=self.forward, args=(far, near), daemon=True)
        backward.start()
        self.forward(near, far)
        backward.join()
        with self.lock:
            self.pairs.discard(pair)
        near.close()
        far.close()

    def forward(self, one, other):
        with contextlib.suppress(OSError):
            while piece := one.recv(1 << 16):
                other.sendall(piece)
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Resets every connection, both sides of it; how many there were."""
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for side in (side for pair in pairs for side in pair):
            reset(side)
        return len(pairs)

    def close(self):
        self.listener.close()
        self.cut()


def reset(side):
    """Sends RST now: to close it would wait for the thread that receives from it."""
    unspecified = struct.pack("H14x", socket.AF_UNSPEC)
    ctypes.CDLL(None).connect(side.fileno(), unspecified, len(unspecified))


@contextlib.contextmanager
def relay(to):
    made = Relay(to)
    try:
        yield made
    finally:
        made.close()
