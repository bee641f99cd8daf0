use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

/// A problem with a file as a whole, or with an expression that names files.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// It cannot be read.
    #[error("`{file}` cannot be read: {why}; check the path")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Error of the reader.
        why: String,
    },
    /// It is over the bound.
    #[error("`{file}` has more than {max} bytes; split it into modules")]
    TooLarge {
        /// Path of the file.
        file: String,
        /// The bound in bytes.
        max: usize,
    },
    /// The expression does not begin with `file://`.
    #[error("`{text}` names no file; write `file://{text}`")]
    NoScheme {
        /// The expression.
        text: String,
    },
    /// The expression is of a scheme that cannot be read from here.
    #[error("`{scheme}://{path}` cannot be read here; save it as a file and name that, as `file://…`")]
    UnknownScheme {
        /// The scheme.
        scheme: String,
        /// The text behind the scheme.
        path: String,
    },
    /// No file fits the expression.
    #[error("no file matches `{expression}`; check the path")]
    NoFile {
        /// The expression.
        expression: String,
    },
    /// Several files fit where one is due.
    #[error("`{expression}` names {count} files where one is expected; name one, as `file://…`")]
    SeveralFiles {
        /// The expression.
        expression: String,
        /// How many.
        count: usize,
    },
    /// The environment does not have what the expression needs.
    #[error("the environment has no `{variable}`; set it, or write the path in full")]
    Undefined {
        /// The variable.
        variable: String,
    },
    /// The shell would run a command of the expression, or it is cut off.
    #[error("`{expression}` holds a command or an open quote; write the path itself")]
    BadExpression {
        /// The expression.
        expression: String,
    },
    /// It includes itself.
    #[error("files include each other in a cycle: {}; remove one `module`", chain.join(" -> "))]
    Cycle {
        /// From the file that is included again to itself.
        chain: Vec<String>,
    },
    /// The text is not XML.
    #[error("not XML: {why}")]
    NotXml {
        /// Error of the parser.
        why: String,
    },
    /// The outermost element is not a `node`.
    #[error("the outermost element is `{found}`; an address table begins with `node`")]
    WrongRoot {
        /// Name of that element.
        found: String,
    },
    /// The name does not say that the file is XML, so that uHAL refuses it.
    #[error("`{file}` does not end in `.xml`, as uHAL expects of address tables; rename it")]
    Extension {
        /// Path of the file.
        file: String,
    },
    /// There are more nodes than the bound.
    #[error("more than {max} nodes, each module counted as often as it is included; use blocks")]
    TooManyNodes {
        /// The bound.
        max: u32,
    },
    /// There are more files than the bound.
    #[error("more than {max} files; name fewer")]
    TooManyFiles {
        /// The bound.
        max: usize,
    },
}
