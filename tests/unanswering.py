"""A file system with one file, which opens and never answers a read: what reads it waits in the kernel, whatever is done to it."""

import contextlib
import ctypes
import errno
import os
import pathlib
import struct
import subprocess
import sys

import pytest

LOOKUP, GETATTR, READ, FORGET, INIT, INTERRUPT, BATCH_FORGET = 1, 3, 15, 2, 26, 36, 42
OPENS, ENDS = (14, 27), (18, 25, 29)
FOLDER, SIZE = 1, 100
LAZILY = 2


def attributes(node):
    mode, size = (0o40755, 0) if node == FOLDER else (0o100644, SIZE)
    return struct.pack("<QQQQQQ10I", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node):
    """The body of the reply, or the number of an error; None for no reply at all."""
    if operation == INIT:
        return struct.pack("<IIIIHHII", 7, 31, 1 << 17, 0, 16, 8, 1 << 17, 1) + bytes(32)
    if operation == LOOKUP:
        return struct.pack("<QQQQII", 2, 0, 100, 100, 0, 0) + attributes(2)
    if operation == GETATTR:
        return struct.pack("<QII", 100, 0, 0) + attributes(node)
    if operation in OPENS:
        return struct.pack("<QII", 1, 0, 0)
    if operation in ENDS:
        return b""
    return None if operation in (READ, FORGET, INTERRUPT, BATCH_FORGET) else errno.ENOSYS


def serve(folder):
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"unanswering", folder.encode(), b"fuse", 0, options):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    while True:
        request = os.read(device, 1 << 20)
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        body = answer(operation, node)
        if isinstance(body, int):
            os.write(device, struct.pack("<IiQ", 16, -body, unique))
        elif body is not None:
            os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)


@contextlib.contextmanager
def mounted(folder, name):
    """The path of such a file, under any name; whoever waits for it is freed in the end."""
    folder = pathlib.Path(folder) / "unanswering"
    folder.mkdir()
    process = subprocess.Popen([sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "mounted\n":
            pytest.skip(f"no file system can be mounted here: {process.communicate()[1].strip()}")
        yield folder / name
    finally:
        process.kill()
        process.communicate()
        ctypes.CDLL(None).umount2(str(folder).encode(), LAZILY)


if __name__ == "__main__":
    serve(sys.argv[1])
