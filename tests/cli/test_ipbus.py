"""`hodo ipbus` on devices, and through the hub, as a laboratory uses it."""

import contextlib
import json
import os
import pathlib
import random
import re
import shlex
import socket
import struct
import subprocess
import threading

import command
import pytest

TABLE = pathlib.Path(__file__).parents[1] / "interop/ipbus/tables/board.xml"
DIRECT = ("ipbusudp-2.0", "ipbustcp-2.0", "ipbusudp-1.3", "ipbustcp-1.3")
HUBS = ("chtcp-2.0", "chtcp-1.3")
# Around the most words of a transaction and of a packet, then many packets.
SIZES = (1, 255, 256, 345, 347, 348, 511, 512, 1000, 100_000)


@contextlib.contextmanager
def hub():
    with command.started("hub", "--listen", "127.0.0.1:0", "--no-metrics") as process:
        yield re.search(r"listening on ([\d.:]+)", process.stdout.readline())[1]


@contextlib.contextmanager
def reached(scheme, query=f"table={TABLE}&others=error"):
    """A device that this scheme reaches, by the hub where it is one's: its URI."""
    direct = scheme.replace("chtcp", "ipbusudp")
    with command.serving(f"{direct}://127.0.0.1:0?{query}") as device:
        if direct == scheme:
            yield device.uri
            return
        host, port = command.place(device.uri)
        with hub() as at:
            yield f"{scheme}://{at}?target={host}:{port}"


@pytest.fixture(params=[*DIRECT, *HUBS])
def uri(request):
    with reached(request.param) as uri:
        yield uri


def ipbus(*arguments, status=0):
    done = command.hodo("ipbus", *arguments)
    assert done.returncode == status, f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stderr}"
    return done


def values(*arguments):
    return [int(line, 0) for line in ipbus(*arguments, "--values").stdout.split()]


def table(uri):
    return [uri, "--table", TABLE]


def test_words_bits_and_nodes(uri):
    ipbus("write", uri, "0x1", "0xDEADBEEF", "0x4/0xFFFF00", "0xABCD")
    assert values("read", uri, "0x1", "0x4", "0x4/0xF0") == [0xDEAD_BEEF, 0x00AB_CD50, 5]
    ipbus("write", *table(uri), "status.enable", 1, "daq.control.source", 2, "command", 7)
    assert values("read", *table(uri), "status", "status.threshold", "daq.control") == [0x00AB_CD51, 0xABCD, 8]


def test_bits_and_sums(uri):
    ipbus("write", *table(uri), "scratch", "0x12345678")
    bits = json.loads(ipbus("rmw", "bits", *table(uri), "scratch", "0xFFFF0000", "0x9ABC", "--json", "-").stdout)
    total = json.loads(ipbus("rmw", "sum", uri, "1", "-0x9ABC", "--json", "-").stdout)
    # What was there before is not told by version 1.3, but follows from a sum.
    assert (bits["before"], bits["after"]) == (0x1234_5678 if "2.0" in uri else None, 0x1234_9ABC)
    assert (total["before"], total["after"]) == (0x1234_9ABC, 0x1234_0000)
    assert values("read", uri, "1") == [0x1234_0000]


# Each size over UDP, and in one of the other ways.
@pytest.mark.parametrize(
    ("uri", "size"),
    [*command.spread(["ipbusudp-2.0", "ipbusudp-1.3"], SIZES), *command.spread(["ipbustcp-2.0", "ipbustcp-1.3", *HUBS], SIZES)],
    indirect=["uri"],
)
def test_blocks_of_every_size_by_files_of_every_form(uri, size, tmp_path):
    words = [random.Random(size).getrandbits(32) for _ in range(size)]
    forms = {"little": struct.pack(f"<{size}I", *words), "big": struct.pack(f">{size}I", *words)}
    forms["text"] = "".join(f"0x{word:08X}\n" for word in words).encode()
    form = ("little", "big", "text")[size % 3]
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(forms[form])
    ipbus("block", "write", *table(uri), "ram", "--input", source, "--form", form)
    for form, expected in forms.items():
        ipbus("block", "read", uri, "0x100000", "-n", size, "--output", copy, "--form", form)
        assert copy.read_bytes() == expected, form
    offset = size // 2
    assert values("block", "read", *table(uri), "ram", "--offset", offset, "-n", 1) == [words[offset]]


