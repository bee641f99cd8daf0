use super::*;
use crate::files::tests::Shelf;
use crate::table::Limits;
use alloc::format;
use alloc::string::{String, ToString};

fn registers(xml: &str) -> Result<Registers, String> {
    let table = Table::read("t.xml", &Shelf::default().with("t.xml", xml), &Limits::default());
    Registers::try_from(&table.expect("the table has no error")).map_err(|error| error.to_string())
}

fn lines(xml: &str) -> Vec<String> {
    let all = registers(xml).expect("they make registers").into_sorted();
    let line = |one: Register| {
        let Register { first, words, readable, writable, value, behaviour } = one;
        format!("{first:X}-{:X} r {readable:X} w {writable:X} = {value:X} {behaviour:?}", first + (words - 1))
    };
    all.into_iter().map(line).collect()
}

#[test]
fn nodes_become_registers_with_their_permissions() {
    assert_eq!(
        lines(
            "<node>
               <node id='rw' address='0x1'/>
               <node id='ro' address='0x2' permission='r' parameters='device_value=0xCAFE'/>
               <node id='wo' address='0x3' permission='w'/>
               <node id='group' address='0x10'>
                 <node id='ram' address='0x0' mode='block' size='8' permission='r'/>
                 <node id='fifo' address='0x8' mode='port' size='100'/>
                 <node id='deep' address='0x9' mode='port'/>
                 <node id='source' address='0xA' mode='port' permission='r'/>
                 <node id='sink' address='0xB' mode='port' permission='w'/>
               </node>
             </node>"
        ),
        [
            "1-1 r FFFFFFFF w FFFFFFFF = 0 Keep",
            "2-2 r FFFFFFFF w 0 = CAFE Keep",
            "3-3 r 0 w FFFFFFFF = 0 Keep",
            "10-17 r FFFFFFFF w 0 = 0 Keep",
            "18-18 r FFFFFFFF w FFFFFFFF = 0 Fifo { depth: 100 }",
            "19-19 r FFFFFFFF w FFFFFFFF = 0 Fifo { depth: 65536 }",
            "1A-1A r FFFFFFFF w 0 = 0 Count",
            "1B-1B r 0 w FFFFFFFF = 0 Keep",
        ]
    );
}

#[test]
fn masks_of_one_address_are_put_together() {
    assert_eq!(
        lines(
            "<node>
               <node id='state' address='4' mask='0xF0' permission='r' parameters='device_value=3'/>
               <node id='enable' address='4' mask='0x1' parameters='device_value=1'/>
               <node id='start' address='4' mask='0x2' permission='w'/>
             </node>"
        ),
        ["4-4 r F1 w 3 = 31 Keep"]
    );
}

/// Blocks that overlap, a register inside of one, and one that goes round at the end of the space.
#[test]
fn nodes_that_overlap_have_what_each_of_them_has() {
    assert_eq!(
        lines(
            "<node>
               <node id='a' address='0x10' mode='block' size='0x10' permission='r'/>
               <node id='b' address='0x18' mode='block' size='0x10' permission='w'/>
               <node id='c' address='0x12' mode='port'/>
               <node id='high' address='0xFFFFFFF0'>
                 <node id='round' address='0xE' mode='block' size='4'/>
               </node>
             </node>"
        ),
        [
            "0-1 r FFFFFFFF w FFFFFFFF = 0 Keep",
            "10-11 r FFFFFFFF w 0 = 0 Keep",
            "12-12 r FFFFFFFF w FFFFFFFF = 0 Fifo { depth: 65536 }",
            "13-17 r FFFFFFFF w 0 = 0 Keep",
            "18-1F r FFFFFFFF w FFFFFFFF = 0 Keep",
            "20-27 r 0 w FFFFFFFF = 0 Keep",
            "FFFFFFFE-FFFFFFFF r FFFFFFFF w FFFFFFFF = 0 Keep",
        ]
    );
}

#[test]
fn parameters_say_what_a_node_does() {
    let one = |what: &str| lines(&format!("<node><node id='a' address='1' {what}/></node>")).remove(0);
    let ends = |what: &str, end: &str| assert!(one(what).ends_with(end), "{what}: {}", one(what));
    ends("parameters='device=counter'", "Count");
    ends("parameters='width=3;device=fifo'", "Fifo { depth: 65536 }");
    ends("mode='port' parameters='device=memory'", "Keep");
    ends("mode='port' size='7' parameters='device=timeout'", "Fail(Timeout)");
    ends("mode='block' size='9' parameters='device=error'", "Fail(Error)");
    ends("mode='block' size='9' permission='r' parameters='device=counter'", "w 0 = 0 Count");
}

#[test]
fn a_parameter_that_makes_no_sense_is_told_with_its_place() {
    let told = |what: &str| registers(&format!("<node>\n <node id='a' address='1' {what}/></node>")).unwrap_err();
    assert_eq!(
        told("parameters='device=magic'").to_string(),
        "t.xml:2:2: error: device=\"magic\" is unknown; write one of memory, fifo, counter, error, timeout"
    );
    assert!(told("parameters='device_value=much'").contains("t.xml:2:2: error: device_value=\"much\" is not a number"));
    assert!(told("mode='block' size='2' parameters='device=fifo'").contains("cannot be combined with `mode=block`"));
}
