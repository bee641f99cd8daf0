#!/usr/bin/env python3
"""Writes the events of the event farm's files to an HDF5 file, a group for each run; needs h5py and NumPy.

    docs/examples/farm_to_hdf5.py DIR events.h5

    with h5py.File("events.h5") as file:
        run = file["run 7"]
        first, end = run["offset"][3:5]
        data = run["data"][first:end]             # of the run's event at index 3, whose number is run["event"][3]
"""

import sys

import farm_reader
import h5py
import numpy

COLUMNS = {"event": "u8", "node": "u4", "attempts": "u1", "partial": "?", "conflict": "?", "time_ns": "u8"}
VERDICT = h5py.enum_dtype({name: code for code, name in farm_reader.VERDICTS.items()}, basetype="u1")
CODES = {name: code for code, name in farm_reader.VERDICTS.items()}
GROUP_BYTES = 32 << 20


def append(dataset, values):
    values = numpy.asarray(values, dtype=dataset.dtype)
    dataset.resize(len(dataset) + len(values), axis=0)
    dataset[len(dataset) - len(values) :] = values


def group(file, run):
    """The group of a run: a dataset for each column, the data of all events behind one another, and where each begins."""
    name = f"run {run}"
    if name not in file:
        made = file.create_group(name)
        for column, kind in [*COLUMNS.items(), ("verdict", VERDICT)]:
            made.create_dataset(column, (0,), kind, maxshape=(None,), chunks=(4096,))
        made.create_dataset("data", (0,), "u1", maxshape=(None,), chunks=(1 << 20,))
        made.create_dataset("offset", data=numpy.zeros(1, "u8"), maxshape=(None,), chunks=(4096,))
    return file[name]


def write(file, events):
    """Appends events of one run."""
    into = group(file, events[0].run)
    for column in COLUMNS:
        append(into[column], [getattr(event, column) for event in events])
    append(into["verdict"], [CODES[event.verdict] for event in events])
    ends = numpy.cumsum([len(event.data) for event in events], dtype="u8")
    append(into["offset"], into["offset"][-1] + ends)
    append(into["data"], numpy.frombuffer(b"".join(event.data for event in events), "u1"))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    _, store, output = sys.argv
    waiting, size = [], 0
    with h5py.File(output, "w") as file:
        for event in farm_reader.events(store):
            if waiting and (event.run != waiting[0].run or size > GROUP_BYTES):
                write(file, waiting)
                waiting, size = [], 0
            waiting.append(event)
            size += len(event.data)
        if waiting:
            write(file, waiting)


if __name__ == "__main__":
    main()
