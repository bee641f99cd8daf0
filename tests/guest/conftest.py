import pytest

from guest import guest as boot

# One case of each family, each way. The others are the stage `guest` of `./test long`.
GATE = {
    "test_the_device_has_its_gids",
    "test_stock_tools_talk_to_each_other[64]",
    "test_only_the_right_crc_is_taken[rxe]",
    "test_only_the_right_crc_is_taken[ours]",
    "test_one_percent_is_lost_and_every_byte_is_right[64-1024-poll]",
    "test_our_adapter_asks_the_kernels[send-lat]",
    "test_the_kernels_adapter_asks_ours[send-lat]",
    "test_our_client_to_the_stock_server[4096-1024-poll]",
    "test_the_stock_client_to_our_server[4096-1024-poll]",
    "test_ipv6_both_ways[64-1024]",
    "test_nothing_is_malformed_or_refused_and_every_crc_is_right[1024]",
    "test_every_operation_and_its_failures",
    "test_stock_ping_pong_is_the_far_end[how0]",
    "test_our_own_adapter_is_the_far_end[send-lat]",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name not in GATE:
            item.add_marker(pytest.mark.long("guest"))


@pytest.fixture(scope="session")
def guest():
    """The guest, booted once for all tests."""
    with boot() as up:
        yield up
