"""The TSV loads as it is, its figures as numbers."""

import copy
import csv
import math

import contract
import pytest

WORDS = {"protocol", "link", "test", "mode", "wait", "verdict", "limit_kind", "binds", "simulated", "host", "kernel"}
WORDS |= {"started", "commit"}


@pytest.fixture(scope="module")
def table(render, sample):
    """A dictionary for each row of the sample's TSV."""
    return loaded(render(sample) / "result.tsv")


def loaded(path, **how):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", **how))


def number(text):
    return float({"false": "0", "true": "1"}.get(text, text))


def test_columns_are_those_of_the_contract(table, sample):
    assert list(table[0]) == contract.TSV_COLUMNS
    assert len(table) == len(sample["measurements"])


@pytest.mark.parametrize("column", [column for column in contract.TSV_COLUMNS if column not in WORDS])
def test_figures_are_numbers(table, column):
    assert all(math.isfinite(number(row[column])) for row in table if row[column])


def test_figures_are_those_of_the_document(table, sample):
    for row, measurement in zip(table, sample["measurements"], strict=True):
        rate = measurement["rate"]
        figures = {column: number(text) for column, text in row.items() if text and column not in WORDS}
        assert figures["operations_per_s"] == pytest.approx(rate["operations_per_s"]["median"], rel=1e-6)
        assert figures["payload_mbit_per_s"] == pytest.approx(rate["payload_bits_per_s"]["median"] / 1e6, rel=1e-6)
        assert figures["operations_per_s"] * figures["size_bytes"] * 8 == pytest.approx(figures["payload_mbit_per_s"] * 1e6, rel=1e-2)
        if measurement["latency_ns"]:
            assert figures["latency_p99_us"] == pytest.approx(measurement["latency_ns"]["p99"] / 1e3, rel=1e-6)
        else:
            assert "latency_p99_us" not in figures
        assert (figures["lost"], row["verdict"]) == (measurement["loss"]["lost"], measurement["verdict"]["state"])


def test_a_tab_in_a_name_moves_no_column(render, sample):
    result = copy.deepcopy(sample)
    result["measurements"][0]["link"] = 'a\tb\nc "d'
    first, *_ = loaded(render(result) / "result.tsv", quoting=csv.QUOTE_NONE)
    assert first["link"] == 'a b c "d'
    assert first["verdict"] == "stable"


@pytest.mark.long("files")
def test_pandas_has_figures_as_numbers(render, sample):
    import pandas

    frame = pandas.read_csv(render(sample) / "result.tsv", sep="\t")
    assert list(frame.columns) == contract.TSV_COLUMNS
    for column in frame.columns.difference(WORDS):
        assert pandas.api.types.is_numeric_dtype(frame[column]), column
