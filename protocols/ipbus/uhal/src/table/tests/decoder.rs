//! Which endpoints an address decoder can follow.

use super::*;

/// Returns what `check` says of the firmware; each line begins with its severity.
fn firmware(xml: &str) -> Vec<String> {
    let report = check("t.xml", &Shelf::default().with("t.xml", xml), &Limits::default());
    assert_eq!(report.errors(), 0, "{:?}", report.findings);
    report.firmware.iter().map(|finding| finding.to_string().replace("t.xml:", "")).collect()
}

fn slaves(table: &Table) -> Vec<String> {
    let slave = |slave: &Endpoint<'_>| format!("{} 0x{:X} {}", slave.node.path(), slave.node.address(), slave.width);
    table.decoder().slaves.iter().map(slave).collect()
}

#[test]
fn slaves_are_the_outermost_endpoints_by_address() {
    let table = read(
        "<node>
           <node id='late' address='0x100' fwinfo='endpoint;width=4'/>
           <node id='group' address='0x20'>
             <node id='b' address='0x8' fwinfo='endpoint; width=3'/>
             <node id='a' fwinfo='endpoint;width=3'>
               <node id='inner' fwinfo='endpoint;width=1'/><node id='other' address='2' fwinfo='endpoint;width=1'/>
             </node>
           </node>
           <node id='none' address='0x200'><node id='x' fwinfo='type=array;width=1'/></node>
         </node>",
    );
    assert_eq!(slaves(&table), ["group.a 0x20 3", "group.b 0x28 3", "late 0x100 4"]);
    let decoder = table.decoder();
    assert_eq!((decoder.width, decoder.findings.len()), (10, 0));
    assert_eq!(decoder.outside.iter().map(|node| node.path()).collect::<Vec<_>>(), ["none.x"]);
}

#[test]
fn an_endpoint_around_others_is_as_wide_as_they_need() {
    let inner = "<node id='a' fwinfo='endpoint;width=2'/><node id='b' address='8' fwinfo='endpoint;width=2'/>";
    let table = read(&format!("<node><node id='e' address='0x10' fwinfo='endpoint'>{inner}</node></node>"));
    assert_eq!((slaves(&table), table.decoder().findings), (vec!["e 0x10 4".to_owned()], vec![]));
    // Registers in it that a decoder does not select are its own affair, but in it.
    let beside = format!("<node fwinfo='endpoint'>{inner}<node id='r' address='0x40'/></node>");
    assert_eq!((read(&beside).decoder().width, firmware(&beside)), (7, Vec::new()));
    let table = read(&format!("<node fwinfo='endpoint;width=6'>{inner}</node>"));
    assert_eq!((table.decoder().width, table.decoder().findings), (6, vec![]));
}

