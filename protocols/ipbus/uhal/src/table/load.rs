//! Reads a file and all that it includes, each once.

use super::Limits;
use super::draft::{Draft, Findings, Include, draft};
use crate::files::{self, Source};
use crate::finding::{FileProblem, NodeProblem, Problem};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A file that has been read, and which files are in the places of its modules.
pub(super) struct Loaded {
    pub(super) draft: Draft,
    /// By the index of the node, the index of the file; without the modules that have errors.
    pub(super) modules: BTreeMap<usize, usize>,
    /// Levels of nodes, where a module is a level of its own: how deep whoever walks over them may have to go.
    height: usize,
    /// Nodes, those of modules counted each time.
    weight: usize,
}

/// Reads a file and all that it includes; the index of the file itself, if it can be used.
pub(super) fn load(
    file: &str,
    source: &dyn Source,
    limits: &Limits,
    findings: &mut Findings,
) -> (Vec<Loaded>, Option<usize>) {
    let mut loader = Loader { source, limits, findings, files: Vec::new(), known: BTreeMap::new(), open: Vec::new() };
    let top = loader.load(file, None);
    (loader.files, top)
}

struct Loader<'a> {
    source: &'a dyn Source,
    limits: &'a Limits,
    findings: &'a mut Findings,
    files: Vec<Loaded>,
    /// Which of the files one is, by its identity; nothing where it cannot be used.
    known: BTreeMap<String, Option<usize>>,
    /// Identities and paths of the files that are being read, each included by the one before.
    open: Vec<(String, String)>,
}

/// The file and the place that includes another one.
type By<'f> = (&'f str, (u32, u32));

impl Loader<'_> {
    fn load(&mut self, file: &str, by: Option<By<'_>>) -> Option<usize> {
        let identity = self.source.identity(file);
        if let Some(known) = self.known.get(&identity) {
            return *known;
        }
        let bytes = match self.bytes(file, &identity) {
            Ok(bytes) => bytes,
            Err(problem) => {
                let (file, place) = by.unwrap_or((file, (0, 0)));
                self.findings.add(file, place, problem);
                return None;
            }
        };
        let draft = draft(file, &bytes, self.limits, self.findings);
        drop(bytes);
        self.open.push((identity.clone(), file.to_owned()));
        let loaded = draft.and_then(|draft| self.with_modules(draft));
        self.open.pop();
        let index = loaded.map(|loaded| {
            self.files.push(loaded);
            self.files.len() - 1
        });
        self.known.insert(identity, index);
        index
    }

    fn bytes(&self, file: &str, identity: &str) -> Result<Vec<u8>, Problem> {
        if let Some(first) = self.open.iter().position(|(open, _)| open == identity) {
            let mut chain: Vec<String> = self.open[first..].iter().map(|(_, file)| file.clone()).collect();
            chain.push(file.to_owned());
            return Err(FileProblem::Cycle { chain }.into());
        }
        if self.open.len() >= self.limits.depth {
            return Err(NodeProblem::TooDeep { max: self.limits.depth }.into());
        }
        if self.known.len() + self.open.len() >= self.limits.files {
            return Err(FileProblem::TooManyFiles { max: self.limits.files }.into());
        }
        if !is_xml(file) {
            return Err(FileProblem::Extension { file: file.to_owned() }.into());
        }
        Ok(files::read(file, self.limits.file_bytes, self.source)?)
    }

    fn with_modules(&mut self, draft: Draft) -> Option<Loaded> {
        if draft.nodes.len() > self.limits.nodes as usize {
            self.findings.add(&draft.file, (1, 1), FileProblem::TooManyNodes { max: self.limits.nodes });
            return None;
        }
        let height = draft.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let mut loaded = Loaded { weight: draft.nodes.len(), draft, modules: BTreeMap::new(), height };
        for index in 0..loaded.draft.nodes.len() {
            let node = &loaded.draft.nodes[index];
            let Some(include) = &node.module else { continue };
            let (depth, place) = (node.depth, (include.line, include.column));
            let Some(module) = self.module(&loaded.draft, include) else { continue };
            // The module's outermost node takes the place of the one that includes it.
            let weight = loaded.weight + self.files[module].weight - 1;
            let problem = if depth + self.files[module].height > self.limits.depth {
                Problem::from(NodeProblem::TooDeep { max: self.limits.depth })
            } else if weight > self.limits.nodes as usize {
                Problem::from(FileProblem::TooManyNodes { max: self.limits.nodes })
            } else {
                loaded.height = loaded.height.max(depth + self.files[module].height);
                loaded.weight = weight;
                loaded.modules.insert(index, module);
                continue;
            };
            self.findings.add(&loaded.draft.file, place, problem);
        }
        Some(loaded)
    }

    fn module(&mut self, draft: &Draft, include: &Include) -> Option<usize> {
        let place = (include.line, include.column);
        match files::one(&include.expression, files::folder_of(&draft.file), self.source) {
            Ok(file) => self.load(&file, Some((&draft.file, place))),
            Err(problem) => {
                self.findings.add(&draft.file, place, problem);
                None
            }
        }
    }
}

/// Tells whether uHAL takes the name for XML: it looks at the first letters behind the last dot.
fn is_xml(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let extension = name.rfind('.').and_then(|dot| name.get(dot..dot + 4));
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(".xml"))
}
