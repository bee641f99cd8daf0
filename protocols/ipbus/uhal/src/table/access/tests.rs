use super::*;
use crate::files::tests::Shelf;
use crate::table::{Limits, Table};
use alloc::string::ToString;
use hodo_ipbus::wire::operation::Mode::{Fifo, Incrementing};

fn table() -> Table {
    let xml = "<node>
      <node id='rw' address='1'/>
      <node id='r' address='2' permission='r'/>
      <node id='w' address='3' permission='w'/>
      <node id='bits' address='4' mask='0xFF00'/>
      <node id='bits_r' address='5' mask='0x0FF0' permission='r'/>
      <node id='bits_w' address='6' mask='0x00F0' permission='w'/>
      <node id='holes' address='7' mask='0xF0F0'/>
      <node id='none' address='8' mask='0'/>
      <node id='ram' address='0x100' mode='block' size='4'/>
      <node id='ram_r' address='0x110' mode='block' size='4' permission='r'/>
      <node id='word' address='0x118' mode='block' size='1'/>
      <node id='port' address='0x120' mode='port'/>
      <node id='fifo' address='0x121' mode='port' size='4'/>
      <node id='group' address='0x200'><node id='x' address='1'/></node>
    </node>";
    Table::read("t.xml", &Shelf::default().with("t.xml", xml), &Limits::default()).unwrap()
}

#[test]
fn a_read_takes_the_masks_bits() {
    let table = table();
    // What the wire brings is 0x12345678 everywhere, as in the run against uHAL that these values are from.
    for (node, address, value) in [
        ("rw", 1, 0x1234_5678),
        ("bits", 4, 0x56),
        ("bits_r", 5, 0x67),
        ("holes", 7, 0x507),
        ("none", 8, 0),
        ("ram", 0x100, 0x1234_5678),
        ("port", 0x120, 0x1234_5678),
        ("group", 0x200, 0x1234_5678),
    ] {
        let read = table.node(node).unwrap().read().unwrap();
        assert_eq!((read.address, read.mask.value(0x1234_5678)), (address, value), "{node}");
    }
}

#[test]
fn a_write_touches_the_masks_bits_only() {
    let table = table();
    let write = |node: &str, value| table.node(node).unwrap().write(value);
    for (node, address) in [("rw", 1), ("w", 3), ("ram", 0x100), ("port", 0x120), ("group", 0x200)] {
        assert_eq!(write(node, 7), Ok(WriteWord::Word { address, word: 7 }), "{node}");
    }
    for (node, value, address, and, or) in [
        ("bits", 1, 4, 0xFFFF_00FF, 0x100),
        ("bits", 0xFF, 4, 0xFFFF_00FF, 0xFF00),
        ("holes", 0xF0F, 7, 0xFFFF_0F0F, 0xF0F0),
        ("none", 0, 8, 0xFFFF_FFFF, 0),
    ] {
        assert_eq!(write(node, value), Ok(WriteWord::Bits { address, and, or }), "{node}");
    }
}

#[test]
fn blocks_ports_and_registers_take_their_own_transactions() {
    let table = table();
    for (node, words, address, mode) in [
        ("rw", 1, 1, Fifo),
        // A bulk transfer of one word passes the mask by.
        ("bits", 1, 4, Fifo),
        ("ram", 0, 0x100, Incrementing),
        ("ram", 4, 0x100, Incrementing),
        ("word", 5, 0x118, Incrementing),
        ("port", 1000, 0x120, Fifo),
        ("fifo", 4, 0x121, Fifo),
        ("group", 5, 0x200, Fifo),
    ] {
        let block = Ok(Block { address, words, mode });
        assert_eq!(table.node(node).unwrap().read_block(words), block, "{node}");
        assert_eq!(table.node(node).unwrap().write_block(words), block, "{node}");
    }
    for (node, offset, words, address, mode) in [
        ("ram", 0, 4, 0x100, Incrementing),
        ("ram", 3, 1, 0x103, Incrementing),
        ("ram", 4, 0, 0x104, Incrementing),
        ("group", 0, 1, 0x200, Fifo),
    ] {
        let block = Ok(Block { address, words, mode });
        assert_eq!(table.node(node).unwrap().read_block_at(offset, words), block, "{node}");
        assert_eq!(table.node(node).unwrap().write_block_at(offset, words), block, "{node}");
    }
    assert!(table.node("bits_w").unwrap().write_block(1).is_ok());
}

