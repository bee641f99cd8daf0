use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What is wrong with a file as a whole, or with an expression that names files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileProblem {
    /// It cannot be read.
    Unreadable {
        /// Its path.
        file: String,
        /// What the reader said.
        why: String,
    },
    /// It is over the bound.
    TooLarge {
        /// Its path.
        file: String,
        /// The bound in bytes.
        max: usize,
    },
    /// The expression does not begin with `file://`.
    NoScheme {
        /// The expression.
        text: String,
    },
    /// The expression is of a scheme that cannot be read from here.
    UnknownScheme {
        /// The scheme.
        scheme: String,
        /// What follows it.
        path: String,
    },
    /// No file fits the expression.
    NoFile {
        /// The expression.
        expression: String,
    },
    /// Several files fit where one is due.
    SeveralFiles {
        /// The expression.
        expression: String,
        /// How many.
        count: usize,
    },
    /// The environment does not have what the expression needs.
    Undefined {
        /// The variable.
        variable: String,
    },
    /// The shell would run a command of the expression, or it is cut off.
    BadExpression {
        /// The expression.
        expression: String,
    },
    /// It includes itself.
    Cycle {
        /// From the file that is included again to itself.
        chain: Vec<String>,
    },
    /// Its bytes are no text.
    Encoding,
    /// Its text is no XML.
    NotXml {
        /// What the parser said.
        why: String,
    },
    /// Its outermost element is not a `node`.
    WrongRoot {
        /// What it is.
        found: String,
    },
    /// Its name does not say that it is XML, so that uHAL refuses it.
    Extension {
        /// Its path.
        file: String,
    },
    /// There are more nodes than the bound.
    TooManyNodes {
        /// The bound.
        max: u32,
    },
    /// There are more files than the bound.
    TooManyFiles {
        /// The bound.
        max: usize,
    },
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileProblem::Unreadable { file, why } => write!(f, "`{file}` cannot be read: {why}; check the path"),
            FileProblem::TooLarge { file, max } => {
                write!(f, "`{file}` has more than {max} bytes; split it into modules")
            }
            FileProblem::NoScheme { text } => write!(f, "`{text}` names no file; write `file://{text}`"),
            FileProblem::UnknownScheme { scheme, path } => {
                write!(f, "`{scheme}://{path}` cannot be read here; save it as a file and name that, as `file://…`")
            }
            FileProblem::NoFile { expression } => write!(f, "no file fits `{expression}`; check the path"),
            FileProblem::SeveralFiles { expression, count } => {
                write!(f, "`{expression}` names {count} files where one is due; name one, as `file://…`")
            }
            FileProblem::Undefined { variable } => {
                write!(f, "the environment has no `{variable}`; set it, or write the path in full")
            }
            FileProblem::BadExpression { expression } => {
                write!(f, "`{expression}` holds a command or an open quote; write the path itself")
            }
            FileProblem::Cycle { chain } => {
                f.write_str("files include each other without end: ")?;
                for (index, file) in chain.iter().enumerate() {
                    write!(f, "{}{file}", if index == 0 { "" } else { " -> " })?;
                }
                f.write_str("; take out one `module`")
            }
            FileProblem::Encoding => {
                f.write_str("the text is neither UTF-8 nor declared to be ISO-8859-1; save it as UTF-8")
            }
            FileProblem::NotXml { why } => write!(f, "not XML: {why}"),
            FileProblem::WrongRoot { found } => {
                write!(f, "the outermost element is `{found}`; an address table begins with `node`")
            }
            FileProblem::Extension { file } => {
                write!(f, "`{file}` is not named as uHAL wants address tables; let its name end in `.xml`")
            }
            FileProblem::TooManyNodes { max } => {
                write!(f, "more than {max} nodes, each module counted as often as it is included; use blocks")
            }
            FileProblem::TooManyFiles { max } => write!(f, "more than {max} files; name fewer"),
        }
    }
}
