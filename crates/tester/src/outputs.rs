//! The files of the results: checked before anything is measured, and written whole after every step.

use crate::forms::{self, Form};
use crate::{Error, OutputFile};
use hodo_measure::Document;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files of the results; `-` stands for standard output.
#[derive(Debug, Clone, Default)]
pub struct OutputPaths {
    /// One line a measurement, for a spreadsheet.
    pub tsv: Option<PathBuf>,
    /// The whole document.
    pub json: Option<PathBuf>,
    /// One self-contained page.
    pub html: Option<PathBuf>,
    /// Rate and latency against size, as PNG if the name ends so, otherwise as SVG.
    pub plot: Option<PathBuf>,
    /// A table for a README.
    pub markdown: Option<PathBuf>,
    /// A folder for all of these forms, which is created.
    pub dir: Option<PathBuf>,
    /// Whether results that are in the folder already may be replaced.
    pub force: bool,
}

/// Outputs of a run, found to be writable before anything is measured.
#[derive(Debug, Default)]
pub struct Outputs {
    files: Vec<Target>,
    stdout: Option<Form>,
}

/// The message if two forms are to go to standard output.
pub const ONE_FOR_STDOUT: &str = "only one form can go to standard output; give the others a file";

#[derive(Debug)]
struct Target {
    form: Form,
    file: OutputFile,
}

impl Outputs {
    /// Finds out where everything goes, and whether it can be written there. Creates the folder.
    ///
    /// # Errors
    /// [`Error::Usage`] if something cannot be written, or two forms would go to standard output.
    pub fn prepare(paths: &OutputPaths) -> Result<Self, Error> {
        let mut outputs = Outputs::default();
        let plot = paths.plot.as_deref();
        let plot_form = if plot.is_some_and(|file| file.extension().is_some_and(|form| form == "png")) {
            Form::Png
        } else {
            Form::Svg
        };
        for (option, form, file) in [
            ("--tsv", Form::Tsv, paths.tsv.as_deref()),
            ("--json", Form::Json, paths.json.as_deref()),
            ("--html", Form::Html, paths.html.as_deref()),
            ("--plot", plot_form, plot),
            ("--markdown", Form::Markdown, paths.markdown.as_deref()),
        ] {
            if let Some(file) = file {
                outputs.add(option, form, file)?;
            }
        }
        if let Some(dir) = &paths.dir {
            outputs.add_folder(dir, paths.force)?;
        }
        Ok(outputs)
    }

    /// Returns whether standard output is for a program, so that people read standard error.
    #[must_use]
    pub fn take_stdout(&self) -> bool {
        self.stdout.is_some()
    }

    /// Returns whether there are no outputs at all.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.stdout.is_none() && self.files.is_empty()
    }

    /// Writes all files. Reports the first one that could not be written, after it has tried every one.
    ///
    /// # Errors
    /// [`Error::Failed`], which names the file.
    pub fn write_files(&self, document: &Document) -> Result<(), Error> {
        let mut first_failure = Ok(());
        for target in &self.files {
            let done = target
                .write(document)
                .map_err(|why| Error::Failed(format!("{} cannot be written: {why}", target.file.path().display())));
            first_failure = first_failure.and(done);
        }
        first_failure
    }

    /// Returns the bytes for standard output; none if no form goes there.
    ///
    /// # Errors
    /// [`Error::Failed`] if the picture cannot be drawn.
    pub fn standard_output(&self, document: &Document) -> Result<Vec<u8>, Error> {
        let Some(form) = self.stdout else { return Ok(Vec::new()) };
        let bytes = forms::bytes(form, document).map_err(|why| Error::Failed(why.to_string()))?;
        Ok(bytes.unwrap_or_default())
    }

    fn add(&mut self, option: &str, form: Form, file: &Path) -> Result<(), Error> {
        if file.as_os_str() == "-" {
            return match self.stdout.replace(form) {
                None => Ok(()),
                Some(_) => Err(Error::Usage(ONE_FOR_STDOUT.to_owned())),
            };
        }
        self.files.push(Target { form, file: OutputFile::of_option(option, file)? });
        Ok(())
    }

    fn add_folder(&mut self, dir: &Path, force: bool) -> Result<(), Error> {
        if !force && dir.join("result.json").exists() {
            return Err(Error::Usage(format!(
                "--out {}: results are there already; choose another folder, or replace them with --force",
                dir.display()
            )));
        }
        let cannot = |why: io::Error| {
            Error::Usage(format!("--out {}: this folder cannot be made or written: {why}", dir.display()))
        };
        let plots = dir.join("plots");
        fs::create_dir_all(&plots).map_err(cannot)?;
        OutputFile::prepare(&plots.join("any.svg")).map_err(cannot)?;
        for (form, name) in [(Form::Json, "result.json"), (Form::Tsv, "result.tsv"), (Form::Html, "report.html")] {
            let file = OutputFile::prepare(&dir.join(name)).map_err(cannot)?;
            self.files.push(Target { form, file });
        }
        self.files.push(Target { form: Form::Plots, file: OutputFile::folder(plots) });
        Ok(())
    }
}

