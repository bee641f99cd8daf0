"""Bridges with ports of their own, for tests that run beside each other."""

import contextlib
import re
import threading

import command

ROUTER = 8
HOST, SECOND, GRESB, MEMORY, ECHO = 1, 2, 3, 4, 5


class Bridge:
    """A bridge as `--preset lab` has it: the ports of its gates."""

    def __init__(self, process, ssdtp2, second, gresb):
        self.process = process
        self.pid = process.pid
        self.ports = (ssdtp2, second, gresb)
        self.host, self.second = (f"ssdtp2://127.0.0.1:{port}" for port in (ssdtp2, second))
        self.gresb = f"gresb://127.0.0.1:{gresb}"


@contextlib.contextmanager
def bridge(folder, *options, change=lambda text: text, preset="lab", pages=None):
    """Runs the preset's network at free ports, with its pages at another."""
    shown = command.hodo("spacewire", "bridge", "--preset", preset, "--show").stdout
    ssdtp2, second, gresb = command.free_port(), command.free_port(), command.free_port(together=2)
    # The shortest first: one of the others may begin with it.
    text = shown.replace("port = 3000", f"port = {gresb}")
    text = change(text.replace("port = 10030", f"port = {ssdtp2}").replace("port = 10031", f"port = {second}"))
    file = folder / "network.toml"
    file.write_text(text)
    at = ["--metrics", f"127.0.0.1:{pages}"] if pages else ["--no-metrics"]
    with command.started("spacewire", "bridge", file, *at, "--until-stdin-closes", *options, stdin=command.subprocess.PIPE) as process:
        said = []
        for line in process.stdout:
            said.append(line)
            if len([one for one in said if one.startswith("listening")]) == text.count("port = "):
                break
        else:
            raise AssertionError(f"the bridge did not start:\n{''.join(said)}")
        # Its log must not fill the pipe.
        log = []
        reader = threading.Thread(target=lambda: log.extend(process.stdout), daemon=True)
        reader.start()
        found = Bridge(process, ssdtp2, second, gresb)
        found.log = log
        yield found
        process.stdin.close()


def hex_bytes(text):
    """The bytes that `read` shows."""
    return bytes.fromhex("".join(re.sub(r"^0x[0-9A-F]+  |  \|.*$", "", line) for line in text.splitlines()))
