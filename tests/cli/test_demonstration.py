"""`hodo` alone, from the fresh clone's first command on: every protocol, in under two minutes, with a folder of results."""

import command
import contract
import pytest

PROTOCOLS = {"tcp", "udp", "unix", "ipbusudp-2.0", "chtcp-2.0", "farm", "pva", "roce", "ssdtp2", "spw"}


@pytest.mark.release
def test_every_protocol_is_shown_in_under_two_minutes(tmp_path):
    folder = tmp_path / "results"
    done = command.hodo("--out", folder, "--progress", "plain", within=120)
    assert done.returncode == 0, done.stderr
    measurements = contract.parse((folder / "result.json").read_text(encoding="utf-8"))["measurements"]
    assert {found["protocol"] for found in measurements} == PROTOCOLS
    assert any(found["link"].startswith("sim+") for found in measurements)
    assert any(stage["name"].startswith("hub") for found in measurements for stage in found["stages"])
    assert all(found["operations"] > 0 and found["limit"] for found in measurements)
    assert len(contract.parse_tsv((folder / "result.tsv").read_text(encoding="utf-8"))) == len(measurements)
    assert str(folder) in done.stdout and (folder / "report.html").stat().st_size > 100_000
