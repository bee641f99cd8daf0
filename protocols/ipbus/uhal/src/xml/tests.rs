use super::*;
use alloc::borrow::ToOwned;

fn value_of(bytes: &[u8]) -> String {
    let text = Text::decode(bytes);
    let document = text.parse().unwrap();
    plain(outermost(&document).next().unwrap().attribute("d").unwrap()).into_owned()
}

fn refused(text: &str) -> String {
    let why = Text::decode(text.as_bytes()).parse().map(|_| ()).err();
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
        ("<n d='a' d='b' e='' d=\"c\"/>", "a"),
        ("<n d='x:y' x:y='z'><x:y z='&'/></n>", "x:y"),
        ("`<n d='a'/>` & > ]]>", "a"),
        ("<n d='a'/><n d='b'/><m><n/></m>", "a"),
        ("<n d='a'/>\0<<</m>", "a"),
        ("<n d='\u{1}\u{c}\u{1f}' \t e = '&#0;'>\u{1}</n>", "\u{1}\u{c}\u{1f}"),
        ("<n d='&#0;&#xD800;&#x41;'/>", "&#0;&#xD800;A"),
        ("<!DOCTYPE n [<!ENTITY e 'x>\"'><!-- ' --><?p > ?>]><n d='kind'/><!DOCTYPE n>", "kind"),
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
    for text in ["\u{FEFF}<n d='\u{e9}'/>", "<n d='\u{e9}'/>"] {
        let ways: [Vec<u8>; 4] = [
            text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            text.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect(),
            text.chars().flat_map(|letter| u32::from(letter).to_be_bytes()).collect(),
        ];
        for bytes in ways {
            assert_eq!(value_of(&bytes), "\u{e9}", "{bytes:?}");
        }
    }
}

#[test]
fn what_is_mended_is_remarked_where_it_stands() {
    for (bytes, line, column, remark) in [
        (
            &b"<n>\n\xC3\xA9 \xE9</n>"[..],
            2,
            3,
            "byte 0xE9 is not UTF-8, and is read as ISO-8859-1; save the file as UTF-8",
        ),
        (b"<n>\n</n>\n`\n", 3, 1, "the text \"`\" outside the outermost element has no effect; remove it"),
        (b" x <n/> y", 1, 2, "the text \"x\" outside the outermost element has no effect; remove it"),
        (b"<n/>\n\0<<\0", 2, 1, "a NUL ends the file, and 3 characters behind it are not read; remove it"),
        (b"<n/>\0", 1, 5, "a NUL ends the file; remove it"),
        (
            b"<n>\n<m a='1' a='2'/></n>",
            2,
            10,
            "the element has `a` already, and its first value counts; remove this one",
        ),
    ] {
        let remarks = Text::decode(bytes).remarks.clone();
        let [(found, place)] = &remarks[..] else { panic!("{remarks:?}") };
        assert_eq!((found.to_string().as_str(), *place), (remark, (line, column)));
    }
}

#[test]
fn positions_are_those_of_the_file() {
    let text = Text::decode("<n d='& <'>\n\u{e9}<m d='&'/></n>".as_bytes());
    let document = text.parse().unwrap();
    let inner = document.descendants().find(|node| node.has_tag_name("m")).unwrap();
    assert_eq!(text.position(inner.range().start), (2, 2));
    assert_eq!(text.position(inner.attribute_node("d").unwrap().range().start), (2, 5));
}

#[test]
fn what_is_no_xml_says_where() {
    for (text, why) in [
        ("", "1:1 not XML: there is no element in the file"),
        ("only text", "1:1 not XML: there is no element in the file"),
        ("<n a='' b a=''/>", "1:15 not XML: expected '=' not '/'"),
        ("<n/></n>", "1:5 not XML: `</n>` closes no element; remove it"),
        ("<n/> < x", "1:7 not XML: invalid name token"),
        ("<n><!DOCTYPE n></n>", "1:4 not XML: unknown token"),
        ("<n>\n<m></k></n>", "2:4 not XML: expected 'm' tag, not 'k'"),
        ("<n>\n <m a=1/></n>", "2:7 not XML: expected a quote not '1'"),
        ("<n a='1\n<m b='2'/>", "2:1 not XML: expected ''' not '<'"),
        ("<!-- open", "1:10 not XML: expected '-->'"),
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
    let text = Text::decode(text.as_bytes());
    let document = text.parse().unwrap();
    let last = outermost(&document).next().unwrap().last_child().unwrap();
    assert_eq!(text.position(last.range().start), (1, 10 + 999 * 4));
}

#[test]
fn many_levels_are_no_trouble() {
    let text = ["<n>".repeat(100_000), "</n>".repeat(100_000)].concat();
    assert_eq!(refused(&text), "taken");
    assert!(refused(&"<n>".repeat(100_000)).contains("still open at the end"));
}
