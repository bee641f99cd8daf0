"""How both sides wait: what a blocking side does between two operations, and that polling is told apart from work."""

import re
import shutil

import command
import contract
import pytest

# Operations, and calls beside theirs: of counters, and of deadlines.
COUNT, BESIDE = 1000, 50
CALLS = "recvfrom,recvmsg,recvmmsg,read,readv,sendto,sendmsg,write,writev,connect,bind,accept4,sched_yield,epoll_wait,epoll_pwait,epoll_pwait2,poll,ppoll,select,pselect6"
RECEIVES, SENDS = ("recvfrom", "recvmsg", "recvmmsg", "read", "readv"), ("sendto", "sendmsg", "write", "writev")


def traced(path):
    """The prefix that writes the system calls of a command's threads there, each thread to a file of its own."""
    assert shutil.which("strace"), "strace is not there: `./test tools` installs it"
    return ["strace", "-D", "-ff", "-qq", "-s", "0", "-e", f"trace={CALLS}", "-o", str(path)]


def calls(path):
    """The calls of the thread that has sent the most, as (name, descriptor, line)."""
    threads = []
    for file in path.parent.glob(f"{path.name}.*"):
        lines = [re.match(r"(\w+)\((\d+)?", line) for line in file.read_text(encoding="utf-8").splitlines()]
        threads.append([(line[1], line[2], line.string) for line in lines if line])
    return max(threads, key=lambda thread: sum(name in SENDS for name, *_ in thread))


def descriptor(thread, port):
    """The socket of a link: the one that was connected to this port or path."""
    return next(fd for name, fd, line in thread if name == "connect" and str(port) in line)


@pytest.mark.parametrize("protocol", ["tcp", "udp", "unix"])
def test_a_blocking_operation_is_one_send_and_one_receive_at_both_ends(protocol, tmp_path):
    near, far = tmp_path / "near", tmp_path / "far"
    at = "/far.socket" if protocol == "unix" else "127.0.0.1:0"
    uri = f"{protocol}://{tmp_path if protocol == 'unix' else ''}{at}"
    with command.serving(uri, "--wait", "block", "--threads", "1", prefix=traced(far)) as server:
        # A new connection is followed by others at times, for which the first tenth of a second is spent in the poller.
        plan = ["--test", "latency", "--sizes", "64", "--wait", "block", "--count", COUNT, "--warmup", "300ms", "--repeat", "1"]
        (one,) = command.bench(server.uri, *plan, "--quiet", prefix=traced(near))
        place = server.uri.split("://")[1].split(":")[-1]
    assert (one["wait"], one["operations"]) == ("block", COUNT)
    for path in (near, far):
        thread = calls(path)
        # Bare sockets, which the tester looks at as well, have descriptors of their own.
        named = {descriptor(thread, place)} if path == near else None
        sends = [i for i, (name, fd, _) in enumerate(thread) if name in SENDS and (not named or fd in named)]
        link = thread[sends[-1]][1]
        during = thread[sends[-COUNT] : sends[-1]]
        receives = [line for name, fd, line in during if name in RECEIVES and fd == link]
        assert abs(len(receives) - COUNT) < BESIDE, (path.name, len(receives))
        # A turn that brought an event, as a report is, looks once more before it ends.
        assert sum("EAGAIN" in line and "MSG_DONTWAIT" in line for line in receives) < 5, path.name
        # A deadline that is near is waited for in the poller.
        others = [name for name, *_ in during]
        assert "sched_yield" not in others and others.count("epoll_pwait2") < COUNT / 2, (path.name, set(others))


