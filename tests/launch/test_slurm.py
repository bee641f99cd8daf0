"""Farms as jobs of a real Slurm of five nodes."""

import re

import command
import farms
import pytest
import slurm

pytestmark = pytest.mark.long("launch")

FARM = """
[run]
events = 20_000
program = "{program}"
[slurm]
nodes = 5
step_options = []
[controller]
no_metrics = true
hosts = "sfc"
[[source]]
count = 2
{more}
[[node]]
count = 8
"""


def farm(program=command.HODO, more=""):
    return FARM.format(program=program, more=more)


def at(cluster):
    """What to put ahead of a command, for it to find the cluster and no other job."""
    return ["env", "-u", "SLURM_JOB_ID", f"SLURM_CONF={cluster.environment['SLURM_CONF']}"]



def test_the_cluster_is_one_of_five_nodes(cluster):
    out = cluster.run("srun", "-N5", "-n5", "sh", "-c", "echo $SLURMD_NODENAME")
    assert sorted(out.split()) == sorted(slurm.NODES)


def test_a_farm_gets_an_allocation_and_gives_it_back(cluster, tmp_path):
    file = farms.write(tmp_path, farm())
    farms.is_well(farms.run(file, "--launch", "slurm", prefix=at(cluster)), 20_000)
    command.wait_until(lambda: not cluster.jobs(), "the job has ended")


def test_a_farm_takes_the_allocation_that_it_is_in(cluster, tmp_path):
    file = farms.write(tmp_path, farm())
    salloc = ["salloc", "--quiet", "--nodes=5", "--exclusive"]
    done = farms.run(file, "--launch", "slurm", prefix=[*at(cluster), *salloc])
    farms.is_well(done, 20_000)
    assert "Granted" not in done.stderr, "it asked for no other"
    two = farms.run(file, "--launch", "slurm", prefix=[*at(cluster), *salloc[:2], "--nodelist=node[1-2]"])
    assert two.returncode == 2
    assert "has no node sfc; it has node1,node2" in two.stderr


def test_every_process_is_at_its_node(cluster, tmp_path):
    program = farms.own_program(tmp_path)
    file = farms.write(tmp_path, farm(program, "rate = 100"))
    with farms.running(file, "--launch", "slurm", prefix=at(cluster)) as running:
        command.wait_until(lambda: len(farms.processes(program)) == 11, "all are there", within=60)
        placed = {process: place(process) for process in farms.processes(program)}
        assert placed_of(placed, "controller") == ["sfc"]
        assert placed_of(placed, "node") == sorted(2 * ["node1", "node2", "node3", "node4"])
        running.process.kill()
        command.wait_until(lambda: not any(map(command.is_there, placed)), "all have ended with the launcher")
    command.wait_until(lambda: not cluster.jobs(), "the job has ended")


def place(process):
    """Role and node of a process."""
    with open(f"/proc/{process}/cmdline", "rb") as words, open(f"/proc/{process}/environ", "rb") as environment:
        role = words.read().split(b"\0")[2].decode()
        node = re.search(rb"SLURMD_NODENAME=(\w+)", environment.read())[1].decode()
    return role, node


def placed_of(placed, role):
    return sorted(node for of, node in placed.values() if of == role)


def test_a_node_that_dies_is_started_again(cluster, tmp_path):
    program = farms.own_program(tmp_path)
    file = farms.write(tmp_path, farm(program, "rate = 4_000") + "restart = true\n")
    with farms.running(file, "--launch", "slurm", prefix=at(cluster)) as running:
        command.wait_until(lambda: len(farms.processes(program)) == 11, "all are there", within=60)
        victim = next(process for process in farms.processes(program) if place(process)[0] == "node")
        command.wait_until(lambda: command.is_connected(victim), "it is connected")
        farms.kill(victim)
        done = running.end()
    farms.is_well(done, 20_000)
    assert "1 process restarted" in done.stdout


def test_a_batch_job_runs_a_farm(cluster, tmp_path):
    file = farms.write(tmp_path, farm())
    script = farms.run(file, "--sbatch", "--dry-run").stdout
    assert "#SBATCH --nodes=5" in script and "farm run" in script
    out = tmp_path / "out"
    submit = ["env", "-C", tmp_path, *at(cluster)[1:], f"SBATCH_OUTPUT={out}"]
    done = farms.run(file, "--sbatch", prefix=submit)
    assert done.returncode == 0, done.stderr
    assert "Submitted batch job" in done.stdout
    command.wait_until(lambda: not cluster.jobs(), "the job has ended", within=120)
    text = out.read_text(encoding="utf-8")
    assert re.search(r"^farm: done after .* 20000 events in ", text, re.MULTILINE), text
