"""Our client against a real IOC: records and groups of QSRV, read, written and watched; the IOC dies, stands still, and returns."""

import re
import signal
import time

import command
import peers
import pva
import pytest

RECORDS = 10_000
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  "


@pytest.fixture(scope="module")
def ioc():
    with peers.ioc() as peer:
        yield peer


def test_records_are_shown_as_pvget_shows_them(ioc):
    said = ioc.said("get", "T:ai", "T:ao", "T:wave", "T:mbbo", "T:text", "T:ai.EGU").splitlines()
    shown = [f"T:ai {TIME}1.5", f"T:ao {TIME}2", rf"T:wave {TIME}\[\]", "T:mbbo <undefined>              INVALID DRIVER UDF .0. Zero", f"T:text {TIME}hello"]
    for line, pattern in zip(said, [*shown, f"T:ai.EGU {TIME}degC"], strict=True):
        assert re.fullmatch(pattern, line), line


def test_records_are_written_and_processed(ioc):
    ioc.put("T:ai", "11")
    assert ioc.said("get", "T:ai").endswith(" 11 MAJOR DEVICE HIHI\n")
    said = ioc.said("put", "T:mbbo", "Two").splitlines()
    assert said[0].startswith("Old : T:mbbo ") and said[1].endswith(" (2) Two")
    ioc.put("T:wave", *map(str, range(50)))
    assert ioc.get("T:wave")["value"] == list(range(50))
    ioc.said("put", "-q", "-r", "record[process=true,block=true]", "T:ao", "9")
    assert ioc.get("T:ao")["value"] == 5, "the record's limit"
    ioc.put("T:text", "a long text: " + "x" * 20)
    assert ioc.get("T:text")["value"] == "a long text: " + "x" * 20
    assert ioc.get("T:ai")["display"] | {"form": None} == {
        "limitLow": 0, "limitHigh": 0, "description": "", "units": "degC", "precision": 3, "form": None
    }


def test_a_group_is_read_and_written_as_a_structure(ioc):
    ioc.put("T:group", "first=4", "second.value=5")
    group = ioc.get("T:group")
    assert (group["first"], group["second"]["value"]) == (4, 5)
    assert "    double first\n" in ioc.said("info", "T:group")


def test_a_record_that_scans_is_watched(ioc):
    values = [float(line) for line in ioc.said("monitor", "-t", "-n", "6", "T:calc").splitlines()]
    assert values == [values[0] + step for step in range(6)]


def test_a_record_that_scans_is_watched_by_a_pipeline(ioc):
    # More than its window, which is acknowledged.
    said = ioc.said("monitor", "-t", "-n", "12", "-r", "record[queueSize=4,pipeline=true]field(value)", "T:calc")
    values = [float(line) for line in said.splitlines()]
    assert values == [values[0] + step for step in range(12)]


def test_its_names_are_listed(ioc):
    assert {"T:ai", "T:calc", "T:group"} <= set(ioc.said("list", f"127.0.0.1:{ioc.port}").splitlines())


def test_ten_thousand_records_are_found_and_got(tmp_path, monkeypatch):
    database, names = tmp_path / "many.db", tmp_path / "names.txt"
    database.write_text("".join(f'record(longin, "M:{at}") {{ field(VAL, "{at}") field(PINI, "YES") }}\n' for at in range(RECORDS)))
    names.write_text("\n".join(f"M:{at}" for at in range(RECORDS)))
    port = pva.udp_port()
    search = {"EPICS_PVA_BROADCAST_PORT": str(port), "EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
    for name, value in search.items():
        monkeypatch.setenv(name, value)
    with peers.ioc(records=database, EPICS_PVAS_BROADCAST_PORT=str(port)) as ioc:
        values = "".join(f"{at}\n" for at in range(RECORDS))
        # Searched for, and at the address.
        for options in [], ["-S", f"127.0.0.1:{ioc.port}"]:
            began = time.monotonic()
            done = command.hodo("pva", "get", "-t", "-w", 30, "-r", "value", "-f", names, *options)
            assert (done.returncode, done.stdout) == (0, values), done.stderr[:500]
            assert time.monotonic() - began < 20
        assert len(ioc.said("list", f"127.0.0.1:{ioc.port}").splitlines()) >= RECORDS


@pytest.mark.long("timing")
def test_a_monitor_survives_the_death_of_the_ioc():
    with peers.ioc() as first:
        with command.started("pva", "monitor", "-t", f"pva://127.0.0.1:{first.port}/T:calc") as monitor:
            while float(monitor.stdout.readline()) < 5:
                pass
            first.process.kill()
            while "lost" not in (line := monitor.stdout.readline()) and "closed" not in line:
                assert re.fullmatch(r"[\d.]+\n", line), line
            with peers.ioc(first.port) as second:
                assert second.port == first.port
                began = time.monotonic()
                while float(line := monitor.stdout.readline()) > 15:
                    pass
                assert time.monotonic() - began < 1.5


@pytest.mark.long("timing")
def test_an_ioc_that_stands_still_is_given_up_and_found_again(monkeypatch):
    monkeypatch.setenv("EPICS_PVA_CONN_TMO", "2")
    with peers.ioc() as peer:
        with command.started("pva", "monitor", "-t", f"pva://127.0.0.1:{peer.port}/T:calc") as monitor:
            last = float(monitor.stdout.readline())
            peer.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            while "not been heard" not in (line := monitor.stdout.readline()):
                last = float(line)
            assert 2 < time.monotonic() - began < 6
            done = peer.run("get", "-w", "0.5", "T:ai")
            assert done.returncode == 1 and done.stderr.startswith("hodo: T:ai: not connected within 0.5 s")
            peer.process.send_signal(signal.SIGCONT)
            began = time.monotonic()
            while not re.fullmatch(r"[\d.]+\n", line := monitor.stdout.readline()):
                pass
            assert float(line) > last and time.monotonic() - began < 1.5