impl Target {
    fn write(&self, document: &Document) -> io::Result<()> {
        match self.form {
            Form::Plots => {
                forms::plots(document).try_for_each(|(name, svg)| self.file.within(name).write(svg.as_bytes()))
            }
            form => match forms::bytes(form, document)? {
                Some(bytes) => self.file.write(&bytes),
                None => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateDir;

    fn to(file: &Path) -> OutputPaths {
        OutputPaths { json: Some(file.to_owned()), ..OutputPaths::default() }
    }

    fn document() -> Document {
        crate::document(None, Vec::new())
    }

    #[test]
    fn a_file_appears_whole_and_nothing_beside_it() {
        let dir = PrivateDir::make().unwrap();
        let file = dir.path().join("a.json");
        let outputs = Outputs::prepare(&to(&file)).unwrap();
        assert!(!file.exists(), "checking leaves nothing behind");
        for _ in 0..2 {
            outputs.write_files(&document()).unwrap();
            assert!(hodo_report::json::from_str(&fs::read_to_string(&file).unwrap()).is_ok());
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_found_before() {
        for (file, why) in [("/no/such/folder/a.json", "No such file"), ("/", "directory")] {
            match Outputs::prepare(&to(Path::new(file))) {
                Err(Error::Usage(text)) => {
                    assert!(text.contains("--json") && text.contains(file) && text.contains(why), "{text}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_full_disk_is_a_failure_with_the_files_name() {
        let outputs = Outputs::prepare(&to(Path::new("/dev/full"))).unwrap();
        match outputs.write_files(&document()) {
            Err(Error::Failed(text)) => assert!(text.contains("/dev/full"), "{text}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = PrivateDir::make().unwrap();
        let (file, link) = (dir.path().join("a.json"), dir.path().join("b.json"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Outputs::prepare(&to(&link)).unwrap().write_files(&document()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::metadata(&file).unwrap().len() > 0);
    }

    #[test]
    fn one_form_for_standard_output() {
        let both = OutputPaths { tsv: Some("-".into()), json: Some("-".into()), ..OutputPaths::default() };
        assert!(matches!(Outputs::prepare(&both), Err(Error::Usage(_))));
    }

    #[test]
    fn a_folder_has_all_forms() {
        let dir = PrivateDir::make().unwrap();
        let out = dir.path().join("a/b");
        let output = OutputPaths { dir: Some(out.clone()), ..OutputPaths::default() };
        Outputs::prepare(&output).unwrap().write_files(&document()).unwrap();
        for name in ["result.json", "result.tsv", "report.html", "plots"] {
            assert!(out.join(name).exists(), "{name}");
        }
    }
}