#[test]
fn a_base_that_is_not_aligned() {
    assert_eq!(
        firmware("<node>\n<node id='daq' address='0x14' fwinfo='endpoint;width=3'/></node>"),
        [
            "2:1: error: endpoint `daq` (0x00000014-0x0000001B, width 3) does not begin at a multiple of its 0x8 words; move it \
         to 0x00000010 or 0x00000018, or lower its width"
        ]
    );
    assert_eq!(
        firmware("<node><node id='daq' address='0xFFFFFFFF' fwinfo='endpoint;width=32'/></node>"),
        [
            "1:7: error: endpoint `daq` (0xFFFFFFFF, width 32) does not begin at a multiple of its 0x100000000 words; move it to \
         0x00000000, or lower its width"
        ]
    );
    // Once for an endpoint, and not again for those in it that keep their distance from it.
    let inner = "<node id='a' fwinfo='endpoint;width=3'/><node id='b' address='9' fwinfo='endpoint;width=1'/>";
    let found = firmware(&format!("<node><node id='e' address='4' fwinfo='endpoint;width=4'>{inner}</node></node>"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("`e` (0x00000004-0x00000013, width 4)"), "{found:?}");
    assert!(found[1].contains("`e.b` (0x0000000D-0x0000000E, width 1)"), "{found:?}");
    assert_eq!(firmware("<node><node id='all' fwinfo='endpoint;width=32'/></node>"), Vec::<String>::new());
}

#[test]
fn endpoints_that_overlap() {
    assert_eq!(
        firmware(
            "<node>\n<node id='a' fwinfo='endpoint;width=4'/>\n<node id='g'>\n<node id='b' address='8' \
             fwinfo='endpoint;width=2'/></node></node>"
        ),
        ["2:1: error: endpoints `a` (0x00000000-0x0000000F, width 4) and `g.b` (0x00000008-0x0000000B, width 2) of \
         4:1 have addresses in common; move one of them, or lower its width"]
    );
    // In an endpoint as well.
    let inner = "<node id='a' fwinfo='endpoint;width=1'/><node id='b' fwinfo='endpoint;width=0'/>";
    let found = firmware(&format!("<node><node id='e' fwinfo='endpoint'>{inner}</node></node>"));
    assert!(found.len() == 1 && found[0].contains("`e.a`") && found[0].contains("`e.b`"), "{found:?}");
}

#[test]
fn nodes_that_only_group_others_overlap_nothing() {
    let groups = "<node id='one'><node id='a' address='0' fwinfo='endpoint;width=2'><node id='r' address='3'/></node></node>
         <node id='two'><node id='b' address='4' fwinfo='endpoint;width=2'><node id='g'><node id='r'/></node></node></node>
         <node id='three'><node id='four'><node id='c' address='8' fwinfo='endpoint;width=0'/></node></node>
         <node id='masks'><node id='m' address='9' mask='1' fwinfo='endpoint;width=0'/></node>";
    let report = check("t.xml", &Shelf::default().with("t.xml", format!("<node>{groups}</node>")), &Limits::default());
    assert_eq!((report.findings, report.overlaps, report.firmware, report.endpoints), (vec![], vec![], vec![], 4));
    assert_eq!(read(&format!("<node>{groups}</node>")).decoder().outside, []);
    let group =
        "<node id='e' fwinfo='endpoint;width=0'><node id='m' mask='1'/><node id='n' address='1' mask='1'/></node>";
    let found = firmware(&format!("<node>{group}</node>"));
    assert!(found.len() == 1 && found[0].contains("`e.n`"), "{found:?}");
}

#[test]
fn registers_beyond_the_width() {
    assert_eq!(
        firmware(
            "<node>\n<node id='e' address='8' fwinfo='endpoint;width=1'>\n<node id='in' address='1'/>\n<node id='r' \
             address='2'><node id='m' mask='1'/></node>\n<node id='g'>\n<node id='m' address='5' mask='3'/>\n<node id='ram' \
             mode='block' size='9'/></node></node></node>"
        ),
        [
            "4:1: error: `e.r` (0x0000000A) ends beyond endpoint `e` (0x00000008-0x00000009, width 1) of 2:1; write width=2 \
             there, or move the node",
            "6:1: error: `e.g.m` (0x0000000D mask 0x00000003) ends beyond endpoint `e` (0x00000008-0x00000009, width 1) of \
             2:1; write width=3 there, or move the node",
            "7:1: error: `e.g.ram` (0x00000008-0x00000010) ends beyond endpoint `e` (0x00000008-0x00000009, width 1) of 2:1; \
             write width=4 there, or move the node",
        ]
    );
    assert_eq!(
        firmware("<node><node id='ram' mode='block' size='5' fwinfo='endpoint;width=2'/></node>"),
        [
            "1:7: error: endpoint `ram` (0x00000000-0x00000004) has more words than its width=2 covers; write width=3, or a \
         smaller size"
        ]
    );
    // A port has one address, and bits are part of their register.
    let port = "<node id='fifo' mode='port' size='1000' fwinfo='endpoint;width=0'/>
         <node id='r' address='1' fwinfo='endpoint;width=0'><node id='m' mask='1'/></node>";
    assert_eq!(firmware(&format!("<node>{port}</node>")), Vec::<String>::new());
}

#[test]
fn endpoints_and_modules_beyond_the_width() {
    let shelf = Shelf::default()
        .with("t.xml", "<node fwinfo='endpoint;width=3'><node id='m' module='file://m.xml' address='4' fwinfo='endpoint;width=1'/></node>")
        .with("m.xml", "<node fwinfo='endpoint'>\n<node id='a' fwinfo='endpoint;width=3'/></node>");
    let told: Vec<String> =
        check("t.xml", &shelf, &Limits::default()).firmware.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "m.xml:2:1: error: `m.a` (0x00000004-0x0000000B, width 3) ends beyond endpoint `m` (0x00000004-0x00000005, width 1) \
         of t.xml:1:33; write width=3 there, or move the node"
        ]
    );
    let found = firmware("<node fwinfo='endpoint;width=1'><node id='a' address='2'/></node>");
    assert!(found[0].contains("beyond the outermost node (0x00000000-0x00000001, width 1)"), "{found:?}");
}

#[test]
fn a_width_that_is_none() {
    for value in ["x", "", "33", "-1", "0x2", "+1", "999999999999"] {
        let found = firmware(&format!("<node><node id='e' address='3' fwinfo='endpoint;width={value}'/></node>"));
        let expected = format!(
            "1:7: error: width={value} of endpoint `e` (0x00000003) is not a number of address bits; write decimal digits, width=0 to width=32"
        );
        assert_eq!(found, [expected]);
    }
}

#[test]
fn an_endpoint_without_a_width() {
    assert_eq!(
        firmware(
            "<node><node id='e' address='4' fwinfo='endpoint'><node id='a'/><node id='b' address='2'/></node></node>"
        ),
        [
            "1:7: error: endpoint `e` (0x00000004) has no width, and its registers need 2; write fwinfo=\"endpoint;width=2\""
        ]
    );
    assert_eq!(
        firmware("<node><node id='e' address='4' fwinfo='endpoint'/></node>"),
        ["1:7: warning: endpoint `e` (0x00000004) has no width, and is taken for one word; write \
         fwinfo=\"endpoint;width=0\""]
    );
    // The file of a module: where it is included, it may be given one.
    assert_eq!(firmware("<node fwinfo='endpoint'><node id='r' address='9'/></node>"), Vec::<String>::new());
}

#[test]
fn findings_are_bounded() {
    let many: String = (0..2000).map(|index| format!("<node id='n{index}' fwinfo='endpoint;width=32'/>")).collect();
    assert_eq!(firmware(&format!("<node>{many}</node>")).len(), 1001);
}
