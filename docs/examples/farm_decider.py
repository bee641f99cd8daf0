"""Decides on the events of a farm: `hodo farm node --command python3 farm_decider.py [--threshold N]`.

Accepts an event of which enough bytes are not zero, and stores a summary with it. The function `serve` is all that a
decider of one's own needs; it has no other dependencies than Python 3.8.
"""

import argparse
import os
import struct
import sys
from typing import BinaryIO, Callable, NamedTuple, Optional, Tuple, Union

ACCEPT, REJECT, FAILED = 0, 1, 2
PARTIAL = 1
QUESTION = struct.Struct("<QIII")
ANSWER = struct.Struct("<QII")


class Event(NamedTuple):
    """An event without a decision."""

    run: int
    number: int
    partial: bool
    """Whether fragments of it are missing."""
    data: bytes


Decision = Union[bool, bytes, None]


def serve(decide: Callable[[Event], Decision], streams: Optional[Tuple[BinaryIO, BinaryIO]] = None) -> None:
    """Decides on events until there are no more.

    `decide` answers with True to store an event, False to drop it, bytes to store these in its place, None where it
    cannot tell: another node is asked then. An exception ends the process; the node tells of it, has the event decided
    elsewhere, and starts the process again.

    What the program prints goes to standard error, since standard output belongs to the node.
    """
    source, sink = streams or own_streams()
    while head := source.read(QUESTION.size):
        number, run, flags, length = QUESTION.unpack(head)
        decision = decide(Event(run, number, bool(flags & PARTIAL), source.read(length)))
        output = decision if isinstance(decision, bytes) else b""
        verdict = FAILED if decision is None else REJECT if decision is False else ACCEPT
        sink.write(ANSWER.pack(number, verdict, len(output)) + output)
        sink.flush()


def own_streams() -> Tuple[BinaryIO, BinaryIO]:
    """This process's standard input and output; what is printed goes to standard error from now on."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, sink


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threshold", type=int, default=1, help="bytes that have to be other than zero")
    threshold = parser.parse_args().threshold

    def decide(event: Event) -> Decision:
        hits = len(event.data) - event.data.count(0)
        if event.partial or hits < threshold:
            return False
        return struct.pack("<QI", event.number, hits) + event.data

    serve(decide)


if __name__ == "__main__":
    main()
