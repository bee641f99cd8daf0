use super::*;
use alloc::borrow::ToOwned;

fn value_of(bytes: &[u8]) -> String {
    let text = Text::decode(bytes).unwrap();
    let document = text.parse().unwrap();
    plain(document.root_element().attribute("d").unwrap()).into_owned()
}

fn refused(text: &str) -> String {
    let why = Text::decode(text.as_bytes()).and_then(|text| text.parse().map(|_| ())).err();
    why.map_or("taken".to_owned(), |(problem, line, column)| alloc::format!("{line}:{column} {problem}"))
}

#[test]
fn what_uhal_reads_is_read() {
    for (text, value) in [
        ("<n d='a & b &foo; &lt; &#65; &#x42; & '/>", "a & b &foo; < A B & "),
        ("<n d='a < b > c'/>", "a < b > c"),
        ("<n d=\"it's\" e='\"'/>", "it's"),
        ("\n <?xml version='1.0'?><n d='late'/>", "late"),
        ("<?xml version='1.0'?><!DOCTYPE n [<!ENTITY e 'x'>]><n d='&e;'/>", "&e;"),
        ("<!-- a -- & < b --><n d='after'><!-- -- --></n>", "after"),
        ("<n d='x\n  y\tz'/>", "x   y z"),
        ("<n d=''><![CDATA[<n & ]]>&<?p & ?></n>", ""),
        ("\u{FEFF}<n d='mark'/>", "mark"),
        ("<?xml version='1.0' encoding='iso-8859-1'?><n d='plain'/>", "plain"),
    ] {
        assert_eq!(value_of(text.as_bytes()), value, "{text}");
    }
}

#[test]
fn encodings_are_known() {
    assert_eq!(value_of(b"<?xml version='1.0' encoding='ISO-8859-1'?><n d='\xE9'/>"), "\u{e9}");
    let wide: Vec<u8> = "\u{FEFF}<n d='\u{e9}'/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(value_of(&wide), "\u{e9}");
    let wide: Vec<u8> = "\u{FEFF}<n d='\u{e9}'/>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(value_of(&wide), "\u{e9}");
    assert_eq!(Text::decode(b"<n>\n\xC3\xA9 \xE9</n>").unwrap_err(), (FileProblem::Encoding, 2, 3));
}

#[test]
fn positions_are_those_of_the_file() {
    let text = Text::decode("<n d='& <'>\n\u{e9}<m d='&'/></n>".as_bytes()).unwrap();
    let document = text.parse().unwrap();
    let inner = document.descendants().find(|node| node.has_tag_name("m")).unwrap();
    assert_eq!(text.position(inner.range().start), (2, 2));
    assert_eq!(text.position(inner.attribute_node("d").unwrap().range().start), (2, 5));
}

#[test]
fn what_is_no_xml_says_where() {
    for (text, why) in [
        ("", "1:1 not XML: the document does not have a root node"),
        ("<n>\n<m></k></n>", "2:4 not XML: expected 'm' tag, not 'k'"),
        ("<n>\n <m a=1/></n>", "2:7 not XML: expected a quote not '1'"),
        ("<n a='1' a='2'/>", "1:10 not XML: attribute 'a' is already defined"),
        ("<n a='1\n<m b='2'/>", "2:1 not XML: expected ''' not '<'"),
        ("<n/> x", "1:6 not XML: unknown token"),
        ("<!-- open", "1:10 not XML: expected '-->'"),
        ("<n a='&#0;'/>", "1:7 not XML: malformed entity reference"),
    ] {
        assert_eq!(refused(text), why, "{text}");
    }
}

#[test]
fn a_crowd_of_attributes_is_refused() {
    let crowd = |many: usize| {
        (0..many).fold("<n>\n <m".to_owned(), |text, index| alloc::format!("{text} a{index}=''")) + "/></n>"
    };
    assert_eq!(refused(&crowd(1000)), "taken");
    assert_eq!(refused(&crowd(1001)), "2:2 not XML: an element has more than 1000 attributes");
}

#[test]
fn a_long_line_has_places_too() {
    let text = ["<n d='\u{e9}'>", &"<m/>".repeat(1000), "</n>"].concat();
    let text = Text::decode(text.as_bytes()).unwrap();
    let document = text.parse().unwrap();
    let last = document.root_element().last_child().unwrap();
    assert_eq!(text.position(last.range().start), (1, 10 + 999 * 4));
}

#[test]
fn many_levels_are_no_trouble() {
    let text = ["<n>".repeat(100_000), "</n>".repeat(100_000)].concat();
    assert_eq!(refused(&text), "taken");
    assert!(refused(&"<n>".repeat(100_000)).contains("still open at the end"));
}
