use super::*;
use crate::files::tests::Shelf;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::{borrow::ToOwned, format};

fn read(xml: &str) -> Table {
    of(Shelf::default().with("t.xml", xml))
}

#[expect(clippy::needless_pass_by_value, reason = "shelves are made where they are used")]
fn of(shelf: Shelf) -> Table {
    Table::read("t.xml", &shelf, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the errors for which a table is refused, one line each.
#[expect(clippy::needless_pass_by_value, reason = "shelves are made where they are used")]
fn told_of(shelf: Shelf) -> Vec<String> {
    check("t.xml", &shelf, &Limits::default()).findings.iter().map(ToString::to_string).collect()
}

fn told(xml: &str) -> Vec<String> {
    told_of(Shelf::default().with("t.xml", xml))
}

fn lines(table: &Table) -> Vec<String> {
    table.iter().map(|node| node.to_string()).collect()
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    pairs.map(|(name, value)| format!("{name}={value} ")).collect()
}

#[test]
fn addresses_are_added_and_siblings_sorted() {
    let table = read(
        "<node>
           <node id='late' address='0x40'/>
           <node id='daq' address='0x10'>
             <node id='ram' address='0x8' mode='block' size='8' permission='r'/>
             <node id='ctrl' address='0x1' permission='write'>
               <node id='high' mask='0xFFFF0000'/>
               <node id='low' mask='0x0000FFFF'/>
             </node>
             <node id='fifo' address='0x2' mode='port'/>
           </node>
         </node>",
    );
    assert_eq!(
        lines(&table),
        [
            "daq hierarchical 0x00000010 rw",
            "daq.ctrl single 0x00000011 w",
            "daq.ctrl.high single 0x00000011 mask 0xFFFF0000 rw",
            "daq.ctrl.low single 0x00000011 mask 0x0000FFFF rw",
            "daq.fifo non-incremental 0x00000012 rw",
            "daq.ram incremental 0x00000018-0x0000001F r",
            "late single 0x00000040 rw",
        ]
    );
    assert_eq!(table.warnings(), []);
    assert_eq!(table.root().mode(), Mode::Hierarchical);
}

#[test]
fn a_node_is_walked_from_anywhere() {
    let table = read(
        "<node><node id='a' address='1'><node id='b' address='2'><node id='c' mask='1'/></node>
         <node id='d' address='4'/></node></node>",
    );
    let node = table.node("a").unwrap();
    let names = |nodes: Vec<Node<'_>>| nodes.iter().map(|node| node.id().to_owned()).collect::<Vec<_>>().join(" ");
    assert_eq!(names(node.children().collect()), "b d");
    assert_eq!(names(node.iter().collect()), "b c d");
    assert_eq!(names(table.root().children().collect()), "a");
    assert_eq!(names(table.nodes_at(3).collect()), "b c");
    let inner = node.node("b.c").unwrap();
    assert_eq!((inner.path().as_str(), inner.parent().unwrap().path().as_str()), ("a.b.c", "a.b"));
    assert_eq!(inner.node("").unwrap(), inner);
    assert_eq!(table.node("").unwrap(), table.root());
    assert_eq!(table.root().parent(), None);
    assert_eq!(inner.place().to_string(), "t.xml:1:57");
    assert!(table.has_node("a.d") && node.has_node("d") && !table.has_node("d"));
}

#[test]
fn a_pattern_fits_whole_paths() {
    let table = read(
        "<node><node id='x' address='8'><node id='reg'/><node id='mem' address='1'/></node><node id='reg' address='1'/>
         <node id='y'><node id='reg'/></node></node>",
    );
    let fitting = |node: Node<'_>, pattern: &str| {
        let found = node.nodes(&Pattern::new(pattern).unwrap());
        found.iter().map(|node| node.path()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(fitting(table.root(), ".*reg"), "reg x.reg y.reg");
    assert_eq!(fitting(table.root(), "x|y"), "x y");
    assert_eq!(fitting(table.root(), "x\\..*"), "x.mem x.reg");
    assert_eq!(fitting(table.node("x").unwrap(), "[a-z]+"), "x.mem x.reg");
    assert_eq!(fitting(table.root(), "re"), "");
}

#[test]
fn a_path_that_leads_nowhere_says_how_far_it_goes() {
    let many: String = (0..10).map(|index| format!("<node id='n{index}' address='{index}'/>")).collect();
    let table = read(&format!("<node><node id='a'><node id='b'><node id='c'/></node></node>{many}</node>"));
    let why = |path: &str| table.node(path).unwrap_err().to_string();
    assert_eq!(why("a.b.x.y"), "there is no node `a.b.x.y`: `a.b` has c");
    assert_eq!(why("a.b.c."), "there is no node `a.b.c.`: `a.b.c` has no nodes");
    assert_eq!(why("a."), "there is no node `a.`: `a` has b");
    for path in ["x", ".", ".a", "a b"] {
        let expected = format!("there is no node `{path}`: the table has a, n0, n1, n2, n3, n4, n5, n6 and 3 more");
        assert_eq!(why(path), expected);
    }
}

#[test]
fn a_module_is_another_files_nodes() {
    let module = "<node id='own' address='0x10' tags='i' description='d' parameters='a=1;b=2' fwinfo='endpoint;width=4'
                   permission='r' mode='single'><node id='r' address='1' tags='x'/></node>";
    let table = of(Shelf::default().with("m.xml", module).with(
        "t.xml",
        "<node><node id='m' module='file://m.xml' address='0x100' tags='o' description='D' parameters='a=9;c=3'
              fwinfo='slave;width=9;z=1'/><node id='bare' module='file://m.xml'/></node>",
    ));
    let node = table.node("m").unwrap();
    assert_eq!(
        lines(&table),
        [
            "bare single 0x00000010 r",
            "bare.r single 0x00000011 rw",
            "m single 0x00000110 r",
            "m.r single 0x00000111 rw"
        ]
    );
    assert_eq!((node.tags(), node.description()), ("i[o]", "d[D]"));
    assert_eq!(pairs(node.parameters()), "a=9 c=3 b=2 ");
    assert_eq!(pairs(node.firmware_info()), "type=endpoint width=4 z=1 ");
    assert_eq!((node.file(), table.node("m.r").unwrap().file()), ("t.xml", "m.xml"));
    assert_eq!(table.node("m.r").unwrap().tags(), "x");
    let bare = table.node("bare").unwrap();
    assert_eq!((bare.tags(), pairs(bare.parameters()).as_str()), ("i", "a=1 b=2 "));
    assert_eq!(table.files().collect::<Vec<_>>(), ["m.xml", "t.xml"]);
}

#[test]
fn modules_are_relative_to_the_file_that_includes_them() {
    let table = of(Shelf::default()
        .with("t.xml", "<node><node id='a' module='file://sub/s.xml' address='0x100'/></node>")
        .with("sub/s.xml", "<node><node id='b' module='file://../deep/d.xml' address='0x10'/><node id='c' module='file://o.xml'/></node>")
        .with("sub/o.xml", "<node mask='0xF0' permission='r'/>")
        .with("deep/d.xml", "<node module='file://$DEEP' tags='outer'/>")
        .with("/all/e.xml", "<node mode='block' size='4' address='1' tags='inner'/>")
        .and("DEEP", "/all/e.xml"));
    assert_eq!(
        lines(&table),
        [
            "a hierarchical 0x00000100 rw",
            "a.c single 0x00000100 mask 0x000000F0 r",
            "a.b incremental 0x00000111-0x00000114 rw"
        ]
    );
    assert_eq!(table.node("a.b").unwrap().tags(), "inner[outer]");
}

#[test]
fn only_masks_below_make_a_register() {
    for (inner, mode) in [
        ("", Mode::Single),
        ("<node id='a' mask='1'/><node id='b' mask='2' address='1'/>", Mode::Single),
        ("<node id='a' mask='1'/><node id='b'/>", Mode::Hierarchical),
        ("<node id='a' mask='0xFFFFFFFF'/>", Mode::Hierarchical),
    ] {
        let table = read(&format!("<node><node id='n'>{inner}</node></node>"));
        assert_eq!(table.node("n").unwrap().mode(), mode, "{inner}");
    }
}

#[test]
fn every_spelling_is_known() {
    let node = |attributes: &str| {
        let table = read(&format!("<node><node id='n' {attributes}/></node>"));
        let node = table.node("n").unwrap();
        (node.permission(), node.mode(), node.size())
    };
    for (spelling, permission) in [
        ("r", Permission::Read),
        ("read", Permission::Read),
        ("w", Permission::Write),
        ("write", Permission::Write),
        ("rw", Permission::ReadWrite),
        ("wr", Permission::ReadWrite),
        ("readwrite", Permission::ReadWrite),
        ("writeread", Permission::ReadWrite),
    ] {
        assert_eq!(node(&format!("permission='{spelling}'")).0, permission, "{spelling}");
    }
    for (spelling, mode, size) in [
        ("single", Mode::Single, 1),
        ("block", Mode::Incremental, 6),
        ("incremental", Mode::Incremental, 6),
        ("inc", Mode::Incremental, 6),
        ("port", Mode::NonIncremental, 6),
        ("non-incremental", Mode::NonIncremental, 6),
        ("non-inc", Mode::NonIncremental, 6),
    ] {
        assert_eq!(node(&format!("mode='{spelling}' size='6'")), (Permission::ReadWrite, mode, size), "{spelling}");
    }
    assert_eq!(node("mode='port'").2, 1);
}

#[test]
fn of_two_nodes_of_one_name_the_lower_is_found() {
    for (first, second) in [(1, 2), (2, 1)] {
        let xml = format!("<node>\n<node id='x' address='{first}'/>\n<node id='x' address='{second}'/></node>");
        let table = read(&xml);
        assert_eq!(table.node("x").unwrap().address(), 1);
        assert_eq!(table.iter().count(), 2);
    }
}

#[test]
fn what_is_remarkable_is_told() {
    for (xml, expected) in [
        (
            "<node id='top'><node id='a'/></node>",
            "1:1: warning: uHAL puts the outermost node's id `top` before every path; remove it",
        ),
        (
            "<node><node id='a' class='Foo;x=1'/><node id='b' address='1' class='Foo;x=1'/></node>",
            "1:20: warning: class `Foo;x=1` belongs to a user's program; the node is a plain one here",
        ),
        (
            "<node><node id='a' size='9'/></node>",
            "1:20: warning: a size without a mode has no effect; add a mode, or remove it",
        ),
        (
            "<node><node id='a' mode='port' size='0'/></node>",
            "1:32: warning: size 0 is room for no words; write how many there are",
        ),
        (
            "<node><node id='a' mask='0'/></node>",
            "1:20: warning: mask 0 selects no bit; the node reads as 0 and takes nothing but 0",
        ),
        (
            "<node><node id='a' address='0x11'><node id='b' address='0x30'/></node></node>",
            "1:35: warning: address 0x30 has bits in common with its parent's 0x00000011; the two are added, and firmware \
             that decodes bits sees another address",
        ),
        (
            "<node address='0xFFFFFFF0'><node id='a' address='0x20'/></node>",
            "1:28: warning: the address passes 0xFFFFFFFF and is 0x00000010; check it and its parents'",
        ),
        (
            "<node address='0xFFFFFFF0'><node id='a' address='0xF' mode='block' size='4'/></node>",
            "1:28: warning: the address passes 0xFFFFFFFF and is 0x00000002; check it and its parents'",
        ),
        (
            "<node>\n<node id='a'/>\n<node id='a' address='1'/></node>",
            "3:1: warning: `a` is on line 2 already; only the one at the lower address is found by its name: rename one",
        ),
        (
            "<node><node id='a' parameters='x=1; y=2'/></node>",
            "1:20: warning: parameters are not taken from `; y=2` on; write name=value;… of letters, digits and _ only",
        ),
        ("<node><node id='a' fwinfo=' '/></node>", "1:20: warning: fwinfo has no type; write it as `endpoint;width=4`"),
        ("<node><Node id='a'/></node>", "1:7: warning: element `Node` has no effect; nodes are `node`"),
    ] {
        assert_eq!(told(xml), [format!("t.xml:{expected}")], "{xml}");
        assert_eq!(read(xml).warnings().len(), 1);
    }
    let shelf = |address: &str, inside: &str| {
        let top = format!("<node><node id='m' module='file://m.xml' address='{address}'>{inside}</node></node>");
        Shelf::default().with("t.xml", top).with("m.xml", "<node address='0x10'/>")
    };
    assert_eq!(
        told_of(shelf("0x30", "")),
        [
            "t.xml:1:7: warning: address 0x30 has bits in common with the module's own 0x10; the two are joined by OR, not added"
        ]
    );
    assert_eq!(
        told_of(shelf("0x20", "<node id='x'/>")),
        ["t.xml:1:57: warning: nodes inside a node with `module` have no effect; move them into the module's file"]
    );
}

#[test]
fn attributes_that_uhal_refuses_are_errors_with_their_place() {
    const KNOWN: &str =
        "id, address, mask, mode, size, permission, module, class, parameters, tags, description, fwinfo";
    for (node, expected) in [
        ("<node address='1'/>", "2:3: error: `id` is missing; add id=\"…\""),
        ("<node id=''/>", "2:9: error: id=\"\" is not a name; write one"),
        (
            "<node id='a.b'/>",
            "2:9: error: id=\"a.b\" cannot be part of a path; remove its dots and the spaces at its ends",
        ),
        (
            "<node id=' a'/>",
            "2:9: error: id=\" a\" cannot be part of a path; remove its dots and the spaces at its ends",
        ),
        ("<node id='a' bob='1'/>", &format!("2:16: error: there is no attribute `bob`; the known ones are {KNOWN}")),
        (
            "<node id='a' address='1x'/>",
            "2:16: error: address=\"1x\" is not a number; write decimal digits, or 0x and hexadecimal digits",
        ),
        (
            "<node id='a' mask='0x1FFFFFFFF'/>",
            "2:16: error: mask=\"0x1FFFFFFFF\" is over 32 bits; write at most 0xFFFFFFFF, in at most 10 digits",
        ),
        (
            "<node id='a' mode='block' size='many'/>",
            "2:29: error: size=\"many\" is not a number; write decimal digits, or 0x and hexadecimal digits",
        ),
        (
            "<node id='a' permission='R'/>",
            "2:16: error: permission=\"R\" is unknown; write one of r, w, rw, wr, read, write, readwrite, writeread",
        ),
        (
            "<node id='a' mode='fifo'/>",
            "2:16: error: mode=\"fifo\" is unknown; write one of single, block, port, incremental, non-incremental, inc, \
             non-inc",
        ),
        ("<node id='a' mode='block'/>", "2:3: error: a block needs its size; add size=\"…\", in words"),
        (
            "<node id='a' mode='block' size='4' address='0xFFFFFFFE'/>",
            "2:3: error: 4 words from 0xFFFFFFFE on reach beyond 0xFFFFFFFF; lower the address or the size",
        ),
        (
            "<node id='a' mask='1' mode='single'/>",
            "2:25: error: `mode` cannot be combined with `mask`; remove one of them",
        ),
        ("<node id='a' mask='1' size='1'/>", "2:25: error: `size` cannot be combined with `mask`; remove one of them"),
        ("<node id='a' mask='1' class=''/>", "2:25: error: `class` cannot be combined with `mask`; remove one of them"),
        (
            "<node id='a' module='file://m.xml' permission='r'/>",
            "2:38: error: `permission` cannot be combined with `module`; remove one of them",
        ),
        (
            "<node id='a' module='file://m.xml' mode='single'/>",
            "2:38: error: `mode` cannot be combined with `module`; remove one of them",
        ),
    ] {
        assert_refused(node, expected);
    }
}

#[test]
fn nodes_and_modules_that_uhal_refuses_are_errors_with_their_place() {
    for (node, expected) in [
        (
            "<node id='a' mask='1'><node id='b'/></node>",
            "2:3: error: a node with a mask cannot contain nodes; move them beside it",
        ),
        (
            "<node id='a' mode='port'><node id='b'/></node>",
            "2:3: error: a node with a port's mode cannot contain nodes; move them beside it",
        ),
        (
            "<node id='a' fwinfo='endpoint;width'/>",
            "2:16: error: fwinfo=\"endpoint;width\" cannot be read; write it as `endpoint;width=4`",
        ),
        ("<node id='a' module='m.xml'/>", "2:16: error: `m.xml` names no file; write `file://m.xml`"),
        (
            "<node id='a' module='file://none.xml'/>",
            "2:16: error: `none.xml` cannot be read: there is no such file; check the path",
        ),
        (
            "<node id='a' module='file://m.txt'/>",
            "2:16: error: `m.txt` does not end in `.xml`, as uHAL expects of address tables; rename it",
        ),
        (
            "<node id='a' module='file://m.xml;file://m.xml'/>",
            "2:16: error: `file://m.xml;file://m.xml` names 2 files where one is expected; name one, as `file://…`",
        ),
        (
            "<node id='a' module='http://h/m.xml'/>",
            "2:16: error: `http://h/m.xml` cannot be read here; save it as a file and name that, as `file://…`",
        ),
        ("<node id='a'></nod>", "2:16: error: not XML: expected 'node' tag, not 'nod'"),
    ] {
        assert_refused(node, expected);
    }
}

fn assert_refused(node: &str, expected: &str) {
    let xml = format!("<node>\n  {node}\n</node>");
    let shelf = || Shelf::default().with("t.xml", &xml).with("m.xml", "<node/>");
    assert_eq!(told_of(shelf()), [format!("t.xml:{expected}")], "{node}");
    let error = Table::read("t.xml", &shelf(), &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("t.xml:{expected}"));
}

#[test]
fn files_that_are_none_are_errors() {
    assert_eq!(
        told_of(Shelf::default()),
        ["t.xml: error: `t.xml` cannot be read: there is no such file; check the path"]
    );
    assert_eq!(told(""), ["t.xml:1:1: error: not XML: there is no element in the file"]);
    assert_eq!(
        told("\n <connections/>"),
        ["t.xml:2:2: error: the outermost element is `connections`; an address table begins with `node`"]
    );
    assert_eq!(told("<node xmlns='x'/>").len(), 1);
    let latin = Shelf::default().with("t.xml", b"<node>\n<node id='\xE9'/></node>\n<node/>`");
    assert_eq!(
        told_of(latin),
        [
            "t.xml:2:11: warning: byte 0xE9 is not UTF-8, and is read as ISO-8859-1; save the file as UTF-8",
            "t.xml:3:1: warning: element `node` has no effect here, because the table is another outermost element; remove it",
            "t.xml:3:8: warning: the text \"`\" outside the outermost element has no effect; remove it"
        ]
    );
}

#[test]
fn files_that_include_each_other_are_told_with_their_chain() {
    let include = |file: &str| format!("<node>\n<node id='x' module='file://{file}'/></node>");
    let shelf = Shelf::default()
        .with("t.xml", include("sub/a.xml"))
        .with("sub/a.xml", include("b.xml"))
        .with("sub/b.xml", include("../sub/./a.xml"));
    assert_eq!(
        told_of(shelf),
        ["sub/b.xml:2:14: error: files include each other in a cycle: sub/a.xml -> sub/b.xml -> sub/../sub/./a.xml; \
             remove one `module`"]
    );
    let own = Shelf::default().with("t.xml", include("t.xml"));
    assert_eq!(
        told_of(own),
        ["t.xml:2:14: error: files include each other in a cycle: t.xml -> t.xml; remove one `module`"]
    );
}

#[test]
fn all_errors_are_told_by_file_and_line() {
    let shelf = Shelf::default()
        .with(
            "t.xml",
            "<node>
  <node id='a' address='z'><node/></node>
  <node id='m' module='file://m.xml'/>
  <node id='b' mask='z' size='1'/>
</node>",
        )
        .with("m.xml", "<node>\n<node id='c' mode='block'/></node>");
    let report = check("t.xml", &shelf, &Limits::default());
    let places: Vec<String> = report.findings.iter().map(|finding| finding.place.to_string()).collect();
    assert_eq!(places, ["t.xml:2:16", "t.xml:2:28", "t.xml:4:16", "t.xml:4:25", "m.xml:2:1"]);
    assert_eq!((report.errors(), report.nodes), (5, 2));
    let error = Table::read("t.xml", &shelf, &Limits::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "t.xml:2:16: error: address=\"z\" is not a number; write decimal digits, or 0x and hexadecimal digits (and 4 more)"
    );
}

#[test]
fn bounds_hold() {
    let limits = Limits { file_bytes: 200, files: 3, depth: 4, nodes: 9 };
    let told = |shelf: Shelf| -> Vec<String> {
        check("t.xml", &shelf, &limits).findings.iter().map(ToString::to_string).collect()
    };
    let include = |file: &str| format!("<node id='x' module='file://{file}'/>");
    assert_eq!(
        told(Shelf::default().with("t.xml", " ".repeat(201))),
        ["t.xml: error: `t.xml` has more than 200 bytes; split it into modules"]
    );
    let deep = format!("<node>{}{}</node>", "<node id='a'>".repeat(4), "</node>".repeat(4));
    assert_eq!(
        told(Shelf::default().with("t.xml", deep)),
        ["t.xml:1:46: error: nodes lie more than 4 levels deep; flatten the tree"]
    );
    // The outermost node, and three times the module's three.
    let three: String =
        (0..3).map(|index| format!("<node id='{index}' module='file://a.xml' address='0x{index}0'/>")).collect();
    let wide = Shelf::default()
        .with("t.xml", format!("<node>{three}</node>"))
        .with("a.xml", "<node><node id='1'/><node id='2' address='1'/></node>");
    assert_eq!(
        told(wide),
        ["t.xml:1:122: error: more than 9 nodes, each module counted as often as it is included; use blocks"]
    );
    let chain = Shelf::default()
        .with("t.xml", include("a.xml"))
        .with("a.xml", include("b.xml"))
        .with("b.xml", include("c.xml"))
        .with("c.xml", "<node/>");
    assert_eq!(told(chain), ["b.xml:1:14: error: more than 3 files; name fewer"]);
}

#[test]
fn a_chain_of_modules_is_as_deep_as_nodes_are() {
    let mut shelf = Shelf::default().with("t.xml", "<node module='file://0.xml'/>");
    for index in 0..200 {
        let next = index + 1;
        shelf = shelf.with(&format!("{index}.xml"), format!("<node module='file://{next}.xml'/>"));
    }
    let told = told_of(shelf);
    assert_eq!(told, ["62.xml:1:7: error: nodes lie more than 64 levels deep; flatten the tree"]);
}

#[test]
fn findings_are_bounded() {
    let many = |node: &str| format!("<node>{}<node id='last' mode='x'/></node>", node.repeat(2000));
    let more = "there are more than 1000 of them, and the rest is not listed; fix these first";
    let errors = told(&many("<node/>"));
    assert_eq!((errors.len(), errors[1000].ends_with(more)), (1001, true));
    // However many warnings there are, an error is told.
    let warnings = told(&many("<q/>"));
    assert_eq!((warnings.len(), warnings[1000].ends_with(more)), (1002, true));
    assert!(warnings[1001].contains("error: mode=\"x\" is unknown"));
}

#[test]
fn a_module_that_is_included_often_is_kept_once() {
    let inner: String = (0..100).map(|index| format!("<node id='r{index}' address='{index}' tags='t'/>")).collect();
    let outer: String =
        (0..1000).map(|index| format!("<node id='m{index}' address='0x{index:X}00' module='file://m.xml'/>")).collect();
    let table = of(Shelf::default()
        .with("t.xml", format!("<node>{outer}</node>"))
        .with("m.xml", format!("<node>{inner}</node>")));
    assert_eq!(table.iter().count(), 101_000);
    assert_eq!(table.node("m999.r99").unwrap().address(), 999 * 256 + 99);
    assert!(table.declared.len() < 1200);
    assert_eq!(table.overlaps(), vec![]);
}

mod overlaps;
