"""What somebody else has chosen, as the name of a user, forges nothing on a page, in a log or on a terminal."""

import json
import os
import re
import subprocess

import command
import pva
import pytest

PVS = """
[[pv]]
name = "X"
type = "double"
put = "log"
[[pv]]
name = "S"
type = "string"
put = "log"
"""
KINDS = {
    "lines": "x\n1.000\tX\troot@ioc (10.0.0.1)\tvalue = 7\nhodo pva serve: ready",
    "carriage return": "x\rhodo pva serve: X: root@ioc (10.0.0.1) has put 7",
    "colours": "\x1b[31mred\x1b[0m",
    "escapes": "\x1b]0;title\x07\x1b[2J\x1b[H",
    "C1": "\u009b31m\u0085",
    "direction": "\u202etoor\u2066\u200b\u2028",
    "words": 'root@ioc (10.0.0.1) has put 7"; x',
    "tabs": "x\ty\tz",
    "long": "u" * 20_000,
}
ACTIVE = {chr(code) for code in [*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), 0x200B, *range(0x2066, 0x206A)]} - {"\n", "\t"}


def test_a_long_name_of_a_user_is_refused(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS, encoding="utf-8")
    with pva.serving(file) as server:
        put = [command.HODO, "pva", "put", "-S", server.at, "X", "1.5"]
        done = subprocess.run(put, env={**os.environ, "USER": KINDS["long"]}, timeout=60, capture_output=True, text=True)
    assert done.returncode == 1 and "at most 255 bytes" in done.stderr, done.stderr
    assert len("".join(server.log)) < 2000, server.log


@pytest.mark.parametrize("format", ["plain", "text", "json"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "long"])
def test_a_users_name_forges_nothing(kind, format, tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS, encoding="utf-8")
    with pva.serving(file, "--log-format", format, "--verbose") as server:
        put = [command.HODO, "pva", "put", "-S", server.at, "X", "1.5"]
        for user in (KINDS[kind], "alice"):
            subprocess.run(put, env={**os.environ, "USER": user}, check=True, timeout=60, stdout=subprocess.DEVNULL)
        pages = {path: pva.page(server, path) for path in ("/puts", "/stats", "/metrics", "/health", "/")}
        logged = lambda: [line for line in server.log if re.search(r":\d+\) has put value", line)]  # noqa: E731
        command.wait_until(lambda: len(logged()) >= 2, "both puts are in the log")
    for name, text in {**pages, "log": "".join(server.log)}.items():
        assert not ACTIVE & set(text), f"{name}: {text!a}"
    head, first, second = pages["/puts"].splitlines()
    assert head == "time\tpv\tclient\tput"
    for line in (first, second):
        assert line.count("\t") == 3 and line.split("\t")[1] == "X" and len(line) < 1000, line
    assert first.split("\t")[2].startswith("alice@") and not second.split("\t")[2].startswith(("root@", "alice@"))
    assert re.search(r" \(127\.0\.0\.1:\d+\)$", second.split("\t")[2]), second
    assert len(logged()) == 2, server.log
    if format == "json":
        assert all(json.loads(line)["name"] == "hodo pva serve" for line in server.log if line.startswith("{"))
    if kind == "words":
        assert second.split("\t")[2].startswith('"root@ioc (10.0.0.1) has put 7\\"; x"@')


def test_a_value_that_is_put_forges_nothing(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS, encoding="utf-8")
    with pva.serving(file) as server:
        value = "".join(text for name, text in KINDS.items() if name != "long")
        subprocess.run([command.HODO, "pva", "put", "-S", server.at, "S", value], check=True, timeout=60, stdout=subprocess.DEVNULL)
        shown = pva.page(server, "/puts")
        read = command.hodo("pva", "get", "-S", server.at, "S")
    assert len(shown.splitlines()) == 2 and not ACTIVE & set(shown), ascii(shown)
    assert read.returncode == 0 and not ACTIVE & set(read.stdout), ascii(read.stdout)
