//! Connection files: which device is where, and which address table does it have?
//!
//! ```text
//! <connections>
//!   <connection id="board.0" uri="chtcp-2.0://hub:10203?target=board0:50001" address_table="file://board.xml"/>
//! </connections>
//! ```
//!
//! An expression names the files, as `file://a.xml;file://$BOARDS/*.xml` ([`crate::files`]). As in uHAL, a file that is
//! named again is read once, a connection that is there again with the same content is one, and with other content it is
//! an error; one that lacks an attribute is left out.

use crate::files::{self, Source};
use crate::finding::{FileError, FileProblem, Finding, NodeProblem, Place, Problem, Remark};
use crate::pattern::Pattern;
use crate::table::Limits;
use crate::xml::{self, Text};
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Every device of some connection files, by id.
#[derive(Debug, Clone, Default)]
pub struct Connections {
    connections: BTreeMap<String, Connection>,
    warnings: Vec<Finding>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Name of the connection.
    pub id: String,
    /// Where it is; reads as a [`crate::uri::Uri`].
    pub uri: String,
    /// The expression that names its address table.
    pub address_table: String,
    /// Where it is declared.
    pub place: Place,
}

/// An id that no connection has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoConnection {
    /// The id.
    pub id: String,
    /// The ids that there are, or the first of them.
    pub there: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// How many ids an error tells.
const IDS: usize = 8;

impl Connections {
    /// Reads the files that an expression names, relative ones from the current folder on.
    ///
    /// # Errors
    /// Where a file cannot be read, or two connections have one id.
    pub fn read(expression: &str, source: &dyn Source, limits: &Limits) -> Result<Self, FileError> {
        let mut reader = Reader { source, limits, read: BTreeSet::new(), found: Connections::default() };
        match files::all(expression, "", source) {
            Ok(files) if files.len() > limits.files => {
                reader.add(expression, (0, 0), FileProblem::TooManyFiles { max: limits.files });
            }
            Ok(files) => files.iter().for_each(|file| reader.file(file)),
            Err(problem) => reader.add(expression, (0, 0), problem),
        }
        let Connections { connections, warnings: findings } = reader.found;
        if findings.iter().any(Finding::is_error) {
            return Err(FileError { findings });
        }
        Ok(Connections { connections, warnings: findings })
    }

    /// Returns the remarks on the files.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// Returns the device of an id.
    ///
    /// # Errors
    /// Where there is none: what there is.
    pub fn connection(&self, id: &str) -> Result<&Connection, NoConnection> {
        self.connections.get(id).ok_or_else(|| NoConnection {
            id: id.to_owned(),
            there: self.connections.keys().take(IDS).cloned().collect(),
            more: self.connections.len().saturating_sub(IDS),
        })
    }

    /// Iterates over every device, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.connections.values()
    }

    /// Iterates over the devices whose whole id fits, by id.
    pub fn matching(&self, pattern: &Pattern) -> impl Iterator<Item = &Connection> {
        self.iter().filter(|connection| pattern.fits(&connection.id))
    }
}

impl Connection {
    /// Returns the file of the address table; a relative path begins at the folder of the connection file.
    ///
    /// # Errors
    /// Where the expression names none, or several.
    pub fn table_file(&self, source: &dyn Source) -> Result<String, FileProblem> {
        files::one(&self.address_table, files::folder_of(&self.place.file), source)
    }
}

struct Reader<'a> {
    source: &'a dyn Source,
    limits: &'a Limits,
    /// Identities of the files that have been read.
    read: BTreeSet<String>,
    found: Connections,
}

impl Reader<'_> {
    fn file(&mut self, file: &str) {
        if !self.read.insert(self.source.identity(file)) {
            return;
        }
        let bytes = match files::read(file, self.limits.file_bytes, self.source) {
            Ok(bytes) => bytes,
            Err(problem) => return self.add(file, (0, 0), problem),
        };
        let text = Text::decode(&bytes);
        for (remark, place) in text.remarks() {
            self.add(file, *place, remark.clone());
        }
        if let Err((problem, line, column)) = self.text(file, &text) {
            self.add(file, (line, column), problem);
        }
    }

    fn text(&mut self, file: &str, text: &Text) -> Result<(), xml::At> {
        let document = text.parse()?;
        let roots = || xml::outermost(&document).filter(|element| element.has_tag_name("connections"));
        if let (None, Some(root)) = (roots().next(), xml::outermost(&document).next()) {
            let found = xml::plain(root.tag_name().name()).into_owned();
            self.add(file, text.position(root.range().start), Remark::NoConnections { found });
        }
        for element in roots().flat_map(|root| root.children()).filter(|child| child.has_tag_name("connection")) {
            let (line, column) = text.position(element.range().start);
            let place = Place { file: file.to_owned(), line, column };
            let attribute = |name| element.attribute(name).map(|value| xml::plain(value).into_owned()).ok_or(name);
            let connection = attribute("id").and_then(|id| {
                Ok(Connection { id, uri: attribute("uri")?, address_table: attribute("address_table")?, place })
            });
            match connection {
                Ok(connection) => self.connection(connection),
                Err(missing) => self.add(file, (line, column), Remark::IncompleteConnection { missing }),
            }
        }
        Ok(())
    }

    fn connection(&mut self, connection: Connection) {
        let Some(first) = self.found.connections.get(&connection.id) else {
            self.found.connections.insert(connection.id.clone(), connection);
            return;
        };
        if (&first.uri, &first.address_table) != (&connection.uri, &connection.address_table) {
            let problem = NodeProblem::OtherConnection { id: connection.id, first: first.place.clone() };
            self.found.warnings.push(Finding { place: connection.place, problem: problem.into() });
        }
    }

    fn add(&mut self, file: &str, (line, column): (u32, u32), problem: impl Into<Problem>) {
        let place = Place { file: file.to_owned(), line, column };
        self.found.warnings.push(Finding { place, problem: problem.into() });
    }
}