def test_fifos(uri):
    words = [random.Random(1).getrandbits(32) for _ in range(600)]
    ipbus("fifo", "write", *table(uri), "daq.fifo", *words)
    assert values("fifo", "read", *table(uri), "daq.fifo", "-n", 400) == words[:400]
    assert values("block", "read", *table(uri), "daq.fifo", "-n", 100) == words[400:500], "its mode is the table's"
    assert values("fifo", "read", uri, "0x1001", "-n", 100) == words[500:]
    ipbus("fifo", "write", uri, "0x1001", *words)
    part = ipbus("fifo", "read", *table(uri), "daq.fifo", "-n", 1000, "--values", status=1)
    assert [int(word, 0) for word in part.stdout.split()] == words, "what was taken out is nowhere else"
    assert "600 words were taken out" in part.stderr, part.stderr
    empty = ipbus("fifo", "read", *table(uri), "daq.fifo", "-n", 1, status=1)
    assert "`daq.fifo` at 0x00001001" in empty.stderr and "bus error on read" in empty.stderr


def test_a_dump_reads_each_register_once_and_shows_every_node(uri, tmp_path):
    rows = [line.split("\t") for line in ipbus("dump", *table(uri), "--tsv", "-").stdout.splitlines()]
    head, found = rows[0], {row[1]: row for row in rows[1:]}
    assert head == ["device", "node", "address", "mask", "value"]
    assert found["magic"] == [uri, "magic", "0x00000000", "", "0xB0A4D001"]
    assert found["status.threshold"] == [uri, "status.threshold", "0x00000004", "0x00FFFF00", "0x1234"]
    assert "command" not in found and "ram" not in found
    file = tmp_path / "dump.json"
    shown = ipbus("dump", *table(uri), "events", r"status\..*", "--json", file)
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["schema"] == "hodo.ipbus/1" and document["device"] == {"name": None, "uri": uri}
    events, *others = [(one["node"], one["value"], one["error"]) for one in document["values"]]
    # It counts its reads. Version 1.3 sends a read again after a while, which on a busy machine is one more for the device.
    assert events == ("events", 1, None) or ("1.3" in uri and events[1] > 1)
    assert others == [
        ("status.state", 5, None),
        ("status.enable", 0, None),
        ("status.threshold", 0x1234, None),
    ]
    assert shown.stdout.splitlines()[0].split() == ["node", "address", "mask", "value"]


def test_one_bad_register_hides_no_other(uri):
    done = ipbus("read", uri, "0x0", "0x5", "0x6", "0x4", "--values", status=1)
    assert done.stdout.split() == ["0xB0A4D001", "-", "-", "0x00123450"]
    (line,) = done.stderr.splitlines()
    assert f"cannot read 0x00000005 of {uri}" in line and "(and 1 more for this reason)" in line
    document = json.loads(ipbus("read", uri, "0x5", "--json", "-", status=1).stdout)
    assert document["values"][0]["value"] is None and "bus error" in document["values"][0]["error"]


@pytest.mark.parametrize("failing", ["bus_error", "bus_timeout"])
def test_what_the_bus_says_is_told(failing):
    with command.serving(f"ipbusudp-2.0://127.0.0.1:0?{failing}=0x100-0x1FF") as device:
        says = ["0x00000100", failing.replace("_", " "), "write", r"after 16 words"]
        command.refused("ipbus", "block", "write", device.uri, "0xF0", *range(20), status=1, says=says)
        assert values("block", "read", device.uri, "0xF0", "-n", 16) == list(range(16))


def test_the_configuration_space(uri):
    if "1.3" in uri:
        says = ["1.3", "2.0"]
        command.refused("ipbus", "block", "read", uri, 0, "--configuration", "-n", 1, status=1, says=says)
        return
    ipbus("block", "write", uri, 1, 0xC0A8_0001, "--configuration")
    assert values("block", "read", uri, 0, "--configuration", "-n", 4) == [0, 0xC0A8_0001, 0, 0]


