"""Under the names of the field's tools, hodo does at one IOC what the tools themselves did there: field_tools.jsonl is their recording."""

import json
import os
import re

import command
import field_tools
import pytest

RECORDED = [json.loads(line) for line in (field_tools.HERE / "field_tools.jsonl").read_text().splitlines()]
PAGE = (command.ROOT / "docs/from-pvget.md").read_text()
TOOLS = sorted({found["command"].split()[0] for found in RECORDED[1:]})
# Command lines where ours differs on purpose, and the first cell of the row of docs/from-pvget.md that says so.
ACCEPTED = {
    r"pvxput I:(bo|mbbo) ('Wide open'|One|0|3)": "a choice in pvxput",
    r"pvxget -r alarm,display .*": "`-r value,alarm` of pvxs",
    r"pvxput I:wf:UINT64 .*": "a whole number of JSON from 2^63 on, in pvxput",
}


def accepted(line):
    return next((row for pattern, row in ACCEPTED.items() if re.fullmatch(pattern, line)), None)


def differs(theirs, found):
    """Whether status, output, or what is written is another; as text, since a NaN differs from itself."""
    return any(json.dumps(theirs.get(key)) != json.dumps(found.get(key)) for key in ("status", "out", "after"))


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    for name in TOOLS:
        os.symlink(command.HODO, folder / name)
    known = {found["command"]: found for found in RECORDED[1:]}
    with field_tools.bench(folder) as bench:
        return {found["command"]: found for found in field_tools.all_of(bench, known)}


def test_the_recording_is_of_one_ioc_with_all_records_and_groups():
    assert (len(field_tools.RECORDS), len(field_tools.GROUPS)) == (54, 6)
    assert len(RECORDED) > 500 and len(TOOLS) == 13 and f"{len(RECORDED) - 1} command lines of all thirteen" in PAGE
    for name in field_tools.RECORDS + field_tools.GROUPS:
        assert sum(name in found["command"].split() for found in RECORDED[1:]) >= 3, name


@pytest.mark.parametrize("tool", TOOLS)
def test_status_output_and_what_is_written_are_the_tools(ours, tool):
    wrong = []
    for theirs in RECORDED[1:]:
        line = theirs["command"]
        if line.split()[0] != tool or accepted(line):
            continue
        found = ours[line]
        # Where they say something of a failure, so does ours.
        if differs(theirs, found) or (theirs["status"] != 0 and theirs["err"] and not found["err"]):
            wrong.append({key: (theirs.get(key), found.get(key)) for key in ("command", "status", "out", "after", "err")})
    assert not wrong, "\n".join(str(one)[:2000] for one in wrong)


def test_each_difference_is_on_the_page_and_is_one(ours):
    for pattern, row in ACCEPTED.items():
        assert f"| {row} |" in PAGE, row
        lines = [found for found in RECORDED[1:] if re.fullmatch(pattern, found["command"])]
        assert lines, pattern
        assert any(differs(theirs, ours[theirs["command"]]) for theirs in lines), f"{pattern}: nothing differs"
