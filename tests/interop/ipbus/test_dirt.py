"""Address tables and connection files with the field's own dirt in them: what uHAL reads, ours reads alike, and only `check` remarks on it."""

import json

import command
import pytest
import uhal

NODE = b'<node>\n <node id="a" address="0x1"/>\n</node>'
INNER = b'<node id="a" address="0x1"/>'

READ = {
    "a back-tick behind the table": NODE + b"`\n",
    "text before the table": b"hello " + NODE,
    "a second table": NODE + b'<node><node id="b" address="2"/></node>',
    "another element first": b"<foo/>" + NODE,
    "a NUL at the end": NODE + b"\0",
    "a NUL and noise": NODE + b"\0<<< noise",
    "an attribute twice": b'<node><node id="a" id="b" address="1" address="2"/></node>',
    "a Latin-1 byte in text": b"<node>\xe9<node id='a' address='1'/></node>",
    "a Latin-1 byte in a tag that nobody reads": b"<node tags='\xb5s'>" + INNER + b"</node>",
    "control characters": b"<node>\x01<node id='a' address='1' description='\x01x\x0c'/></node>",
    "the end of CDATA": b"<node>]]>" + INNER + b"</node>",
    "CDATA behind the table": NODE + b"<![CDATA[x]]>",
    "a prefix that nobody declared": b"<node><xi:include href='x'/>" + INNER + b"</node>",
    "a document type": b"<?xml version='1.0'?><!DOCTYPE n [<!ENTITY e 'x>'><!-- ' -->]>" + NODE,
    "a document type behind the table": NODE + b"<!DOCTYPE x>",
    "a declaration behind the table": NODE + b'<?xml version="1.0"?>',
    "spaces in end tags": b"<node><node id='a' address='1'></node ></node\n>",
    "a letter of a name that is not ASCII": "<node><é/>".encode() + INNER + b"</node>",
    "another encoding declared": b"<?xml version='1.0' encoding='utf-16'?>" + NODE,
    "UTF-16 without a mark": NODE.decode().encode("utf-16-le"),
    "UTF-16 of the other order": NODE.decode().encode("utf-16-be"),
    "UTF-32": NODE.decode().encode("utf-32"),
    "a mark": b"\xef\xbb\xbf" + NODE,
    "ends of lines of other systems": NODE.replace(b"\n", b"\r\n"),
    "a class": b"<node><node id='a' address='1' class='Trigger'/></node>",
}
REFUSED = {
    "an open second table": NODE + b"<node>",
    "an end too many": NODE + b"</node>",
    "a stray <": NODE + b" < x",
    "a NUL in the table": b"<node>\0" + INNER + b"</node>",
    "an open comment": NODE + b"<!-- x",
    "a namespace": b"<node xmlns:x='y'>" + INNER + b"</node>",
    "an attribute with a prefix": b"<node><node id='a' address='1' x:y='1'/></node>",
    "the table in another element": b"<foo>" + NODE + b"</foo>",
    "a document type in the table": b"<node><!DOCTYPE x>" + INNER + b"</node>",
    "text only": b"hello",
    "nothing": b"",
}


def by_uhal(path):
    uhal.setLogLevelTo(uhal.LogLevel.FATAL)
    # uHAL keeps every file that it has read.
    uhal.ConnectionManager.clearAddressFileCache()
    hardware = uhal.getDevice("board", "ipbusudp-2.0://127.0.0.1:1", f"file://{path}")
    nodes = {name: hardware.getNode(name) for name in hardware.getNodes()}
    return {name: (node.getAddress(), node.getDescription()) for name, node in nodes.items()}


def by_us(path):
    done = command.hodo("ipbus", "nodes", path, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, "remarks are for `check` only"
    return {node["node"]: (node["address"], node["description"]) for node in json.loads(done.stdout)["nodes"]}


@pytest.mark.parametrize("dirt", READ)
def test_what_uhal_reads_is_read_alike(tmp_path, dirt):
    path = tmp_path / "table.xml"
    path.write_bytes(READ[dirt])
    assert by_us(path) == by_uhal(path) != {}


@pytest.mark.parametrize("dirt", REFUSED)
def test_what_uhal_refuses_is_refused(tmp_path, dirt):
    path = tmp_path / "table.xml"
    path.write_bytes(REFUSED[dirt])
    with pytest.raises(uhal.exception):
        by_uhal(path)
    command.refused("ipbus", "nodes", path, status=2, says=[r"table\.xml:\d+:\d+: error"])


@pytest.mark.parametrize(
    ("dirt", "remark"),
    [
        ("a back-tick behind the table", '3:8: warning: the text "`" outside'),
        ("a second table", "3:8: warning: element `node` has no effect"),
        ("a NUL and noise", "3:8: warning: a NUL ends the file, and 9 characters"),
        ("an attribute twice", "1:20: warning: the element has `id` already"),
        ("a Latin-1 byte in text", "1:7: warning: byte 0xE9 is not UTF-8"),
        ("a class", "1:32: warning: class `Trigger`"),
    ],
)
def test_check_remarks_on_it(tmp_path, dirt, remark):
    path = tmp_path / "table.xml"
    path.write_bytes(READ[dirt])
    done = command.hodo("ipbus", "check", path)
    assert done.returncode == 0 and f"{path}:{remark}" in done.stdout, done.stdout


def test_connection_files_are_read_alike(tmp_path):
    table, path = tmp_path / "table.xml", tmp_path / "connections.xml"
    table.write_bytes(NODE)

    def connection(name, more=""):
        return f"<connection {more} id='{name}' uri='ipbusudp-2.0://h:1' address_table='file://table.xml'/>"

    more = "x:z='1'"
    some = f"<connections>{connection('a')}</connections>"
    for text, there in [
        (f"<foo/>{some}`\0", ["a"]),
        (f"{some}<connections>{connection('b')}</connections>", ["a", "b"]),
        (f"<connections x:y='1'>{connection('a', more)}</connections>", ["a"]),
        (f"<connections><group>{connection('b')}</group>{connection('a')}</connections>", ["a"]),
        (f"<foo>{some}</foo>", []),
    ]:
        path.write_text(text)
        assert uhal.ConnectionManager(f"file://{path}").getDevices() == there
        done = command.hodo("ipbus", "devices", "--connections", path, "--json", "-")
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
        assert [device["device"] for device in json.loads(done.stdout)["devices"]] == there
