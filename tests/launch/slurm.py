"""A Slurm of five nodes on this machine: Debian's daemons, in a folder of their own, on free ports, ended with the test."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import command

CONTROLLER = "sfc"
NODES = [CONTROLLER, "node1", "node2", "node3", "node4"]
CPUS = 64
# A port that was free may be taken before a daemon has it; then the daemons are started on others.
ATTEMPTS = 3

CONFIGURATION = """\
ClusterName=hodo
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
{nodes}
PartitionName=farm Nodes={names} Default=YES OverSubscribe=YES State=UP
"""


class Slurm:
    """The cluster: its environment for commands, and its folder."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = environment

    def run(self, *arguments, within=60):
        """One of Slurm's commands, which has to succeed; answers what it prints."""
        done = subprocess.run(
            list(map(str, arguments)), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=within, check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stderr}\n{self.logs()}"
        return done.stdout

    def logs(self):
        files = sorted((self.folder / "log").glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-2000:]}" for file in files)

    def jobs(self):
        """What runs or waits, a line for each."""
        return self.run("squeue", "--noheader").splitlines()


@contextlib.contextmanager
def cluster(folder):
    """Starts one, and ends it."""
    for program in ("munged", "slurmctld", "slurmd", "srun", "sbatch"):
        assert shutil.which(program), f"{program} is not there: ./test tools installs it"
    folder = pathlib.Path(folder)
    for name in ("munge", "state", "spool", "log"):
        (folder / name).mkdir(mode=0o700, parents=True)
    # munged looks at every folder above its socket; it is told to trust them, because a temporary folder is anybody's.
    (folder / "munge/key").write_bytes(os.urandom(1024))
    (folder / "munge/key").chmod(0o400)
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    for name in [name for name in environment if name.startswith("SLURM_") and name != "SLURM_CONF"]:
        del environment[name]
    made = Slurm(folder, environment)
    with contextlib.ExitStack() as stack:
        munge = [f"--{what}-file={folder}/munge/{what}" for what in ("key", "pid", "log", "seed")]
        daemon(stack, folder, environment, "munged", "--foreground", "--force", f"--socket={folder}/munge/sock", *munge)
        command.wait_until((folder / "munge/sock").exists, "munged has its socket")
        for attempt in range(ATTEMPTS):
            with contextlib.ExitStack() as daemons:
                if start(daemons, made):
                    stack.push(daemons.pop_all())
                    break
                assert attempt + 1 < ATTEMPTS, f"Slurm did not start:\n{made.logs()}"
        yield made


def start(stack, made):
    """Starts the controller and a daemon for each node; answers whether all of them came up."""
    folder, environment = made.folder, made.environment
    host = socket.gethostname()
    controller_port, *ports = (command.free_port() for _ in range(1 + len(NODES)))
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} State=UNKNOWN"
        for name, port in zip(NODES, ports)
    )
    text = CONFIGURATION.format(
        host=host, controller_port=controller_port, folder=folder, nodes=nodes, names=",".join(NODES)
    )
    (folder / "slurm.conf").write_text(text, encoding="ascii")
    processes = [daemon(stack, folder, environment, "slurmctld", "-D", "-i")]
    for name in NODES:
        processes.append(daemon(stack, folder, environment, "slurmd", "-D", "-N", name))

    def ended_or_idle():
        return any(process.poll() is not None for process in processes) or are_idle(environment)

    command.wait_until(ended_or_idle, "all nodes are idle", within=60)
    return all(process.poll() is None for process in processes)


def are_idle(environment):
    done = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--format=%N %t"], env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )
    states = dict(line.split() for line in done.stdout.splitlines())
    return done.returncode == 0 and all(states.get(name) == "idle" for name in NODES)


def daemon(stack, folder, environment, program, *arguments):
    """A process that is ended with the stack."""
    log = stack.enter_context(open(folder / "log" / f"{program}.out", "ab"))
    process = subprocess.Popen(
        [shutil.which(program), *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    stack.callback(end, process)
    return process


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
