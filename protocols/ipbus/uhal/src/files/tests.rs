use super::*;
use alloc::collections::BTreeMap;
use alloc::string::ToString;

/// Files and an environment in memory.
#[derive(Default)]
pub(crate) struct Shelf {
    files: BTreeMap<String, Vec<u8>>,
    variables: BTreeMap<String, String>,
}

impl Shelf {
    pub(crate) fn with(mut self, file: &str, text: impl AsRef<[u8]>) -> Self {
        self.files.insert(file.to_owned(), text.as_ref().to_vec());
        self
    }

    pub(crate) fn and(mut self, variable: &str, value: &str) -> Self {
        self.variables.insert(variable.to_owned(), value.to_owned());
        self
    }
}

impl Source for Shelf {
    fn read(&self, file: &str, _max: usize) -> Result<Vec<u8>, String> {
        self.files.get(&without_dots(file)).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let front = if folder.is_empty() { String::new() } else { join(folder, "") };
        let below = self.files.keys().filter_map(|file| file.strip_prefix(front.as_str()));
        let mut names: Vec<String> = below.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        names
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

fn shelf() -> Shelf {
    let files = ["a.xml", "b.xml", "c.txt", ".hidden.xml", "sub/s.xml", "sub/t.xml", "other/s.xml", "/home/me/h.xml"];
    let shelf = files.iter().fold(Shelf::default(), |shelf, file| shelf.with(file, ""));
    shelf.and("HOME", "/home/me").and("DIR", "sub").and("EMPTY", "")
}

fn named(expression: &str) -> Result<Vec<String>, String> {
    all(expression, "", &shelf()).map_err(|problem| problem.to_string())
}

#[test]
fn a_list_is_split_and_trimmed() {
    assert_eq!(named("file://a.xml;file://b.xml").unwrap(), ["a.xml", "b.xml"]);
    assert_eq!(named(" ; file://a.xml ;; file://b.xml;").unwrap(), ["a.xml", "b.xml"]);
    assert_eq!(named("").unwrap(), Vec::<String>::new());
}

#[test]
fn relative_paths_begin_at_the_folder() {
    let from = |folder: &str, path: &str| one(path, folder, &shelf()).unwrap();
    assert_eq!(from("sub", "file://s.xml"), "sub/s.xml");
    assert_eq!(from("sub", "file://../a.xml"), "sub/../a.xml");
    assert_eq!(from("sub", "file:///home/me/h.xml"), "/home/me/h.xml");
    assert_eq!(from("/", "file://x.xml"), "/x.xml");
    assert_eq!(from("sub", "file://s*"), "sub/s.xml");
}

#[test]
fn the_shells_names_are_put_in() {
    assert_eq!(named("file://~/h.xml").unwrap(), ["/home/me/h.xml"]);
    assert_eq!(named("file://$HOME/h.xml").unwrap(), ["/home/me/h.xml"]);
    assert_eq!(named("file://${DIR}/s.xml").unwrap(), ["sub/s.xml"]);
    assert_eq!(named("file://${NONE:-sub}/s.xml").unwrap(), ["sub/s.xml"]);
    assert_eq!(named("file://${EMPTY:-sub}/s.xml").unwrap(), ["sub/s.xml"]);
    assert_eq!(named("file://'a.xml'").unwrap(), ["a.xml"]);
    assert_eq!(named("file://\"$DIR\"/s.xml").unwrap(), ["sub/s.xml"]);
    assert_eq!(named("file://a\\.xml").unwrap(), ["a.xml"]);
    assert_eq!(named("file://a$.xml").unwrap(), ["a$.xml"]);
}

#[test]
fn patterns_name_the_files_that_fit_in_order() {
    assert_eq!(named("file://*.xml").unwrap(), ["a.xml", "b.xml"]);
    assert_eq!(named("file://?.xml").unwrap(), ["a.xml", "b.xml"]);
    assert_eq!(named("file://[ab].xml").unwrap(), ["a.xml", "b.xml"]);
    assert_eq!(named("file://[!a].xml").unwrap(), ["b.xml"]);
    assert_eq!(named("file://[a-c].*").unwrap(), ["a.xml", "b.xml", "c.txt"]);
    assert_eq!(named("file://.*.xml").unwrap(), [".hidden.xml"]);
    assert_eq!(named("file://*/s.xml").unwrap(), ["other/s.xml", "sub/s.xml"]);
    assert_eq!(named("file://$DIR/*").unwrap(), ["sub/s.xml", "sub/t.xml"]);
    assert_eq!(named("file://~/*.xml").unwrap(), ["/home/me/h.xml"]);
    assert_eq!(named("file://'*'.xml").unwrap(), ["*.xml"]);
}

#[test]
fn a_star_takes_as_much_as_it_must() {
    let fits = |pattern: &str, name: &str| {
        let shelf = Shelf::default().with(name, "");
        all(&["file://", pattern].concat(), "", &shelf).is_ok()
    };
    assert!(fits("a*b*c", "axxbyybzc"));
    assert!(!fits("a*b*c", "axxbyybz"));
    assert!(fits("***", "a"));
    assert!(fits("[]]*", "]x"));
    assert!(fits("*[", "a["));
    assert!(fits("[a-]*", "-x"));
    assert!(!fits("?", "ab"));
}

#[test]
fn what_names_no_file_says_why() {
    let why = |expression: &str| named(expression).unwrap_err();
    assert_eq!(why("a.xml"), "`a.xml` names no file; write `file://a.xml`");
    assert_eq!(
        why("http://host/a.xml"),
        "`http://host/a.xml` cannot be read here; save it as a file and name that, as `file://…`"
    );
    assert_eq!(why("file://n*.xml"), "no file matches `n*.xml`; check the path");
    assert_eq!(why("file://"), "no file matches ``; check the path");
    assert_eq!(why("file://$NONE/a.xml"), "the environment has no `NONE`; set it, or write the path in full");
    assert_eq!(why("file://~root/x"), "the environment has no `~root`; set it, or write the path in full");
    for text in ["$(ls)", "`ls`", "'a", "\"a", "a\\", "${A", "${A%b}", "${}"] {
        let expected = alloc::format!("`{text}` holds a command or an open quote; write the path itself");
        assert_eq!(why(&["file://", text].concat()), expected);
    }
    let several = one("file://a.xml;file://b.xml", "", &shelf()).unwrap_err().to_string();
    assert_eq!(several, "`file://a.xml;file://b.xml` names 2 files where one is expected; name one, as `file://…`");
}

#[test]
fn dots_are_taken_out_of_a_path() {
    for (path, plain) in [
        ("a/./b//c", "a/b/c"),
        ("a/../b", "b"),
        ("../a", "../a"),
        ("a/../../b", "../b"),
        ("/../a", "/a"),
        ("/a/b/../../c", "/c"),
        ("./x", "x"),
        ("../../x", "../../x"),
    ] {
        assert_eq!(without_dots(path), plain, "{path}");
    }
    assert_eq!((folder_of("/a"), folder_of("a/b/c"), folder_of("a")), ("/", "a/b", ""));
}