#[test]
fn what_is_refused_says_why() {
    let table = table();
    let node = |path: &str| table.node(path).unwrap();
    let cases = [
        (node("w").read().err(), "node `w` may not be read; its permission in the address table is `w`"),
        (node("bits_w").read().err(), "node `bits_w` may not be read; its permission in the address table is `w`"),
        (node("r").write(0).err(), "node `r` may not be written; its permission in the address table is `r`"),
        (node("bits_r").write(0).err(), "node `bits_r` may not be written; its permission in the address table is `r`"),
        (
            node("bits_w").write(0).err(),
            "node `bits_w` is some bits of a register that may not be read, so they cannot be written alone; write the \
             whole word to its address",
        ),
        (
            node("bits").write(0x100).err(),
            "0x100 does not fit node `bits`, whose mask is 0x0000FF00; the largest value is 0xFF",
        ),
        (
            node("bits").write(0x0100_0000).err(),
            "0x1000000 does not fit node `bits`, whose mask is 0x0000FF00; the largest value is 0xFF",
        ),
        (
            node("holes").write(0x10).err(),
            "0x10 does not fit node `holes`, whose mask is 0x0000F0F0; the largest value is 0xF0F",
        ),
        (
            node("none").write(1).err(),
            "0x1 does not fit node `none`, whose mask is 0x00000000; the largest value is 0x0",
        ),
        (node("r").modify().err(), "node `r` may not be written; its permission in the address table is `r`"),
        (node("w").modify().err(), "node `w` may not be read; its permission in the address table is `w`"),
        (
            node("rw").read_block(2).err(),
            "node `rw` is one register, and 2 words were requested; for a block, add mode=\"block\" and its size to the \
             address table",
        ),
        (node("rw").write_block(0).err(), ONE_AND_NONE),
        (
            node("ram").read_block(5).err(),
            "node `ram` has 4 words, and 5 were requested, including any offset; request fewer",
        ),
        (
            node("fifo").write_block(5).err(),
            "node `fifo` has 4 words, and 5 were requested, including any offset; request fewer",
        ),
        (
            node("ram_r").write_block(5).err(),
            "node `ram_r` has 4 words, and 5 were requested, including any offset; request fewer",
        ),
        (
            node("ram_r").write_block(1).err(),
            "node `ram_r` may not be written; its permission in the address table is `r`",
        ),
        (
            node("ram").read_block_at(2, 3).err(),
            "node `ram` has 4 words, and 5 were requested, including any offset; request fewer",
        ),
        (
            node("ram").write_block_at(u32::MAX, u32::MAX).err(),
            "node `ram` has 4 words, and 8589934590 were requested, including any offset; request fewer",
        ),
        (
            node("word").read_block_at(1, 1).err(),
            "node `word` has 1 word, and 2 were requested, including any offset; request fewer",
        ),
        (
            node("group").read_block_at(1, 1).err(),
            "node `group` has 1 word, and 2 were requested, including any offset; request fewer",
        ),
        (node("port").read_block_at(0, 0).err(), "node `port` is non-incremental, and only blocks have offsets"),
        (node("bits").write_block_at(0, 1).err(), "node `bits` is single, and only blocks have offsets"),
    ];
    for (error, why) in cases {
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(why));
    }
}

const ONE_AND_NONE: &str = "node `rw` is one register, and 0 words were requested; for a block, add mode=\"block\" and its \
                            size to the address table";

#[test]
fn a_mask_gives_back_what_it_took() {
    for mask in [1, 0xF0, 0xFF00, 0x8000_0000, 0xFFFF_FFFF, 0xF0F0, 0x0101_0101] {
        let mask = Mask(mask);
        for word in [0, u32::MAX, 0x1234_5678, 0xA5A5_A5A5] {
            assert_eq!(mask.bits(mask.value(word)), Some(word & mask.0), "{mask}");
        }
    }
}
