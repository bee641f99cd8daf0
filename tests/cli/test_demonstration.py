"""`hodo` alone, from the fresh clone's first command on: every protocol, in under a minute, with a folder of results."""

import json
import os
import pathlib
import re

import command
import contract
import pytest
import readme
import terminal

PROTOCOLS = {"tcp", "udp", "unix", "ipbusudp-2.0", "chtcp-2.0", "farm", "pva", "roce", "ssdtp2", "spw"}
# What stands on a terminal of 80 columns at the end. `UPDATE_SNAPSHOTS=1` keeps what is there now.
SCREEN = pathlib.Path(__file__).with_name("demonstration.txt")


def shape(screen):
    """What is the same on every host: the lines above the rows, the rows and those of the table without figures, and the words below."""
    rows, table, sentences = screen.strip("\n").split("\n\n")
    lines = [re.sub(r"(?<=processors )\(\d+\)|(?<=\d×\d)\d*  .*", "", line) for line in rows.splitlines()]
    kinds = [line.split()[:2] for line in table.splitlines()]
    # The advice is about the bottleneck of most rows, which is another one on another host, as is the row with the highest rate.
    words = readme.words(re.sub(r"(?s)(?<=To try: ).*(?=Report)", "", sentences))
    return lines, kinds, words.difference(*kinds)


def test_it_says_what_it_does_before_it_does_it(tmp_path):
    with terminal.started(24, 80, "--out", tmp_path / "results") as one:
        command.wait_until(lambda: "[ 3/" in one.text(), "the third row has begun")
        one.key(b"\x03")
        assert one.end() == 1
    lines = one.lines()
    kept, _, _ = shape(SCREEN.read_text(encoding="utf-8"))
    assert shape("\n".join(line[-1] for line in lines))[0][:4] == kept[:4]
    # A line is rewritten only as long as it does not wrap, and the first two are there before anything is measured.
    assert len(lines[0]) == len(lines[1]) == 1 and all(len(text.removesuffix("^C")) < 78 for line in lines[2:4] for text in line[:-1])
    state = r"(opening|([\d.]+ \w*bit/s, )?[\d.]+ ?\w*/s, (warm-up|repeat \d+)(, \d+ resent)?(, rtt \S+ \S+)?(  \S*)?)"
    for text in lines[3][1:-1]:
        assert re.fullmatch(rf"\[ 2/\d+\] tcp rate send  128 KiB  {state}", text), text


@pytest.mark.long("demonstration")
def test_every_protocol_is_shown_in_under_a_minute(tmp_path):
    folder = tmp_path / "results"
    with terminal.started(40, 80, "--out", folder) as one:
        assert one.end() == 0
    screen = "\n".join(line[-1] for line in one.lines())
    measurements = contract.parse((folder / "result.json").read_text(encoding="utf-8"))["measurements"]
    assert {found["protocol"] for found in measurements} == PROTOCOLS
    assert any(found["link"].startswith("sim+") for found in measurements)
    assert any(stage["name"].startswith("hub") for found in measurements for stage in found["stages"])
    assert all(found["operations"] > 0 and found["limit"] for found in measurements)
    assert len(contract.parse_tsv((folder / "result.tsv").read_text(encoding="utf-8"))) == len(measurements)
    assert (folder / "report.html").stat().st_size > 100_000 and screen.endswith(f"file://{folder}/report.html\n")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SCREEN.write_text(screen.replace(str(folder), "/…"), encoding="utf-8")
    assert shape(screen) == shape(SCREEN.read_text(encoding="utf-8"))
    advice = readme.one_line(re.search(r"(?s)^To try: .*(?=Report)", screen, re.MULTILINE)[0])
    diagnosis = json.loads((folder / "result.json").read_text(encoding="utf-8"))["diagnosis"]
    assert diagnosis["experiments"] == [] and diagnosis["advice"] == advice.strip()
    ((_, _, shown),) = [each for each in readme.shown() if each[1] == readme.DEMONSTRATION]
    assert readme.words(re.sub(r"(?s)To try: .*(?=Report)", "", shown)) <= readme.words(screen)
