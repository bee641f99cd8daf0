"""What a row says of itself: other programs on the machine, a schedule that was not held."""

import contextlib
import subprocess
import sys

import command

RUN = ["udp", "--test", "rate", "--mode", "both", "--sizes", "64", "--repeat", "1", "--warmup", "20ms", "--quiet"]


@contextlib.contextmanager
def a_busy_processor():
    """Another program that never sleeps; it has begun when the body runs."""
    spin = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def test_a_row_beside_another_program_says_so():
    with a_busy_processor():
        document = command.document(*RUN, "--duration", "600ms")
    (one,) = document["measurements"]
    # One processor, less what the two sides leave it.
    assert one["cpu"]["others_percent"] > 30 / document["environment"]["cores"], one["cpu"]
    assert "other programs took " in one["verdict"]["text"], one["verdict"]


def test_an_open_loop_that_is_not_held_is_missed_and_says_since_when():
    # A line that takes 25,000 of 1,000 bytes a second; at first they wait in the network's queue.
    link = "sim+udp://?rate=200M&queue=2500"
    plan = ["--test", "open", "--mode", "send", "--sizes", "1000", "--rate", "40K", "--duration", "200ms", *RUN[-5:-1], "--quiet"]
    (one,) = command.bench(link, *plan)
    assert one["verdict"]["state"] == "missed", one["verdict"]
    held = 100 * one["rate"]["operations_per_s"]["median"] / 40_000
    assert f"missed: {held:.1f} % of the schedule was held" in one["verdict"]["text"], one["verdict"]
    assert "and it fell behind " in one["verdict"]["text"]
    assert command.hodo("bench", link, *plan, "--require", "1.0").returncode == 1
    held = [word if word != "40K" else "10K" for word in plan]
    assert command.hodo("bench", link, *held, "--require", "0.99").returncode == 0


def test_the_table_has_the_sentence_under_the_row():
    with a_busy_processor():
        done = command.hodo("bench", *RUN[:-1], "--duration", "600ms")
    assert done.returncode == 0, done.stderr
    assert "other programs took" in " ".join(done.stdout.split()), done.stdout


def test_a_simulated_link_has_no_other_programs():
    with a_busy_processor():
        (one,) = command.bench("sim+udp", *RUN[1:], "--duration", "100ms")
    assert "others_percent" not in one["cpu"] and "other programs" not in one["verdict"]["text"]
