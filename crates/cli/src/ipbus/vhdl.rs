//! `hodo ipbus vhdl`: which slave of a firmware has which addresses?

use super::board::counted;
use super::check;
use crate::output::Target;
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_ipbus_host::finding::Finding;
use hodo_ipbus_host::registers::{self, Remark};
use hodo_ipbus_host::vhdl::{self, Options, VhdlError};
use std::path::{Path, PathBuf};

/// Writes the package, or says why there is none.
pub fn run(options: &VhdlOptions) -> Result<Outcome, Error> {
    let output = Target::prepare("--output", &options.output)?;
    let table = registers::table(&options.table)?;
    let decoder = table.decoder();
    terminal::tell(&decoder.findings.iter().map(line).collect::<String>(), true)?;
    let path = Path::new(table.files().last().unwrap_or(&options.table));
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let name = options.name.clone().unwrap_or_else(|| part(path.file_stem()));
    let file = part(path.file_name());
    let package = vhdl::package(&decoder, &Options { name: &name, file: &file, width: options.width })
        .map_err(|error| refused(&error, path))?;
    output.write(package.as_bytes())?;
    if !output.is_stdout() {
        let slaves = counted(decoder.slaves.len(), "slave", "slaves");
        terminal::print(&format!("ipbus_decode_{name}: {slaves} to {output}\n"))?;
    }
    Ok(Outcome::Done)
}

fn line(finding: &Finding) -> String {
    check::line(&Remark::from(finding))
}

fn refused(error: &VhdlError, table: &Path) -> Error {
    match error {
        VhdlError::BadName { .. } => Error::Usage(format!("{error}; write another one with --name")),
        VhdlError::Narrow { .. } => Error::Usage(format!("--width: {error}")),
        _ => Error::Failed(format!("{}: {error}", table.display())),
    }
}

/// A table, and the decoder that is made from it.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct VhdlOptions {
    /// Address table, as a path or an expression of uHAL's: 'file://$BOARDS/board.xml'.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Write the package to this file; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Name of the table in the package ipbus_decode_NAME [default: the file's, without its extension].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Number of address bits that are compared, from the lowest on [default: the outermost node's fwinfo, or as many as the slaves need].
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(..=32))]
    pub width: Option<u8>,
}

const NOTES: &str = "\
A node with fwinfo=\"endpoint;width=N\" is a slave, and has the 2^N words from its address on.
The package has the names and numbers of those by gen_ipbus_addr_decode, for ipbus_fabric_sel:

  fabric: entity work.ipbus_fabric_sel
    generic map (NSLV => N_SLAVES, SEL_WIDTH => IPBUS_SEL_WIDTH)
    port map (sel => ipbus_sel_board(ipb_in.ipb_addr), …);

Exit status: 0 success; 1 no decoder can follow the table's fwinfo, and the message has what
`hodo ipbus check` finds; 2 usage error, or a table that cannot be read.";
