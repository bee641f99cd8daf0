#!/usr/bin/env python3
"""Draws rate and limit against size from a TSV.

    hodo bench tcp --test rate --mode send --sizes 64..128K*4 --tsv results.tsv
    docs/examples/plot.py results.tsv rate.png

Needs pandas and matplotlib.
"""

import sys

import matplotlib.pyplot
import pandas


def main(source, target):
    results = pandas.read_csv(source, sep="\t")
    rates = results[results.test == "rate"]
    axes = matplotlib.pyplot.subplots(figsize=(7, 4))[1]
    for (link, mode), rows in rates.groupby(["link", "mode"]):
        (line,) = axes.plot(rows.size_bytes, rows.payload_mbit_per_s, marker="o", label=f"{link} {mode}")
        axes.plot(rows.size_bytes, rows.limit_mbit_per_s, linestyle="--", color=line.get_color())
        # A rate that is not stable is not worth a filled point.
        doubtful = rows[rows.verdict != "stable"]
        hollow = {"color": "white", "markeredgecolor": line.get_color()}
        axes.plot(doubtful.size_bytes, doubtful.payload_mbit_per_s, "o", **hollow)
    axes.set(xscale="log", xlabel="size of an operation in bytes", ylabel="Mbit/s of payload (dashed: limit)")
    axes.set_ylim(bottom=0)
    axes.legend()
    axes.figure.savefig(target, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: plot.py RESULTS.tsv PICTURE.png")
    main(*sys.argv[1:])
