"""The checks of the contract are checked themselves: a document that holds it, and each breach of it."""

import copy
import json

import command
import contract
import pytest

SAMPLE = json.loads((command.ROOT / "tests/report/sample.json").read_text(encoding="utf-8"))


def test_a_document_that_holds_the_contract_passes():
    contract.check_document(SAMPLE)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("schema", "hodo.result/1", "schema"),
        ("measurements.0.window", -1, "window"),
        ("measurements.0.window", True, "window"),
        ("measurements.0.test", "speed", "test"),
        ("measurements.0.cpu.local.percent", None, "percent"),
        ("measurements.0.cpu.local.percent", float("nan"), "percent"),
        ("measurements.0.size_bytes", None, "drawn"),
        ("measurements.0.operations", 0, "nothing was measured"),
        ("measurements.0.verdict.text", " ", "sentence"),
        ("measurements.0.intervals", {}, "not of type .array."),
    ],
)
def test_a_breach_is_named(path, value, says):
    document = copy.deepcopy(SAMPLE)
    *front, last = path.split(".")
    place = document
    for name in front:
        place = place[int(name) if name.isdigit() else name]
    place[last] = value
    if value is None and says == "drawn":
        place.update(size_min_bytes=9, size_max_bytes=1)
    with pytest.raises(AssertionError, match=says):
        contract.check_document(document)


def test_a_field_that_is_missing_is_named():
    document = copy.deepcopy(SAMPLE)
    del document["measurements"][0]["rate"]["operations_per_s"]["low"]
    with pytest.raises(AssertionError, match="operations_per_s: .low. is a required"):
        contract.check_document(document)


def test_a_tsv_with_a_column_too_few_is_named():
    good = "\t".join(contract.TSV_COLUMNS) + "\n" + "\t".join("1" * len(contract.TSV_COLUMNS)) + "\n"
    assert len(contract.parse_tsv(good)) == 1
    with pytest.raises(AssertionError, match="line 2"):
        contract.parse_tsv(good.replace("1\t", "", 1))