def test_devices_by_their_names(tmp_path, monkeypatch):
    with reached("ipbusudp-2.0") as direct, reached("chtcp-2.0") as through:
        text = "".join(
            f'<connection id="{name}" uri="{uri.replace("&", "&amp;")}" address_table="file://$BOARDS/board.xml"/>'
            for name, uri in {"crate1.direct": direct, "crate1.hub": through}.items()
        )
        (tmp_path / "connections.xml").write_text(f"<connections>{text}</connections>", encoding="utf-8")
        monkeypatch.setenv("BOARDS", str(TABLE.parent))
        files = ["--connections", f"file://{tmp_path}/*.xml"]
        for name in ("crate1.direct", "crate1.hub"):
            assert values("read", *files, name, "magic", "status.state") == [0xB0A4_D001, 5]
        listed = ipbus("devices", *files, "--glob", "*.hub", "--tsv", "-").stdout.splitlines()
        assert [line.split("\t")[:2] for line in listed[1:]] == [["crate1.hub", through]]
        said = ["`crate2`", "crate1.direct, crate1.hub"]
        command.refused("ipbus", "read", *files, "crate2", "magic", status=2, says=said)
        assert "2 devices, no errors" in ipbus("check", *files).stdout
        monkeypatch.delenv("BOARDS")
        command.refused("ipbus", "read", *files, "crate1.hub", "magic", status=2, says=["BOARDS", "connections.xml:1"])


def test_lost_packets_are_recovered_directly_and_by_the_hub():
    sure = ["--timeout", "20s", "--reliable", "true"]
    for scheme in ("ipbusudp-2.0", "chtcp-2.0"):
        with reached(scheme, "loss=0.05&duplicate=0.02&reorder=0.02&seed=3") as uri:
            ipbus("fifo", "write", uri, "0x10", *range(300), *sure)
            words = [random.Random(7).getrandbits(32) for _ in range(5000)]
            ipbus("block", "write", uri, "0x100", *words, *sure)
            assert values("block", "read", uri, "0x100", "-n", 5000, *sure) == words
            for _ in range(20):
                ipbus("rmw", "sum", uri, "0x20", 1, *sure)
            assert values("read", uri, "0x20", *sure) == [20], "each once"


def test_a_board_without_numbers_leaves_them_to_another_client():
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        ipbus("write", device.uri, 0, 1, "--reliable", "false")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.settimeout(20)
            line.connect(command.place(device.uri))
            line.send(struct.pack(">16I", 0x2000_00F1, *[0] * 15))
            assert struct.unpack(">16I", line.recv(2048))[3] == 0x2000_01F0, "the next number is still 1"


@pytest.mark.parametrize("scheme", ["ipbusudp-2.0", "ipbusudp-1.3", "ipbustcp-2.0"])
def test_a_silent_board_is_given_up_in_time(scheme):
    kind = socket.SOCK_DGRAM if "udp" in scheme else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as silent:
        silent.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            silent.listen()
        uri = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        says = ["`?0x00000010", re.escape(uri), "does not answer", "address, port and version"]
        command.refused("ipbus", "read", uri, "0x10", "--timeout", "300ms", status=1, says=says, within=20)


def test_a_board_of_the_other_version_is_a_hint():
    for scheme, other in [("ipbusudp-2.0", "ipbusudp-1.3"), ("ipbustcp-1.3", "ipbustcp-2.0")]:
        with command.serving(f"{scheme}://127.0.0.1:0") as device:
            wrong = device.uri.replace(scheme, other)
            command.refused("ipbus", "read", wrong, 0, "--timeout", "300ms", status=1, says=["version as in the URI"])


def test_something_else_that_listens_there_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet():
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                    connection.recv(65536)

        threading.Thread(target=greet, daemon=True).start()
        uri = f"ipbustcp-2.0://127.0.0.1:{server.getsockname()[1]}"
        command.refused("ipbus", "read", uri, 0, status=1, says=[re.escape(uri), "right port"])


