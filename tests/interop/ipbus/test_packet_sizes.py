"""uHAL with a `max_payload_size` over what a board has buffers for: uHAL waits for its time-out and says no more, the device and the hub tell why."""

import command
import pytest
import uhal
from boards import board, through, words


def log_says(log, *says):
    command.wait_until(lambda: log.exists() and all(word in log.read_text(encoding="utf-8") for word in says), f"{says} in the log")


def test_a_device_in_software_tells_why_uhal_gets_no_answer(tmp_path):
    log = tmp_path / "log"
    with command.serving("ipbusudp-2.0://127.0.0.1:0", "--log", log) as device:
        hardware = board(f"{device.uri}?max_payload_size=8000")
        hardware.setTimeoutPeriod(200)
        hardware.getClient().writeBlock(0, words(1900))
        with pytest.raises(uhal.exception):
            hardware.dispatch()
        log_says(log, "longer than a buffer", "max_payload_size is to be 2040 or less")


def test_a_hub_tells_why_uhal_gets_an_error(tmp_path):
    log = tmp_path / "log"
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device, command.hub("--log", log) as hub:
        hardware = board(f"{through(hub.at, device.uri)}&max_payload_size=8000")
        hardware.getClient().writeBlock(0, words(1900))
        with pytest.raises(uhal.exception):
            hardware.dispatch()
        host, port = command.place(device.uri)
        log_says(log, f"{host}:{port} has buffers of 2040 bytes", "max_payload_size is to be 2040 or less")
