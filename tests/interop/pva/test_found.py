"""Servers are found by p4p: over UDP to one host and to all, several on one host, and again after they were started anew."""

import queue
import time

import command
import pva


def write(path, text):
    path.write_text(text)
    return path


def counting(folder, name):
    """A file with one PV that counts, and ten that stay."""
    text = f'[[pv]]\nname = "{name}"\nsource = "ramp"\nevery = "20ms"\nto = 1e9\n[[pv]]\nname = "{name}:{{0..9}}"\nvalue = 3\n'
    return write(folder / f"{name}.toml", text)


def test_a_server_is_found_by_unicast_and_by_broadcast(tmp_path):
    port = pva.udp_port()
    with pva.serving(counting(tmp_path, "ONE"), port=port) as server:
        for addresses in "127.0.0.1", "127.255.255.255":
            with pva.client(port=port, addresses=addresses) as context:
                assert context.get("ONE:5") == 3
        stats = pva.page(server, "/stats")
        assert "0 searches" not in stats and "searches over UDP" in stats, stats


def test_several_servers_on_one_host_are_all_found(tmp_path):
    port = pva.udp_port()
    names = ["FIRST", "SECOND", "THIRD"]
    with (
        pva.serving(counting(tmp_path, "FIRST"), port=port),
        pva.serving(counting(tmp_path, "SECOND"), port=port),
        pva.serving(counting(tmp_path, "THIRD"), port=port),
    ):
        for addresses in "127.0.0.1", "127.255.255.255":
            with pva.client(port=port, addresses=addresses) as context:
                assert context.get([f"{name}:{number}" for name in names for number in range(10)], timeout=20) == [3] * 30


def test_clients_come_back_when_a_server_is_started_anew(tmp_path):
    port = pva.udp_port()
    file = counting(tmp_path, "AGAIN")
    seen, took = queue.Queue(), []
    with pva.client(port=port, addresses="127.255.255.255") as context:
        subscription = context.monitor("AGAIN", seen.put, notify_disconnect=True)
        at = "127.0.0.1:0"
        for _ in range(4):
            with pva.serving(file, port=port, listen=at) as server:
                began = time.monotonic()
                while isinstance(seen.get(timeout=20), Exception):
                    pass
                took.append(time.monotonic() - began)
                at = server.at
                server.kill()
                server.wait()
            while not isinstance(seen.get(timeout=20), Exception):
                pass
        subscription.close()
    assert sorted(took)[1] < 1, took


def test_a_port_that_is_in_use_is_left_to_its_owner(tmp_path):
    with pva.serving(counting(tmp_path, "OWNER")) as owner:
        told = (f"cannot listen on {owner.at}", "choose another address or port")
        command.refused("pva", "serve", counting(tmp_path, "OTHER"), "--tcp-only", "--listen", owner.at, status=1, says=told)
        with pva.client(owner.at) as context:
            assert context.get("OWNER:1", timeout=20) == 3
