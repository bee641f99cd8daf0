"""Records of a real IOC that are linked to PVs of `hodo pva serve`: they read, watch and put them, and our command reads the records."""

import signal

import command
import numpy
import peers
import pva

PVS = """
[[pv]]
name = "NUMBER"
value = 20
alarm = { high = 45, high_warning = 40 }
put = "log"
[[pv]]
name = "COUNTER"
type = "long"
source = "ramp"
to = 1e9
every = "20ms"
[[pv]]
name = "LARGE"
type = "double[]"
value = [1]
put = "accept"
"""
DOUBLES = 10_000_000
LINKS = 10_000
PV = '[[pv]]\nname = "{name}"\ntype = "int"\nvalue = {value}\n'
LINK = 'record(longin, "{record}") {{ field(INP, {{pva:{{pv:"{name}", proc:"CP"}}}}) }}\n'


def served(folder, port, **options):
    file = folder / "pvs.toml"
    file.write_text(PVS)
    return pva.serving(file, port=port, **options)


def linked(port, records="links.db"):
    """An IOC whose links search at a port."""
    return peers.ioc(records=records, EPICS_PVA_ADDR_LIST="127.255.255.255", EPICS_PVA_BROADCAST_PORT=str(port))


def test_links_of_an_ioc_read_watch_and_put(tmp_path):
    port = pva.udp_port()
    with served(tmp_path, port) as server, linked(port) as ioc:
        command.wait_until(lambda: ioc.get("L:now")["value"] == 20, "the link has read")
        for record in "L:count", "L:piped":
            command.wait_until(lambda record=record: ioc.get(record)["value"] > 0, "the link has got updates")
            numbers = [int(line) for line in ioc.said("monitor", "-t", "-n", "20", record, "-r", "value,record[queueSize=100]").splitlines()]
            assert numbers == list(range(numbers[0], numbers[0] + 20))
        ioc.put("L:out", "43.5")
        command.wait_until(lambda: ioc.get("L:now")["value"] == 43.5, "what was put is read back")
        assert "NUMBER" in pva.page(server, "/puts") and "43.5" in pva.page(server, "/puts")


def test_a_link_goes_on_after_a_restart(tmp_path):
    port = pva.udp_port()
    with linked(port) as ioc:
        at = None
        for _ in range(2):
            with served(tmp_path, port, listen=at) as server:
                command.wait_until(lambda: ioc.get("L:count")["alarm"]["severity"] == 0, "the link is connected")
                before = ioc.get("L:count")["value"]
                command.wait_until(lambda before=before: ioc.get("L:count")["value"] > before, "it gets updates")
                at = server.at
                server.kill()
                server.wait()
            command.wait_until(lambda: ioc.get("L:count")["alarm"]["severity"] == 3, "the link is down")


def test_ten_thousand_links_read_and_follow(tmp_path):
    file, database, names = tmp_path / "many.toml", tmp_path / "many.db", tmp_path / "names.txt"
    write = lambda more: file.write_text("".join(PV.format(name=f"MANY:{at}", value=at + more) for at in range(LINKS)))  # noqa: E731
    write(0)
    database.write_text("".join(LINK.format(record=f"L:{at}", name=f"MANY:{at}") for at in range(LINKS)))
    names.write_text("\n".join(f"L:{at}" for at in range(LINKS)))
    port = pva.udp_port()
    with pva.serving(file, port=port) as server, linked(port, database) as ioc:
        shows = lambda more: [int(line) for line in ioc.said("get", "-t", "-f", names).splitlines()] == list(range(more, LINKS + more))  # noqa: E731
        command.wait_until(lambda: shows(0), "all links have read")
        write(1)
        server.send_signal(signal.SIGHUP)
        command.wait_until(lambda: shows(1), "all links have followed")


def test_ten_million_doubles_by_a_link(tmp_path):
    port = pva.udp_port()
    with served(tmp_path, port) as server, linked(port) as ioc, pva.client(server.at) as context:
        context.put("LARGE", numpy.arange(DOUBLES, dtype=float), timeout=60)
        shown = f"[0,1,2,...,{DOUBLES - 3},{DOUBLES - 2},{DOUBLES - 1}]\n"
        command.wait_until(lambda: ioc.said("get", "-t", "-w", "60", "L:large") == shown, "the link has got the array")
