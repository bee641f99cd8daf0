"""Farms over ssh, to a real server on loopback."""

import command
import farms

FARM = """
[run]
events = 10_000
hosts = "here,there"
program = "{program}"
[ssh]
options = ["-F", "{options}"]
[controller]
no_metrics = true
[[source]]
count = 2
{more}
[[node]]
count = 12
"""


def farm(ssh, program=command.HODO, more=""):
    return FARM.format(program=program, options=ssh, more=more)


def test_a_farm_runs_over_ssh(ssh, tmp_path):
    farms.is_well(farms.run(farms.write(tmp_path, farm(ssh)), "--launch", "ssh"), 10_000)


def test_far_processes_end_with_the_connection(ssh, tmp_path):
    program = farms.own_program(tmp_path)
    text = farm(ssh, program=program, more="rate = 100")
    with farms.running(farms.write(tmp_path, text), "--launch", "ssh") as running:
        command.wait_until(lambda: len(farms.processes(program)) == 15, "all are there", within=60)
        far = farms.processes(program)
        running.process.kill()
        command.wait_until(lambda: not any(map(command.is_there, far)), "all have ended")


def test_a_host_that_is_not_there_is_named(ssh, tmp_path):
    text = farm(ssh).replace("here,there", "here,nowhere")
    done = farms.run(farms.write(tmp_path, text), "--launch", "ssh")
    assert done.returncode == 1
    assert "on nowhere ended (exit status: 255)" in done.stderr
