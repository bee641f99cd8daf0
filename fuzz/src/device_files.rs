use hodo_uhal::connections::Connections;
use hodo_uhal::files::{self, Source};
use hodo_uhal::finding::{Problem, Remark};
use hodo_uhal::pattern::Pattern;
use hodo_uhal::table::{Limits, OVERLAPS_MAX, Table, check};
use hodo_uhal::uri::Uri;

const LIMITS: Limits = Limits { file_bytes: 1 << 20, files: 8, depth: 16, nodes: 2000 };

/// Two files: `t.xml`, and `m.xml` behind the first zero byte.
struct Two<'a>(&'a [u8], &'a [u8]);

impl Source for Two<'_> {
    fn read(&self, file: &str, _max: usize) -> Result<Vec<u8>, String> {
        match self.identity(file).as_str() {
            "t.xml" => Ok(self.0.to_vec()),
            "m.xml" => Ok(self.1.to_vec()),
            _ => Err("there is no such file".to_owned()),
        }
    }

    fn list(&self, _folder: &str) -> Vec<String> {
        ["t.xml", "m.xml", ".hidden", "a[b]", "caf\u{e9}"].map(str::to_owned).to_vec()
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name.len() < 3).then(|| "m.xml".to_owned())
    }
}

impl<'a> Two<'a> {
    fn of(input: &'a [u8]) -> Self {
        let at = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
        Two(&input[..at], input.get(at + 1..).unwrap_or_default())
    }
}

/// Checks that a table is refused exactly if it has errors, and that each of its nodes is found by its path.
pub fn address_table(input: &[u8]) {
    let source = Two::of(input);
    let report = check("t.xml", &source, &LIMITS);
    assert!(report.overlaps.len() <= OVERLAPS_MAX);
    report.findings.iter().for_each(|finding| assert!(!finding.to_string().is_empty(), "a finding says something"));
    report.overlaps.iter().for_each(|overlap| assert!(!overlap.to_string().is_empty(), "an overlap says something"));
    let table = match Table::read("t.xml", &source, &LIMITS) {
        Ok(table) => table,
        Err(error) => {
            assert_eq!(error.findings, report.findings);
            return assert!(report.errors() > 0, "a table is refused for a reason");
        }
    };
    assert_eq!((report.errors(), report.nodes), (0, table.iter().count() + 1));
    let any = Pattern::new("(?s).*").expect("it is a regular expression");
    assert_eq!(table.nodes(&any).len(), table.iter().count());
    for node in table.iter() {
        match table.node(&node.path()) {
            Ok(found) => assert_eq!(found.path(), node.path()),
            // Of two nodes of one name the first is found, and so are the nodes below it.
            Err(why) => assert!(report.findings.iter().any(|finding| is_same_name(&finding.problem)), "{why}"),
        }
        assert!(node.parent().is_some_and(|parent| parent.children().any(|child| child == node)));
        let (_, _) = (node.read_block(node.size()), node.write_block_at(1, node.size()));
        if let Ok(read) = node.read() {
            assert!(read.mask.bits(read.mask.value(u32::MAX)) == Some(read.mask.0) || read.mask.0 == 0);
        }
    }
}

fn is_same_name(problem: &Problem) -> bool {
    matches!(problem, Problem::Remark(Remark::SameId { .. }))
}

/// Checks that every device of a connection file is found again.
pub fn connections(input: &[u8]) {
    let source = Two::of(input);
    match Connections::read("file://t.xml;file://m.xml", &source, &LIMITS) {
        Ok(all) => {
            for connection in all.iter() {
                assert_eq!(all.connection(&connection.id), Ok(connection));
                let _ = connection.table_file(&source);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// Checks that a device's URI, once written, parses to itself, and that any text is an expression of files or none.
pub fn device_uri(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match text.parse::<Uri>() {
        Ok(uri) => assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri)),
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
    let source = Two(&[], &[]);
    for expression in [text.to_owned(), format!("file://{text}")] {
        match files::all(&expression, "folder", &source) {
            Ok(files) => assert!(files.iter().all(|file| !file.is_empty()), "a file has a name"),
            Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
        }
    }
    let _ = Pattern::new(text).map(|pattern| pattern.fits("a.b"));
}
