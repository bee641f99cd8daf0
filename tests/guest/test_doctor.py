"""`hodo doctor` in a guest with an emulated card names what was set wrong there first: what no namespace has."""

import json

import command
import guest as machine
import pytest

PROGRAM, REPORT = "/tmp/hodo", "/tmp/report.json"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
# Of an emulated machine: it has no counter that can be read without a system call, and one queue.
OF_THE_HOST = {"wake_up", "clock_source", "receive_queues", "steal", "congestion_control"}


@pytest.fixture(scope="module")
def host():
    """A guest whose card has rings, coalescence and three interrupts."""
    with machine.guest(card=machine.E1000E) as up:
        up.install(command.HODO, PROGRAM)
        yield up


def run(host, line):
    status, said = host.run(line)
    assert status == 0, said
    return said


def findings(host):
    """What is found, the most expensive first."""
    run(host, f"{PROGRAM} doctor --json {REPORT}")
    return json.loads(run(host, f"cat {REPORT}"))["findings"]


def numbers(host):
    """The numbers of the card's interrupts."""
    return [line.split(":")[0].strip() for line in run(host, "grep eth0 /proc/interrupts").splitlines()]


def up(host):
    """Waits until the line is there again: some settings restart the card."""
    command.wait_until(lambda: "1" in host.run("cat /sys/class/net/eth0/carrier")[1], "the card has a carrier")


def first(host, name, words):
    found = findings(host)
    assert [each["id"] for each in found[:1]] == [name] and found[0]["kind"] == "fault", json.dumps(found, indent=1)
    for word in words:
        assert word in found[0]["evidence"] + found[0]["remedy"], found[0]


def test_as_it_starts_it_has_no_fault(host):
    found = findings(host)
    assert {each["id"] for each in found} <= OF_THE_HOST and all(each["kind"] == "cost" for each in found), json.dumps(found, indent=1)


def test_coalescence(host):
    run(host, "ethtool -C eth0 rx-usecs 200")
    up(host)
    try:
        first(host, "coalescence", ["200 µs", "ethtool -C eth0 rx-usecs"])
    finally:
        run(host, "ethtool -C eth0 rx-usecs 3")


def test_rings(host):
    run(host, "ethtool -G eth0 rx 80")
    up(host)
    try:
        first(host, "rings", ["80 entries of 4096", "ethtool -G eth0 rx 4096"])
    finally:
        run(host, "ethtool -G eth0 rx 256")


def test_affinity(host):
    for number in numbers(host):
        run(host, f"echo 1 >/proc/irq/{number}/smp_affinity")
    try:
        first(host, "affinity", ["processor 0 alone", f"/proc/irq/{numbers(host)[0]}/smp_affinity_list"])
    finally:
        for number in numbers(host):
            run(host, f"echo 3 >/proc/irq/{number}/smp_affinity")


def test_clock_source(host):
    before = run(host, f"cat {CLOCK}").strip()
    run(host, f"echo acpi_pm >{CLOCK}")
    try:
        first(host, "clock_source", ["acpi_pm", f"echo {before} >{CLOCK}"])
    finally:
        run(host, f"echo {before} >{CLOCK}")
