"""The report of a farm's run in a headless Chromium: the page of every measurement, and its own tables."""

import json
import subprocess

import command

NODE = {"bytes": 0, "answered": 7, "accepted": 2, "failed": 1, "in_flight": 1, "waited_us_mean": 1.5, "decided_us_mean": 9.0}
EVENTS = ["taken_in", "accepted", "rejected", "quarantined", "incomplete", "in_hand", "duplicates", "waiting"]
EVENTS += ["found_no_token", "given", "redispatched", "uncommitted"]


def told(nodes):
    """What a controller tells on its page /farm after a run of 20 s."""
    return {
        "run": 7,
        "state": "running",
        "policy": "token-fifo",
        "uptime_s": 30.0,
        "dead_time_s": 3.0,
        "events": {name: 10_000 + index for index, name in enumerate(EVENTS)},
        "bytes": {"taken_in": 320_000_000, "given": 0, "answered": 0},
        "tokens": {"received": 0, "waiting": 40, "unasked": 0},
        "connections": {"nodes": nodes, "sources": 1, "nodes_lost": 1, "refused": 0, "misbehaved": 0},
        "store": {"events": 0, "bytes": 0, "commits": 0, "failing": None},
        "nodes": [{**NODE, "number": number, "given": 1000 + number, "answered": 1000 + number} for number in range(nodes)],
        "nodes_gone": [{**NODE, "number": 99, "given": 5}],
        "timeline": [[second, 500 * second, 16_000_000 * second] for second in range(21)],
    }


def test_the_tables_of_a_run_are_drawn_beside_its_measurement(browser, tmp_path):
    kept, page = tmp_path / "run7.json", tmp_path / "run7.html"
    kept.write_text(json.dumps(told(nodes=20)), encoding="utf-8")
    subprocess.run([command.HODO, "farm", "report", kept, "--html", page], check=True, timeout=60)
    browser.open(page)
    assert browser.complaints() == [] and browser.requests() == []
    heads = browser.run("[...document.querySelectorAll('#tables h2')].map((e) => e.textContent)")
    assert heads == ["Events of run 7", "Nodes"]
    rows = browser.run(
        "[...document.querySelectorAll('#tables section:last-child tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert len(rows) == 21 and rows[0][:2] == ["0", "1000"] and rows[-1][0] == "99 (gone)"
    text = browser.run("document.body.innerText")
    assert "min/max 0.98" in text and "dead time 10.00 %" in text
    assert "NaN" not in text and "undefined" not in text
    bars = browser.run("[...document.querySelectorAll('svg.shares rect')].map((bar) => bar.height.baseVal.value)")
    assert len(bars) == 20 and bars == sorted(bars) and abs(bars[0] / bars[-1] - 1000 / 1019) < 1e-6
    assert "least over most 0.981" in browser.run("document.querySelector('svg.shares').textContent")
    full = browser.run("document.getElementById('full').textContent")
    assert "node 191,019 events, 5.05 %" in full and "Jain's index1.0000" in full
    value = browser.run("document.querySelector('.test .value').textContent")
    assert "Mbit/s" in value and browser.run("document.querySelectorAll('figure svg').length") > 0
