"""`hodo` alone, from the fresh clone's first command on: every protocol, in under a minute, with a folder of results."""

import json
import re

import command
import contract
import pytest
import readme

PROTOCOLS = {"tcp", "udp", "unix", "ipbusudp-2.0", "chtcp-2.0", "farm", "pva", "roce", "ssdtp2", "spw"}


@pytest.mark.long("demonstration")
def test_every_protocol_is_shown_in_under_a_minute(tmp_path):
    folder = tmp_path / "results"
    done = command.hodo("--out", folder, "--progress", "plain")
    assert done.returncode == 0, done.stderr
    measurements = contract.parse((folder / "result.json").read_text(encoding="utf-8"))["measurements"]
    assert {found["protocol"] for found in measurements} == PROTOCOLS
    assert any(found["link"].startswith("sim+") for found in measurements)
    assert any(stage["name"].startswith("hub") for found in measurements for stage in found["stages"])
    assert all(found["operations"] > 0 and found["limit"] for found in measurements)
    assert len(contract.parse_tsv((folder / "result.tsv").read_text(encoding="utf-8"))) == len(measurements)
    assert str(folder) in done.stdout and (folder / "report.html").stat().st_size > 100_000
    assert len(measurements) < 60
    # One table, three sentences and a link: the last lines.
    table, (fastest, binds, advice, link) = done.stdout.splitlines()[:-4], done.stdout.splitlines()[-4:]
    assert sum(line.count("verdict") for line in table) == 1
    assert fastest.startswith("Highest rate: ") and "; longest latency: " in fastest and "most frequent bottleneck" in binds and advice.startswith("To try: ")
    assert link.endswith(f"file://{folder}/report.html"), link
    ((_, _, shown),) = [each for each in readme.shown() if each[1] == readme.DEMONSTRATION]
    # The advice is about the bottleneck of most rows, which is another one on another host.
    assert readme.words(re.sub(r"(?s)To try: .*(?=Report)", "", shown)) <= readme.words(done.stdout)
    diagnosis = json.loads((folder / "result.json").read_text(encoding="utf-8"))["diagnosis"]
    assert diagnosis["experiments"] == [] and diagnosis["advice"] == advice
