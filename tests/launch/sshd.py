"""An ssh server on loopback: Debian's own, with its own configuration, port and keys in a folder, ended with the test."""

import contextlib
import getpass
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import command
from slurm import end

# A port that was free may be taken before the server has it.
ATTEMPTS = 3

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
PrintMotd no
"""

CLIENT = """\
Host here there
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
    StrictHostKeyChecking yes
    LogLevel ERROR
"""


@contextlib.contextmanager
def server(folder):
    """Starts one; gives the file of options for `ssh`, which knows this machine as `here` and as `there`."""
    program = shutil.which("sshd")
    assert program, "sshd is not there: ./test tools installs it"
    folder = pathlib.Path(folder)
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    # What Debian's unit makes, where it runs as root.
    if os.geteuid() == 0:
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for attempt in range(ATTEMPTS):
            port = command.free_port()
            (folder / "server").write_text(SERVER.format(port=port, folder=folder), encoding="ascii")
            text = CLIENT.format(port=port, folder=folder, user=getpass.getuser())
            (folder / "client").write_text(text, encoding="ascii")
            kind, key, *_ = (folder / "host.pub").read_text(encoding="ascii").split()
            (folder / "known").write_text(f"[127.0.0.1]:{port} {kind} {key}\n", encoding="ascii")
            log = stack.enter_context(open(folder / "log", "wb"))
            process = subprocess.Popen([program, "-D", "-e", "-f", folder / "server"], stdin=subprocess.DEVNULL, stderr=log)
            stack.callback(end, process)
            command.wait_until(lambda: answers(folder) or process.poll() is not None, "sshd answers")
            if process.poll() is None:
                break
            assert attempt + 1 < ATTEMPTS, (folder / "log").read_text(errors="replace")
        yield folder / "client"


def answers(folder):
    words = ["ssh", "-F", str(folder / "client"), "-o", "BatchMode=yes", "here", "true"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    return done.returncode == 0
