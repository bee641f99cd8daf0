"""What a row says of itself: other programs on the machine."""

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


def test_the_table_has_the_sentence_under_the_row():
    with a_busy_processor():
        done = command.hodo("bench", *RUN[:-1], "--duration", "600ms")
    assert done.returncode == 0, done.stderr
    assert "other programs took" in " ".join(done.stdout.split()), done.stdout


def test_a_simulated_link_has_no_other_programs():
    with a_busy_processor():
        (one,) = command.bench("sim+udp", *RUN[1:], "--duration", "100ms")
    assert "others_percent" not in one["cpu"] and "other programs" not in one["verdict"]["text"]
