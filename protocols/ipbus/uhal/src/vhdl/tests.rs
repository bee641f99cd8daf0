use super::*;
use crate::files::tests::Shelf;
use crate::table::{Limits, Table};
use alloc::string::ToString;

fn table(inner: &str) -> Table {
    let shelf = Shelf::default().with("t.xml", format!("<node>{inner}</node>"));
    Table::read("t.xml", &shelf, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn written(inner: &str, name: &str, width: Option<u8>) -> Result<String, VhdlError> {
    package(&table(inner).decoder(), &Options { name, file: "t\n.xml", width })
}

fn refused(inner: &str, name: &str, width: Option<u8>) -> String {
    written(inner, name, width).unwrap_err().to_string()
}

const BOARD: &str = "<node id='csr' address='0x2' fwinfo='endpoint;width=1'/>
    <node id='id' fwinfo='endpoint;width=0'/>
    <node id='Link' address='0x8'><node id='ram_0' mode='block' size='4' fwinfo='endpoint;width=2'/></node>";

#[test]
fn a_package_has_the_names_and_numbers_of_the_field() {
    let expected = "\
-- Address decoder of the IPbus address table t?.xml, written by `hodo ipbus vhdl`: change the table, not this file.
--
-- The lowest 4 bits of an address are compared: those above are for the decoders around this one.

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package ipbus_decode_board is

  constant N_SLV_ID: integer := 0; -- 0x00000000 to 0x00000000
  constant N_SLV_CSR: integer := 1; -- 0x00000002 to 0x00000003
  constant N_SLV_LINK_RAM_0: integer := 2; -- 0x00000008 to 0x0000000B
  constant N_SLAVES: integer := 3;

  constant IPBUS_SEL_WIDTH: positive := 2;
  subtype ipbus_sel_t is std_logic_vector(IPBUS_SEL_WIDTH - 1 downto 0);

  -- The number of the slave at an address; N_SLAVES if no slave is there.
  function ipbus_sel_board(addr: in std_logic_vector(31 downto 0)) return ipbus_sel_t;

end package ipbus_decode_board;

package body ipbus_decode_board is

  function ipbus_sel_board(addr: in std_logic_vector(31 downto 0)) return ipbus_sel_t is
    variable slave: integer range 0 to N_SLAVES := N_SLAVES;
  begin
    if std_match(addr, \"----------------------------0000\") then
      slave := N_SLV_ID;
    elsif std_match(addr, \"----------------------------001-\") then
      slave := N_SLV_CSR;
    elsif std_match(addr, \"----------------------------10--\") then
      slave := N_SLV_LINK_RAM_0;
    end if;
    return ipbus_sel_t(to_unsigned(slave, IPBUS_SEL_WIDTH));
  end function ipbus_sel_board;

end package body ipbus_decode_board;
";
    assert_eq!(written(BOARD, "board", None).unwrap(), expected);
}

#[test]
fn all_bits_are_compared_if_asked_for() {
    let text = written(BOARD, "board", Some(32)).unwrap();
    assert!(text.contains("\"0000000000000000000000000000001-\""), "{text}");
    assert!(text.contains("-- All bits of an address are compared."), "{text}");
    assert_eq!(refused(BOARD, "board", Some(3)), "3 address bits are not enough for the slaves; write 4 to 32");
    assert_eq!(refused(BOARD, "board", Some(33)), "33 address bits are not enough for the slaves; write 4 to 32");
}

#[test]
fn the_number_behind_the_last_slave_fits() {
    for (slaves, bits) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)] {
        let inner: String = (0..slaves)
            .map(|slave| format!("<node id='s{slave}' address='{slave}' fwinfo='endpoint;width=0'/>"))
            .collect();
        let text = written(&inner, "board", None).unwrap();
        assert!(text.contains(&format!("constant N_SLAVES: integer := {slaves};")), "{text}");
        assert!(text.contains(&format!("constant IPBUS_SEL_WIDTH: positive := {bits};")), "{text}");
    }
}

#[test]
fn a_table_without_a_decoder_is_refused() {
    assert_eq!(
        refused("<node id='a' address='1' fwinfo='endpoint;width=1'/>", "board", None),
        "no address decoder can follow an fwinfo with errors; fix them first"
    );
    assert_eq!(
        refused("<node id='a'/>", "board", None),
        "no node is an endpoint; write fwinfo=\"endpoint;width=N\" for each slave, which has 2^N words"
    );
    let slave = "<node id='a' fwinfo='endpoint;width=0'/><node id='b' address='1'/>";
    let why = "in no endpoint, so that no slave would be selected; write fwinfo=\"endpoint;width=N\" there, or for a node \
               around";
    assert_eq!(refused(slave, "board", None), format!("`b` (0x00000001) is {why}"));
    assert_eq!(
        refused(&format!("{slave}<node id='c' address='2'><node id='m' mask='1'/></node>"), "board", None),
        format!("`b` (0x00000001) is {why} (and 1 more)")
    );
}

#[test]
fn names_are_vhdls() {
    let slave = |id: &str| format!("<node id='{id}' fwinfo='endpoint;width=0'/>");
    for name in ["", "_a", "a_", "a__b", "a-b", "b\u{e9}", "a b", "a.b"] {
        let why = "cannot be part of a name in VHDL: letters, digits and single underscores between them are";
        assert_eq!(refused(&slave("a"), name, None), format!("`{name}` {why}"));
        if !name.is_empty() && !name.contains('.') {
            assert_eq!(refused(&slave(name), "board", None), format!("`{name}` {why}; rename the node"));
        }
    }
    for name in ["t", "T", "Width"] {
        let why =
            format!("`{name}` cannot be part of a name in VHDL: the package has another `ipbus_sel_` of this name");
        assert_eq!(refused(&slave("a"), name, None), why);
    }
    assert!(written(&slave("0"), "7series", None).is_ok());
    let same = "<node id='a'><node id='b' fwinfo='endpoint;width=0'/></node><node id='A_B' address='1' \
                fwinfo='endpoint;width=0'/>";
    assert_eq!(refused(same, "board", None), "`a.b` and `A_B` are both `N_SLV_A_B` in VHDL; rename one of the nodes");
}
