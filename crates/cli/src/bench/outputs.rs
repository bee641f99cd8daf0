//! The files of the results: checked before anything is measured, and written whole after every step.

use super::forms::{self, Form};
use crate::args::Output;
use crate::output_file::OutputFile;
use crate::{Error, terminal};
use hodo_measure::Document;
use std::fs;
use std::io;
use std::path::Path;

/// Everything that is to be written.
#[derive(Debug, Default)]
pub struct Outputs {
    files: Vec<Target>,
    stdout: Vec<Form>,
}

#[derive(Debug)]
struct Target {
    form: Form,
    file: OutputFile,
}

impl Outputs {
    /// Finds out where everything goes, and whether it can be written there. Makes the folder of `--out`.
    pub fn prepare(output: &Output, markdown: Option<&Path>) -> Result<Self, Error> {
        let mut outputs = Outputs::default();
        let plot = output.plot.as_deref();
        let plot_form = if plot.is_some_and(|file| file.extension().is_some_and(|form| form == "png")) {
            Form::Png
        } else {
            Form::Svg
        };
        for (option, form, file) in [
            ("--tsv", Form::Tsv, output.tsv.as_deref()),
            ("--json", Form::Json, output.json.as_deref()),
            ("--html", Form::Html, output.html.as_deref()),
            ("--plot", plot_form, plot),
            ("--markdown", Form::Markdown, markdown),
        ] {
            if let Some(file) = file {
                outputs.add(option, form, file)?;
            }
        }
        if outputs.stdout.len() > 1 {
            return Err(Error::Usage("only one form can go to standard output; give the others a file".to_owned()));
        }
        if let Some(dir) = &output.out {
            outputs.add_folder(dir)?;
        }
        Ok(outputs)
    }

    /// Returns whether standard output is for a program, so that people read standard error.
    pub fn take_stdout(&self) -> bool {
        !self.stdout.is_empty()
    }

    /// Returns whether there are no outputs at all.
    pub fn are_none(&self) -> bool {
        self.stdout.is_empty() && self.files.is_empty()
    }

    /// Writes all files. Reports the first one that could not be written, after it has tried every one.
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

    /// Writes what goes to standard output.
    pub fn print(&self, document: &Document) -> Result<(), Error> {
        for form in &self.stdout {
            let bytes = forms::bytes(*form, document).map_err(|why| Error::Failed(why.to_string()))?;
            terminal::print_bytes(&bytes.unwrap_or_default())?;
        }
        Ok(())
    }

    fn add(&mut self, option: &str, form: Form, file: &Path) -> Result<(), Error> {
        if file.as_os_str() == "-" {
            self.stdout.push(form);
            return Ok(());
        }
        self.files.push(Target { form, file: OutputFile::of_option(option, file)? });
        Ok(())
    }

    fn add_folder(&mut self, dir: &Path) -> Result<(), Error> {
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
    use hodo_tester::PrivateDir;

    fn to(file: &Path) -> Output {
        Output { json: Some(file.to_owned()), ..Output::default() }
    }

    fn document() -> Document {
        hodo_tester::document(None, Vec::new())
    }

    #[test]
    fn a_file_appears_whole_and_nothing_beside_it() {
        let dir = PrivateDir::make().unwrap();
        let file = dir.path().join("a.json");
        let outputs = Outputs::prepare(&to(&file), None).unwrap();
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
            match Outputs::prepare(&to(Path::new(file)), None) {
                Err(Error::Usage(text)) => {
                    assert!(text.contains("--json") && text.contains(file) && text.contains(why), "{text}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_full_disk_is_a_failure_with_the_files_name() {
        let outputs = Outputs::prepare(&to(Path::new("/dev/full")), None).unwrap();
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
        Outputs::prepare(&to(&link), None).unwrap().write_files(&document()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::metadata(&file).unwrap().len() > 0);
    }

    #[test]
    fn one_form_for_standard_output() {
        let both = Output { tsv: Some("-".into()), json: Some("-".into()), ..Output::default() };
        assert!(matches!(Outputs::prepare(&both, None), Err(Error::Usage(_))));
    }

    #[test]
    fn a_folder_has_all_forms() {
        let dir = PrivateDir::make().unwrap();
        let out = dir.path().join("a/b");
        let output = Output { out: Some(out.clone()), ..Output::default() };
        Outputs::prepare(&output, None).unwrap().write_files(&document()).unwrap();
        for name in ["result.json", "result.tsv", "report.html", "plots"] {
            assert!(out.join(name).exists(), "{name}");
        }
    }
}
