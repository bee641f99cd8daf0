#!/usr/bin/env python3
"""Reads the event farm's files, written from docs/farm-files.md alone; needs nothing but Python.

    docs/examples/farm_reader.py DIR              what became of how many events
    docs/examples/farm_reader.py DIR --events     a line for each event with data

    import farm_reader
    for event in farm_reader.events("DIR", run=7, verdict="accepted"):
        ...event.event, event.data
"""

import argparse
import collections
import pathlib
import struct
import sys

FILE_HEADER = struct.Struct("<8sHHIQ36sI")  # magic, version, bytes, zero, segment, text, checksum
HEADER = struct.Struct("<4sIIBBBBQQIIII")  # kind, length, checksum of the data, …, checksum of the header
PLACE = struct.Struct("<QQ")  # segment, place of the block
VERDICTS = {1: "accepted", 2: "rejected", 3: "quarantined", 4: "incomplete"}
PARTIAL, CONFLICT = 1, 2

Event = collections.namedtuple("Event", "run event verdict node attempts partial conflict time_ns data")


class Damaged(Exception):
    """Bytes are not as they were written."""


def crc_table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        yield value


TABLE = tuple(crc_table())


def crc32c(data):
    """CRC-32C (Castagnoli) at some MB/s: say `check=False` where that is too slow and the files were verified."""
    crc, table = 0xFFFFFFFF, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def segments(path):
    """The segments of a folder in their order, or the one that this is."""
    path = pathlib.Path(path)
    return sorted(path.glob("segment-*.hodo"), key=lambda file: int(file.stem[8:])) if path.is_dir() else [path]


def blocks(path, check=True):
    """Each block of a segment: its header's fields, and its data. An unfinished commit at the end is left out."""
    with open(path, "rb") as file:
        head = file.read(FILE_HEADER.size)
        if len(head) < FILE_HEADER.size:
            return
        magic, version, _, _, segment, _, checksum = FILE_HEADER.unpack(head)
        if magic != b"HODOSEG\n" or crc32c(head[:-4]) != checksum:
            raise Damaged(f"{path}: it does not begin as a segment")
        if version != 1:
            raise ValueError(f"{path}: version {version} is not known here")
        while head := file.read(HEADER.size):
            offset = file.tell() - len(head)
            fields = HEADER.unpack(head) if len(head) == HEADER.size else None
            whole = fields and crc32c(PLACE.pack(segment, offset) + head[:-4]) == fields[-1]
            data = file.read(-(-fields[1] // 8) * 8) if whole else b""
            whole = whole and len(data) == -(-fields[1] // 8) * 8
            data = data[: fields[1]] if whole else b""
            if not whole or check and crc32c(data) != fields[2]:
                # Nobody can tell an unfinished commit from damage in the last bytes; `hodo farm verify` looks closer.
                if file.read(1):
                    raise Damaged(f"{path}: the block at byte {offset} is not as it was written")
                return
            yield fields, data


def events(path, run=None, verdict=None, check=True):
    """Each event with data, in the order in which they were stored; those whose number another event has are a `conflict`."""
    for segment in segments(path):
        for fields, data in blocks(segment, check):
            kind, _, _, code, attempts, flags, _, number, time_ns, its_run, node, _, _ = fields
            if kind != b"EVNT" or run not in (None, its_run) or verdict not in (None, VERDICTS[code]):
                continue
            partial, conflict = bool(flags & PARTIAL), bool(flags & CONFLICT)
            yield Event(its_run, number, VERDICTS[code], node, attempts, partial, conflict, time_ns, data)


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def ranges(data):
    """Run, verdict, first event and the one after the last, of each range in a block's data."""
    numbers = varints(data)
    for _ in range(next(numbers)):
        run, code, count = next(numbers), next(numbers), next(numbers)
        end = 0
        for _ in range(count):
            start = end + next(numbers)
            end = start + next(numbers) + 1
            yield run, VERDICTS[code], start, end


def decided(path, check=True):
    """Each range of events with a verdict, those with data too: run, verdict, first event, the one after the last."""
    for segment in segments(path):
        for fields, data in blocks(segment, check):
            if fields[0] == b"EVNT" and not fields[5] & CONFLICT:
                yield fields[9], VERDICTS[fields[3]], fields[7], fields[7] + 1
            elif fields[0] == b"CMIT":
                yield from ranges(data)


def main():
    parser = argparse.ArgumentParser(description="Reads the files of the event farm.")
    parser.add_argument("store", help="the store's folder, or one of its segments")
    parser.add_argument("--events", action="store_true", help="a line for each event with data")
    parser.add_argument("--no-check", action="store_true", help="do not check the data's checksums")
    asked = parser.parse_args()
    try:
        if asked.events:
            for event in events(asked.store, check=not asked.no_check):
                print(*event[:-1], len(event.data), sep="\t")
            return
        counts = collections.Counter((event.run, "conflict") for event in events(asked.store, check=False) if event.conflict)
        for run, verdict, start, end in decided(asked.store, check=not asked.no_check):
            counts[run, verdict] += end - start
        for (run, verdict), count in sorted(counts.items()):
            print(run, verdict, count, sep="\t")
    except Damaged as damage:
        sys.exit(f"{damage}")


if __name__ == "__main__":
    main()
