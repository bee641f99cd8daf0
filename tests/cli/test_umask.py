"""Under a umask that lets everybody write, nothing that any command makes may be written to by everybody."""

import os
import pathlib
import signal
import stat

import command
import farms
import pva
import pytest

OPEN = ["sh", "-c", 'umask 0; exec "$@"', "sh"]
TIMES = ["--duration", "100ms", "--warmup", "20ms", "--repeat", "1", "--sizes", "64", "--test", "latency"]


def made(folder):
    """What is there, with its mode: of sockets and pipes, too."""
    paths = [path for path in pathlib.Path(folder).rglob("*") if not path.is_symlink()]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in paths}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    modes = made(tmp_path)
    open_to_all = {path: oct(mode) for path, mode in modes.items() if mode & stat.S_IWOTH}
    assert not open_to_all, open_to_all


def run(*arguments, status=0):
    done = command.hodo(*arguments, prefix=OPEN)
    assert done.returncode == status, f"{done.args}: {done.stdout}{done.stderr}"
    return done


COMMANDS = {
    "bench": ["bench", "tcp", *TIMES, "--quiet", "--json", "a.json", "--tsv", "a.tsv", "--html", "a.html", "--out", "all", "--stream", "a.jsonl"],
    "simulated": ["bench", "sim+tcp://?delay=5us", *TIMES, "--quiet", "--json", "a.json"],
    "watch": ["watch", "sim+tcp://?delay=5us", *TIMES, "--every", "100ms", "--count", "1", "--history", "a.jsonl", "--no-metrics", "--pid-file", "a.pid", "--log", "a.log", "--log-level", "debug"],
    "limits": ["limits", "--line-rate", "1G", "--json", "a.json"],
    "doctor": ["doctor", "--json", "a.json"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_commands(words, folder):
    run(*words)
    assert {path for path in made(folder) if not path.startswith("run")}


def test_a_hub_and_a_device(folder):
    with command.started("serve", "ipbusudp-2.0://127.0.0.1:0", "--trace", "b.pcapng", "--log", "b.log", "--log-level", "debug", prefix=OPEN) as board:
        at = command.announced(board, r"ipbusudp-2.0://[\d.:]+")[0]
        hub = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--pid-file", "a.pid", "--log", "a.log", "--trace", "a.pcapng"]
        with command.started("hub", *hub, prefix=OPEN) as running:
            command.announced(running, r"named hub: \S+")
            run("ipbus", "write", at, "0x1000", "7")
            modes = made(folder)
            assert {"a.pid", "a.log", "a.pcapng", "b.pcapng", "run/hodo/hub.sock", "run/hodo/hub.lock"} <= set(modes)
            assert not any(mode & stat.S_IWOTH for mode in modes.values()), modes


def test_a_socket_of_a_server(folder):
    with command.started("serve", f"unix://{folder}/raw.sock", prefix=OPEN) as server:
        command.announced(server, "listening on")
        assert not made(folder)["raw.sock"] & stat.S_IWOTH


def test_a_farm_and_its_store(folder):
    store = ["--store", "store", "--events", "200", "--size", "100", "--upload", "copy", "--pid-file", "a.pid", "--log", "a.log"]
    with farms.controller(*store, prefix=OPEN) as controller, farms.node(controller, "--accept", "0.5"):
        controller.wait_for(lambda farm: farm["events"]["in_hand"] == 0 and farm["events"]["taken_in"] == 200, "all is decided")
        run("farm", "report", controller.pages, "--html", "a.html", "--json", "a.json")
        run("farm", "stop", controller.pages)
        controller.process.wait(20)
    run("farm", "export", "store", "a.parquet")
    run("farm", "repair", "store", "new", "--again", "1")


def test_pvs_and_their_recording(folder):
    file = folder / "pvs.toml"
    file.write_text('[[pv]]\nname = "X"\ntype = "double"\nput = "accept"\n[[pv]]\nname = "R"\nsource = "ramp"\n', encoding="utf-8")
    with pva.serving(file, "--pid-file", "a.pid", "--log", "a.log", prefix=OPEN) as server:
        run("pva", "put", "-S", server.at, "X", "2")
        run("pva", "record", "-S", server.at, "X", "R", "--output", "a.parquet", "--for", "0.5")
        server.send_signal(signal.SIGHUP)


def test_a_recording_of_a_bridge(folder):
    with command.started("spacewire", "bridge", "--record", "a.pcapng", "--pid-file", "a.pid", "--metrics", "127.0.0.1:0", prefix=OPEN) as bridge:
        command.announced(bridge, r"named bridge: \S+")
        assert (folder / "a.pid").exists() and os.path.exists("a.pcapng")


def test_another_umask_stays_as_it_is(tmp_path):
    for umask, mode in (("002", 0o664), ("022", 0o644), ("077", 0o600), ("000", 0o644)):
        file = tmp_path / umask
        done = command.hodo("limits", "--line-rate", "1G", "--json", file, prefix=["sh", "-c", f'umask {umask}; exec "$@"', "sh"])
        assert done.returncode == 0 and stat.S_IMODE(file.stat().st_mode) == mode, f"{umask}: {oct(file.stat().st_mode)}"