@pytest.mark.parametrize(("wait", "polls"), [("block", False), ("spin", True)])
@pytest.mark.parametrize("protocol", ["tcp", "pva", "shm"])
def test_polling_is_no_work(protocol, wait, polls):
    plan = ["--test", "latency", "--sizes", "64", "--wait", wait, "--duration", "300ms", "--warmup", "50ms", "--repeat", "1", "--quiet"]
    (one,) = command.bench(protocol, *plan)
    cpu = one["cpu"]
    for side in ("local", "remote"):
        used = cpu[side]["user_s"] + cpu[side]["system_s"]
        assert 0 <= cpu[side]["polling_s"] <= used + 1e-6
        work_ns = (used - cpu[side]["polling_s"]) / one["operations"] * 1e9
        assert cpu[f"{side}_ns_per_operation"] == pytest.approx(work_ns, rel=1e-3, abs=1)
        assert cpu[f"{side}_sleeps_per_operation"] == pytest.approx(cpu[side]["voluntary_switches"] / one["operations"])
        assert (cpu[side]["polling_s"] > 0) == polls, (side, cpu)


def test_an_unknown_way_to_wait_is_answered_with_the_known_ones():
    command.refused("bench", "tcp", "--wait", "sleep", status=2, says=["adaptive", "block", "spin:50us"])


def test_adaptive_is_the_default_and_named(tmp_path):
    plan = ["bench", "tcp", "--test", "latency", "--sizes", "64", *command.SHORT[:-1]]
    done = command.hodo(*plan, "--json", tmp_path / "r.json", "--html", tmp_path / "r.html")
    assert done.returncode == 0, done.stderr
    document = contract.parse((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert document["measurements"][0]["wait"] == document["environment"]["far_end"]["wait"] == "adaptive"
    assert "wait adaptive" in done.stdout and "wait adaptive" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [["tcp", "--test", "latency"], ["udp", "--test", "rate", "--mode", "send"]])
def test_polling_in_real_time_ends(words):
    """Threads that poll keep their processor from every other of their class, as from the far end's that reads standard input."""
    done = command.hodo("bench", *words, "--sizes", "64", *command.SHORT, "--wait", "spin", "--realtime", "--json", "-", within=20)
    if done.returncode == 2:
        assert "SCHED_FIFO is refused" in done.stderr or "both ends would poll on processor" in done.stderr, done.stderr
        return
    (row,) = contract.parse(done.stdout)["measurements"]
    assert row["operations"] > 0 and row.get("plain_loop") is None, row


def test_ends_that_would_never_let_each_other_run_are_refused():
    done = command.hodo("bench", "tcp", "--test", "channels", "--channels", "4", *command.SHORT, "--wait", "spin", "--realtime", within=20)
    assert done.returncode == 2, done.stderr
    assert "neither lets the other run" in done.stderr or "SCHED_FIFO is refused" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "prefix"),
    [
        (["serve", "tcp://127.0.0.1:0", "--threads", "0"], []),
        (["hub", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"], ["taskset", "-c", "0"]),
        (["farm", "node", "--to", "127.0.0.1:9"], ["taskset", "-c", "0"]),
    ],
    ids=lambda value: value[0] if value else "",
)
def test_a_daemon_whose_pollers_would_let_nothing_else_of_it_run_is_refused(words, prefix):
    done = command.hodo(*words, "--realtime", "--wait", "spin", prefix=prefix, within=20)
    assert done.returncode == 2 and "never let its log and pages run" in done.stderr, done.stderr


def test_realtime_is_a_class_of_both_sides_or_a_clear_error(tmp_path):
    plan = ["bench", "tcp", "--test", "latency", "--sizes", "64", *command.SHORT]
    done = command.hodo(*plan, "--realtime", "--json", "-")
    if done.returncode == 0:
        environment = contract.parse(done.stdout)["environment"]
        assert environment["scheduling"] == environment["far_end"]["scheduling"] == "SCHED_FIFO 10"
    # Without the capability, as root too.
    without = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", "prlimit", "--rtprio=0"]
    refused = command.hodo(*plan, "--realtime", prefix=without)
    assert refused.returncode == 2, refused.stderr
    for word in ("CAP_SYS_NICE", "ulimit -r", "setcap"):
        assert word in refused.stderr