impl core::error::Error for NoConnection {}

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no connection `{}`", self.id)?;
        if self.there.is_empty() {
            return f.write_str(": the files have none");
        }
        write!(f, "; there are {}", self.there.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Shelf;
    use alloc::string::ToString;
    use alloc::{format, vec};

    fn connection(id: &str, uri: &str, table: &str) -> String {
        format!("<connection id='{id}' uri='{uri}' address_table='{table}'/>\n")
    }

    fn one(id: &str) -> String {
        connection(id, "ipbusudp-2.0://board:50001", "file://t.xml")
    }

    fn file(connections: &[String]) -> String {
        format!("<connections>\n{}</connections>", connections.concat())
    }

    fn shelf() -> Shelf {
        Shelf::default()
            .with("a.xml", file(&[one("a1"), one("a2")]))
            .with("b.xml", file(&[one("b1"), one("a1")]))
            .with("sub/s.xml", file(&[connection("s1", "ipbusudp-2.0://board:1", "file://../t.xml")]))
            .with("other.xml", file(&[connection("a1", "ipbusudp-2.0://board:2", "file://t.xml")]))
            .with(
                "part.xml",
                "<connections>\n <connection id='m' uri='x'/>\n <connection/><connection id='' uri='' \
                               address_table=''/>\n <group/></connections>",
            )
            .with("table.xml", "<node/>")
            .with("broken.xml", "<connections>\n")
            .and("SUB", "sub")
    }

    fn read(expression: &str) -> Result<Connections, String> {
        Connections::read(expression, &shelf(), &Limits::default()).map_err(|error| error.to_string())
    }

    fn ids(expression: &str) -> Vec<String> {
        read(expression).unwrap().iter().map(|connection| connection.id.clone()).collect()
    }

    #[test]
    fn several_files_are_one_list() {
        assert_eq!(ids("file://a.xml"), ["a1", "a2"]);
        assert_eq!(ids("file://b.xml;file://a.xml"), ["a1", "a2", "b1"]);
        assert_eq!(ids("file://[ab].xml;file://$SUB/*.xml"), ["a1", "a2", "b1", "s1"]);
        assert_eq!(ids("file://a.xml;file://./a.xml;file://a.xml"), ["a1", "a2"]);
        assert_eq!(ids(""), Vec::<String>::new());
    }

    #[test]
    fn devices_are_found_by_id_and_pattern() {
        let all = read("file://a.xml;file://b.xml").unwrap();
        assert_eq!(all.connection("b1").unwrap().uri, "ipbusudp-2.0://board:50001");
        let fitting = |pattern: &str| -> Vec<&str> {
            let pattern = Pattern::new(pattern).unwrap();
            all.matching(&pattern).map(|connection| connection.id.as_str()).collect()
        };
        assert_eq!(fitting("a.*"), ["a1", "a2"]);
        assert_eq!(fitting("a"), vec![""; 0]);
        let why = all.connection("c").unwrap_err().to_string();
        assert_eq!(why, "there is no connection `c`; there are a1, a2, b1");
        let why = read("").unwrap().connection("c").unwrap_err().to_string();
        assert_eq!(why, "there is no connection `c`: the files have none");
    }

    #[test]
    fn a_table_is_relative_to_the_connection_file() {
        let all = read("file://a.xml;file://sub/s.xml").unwrap();
        assert_eq!(all.connection("a1").unwrap().table_file(&shelf()).unwrap(), "t.xml");
        let connection = all.connection("s1").unwrap();
        assert_eq!(connection.table_file(&shelf()).unwrap(), "sub/../t.xml");
        assert_eq!(connection.place.to_string(), "sub/s.xml:2:1");
    }

    #[test]
    fn what_is_left_out_is_told() {
        let part = read("file://part.xml;file://table.xml").unwrap();
        assert_eq!(part.iter().count(), 1);
        let told: Vec<String> = part.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "part.xml:2:2: warning: the connection is ignored, because it has no `address_table`; add it",
                "part.xml:3:2: warning: the connection is ignored, because it has no `id`; add it",
                "table.xml:1:1: warning: the outermost element is `node`, and not `connections`: the file has no \
                 connections",
            ]
        );
    }

    #[test]
    fn what_cannot_be_used_says_where() {
        let why = |expression: &str| read(expression).unwrap_err();
        assert_eq!(
            why("file://a.xml;file://other.xml"),
            "other.xml:2:1: error: connection `a1` is already at a.xml:2:1, with other content; give one of them another \
             id"
        );
        assert_eq!(
            why("file://broken.xml"),
            "broken.xml:2:1: error: not XML: an element is still open at the end of the file; close it, as with `</node>`"
        );
        assert_eq!(
            why("file://none.xml;file://broken.xml"),
            "none.xml: error: `none.xml` cannot be read: there is no such file; check the path (and 1 more)"
        );
        assert_eq!(why("a.xml"), "a.xml: error: `a.xml` names no file; write `file://a.xml`");
    }
}
