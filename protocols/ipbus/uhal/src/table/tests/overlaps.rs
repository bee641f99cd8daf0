//! Which nodes share addresses, in the cases that uHAL tells apart.

use super::*;

/// Returns a table without overlaps; `{name}` stands for the address of each movable node.
fn with(moved: &str, address: &str) -> Table {
    let addresses = [
        ("status", "0x0"),
        ("control", "0x1"),
        ("trigger", "0x2"),
        ("delays", "0x3"),
        ("events", "0x4"),
        ("slow", "0x5"),
        ("pattern", "0x10"),
        ("spy", "0x20"),
        ("left", "0x100"),
        ("right", "0x200"),
    ];
    assert!(addresses.iter().any(|(name, _)| *name == moved) || moved.is_empty());
    let at = |name: &str| {
        let own = addresses.iter().find(|(known, _)| *known == name).unwrap().1;
        if name == moved { address } else { own }
    };
    let half = |name: &str, registers: [&str; 4]| {
        let [first, second, port, block] = registers;
        format!(
            "<node id='{name}' address='{}'>
               <node id='{first}' address='0'/>
               <node id='{second}' address='1'><node id='a' mask='0x000003FF'/><node id='b' mask='0x000FFC00'/></node>
               <node id='{port}' address='2' mode='port' size='512'/>
               <node id='{block}' address='0x10' mode='block' size='16'/>
             </node>",
            at(name)
        )
    };
    read(&format!(
        "<node>
           <node id='status' address='{}'/>
           <node id='control' address='{}'/>
           <node id='trigger' address='{}'><node id='low' mask='0x0000FFFF'/><node id='high' mask='0xFFFF0000'/></node>
           <node id='delays' address='{}'>
             <node id='d0' mask='0x0000000F'/><node id='d1' mask='0x00000FF0'/><node id='d2' mask='0xFFFF0000'/>
           </node>
           <node id='events' address='{}' mode='port' size='1024'/>
           <node id='slow' address='{}' mode='port'/>
           <node id='pattern' address='{}' mode='block' size='16'/>
           <node id='spy' address='{}' mode='block' size='32'/>
           {}{}
         </node>",
        at("status"),
        at("control"),
        at("trigger"),
        at("delays"),
        at("events"),
        at("slow"),
        at("pattern"),
        at("spy"),
        half("left", ["id", "set", "in", "ram"]),
        half("right", ["number", "get", "out", "buffer"]),
    ))
}

fn found(table: &Table) -> Vec<String> {
    table.overlaps().iter().map(|overlap| format!("{} {}", overlap.first.path, overlap.second.path)).collect()
}

#[test]
fn none() {
    assert_eq!(found(&with("", "")), Vec::<String>::new());
}

#[test]
fn register_and_register() {
    assert_eq!(found(&with("status", "0x1")), ["status control"]);
}

#[test]
fn bits_and_bits_of_two_registers() {
    assert_eq!(
        found(&with("delays", "0x2")),
        [
            "trigger delays",
            "trigger delays.d0",
            "trigger delays.d1",
            "trigger delays.d2",
            "trigger.low delays",
            "trigger.low delays.d0",
            "trigger.low delays.d1",
            "trigger.high delays",
            "trigger.high delays.d2"
        ]
    );
}

#[test]
fn bits_and_bits_of_one_register() {
    let table = read(
        "<node><node id='r' address='4'><node id='a' mask='0x00FF'/><node id='b' mask='0x0F00'/>
         <node id='c' mask='0x10F0'/></node></node>",
    );
    assert_eq!(found(&table), ["r.a r.c"]);
}

#[test]
fn port_and_port() {
    assert_eq!(found(&with("events", "0x5")), ["events slow"]);
}

#[test]
fn register_and_bits() {
    assert_eq!(found(&with("status", "0x2")), ["status trigger", "status trigger.low", "status trigger.high"]);
}

#[test]
fn register_and_port() {
    assert_eq!(found(&with("status", "0x4")), ["status events"]);
}

#[test]
fn bits_and_port() {
    assert_eq!(found(&with("trigger", "0x4")), ["trigger events", "trigger.low events", "trigger.high events"]);
}

#[test]
fn anything_and_a_block() {
    for (moved, nodes) in [
        ("status", &["status"][..]),
        ("trigger", &["trigger", "trigger.low", "trigger.high"]),
        ("events", &["events"]),
        ("pattern", &["pattern"]),
    ] {
        for address in ["0x20", "0x2F", "0x3F"] {
            let expected = nodes.iter().map(|node| match address {
                "0x20" => format!("{node} spy"),
                _ => format!("spy {node}"),
            });
            assert_eq!(found(&with(moved, address)), expected.collect::<Vec<_>>(), "{moved} at {address}");
        }
    }
    assert_eq!(found(&with("status", "0x40")), Vec::<String>::new());
}

#[test]
fn a_module_over_registers() {
    assert_eq!(
        found(&with("left", "0x0")),
        [
            "status left.id",
            "left.set control",
            "left.set.a control",
            "left.set.b control",
            "left.in trigger",
            "left.in trigger.low",
            "left.in trigger.high",
            "left.ram pattern"
        ]
    );
}

#[test]
fn a_module_over_a_module() {
    assert_eq!(
        found(&with("right", "0x100")),
        [
            "left.id right.number",
            "left.set right.get",
            "left.set right.get.a",
            "left.set right.get.b",
            "left.set.a right.get",
            "left.set.a right.get.a",
            "left.set.b right.get",
            "left.set.b right.get.b",
            "left.in right.out",
            "left.ram right.buffer"
        ]
    );
}

#[test]
fn an_overlap_names_both_places() {
    let told = |xml: &str| {
        let report = check("t.xml", &Shelf::default().with("t.xml", xml), &Limits::default());
        report.overlaps.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        told("<node>\n<node id='a' mode='block' size='4'/>\n <node id='b' mask='3' address='2'/></node>"),
        [
            "t.xml:2:1: overlap: `a` (0x00000000-0x00000003) and `b` (0x00000002 mask 0x00000003) of t.xml:3:2 have bits in \
          common; give one of them another address or mask"
        ]
    );
    // What has errors is left out; the rest is looked at.
    assert_eq!(told("<node><node id='a'/><node id='b'/><node id='c' mode='x'/></node>").len(), 1);
}

#[test]
fn overlaps_are_bounded() {
    let many: String = (0..2000).map(|index| format!("<node id='n{index}'/>")).collect();
    assert_eq!(read(&format!("<node>{many}</node>")).overlaps().len(), OVERLAPS_MAX);
}

#[test]
fn a_block_of_no_words_overlaps_nothing() {
    assert_eq!(found(&read("<node><node id='a' mode='block' size='0'/><node id='b'/></node>")), Vec::<String>::new());
}
