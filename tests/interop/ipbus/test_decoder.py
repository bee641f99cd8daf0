"""The address decoder that `hodo ipbus vhdl` writes, in a simulator of hardware (GHDL), against what uHAL says of the same table."""

import command
import pytest
import uhal
from boards import TABLES
from ghdl import GHDL, run

BENCH = """\
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use std.textio.all;
use work.ipbus_decode_{name}.all;

entity bench is
end entity bench;

architecture prints of bench is
begin
  process
    variable row: line;
    variable addr: std_logic_vector(31 downto 0);
    variable sel: ipbus_sel_t;
  begin
    write(output, "N_SLAVES " & integer'image(N_SLAVES) & LF);
{constants}
    while not endfile(input) loop
      readline(input, row);
      hread(row, addr);
      sel := ipbus_sel_{name}(addr);
      assert sel'length = IPBUS_SEL_WIDTH severity failure;
      write(output, to_hstring(addr) & " " & integer'image(to_integer(unsigned(sel))) & LF);
    end loop;
    wait;
  end process;
end architecture prints;
"""


class Firmware:
    """What uHAL's nodes say of the slaves of a table."""

    def __init__(self, table):
        uhal.setLogLevelTo(uhal.LogLevel.FATAL)
        hardware = uhal.getDevice("board", "ipbusudp-2.0://localhost:50001", f"file://{table}")
        self.nodes = {path: hardware.getNode(path) for path in hardware.getNodes()}
        endpoints = [path for path, node in self.nodes.items() if node.getFirmwareInfo().get("type") == "endpoint"]
        self.slaves = [path for path in endpoints if not any(path.startswith(f"{other}.") for other in endpoints)]

    def numbers(self):
        """The number of the slave at each address that a node has."""
        found = {}
        for path, node in self.nodes.items():
            if node.getMode() == uhal.BlockReadWriteMode.HIERARCHICAL:
                continue
            [slave] = [number for number, slave in enumerate(self.slaves) if f"{path}.".startswith(f"{slave}.")]
            words = node.getSize() if node.getMode() == uhal.BlockReadWriteMode.INCREMENTAL else 1
            for address in range(node.getAddress(), node.getAddress() + words):
                assert found.setdefault(address, slave) == slave, "a table of this test has no overlaps"
        return found


def decoded(table, name, addresses, folder, *options):
    """What the generated function selects at each of these addresses; and the constants of the package."""
    firmware = Firmware(table)
    package, bench = folder / f"ipbus_decode_{name}.vhd", folder / "bench.vhd"
    done = command.hodo("ipbus", "vhdl", table, "--output", package, *options)
    assert done.returncode == 0, done.stderr
    names = [f"N_SLV_{slave.replace('.', '_').upper()}" for slave in firmware.slaves]
    constants = "\n".join(f'    write(output, "{each} " & integer\'image({each}) & LF);' for each in names)
    bench.write_text(BENCH.format(name=name, constants=constants), encoding="ascii")
    # Designs are compiled by the rules of 1993, too.
    run(GHDL, "-a", "--std=93", "--work=old", package, cwd=folder)
    run(GHDL, "-a", "--std=08", package, bench, cwd=folder)
    run(GHDL, "-e", "--std=08", "bench", cwd=folder)
    rows = [line.split() for line in run("./bench", cwd=folder, input="".join(f"{one:08X}\n" for one in addresses)).splitlines()]
    head, body = rows[: len(names) + 1], rows[len(names) + 1 :]
    assert head == [["N_SLAVES", str(len(names))], *([each, str(number)] for number, each in enumerate(names))]
    assert [int(address, 16) for address, _ in body] == list(addresses)
    return firmware, {int(address, 16): int(number) for address, number in body}


def test_each_address_selects_what_the_nodes_say(tmp_path):
    addresses = [*range(0x2000), 0x2000, 0x1_0000, 0x8000_0000, 0xFFFF_FFFF]
    firmware, found = decoded(TABLES / "endpoints.xml", "endpoints", addresses, tmp_path, "--width", 32)
    none = len(firmware.slaves)
    assert firmware.slaves[:5] == ["id", "fast.fifo", "slow.fifo", "csr", "ram"] and none == 9
    said = firmware.numbers()
    assert len(said) > 1000 and set(said.values()) == set(range(none))
    assert {address: found[address] for address in said} == said
    # All words of a slave are its own, with registers or without; what is in a hole is nobody's.
    slaves = {0: 0, 0x10: 1, 0x11: 2, 0x2: 3, 0x3: 3, **dict.fromkeys(range(0x400, 0x800), 4)}
    slaves |= {0x800 + address: 5 + address // 8 for address in range(16)}
    slaves |= {0x818 + address: 7 for address in range(8)} | {0x1000 + address: 8 for address in range(32)}
    assert found == {address: slaves.get(address, none) for address in addresses}


def test_a_module_is_decoded_wherever_it_lies(tmp_path):
    """The decoder of a file with registers that a board includes at any multiple of its size gets the board's addresses."""
    table = tmp_path / "module.xml"
    table.write_text(
        '<node fwinfo="endpoint;width=4"><node id="a" address="4" fwinfo="endpoint;width=2"/>'
        '<node id="b" fwinfo="endpoint;width=1"><node id="r" address="1"/></node></node>',
        encoding="ascii",
    )
    bases = [0, 0x10, 0x1_0000, 0xFFFF_FFF0]
    firmware, found = decoded(table, "module", [base + word for base in bases for word in range(16)], tmp_path)
    assert firmware.slaves == ["b", "a"]
    words = [0, 0, 2, 2, 1, 1, 1, 1, *[2] * 8]
    assert found == {base + word: number for base in bases for word, number in enumerate(words)}


def test_one_slave_and_none(tmp_path):
    for name, nodes in {"one": '<node id="only" address="0x20" fwinfo="endpoint;width=4"/>', "empty": ""}.items():
        table = tmp_path / f"{name}.xml"
        table.write_text(f"<node>{nodes}</node>", encoding="ascii")
        _, found = decoded(table, name, range(0x40), tmp_path)
        assert found == {address: 0 if address in range(0x20, 0x30) or name == "empty" else 1 for address in range(0x40)}