def test_a_reply_with_another_number_is_not_taken():
    with command.serving("ipbustcp-2.0://127.0.0.1:0?wrong_id=1") as device:
        says = ["0x200001F0", "0x200000F0 was expected"]
        command.refused("ipbus", "read", device.uri, 0, "--timeout", "300ms", status=1, says=says)
    with command.serving("ipbusudp-2.0://127.0.0.1:0?wrong_id=1") as device:
        unnumbered = ["--reliable", "false", "--timeout", "300ms"]
        command.refused("ipbus", "read", device.uri, 0, *unnumbered, status=1, says=["does not answer"])


def test_a_restart_is_told_and_nothing_is_done_twice():
    with command.serving("ipbusudp-2.0://127.0.0.1:0?reboot=0.2&seed=5") as device:
        told = 0
        for _ in range(40):
            done = command.hodo("ipbus", "rmw", "sum", device.uri, "0x20", 1, "--reliable", "true")
            assert done.returncode in (0, 1), done.stderr
            told += "restarted" in done.stderr
        assert told > 0
    # What is written survives such a restart; that nothing is done twice is the simulation's to show.


def test_several_at_once_on_one_board():
    """Without numbers, because a board counts them for all its clients together."""
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        add = [command.HODO, "ipbus", "rmw", "sum", device.uri, "0x20", "1", "--reliable", "false", "--timeout", "20s"]
        processes = [subprocess.Popen(add, stdout=subprocess.DEVNULL) for _ in range(12)]
        assert [process.wait(command.BOUND_S) for process in processes] == [0] * 12
        assert values("read", device.uri, "0x20") == [12]


def test_a_device_is_not_made_from_a_table_that_is_wrong(tmp_path):
    cases = {
        "cycle": ('<node>\n<node id="a" module="file://cycle.xml"/>\n</node>', [r"cycle\.xml:2:14", "in a cycle"]),
        "mask": ('<node>\n\n<node id="a" mask="0xZ"/>\n</node>', [r"mask\.xml:3:14", "0xZ"]),
        "module": ('<node>\n<node id="a" module="file://gone.xml"/>\n</node>', [r"module\.xml:2:14", r"gone\.xml"]),
        "device": ('<node>\n<node id="a" parameters="device=lamp"/>\n</node>', [r"device\.xml:2:1", "lamp", "counter"]),
    }
    for name, (text, says) in cases.items():
        file = tmp_path / f"{name}.xml"
        file.write_text(text, encoding="utf-8")
        command.refused("serve", f"ipbusudp-2.0://127.0.0.1:0?table={file}", status=1, says=says, within=20)


def test_a_pipe_in_the_place_of_a_table_is_refused_and_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe.xml"
    os.mkfifo(pipe)
    command.refused("ipbus", "nodes", pipe, status=2, says=[r"pipe\.xml", "a pipe or a device"], within=20)
    serve = f"ipbusudp-2.0://127.0.0.1:0?table={pipe}"
    command.refused("serve", serve, status=1, says=["a pipe or a device"], within=20)


def test_a_bench_of_registers_that_are_not_there_says_so():
    with reached("ipbusudp-2.0") as uri:
        done = command.hodo("bench", f"{uri}?address=0x500", "--test", "latency", "--sizes", "4", *command.SHORT[:-1])
        assert done.returncode == 1 and "all was refused" in done.stdout, done.stdout + done.stderr


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).parents[2] / "docs/protocols/ipbus.md").read_text(encoding="utf-8")
    indented = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    table = indented[indented.index("<node>") : indented.index("</node>") + 1]
    (tmp_path / "board.xml").write_text("\n".join(table), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(re.split(" {3,}", line)[0])[1:] for line in indented if line.startswith("hodo ")]
    assert len(commands) > 8 and commands[0][0] == "serve"
    with command.serving(commands[0][1].replace("50001", "0")) as device:
        for words in commands[1:]:
            words = [word.replace("ipbusudp-2.0://127.0.0.1:50001", device.uri) for word in words]
            done = command.hodo(*words, *(command.SHORT if words[0] == "bench" else []))
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
