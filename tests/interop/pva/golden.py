"""Makes the golden files of pvAccess anew: what the field's own software sends, as hexadecimal digits.

    python tests/interop/pva/golden.py protocols/pva/machines/tests/golden [values] [pvxs] [pvaccesscpp] ...

It needs a C++ compiler and `pip install p4p`, which brings pvxs, pvAccessCPP and pvDataCPP with their headers. Each program beside
this file is compiled against them. Those that talk do so through a relay, which notes every message and who sent it:
`>` the client, `<` the server. Repeated bytes are written as `00*65536`.
"""

import re
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import epicscorelibs
import golden_p4p
import pvxslibs

HERE = Path(__file__).resolve().parent
HEADER = 8
ORDERS = ("little", "big")


def compiled(name, folder):
    """Compiles one of the programs beside this file, and returns where it is."""
    program = Path(folder) / name
    packages = [Path(package.__file__).parent for package in (epicscorelibs, pvxslibs)]
    command = ["g++", "-std=c++11", "-w", "-D_GLIBCXX_USE_CXX11_ABI=0", str(HERE / f"{name}.cpp"), "-o", str(program)]
    for package in packages:
        library = package / "lib"
        command += [f"-I{package / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}"]
        for found in sorted(library.glob("lib*.so.*")):
            if re.match(r"lib(pvxs|pvAccess|pvData|Com)\.so", found.name):
                command.append(f"-l:{found.name}")
    subprocess.run([*command, "-Wl,--allow-shlib-undefined"], check=True)
    return program


def digits(message):
    """Returns the bytes of a message as text, with long runs of one byte made short."""
    text = message.hex().upper()
    return re.sub(r"((?:..))\1{63,}", lambda run: f",{run[1]}*{len(run[0]) // 2},", text).strip(",")


class Direction:
    """One direction of a connection: it is cut into messages."""

    def __init__(self, sign, log):
        self.sign, self.log, self.rest = sign, log, b""

    def take(self, data):
        self.rest += data
        while len(self.rest) >= HEADER:
            flags, size = self.rest[2], self.rest[4:HEADER]
            length = int.from_bytes(size, "big" if flags & 0x80 else "little")
            end = HEADER if flags & 1 else HEADER + length
            if len(self.rest) < end:
                return
            self.log.append(f"{self.sign} {digits(self.rest[:end])}")
            self.rest = self.rest[end:]


LITTLE_ENDIAN, BIG_ENDIAN = bytes.fromhex("CA02410200000000"), bytes.fromhex("CA02C10200000000")
BIG_ENDIAN_TO_SERVER = bytes.fromhex("CA02810200000000")


def relayed(program, *arguments, turned=False):
    """Runs a program that prints its server's port and is told the relay's; returns the lines of what was said.

    A relay that is `turned` asks both sides to be big-endian.
    """
    process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = next(line for line in process.stdout if line.startswith("port "))
    target = ("127.0.0.1", int(port.split()[1]))
    listener = socket.create_server(("127.0.0.1", 0))
    process.stdin.write(f"{listener.getsockname()[1]}\n")
    process.stdin.flush()
    log, pairs = [], {}
    watched = [listener, process.stdout]
    while process.poll() is None:
        for ready in select.select(watched, [], [], 0.1)[0]:
            if ready is process.stdout:
                if ready.readline() == "":
                    watched.remove(ready)
            elif ready is listener:
                near, far = listener.accept()[0], socket.create_connection(target)
                if turned:
                    far.sendall(BIG_ENDIAN_TO_SERVER)
                log.append("connection")
                pairs[near], pairs[far] = (far, Direction(">", log)), (near, Direction("<", log))
                watched += [near, far]
            else:
                other, direction = pairs[ready]
                data = ready.recv(1 << 16)
                if turned and data.startswith(LITTLE_ENDIAN):
                    data = BIG_ENDIAN + data[HEADER:]
                if data:
                    # The server was turned while it wrote its first message, half in one order and half in the other.
                    direction.take(BIG_ENDIAN if turned and data.startswith(BIG_ENDIAN) else data)
                    other.sendall(data)
                else:
                    watched.remove(ready)
    return log if process.wait() == 0 else None


def until_it_works(attempt):
    """Returns the outcome of an exchange: two sides of pvAccessCPP that are turned do not always understand each other."""
    for _ in range(10):
        log = attempt()
        if log is not None:
            return log
    raise SystemExit("the exchange does not come to its end: run its program by hand")


def written(path, about, lines):
    front = [f"# {line}" for line in [*about, "Made by tests/interop/pva/golden.py; do not edit."]]
    path.write_text("\n".join([*front, *lines]) + "\n")
    print(f"{path}: {len(lines)} lines")


def values(golden, folder):
    lines = subprocess.run([compiled("values", folder)], check=True, capture_output=True, text=True).stdout
    about = "Types, values, sets of bits and statuses as pvDataCPP encodes them, little-endian and then big-endian."
    written(golden / "values.txt", [about, "`-` is nothing."], lines.splitlines())


def random(golden, folder):
    run = ["cargo", "run", "-q", "-p", "hodo-pva", "--example", "random_values"]
    ours = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    theirs = subprocess.run([compiled("reencode", folder)], input=ours, check=True, stdout=subprocess.PIPE, text=True)
    about = "Our values at random (seed, type and value), decoded by pvDataCPP and encoded by it, little-endian and then big-endian."
    written(golden / "random.txt", [about], theirs.stdout.splitlines())


def pvxs(golden, folder):
    program = compiled("exchange_pvxs", folder)
    for order in ORDERS:
        about = f"What a pvxs client (`>`) and a pvxs server (`<`) say to each other, {order}-endian."
        written(golden / f"pvxs-{order}.txt", [about], until_it_works(lambda: relayed(program, order)))


def pvaccesscpp(golden, folder):
    program = compiled("exchange_pvaccesscpp", folder)
    for order in ORDERS:
        about = f"What a pvAccessCPP client (`>`) and a pvAccessCPP server (`<`) say to each other, {order}-endian."
        written(golden / f"pvaccesscpp-{order}.txt", [about], until_it_works(lambda: relayed(program, turned=order == "big")))


def types(golden, _folder):
    about = "Normative types as p4p builds and a p4p server sends them, little-endian."
    lines = [f"{name} {digits(of)}" for name, of in golden_p4p.types().items()]
    written(golden / "normative.txt", [about], lines)


def discovery(golden, _folder):
    about = "Datagrams of p4p: a server's beacon, its answers to a little- and a big-endian search, what it passes on; a search."
    lines = [f"{name} {digits(datagram)}" for name, datagram in golden_p4p.discovery()]
    written(golden / "discovery.txt", [about], lines)


def main():
    chosen = sys.argv[2:] or ["values", "random", "pvxs", "pvaccesscpp", "types", "discovery"]
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            globals()[name](Path(sys.argv[1]), folder)


if __name__ == "__main__":
    main()
