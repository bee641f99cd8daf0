"""A client that calls and puts more than there is time for takes no other client's turn."""

import command
import pva

CALL = """
[[call]]
name = "CALL"
command = ["sh", "-c", "sleep 0.1; echo 7"]
timeout = "100s"
"""


def test_a_flood_of_one_client_neither_refuses_nor_delays_another(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(CALL, encoding="utf-8")
    with pva.serving(file) as process:
        # More than may wait; what is too much is refused to this client.
        with pva.calls(process.at, "CALL", 12_000):
            command.wait_until(lambda: "\npva_server_waiting 9" in pva.page(process, "/metrics"), "the queue is full")
            done = command.hodo("pva", "call", "-w", "30", f"pva://{process.at}/CALL", within=40)
            assert done.returncode == 0 and "7" in done.stdout, done
        command.wait_until(lambda: "\npva_server_waiting 0" in pva.page(process, "/metrics"), "what it has asked for is gone with it")
