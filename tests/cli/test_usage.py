"""What can be told to be wrong from the command line alone: exit 2, at once, with the remedy."""

import re

import command
import pytest

AT_ONCE_S = 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ftp://localhost:21"], ["ftp", "tcp, udp, unix"]),
        (["nonesuch"], ["nonesuch", "tcp://nonesuch"]),
        (["tcp://127.0.0.1:99999"], ["99999", "not a port"]),
        (["tcp://127.0.0.1:1?delay=5us"], ["only simulated links", "sim.tcp://.delay"]),
        (["tcp://?delay=5us"], ["only simulated links"]),
        (["tcp", "--window", "0"], ["window"]),
        (["tcp", "--window", "4294967296"], ["window"]),
        (["tcp", "--window", "many"], ["window"]),
        (["tcp", "--channels", "0"], ["channels"]),
        (["tcp", "--channels", "4294967296"], ["channels"]),
        (["tcp", "--sizes", "2G"], ["size"]),
        (["tcp", "--sizes", "1025M"], ["size", "1025M|1073741824|1 GiB|1G|1024M|maximum"]),
        (["udp", "--sizes", "65508"], ["size", "65.?507"]),
        (["tcp", "--sizes", "big"], ["big"]),
        (["tcp", "--sizes", "10..1*2"], ["10..1"]),
        (["tcp", "--sizes", "1..10*1"], ["1..10"]),
        (["tcp", "--sizes", "1..10+0"], ["1..10"]),
        (["tcp", "--test", "nonesuch"], ["nonesuch", "latency"]),
        (["tcp", "--mode", "nonesuch"], ["nonesuch", "receive"]),
        (["tcp", "--wait", "nonesuch"], ["nonesuch", "spin"]),
        (["tcp", "--repeat", "0"], ["repeat"]),
        (["tcp", "--duration", "fast"], ["fast"]),
        (["tcp", "--duration", "-1s"], ["`-1s` is not a duration"]),
        (["tcp", "--warmup", "-1s"], ["`-1s` is not a duration"]),
        (["tcp", "--test", "open", "--rate=-1"], ["rate"]),
        (["tcp", "--test", "open", "--rate=nan"], ["rate"]),
        (["tcp", "--cpu", "99999"], ["cpu", "99999"]),
        (["tcp", "--line-rate", "fast"], ["fast"]),
        (["tcp", "--line-rate", "1"], ["not in 1K"]),
        (["tcp", "--nonesuch"], ["nonesuch"]),
        (["sim+udp://?loss=2"], ["loss"]),
        (["sim+udp://?delay"], ["delay"]),
        (["sim+udp://?nonesuch=1"], ["nonesuch"]),
        (["sim+tcp://?congestion=vegas"], ["congestion", "cubic, reno or none"]),
        (["tpc"], ["did you mean tcp"]),
        (["udp:127.0.0.1:4242"], ["write udp://127.0.0.1:4242"]),
        (["127.0.0.1:4242"], ["names a host", "write tcp://127.0.0.1:4242"]),
        (["10.0.0.3"], ["names a host", "write tcp://10.0.0.3"]),
        (["ipbusudp-2.1"], ["did you mean ipbusudp-2.0"]),
        (["daq.example.org"], ["names a host", "write tcp://daq.example.org"]),
        (["tcp", "--warmup", "5"], ["write 5s for seconds"]),
        (["tcp", "--line-rate", "1GbE"], ["1GbE", "1G"]),
        (["sim+udp://?loss=1%%"], ["loss", "0.01 or 1%"]),
        # Options that a link cannot have.
        (["udp", "--congestion", "cubic"], ["--congestion", "no TCP sockets", "leave it out"]),
        (["unix", "--congestion", "cubic"], ["--congestion", "no TCP sockets"]),
        (["ipbusudp-2.0", "--congestion", "cubic"], ["--congestion", "no TCP sockets"]),
        (["sim+tcp", "--congestion", "reno"], ["--congestion", r"sim\+tcp://\?congestion=reno"]),
        (["sim+udp://?delay=5us", "--cpu", "0"], ["--cpu", "leave it out"]),
        (["sim+tcp", "--wait", "spin"], ["--wait spin", "virtual time"]),
        (["sim+tcp", "--wait", "spin:20us"], ["--wait spin:20us", "virtual time"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_is_turned_down_at_once(arguments, says):
    done = command.refused("bench", *arguments, status=2, says=says, within=AT_ONCE_S)
    assert done.stdout == "" and "warm-up" not in done.stderr, "the error comes before any header"


@pytest.mark.parametrize(
    ("link", "options"),
    [
        ("TCP", []),
        ("sim+TCP://?delay=5us", []),
        ("sim+udp://?loss=1%", []),
        ("sim+tcp", ["--line-rate", "1Gbps", "--sizes", "64KiB"]),
        ("sim+tcp", ["--line-rate", "1Gbit/s", "-t", "1"]),
        ("sim+tcp", ["--test", "open", "--rate", "1K/s", "--duration", "1"]),
    ],
)
def test_is_understood(link, options):
    plan = [] if "--test" in options else ["--test", "latency"]
    sizes = [] if "--sizes" in options else ["--sizes", "64"]
    times = [] if {"-t", "--duration"} & set(options) else ["--duration", "50ms"]
    (one,) = command.bench(link, *plan, *sizes, *options, *times, "--repeat", "1", "--warmup", "10ms", "--quiet")
    assert one["operations"] > 0


def test_results_are_not_overwritten_without_force(tmp_path):
    run = ["bench", "sim+tcp", "--test", "latency", "--repeat", "1", "--quiet", "--out", tmp_path / "out"]
    assert command.hodo(*run).returncode == 0
    done = command.hodo(*run)
    assert done.returncode == 2 and "--force" in done.stderr, done.stderr
    assert command.hodo(*run, "--force").returncode == 0


def test_a_quiet_run_that_keeps_nothing_says_so():
    run = ["bench", "sim+tcp", "--test", "latency", "--repeat", "1", "--quiet"]
    done = command.hodo(*run)
    assert done.returncode == 0 and "keeps no figure" in done.stderr, done.stderr
    assert command.hodo(*run, "--require", "p99<1s").stderr == ""


def test_a_server_without_tcp_has_no_congestion_control():
    command.refused("serve", "udp", "--congestion", "cubic", status=2, says=["--congestion", "no TCP sockets"], within=AT_ONCE_S)


@pytest.mark.parametrize(("arguments", "says"), [
    (["serve", "tcp://127.0.0.1:{}"], "hodo serve tcp://:{}"),
    (["serve", "ipbusudp-2.0://127.0.0.1:{}?boards=1"], "hodo serve 'ipbusudp-2.0://:{}?boards=1'"),
    (["serve", "tcp"], "hodo serve tcp://:4242"),
    (["hub", "--listen", "127.0.0.1:{}", "--no-metrics"], "--listen :{} admits everybody"),
    (["farm", "controller", "--listen", "[::1]:{}", "--no-metrics"], "--listen :{} admits everybody"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_listens_on_loopback_says_what_to_type_for_others(arguments, says):
    port = command.free_port()
    with command.started(*(word.format(port) for word in arguments)) as server:
        command.announced(server, "only this host reaches it; .*" + re.escape(says.format(port)))


@pytest.mark.parametrize("arguments", [["nonesuch"], ["report"], ["compare", "one.json"], ["serve"], ["serve", "ftp://x"]])
def test_other_subcommands_too(arguments):
    command.refused(*arguments, status=2, says=[], within=AT_ONCE_S)


def test_a_congestion_control_that_the_kernel_does_not_have_is_named():
    command.refused("bench", "tcp", "--congestion", "nonesuch", *command.SHORT, status=(1, 2), says=["nonesuch"], within=20)


def test_the_largest_window_is_run_or_turned_down_but_never_hangs():
    done = command.hodo("bench", "tcp", "--window", "4294967295", "--sizes", "64", *command.SHORT, "--json", "-")
    assert done.returncode in (0, 1, 2) and "panicked" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR"])
def test_the_classic_tests_are_found_in_the_help(name):
    done = command.hodo("bench", "--help", within=AT_ONCE_S)
    assert done.returncode == 0 and name in done.stdout


def test_says_its_version():
    done = command.hodo("--version", within=AT_ONCE_S)
    assert done.returncode == 0 and done.stdout.startswith("hodo ")
