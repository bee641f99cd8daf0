"""The TSV loads into pandas as it is, its figures as numbers."""

import copy

import contract
import pandas
import pytest

WORDS = {"protocol", "link", "test", "mode", "wait", "verdict", "limit_kind", "binds", "simulated", "host", "kernel"}
WORDS |= {"started", "commit"}


@pytest.fixture(scope="module")
def frame(render, sample):
    return pandas.read_csv(render(sample) / "result.tsv", sep="\t")


def test_columns_are_those_of_the_contract(frame, sample):
    assert list(frame.columns) == contract.TSV_COLUMNS
    assert len(frame) == len(sample["measurements"])


@pytest.mark.parametrize("column", [column for column in contract.TSV_COLUMNS if column not in WORDS])
def test_figures_are_numbers(frame, column):
    assert pandas.api.types.is_numeric_dtype(frame[column])


def test_figures_are_those_of_the_document(frame, sample):
    for row, measurement in zip(frame.itertuples(), sample["measurements"], strict=True):
        rate = measurement["rate"]
        assert row.operations_per_s == pytest.approx(rate["operations_per_s"]["median"], rel=1e-6)
        assert row.payload_mbit_per_s == pytest.approx(rate["payload_bits_per_s"]["median"] / 1e6, rel=1e-6)
        assert row.operations_per_s * row.size_bytes * 8 == pytest.approx(row.payload_mbit_per_s * 1e6, rel=1e-2)
        if measurement["latency_ns"]:
            assert row.latency_p99_us == pytest.approx(measurement["latency_ns"]["p99"] / 1e3, rel=1e-6)
        else:
            assert pandas.isna(row.latency_p99_us)
        assert (row.lost, row.verdict) == (measurement["loss"]["lost"], measurement["verdict"]["state"])


def test_a_tab_in_a_name_moves_no_column(render, sample):
    result = copy.deepcopy(sample)
    result["measurements"][0]["link"] = 'a\tb\nc "d'
    frame = pandas.read_csv(render(result) / "result.tsv", sep="\t", quoting=3)
    assert frame.link[0] == 'a b c "d'
    assert frame.verdict[0] == "stable"
