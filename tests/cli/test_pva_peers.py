"""The matrix of peers in the documentation: each cell is a letter with a test, or says why there is none."""

import re

import command
import pytest

PAGE = (command.ROOT / "docs/protocols/pvaccess.md").read_text()
SECTION = PAGE.split("\n## Peers\n")[1].split("\n## ")[0]
ROWS = [[cell.strip() for cell in row.split("|")] for row in re.findall(r"^\|(.*)\|$", SECTION, re.M)]
TESTS = [row for row in ROWS if len(row) == 2 and "`" in row[1]]
OPERATIONS = 13
PEERS = 4


def test_each_cell_has_a_test_or_says_that_there_is_none():
    rows = [row for row in ROWS if len(row) == 1 + PEERS and row[0] and not row[0].startswith(("-", "their", "our"))]
    assert len(rows) == 2 * OPERATIONS and [row[0] for row in rows[:OPERATIONS]] == [row[0] for row in rows[OPERATIONS:]]
    used = {cell for row in rows for cell in row[1:]} - {"none", "not tested"}
    letters = [letter for letter, _ in TESTS]
    assert used == set(letters) and len(letters) == len(used)


@pytest.mark.parametrize(("letter", "says"), TESTS)
def test_each_test_is_there(letter, says):
    path, name = re.match(r"`([^`]+)::(\w+)`", says).groups()
    assert re.search(rf"^(def|fn) {name}\(", (command.ROOT / path).read_text(), re.M), f"{letter}: {path} has no {name}"
