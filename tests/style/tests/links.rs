//! Every link between the documents leads somewhere: the file is there, and so is the heading.

use hodo_style::{Complaint, expect_none, has_test, root};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let root = root();
    let mut documents = Vec::new();
    for folder in [&root, &root.join("docs")] {
        collect(folder, folder != &root, &mut documents);
    }
    assert!(documents.len() > 10, "the documents were not found");
    expect_none(&documents.iter().flat_map(|document| dead_links(&root, document)).collect::<Vec<_>>());
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let root = root();
    let mut documents = Vec::new();
    collect(&root.join("docs"), true, &mut documents);
    let mut named = 0;
    let mut complaints = Vec::new();
    for document in &documents {
        for (number, line) in read(document).lines().enumerate() {
            for (path, test) in
                line.split('`').filter_map(|text| text.split_once("::")).filter(|(path, _)| is_code(path))
            {
                named += 1;
                let code = fs::read_to_string(root.join(path)).unwrap_or_default();
                if !has_test(&code, test) {
                    complaints.push(Complaint {
                        path: document.strip_prefix(&root).unwrap_or(document).display().to_string(),
                        line: number + 1,
                        text: format!("{path} has no test {test}; name one that holds what is said"),
                    });
                }
            }
        }
    }
    assert!(named > 5, "the tests that documents name were not found");
    expect_none(&complaints);
}

fn is_code(path: &str) -> bool {
    path.ends_with(".py") || path.ends_with(".rs")
}

#[test]
fn a_heading_is_named_as_on_github() {
    assert_eq!(anchor("## What `hodo` is, today"), "what-hodo-is-today");
    assert_eq!(anchor("# A-B (c)"), "a-b-c");
}

fn collect(folder: &Path, deep: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() && deep {
            collect(&path, deep, found);
        } else if is_document(&path) {
            found.push(path);
        }
    }
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn dead_links(root: &Path, document: &Path) -> Vec<Complaint> {
    let text = read(document);
    let folder = document.parent().expect("a file is in a folder");
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.contains("://") && !leads_somewhere(document, folder, link) {
                complaints.push(Complaint {
                    path: document.strip_prefix(root).unwrap_or(document).display().to_string(),
                    line: number + 1,
                    text: format!("{link} leads nowhere; name a file or a heading that is there"),
                });
            }
        }
    }
    complaints
}

fn leads_somewhere(document: &Path, folder: &Path, link: &str) -> bool {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_owned() } else { folder.join(path) };
    target.exists()
        && (heading.is_empty()
            || !is_document(&target)
            || read(&target).lines().any(|line| line.starts_with('#') && anchor(line) == heading))
}

fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
