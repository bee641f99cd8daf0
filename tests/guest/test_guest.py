"""The judge itself: a guest with the kernel's rxe, and stock tools that talk to each other in it."""

import pytest

from guest import UNTIL_IT_LISTENS


def test_the_device_has_its_gids(guest):
    status, said = guest.run("ibv_devinfo -v")
    assert status == 0 and "transport:" in said and "PORT_ACTIVE" in said, said
    assert "::ffff:10.9.0.1" in said, said


@pytest.mark.parametrize("size", [64, 4096])
def test_stock_tools_talk_to_each_other(guest, size):
    server = guest.start(f"timeout 60 ibv_rc_pingpong -g 1 -s {size} -n 50")
    status, said = guest.run(f"{UNTIL_IT_LISTENS}; ibv_rc_pingpong -g 1 -s {size} -n 50 127.0.0.1")
    assert status == 0 and "50 iters" in said, said
    assert server.wait()[0] == 0
