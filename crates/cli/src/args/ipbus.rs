use super::units;
use clap::{Arg, Args, Command, Subcommand, ValueEnum};
use hodo_ipbus_host::registers::{self, Spot, WORDS_MAX};
use std::path::PathBuf;
use std::time::Duration;

/// Registers of IPbus devices, by address and by name.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Ipbus {
    /// The subcommand.
    #[command(subcommand)]
    pub command: IpbusCommand,
}

/// The commands for registers, and for the files that name them.
#[derive(Debug, Subcommand)]
pub enum IpbusCommand {
    /// Read registers.
    Read(Read),
    /// Write registers.
    Write(Write),
    /// Read or write words at consecutive addresses.
    #[command(subcommand)]
    Block(Transfer),
    /// Read or write words that all have one address.
    #[command(subcommand, mut_subcommand("read", of_one_address), mut_subcommand("write", of_one_address))]
    Fifo(Transfer),
    /// Modify a register in one transaction, which nothing else comes between.
    #[command(subcommand)]
    Rmw(Rmw),
    /// Read all registers, or those whose names match.
    Dump(Dump),
    /// Which nodes does an address table have?
    Nodes(Nodes),
    /// Which devices do connection files have?
    #[command(mut_arg("patterns", by_id))]
    Devices(Devices),
    /// Find errors in address tables and connection files.
    Check(Check),
}

const EXAMPLES: &str = "\
A device is a URI, as ipbusudp-2.0://board:50001, ipbustcp-2.0://board:50001 or
chtcp-2.0://hub:10203?target=board:50001 (1.3 likewise), or with --connections the id of a device in those files.

Examples:
  hodo ipbus read ipbusudp-2.0://board:50001 0x1000 0x1004
  hodo ipbus read -c connections.xml crate1.board daq.events daq.status
  hodo ipbus write -c connections.xml crate1.board control.enable 1
  hodo ipbus block read -c connections.xml crate1.board daq.spy --output spy.bin --form little
  hodo ipbus dump -c connections.xml crate1.board 'links\\..*' --tsv -
  hodo ipbus check boards/*.xml

Exit status: 0 done; 1 something failed, of which the message names node, address and device; 2 usage.";

/// The device, and how it is spoken to.
#[derive(Debug, Args)]
pub struct Device {
    /// A URI, or with --connections the id of a device in those files.
    #[arg(value_name = "DEVICE")]
    pub device: String,
    /// Connection files, or as uHAL names them, 'file://$BOARDS/*.xml'.
    #[arg(short, long, value_name = "FILE", help_heading = "Device")]
    pub connections: Vec<String>,
    /// The address table, instead of the connection file's.
    #[arg(short, long, value_name = "FILE", help_heading = "Device")]
    pub table: Option<String>,
    /// How long nothing may get on before it is given up.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration, help_heading = "Device")]
    pub timeout: Duration,
    /// Over UDP: number packets, so that what is lost is recovered. Say false for a board that a hub serves, or another
    /// client with numbers: packets of both would fail.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, help_heading = "Device")]
    pub reliable: bool,
}

/// Registers to read.
#[derive(Debug, Args)]
pub struct Read {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// Nodes by their paths, or addresses as 0x1000, or some bits as 0x1000/0xF0; all in one dispatch.
    #[arg(value_name = "NODE", required = true)]
    pub spots: Vec<Spot>,
    /// How the values are shown.
    #[command(flatten)]
    pub show: Show,
}

/// Registers to write.
#[derive(Debug, Args)]
pub struct Write {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// A node by its path, or an address as 0x1000, or some bits as 0x1000/0xF0, and its value; then the next, all in one
    /// dispatch.
    #[arg(value_names = ["NODE", "VALUE"], required = true, num_args = 2..)]
    pub pairs: Vec<String>,
    /// How the values are shown.
    #[command(flatten)]
    pub show: Show,
}

/// A bulk transfer.
#[derive(Debug, Subcommand)]
pub enum Transfer {
    /// Read words.
    Read(ReadBlock),
    /// Write words.
    Write(WriteBlock),
}

/// Hides the options that only blocks have; a user who gives one all the same gets an error.
fn of_one_address(transfer: Command) -> Command {
    let hidden =
        ["offset", "configuration"].into_iter().fold(transfer, |all, name| all.mut_arg(name, |arg| arg.hide(true)));
    hidden.mut_args(|arg| if arg.get_id() == "words" { arg.help("How many words") } else { arg })
}

/// Words that are read.
#[derive(Debug, Args)]
pub struct ReadBlock {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// A node by its path, or an address as 0x1000.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// How many words [default: of a block all].
    #[arg(short = 'n', long, value_name = "N", value_parser = word_count)]
    pub words: Option<u32>,
    /// Where the words are.
    #[command(flatten)]
    pub place: Place,
    /// Write the words to this file; `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub output: Option<PathBuf>,
    /// How words stand in the file.
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    pub form: Form,
    /// How the values are shown.
    #[command(flatten)]
    pub show: Show,
}

/// Words that are written.
#[derive(Debug, Args)]
pub struct WriteBlock {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// A node by its path, or an address as 0x1000.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// The words.
    #[arg(value_name = "VALUE", value_parser = units::word, required_unless_present = "input", conflicts_with = "input")]
    pub values: Vec<u32>,
    /// Where the words go.
    #[command(flatten)]
    pub place: Place,
    /// Take the words from this file; `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub input: Option<PathBuf>,
    /// How words stand in the file.
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    pub form: Form,
}

/// Where in a device a block is.
#[derive(Debug, Args)]
pub struct Place {
    /// Offset in words from the start of a block.
    #[arg(long, value_name = "N", value_parser = units::word)]
    pub offset: Option<u32>,
    /// In the configuration space, which has addresses only.
    #[arg(long, conflicts_with = "offset")]
    pub configuration: bool,
}

/// How words stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// Numbers, decimal or behind 0x; written one a line.
    #[default]
    Text,
    /// Four bytes each, the lowest first.
    Little,
    /// Four bytes each, the highest first.
    Big,
}

impl From<Form> for registers::Form {
    fn from(form: Form) -> Self {
        match form {
            Form::Text => registers::Form::Text,
            Form::Little => registers::Form::Little,
            Form::Big => registers::Form::Big,
        }
    }
}

/// How a register is modified.
#[derive(Debug, Subcommand)]
pub enum Rmw {
    /// Keep the bits of AND, and set those of OR.
    Bits(RmwBits),
    /// Add to it, going round.
    Sum(RmwSum),
}

/// The terms of a read-modify-write-bits transaction.
#[derive(Debug, Args)]
pub struct RmwBits {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// A node by its path, or an address as 0x1000: a whole register.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// The bits to be kept.
    #[arg(value_name = "AND", value_parser = units::word)]
    pub and: u32,
    /// The bits to be set.
    #[arg(value_name = "OR", value_parser = units::word)]
    pub or: u32,
    /// Values as decimal numbers.
    #[arg(long, help_heading = "Results")]
    pub decimal: bool,
    /// Where the result goes.
    #[command(flatten)]
    pub forms: Forms,
}

/// The term of a read-modify-write-sum transaction.
#[derive(Debug, Args)]
pub struct RmwSum {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// A node by its path, or an address as 0x1000: a whole register.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// The addend; it may be negative.
    #[arg(value_name = "ADDEND", value_parser = units::signed_word, allow_hyphen_values = true)]
    pub addend: u32,
    /// Values as decimal numbers.
    #[arg(long, help_heading = "Results")]
    pub decimal: bool,
    /// Where the result goes.
    #[command(flatten)]
    pub forms: Forms,
}

/// Registers to dump: those that are readable, without the words of blocks and ports.
#[derive(Debug, Args)]
pub struct Dump {
    /// The device.
    #[command(flatten)]
    pub device: Device,
    /// The nodes.
    #[command(flatten)]
    pub filter: Filter,
    /// How the values are shown.
    #[command(flatten)]
    pub show: Show,
}

/// Which nodes.
#[derive(Debug, Args)]
pub struct Filter {
    /// Regular expressions that fit whole paths, as 'links\.link[0-3]\..*'; what fits takes the nodes below it along
    /// [default: all].
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// The patterns are the shell's: * and ? and [0-3] fit letters of one name, ** fits all.
    #[arg(long)]
    pub glob: bool,
}

/// Which nodes are listed.
#[derive(Debug, Args)]
pub struct Nodes {
    /// An address table, or with --connections the id of a device in those files.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Connection files, or as uHAL names them, 'file://$BOARDS/*.xml'.
    #[arg(short, long, value_name = "FILE")]
    pub connections: Vec<String>,
    /// The nodes.
    #[command(flatten)]
    pub filter: Filter,
    /// Where the list goes.
    #[command(flatten)]
    pub forms: Forms,
}

/// Which devices are listed.
#[derive(Debug, Args)]
pub struct Devices {
    /// Connection files, or as uHAL names them, 'file://$BOARDS/*.xml'.
    #[arg(short, long, value_name = "FILE", required = true)]
    pub connections: Vec<String>,
    /// The devices, by their ids.
    #[command(flatten)]
    pub filter: Filter,
    /// Where the list goes.
    #[command(flatten)]
    pub forms: Forms,
}

/// Sets the help of patterns that choose devices.
fn by_id(patterns: Arg) -> Arg {
    patterns.help("Regular expressions that fit whole ids, as 'crate[0-3]\\..*' [default: all]")
}

/// Files to check.
#[derive(Debug, Args)]
pub struct Check {
    /// Address tables: files, or as uHAL names them, 'file://$BOARDS/*.xml'.
    #[arg(value_name = "TABLE", required_unless_present = "connections")]
    pub tables: Vec<String>,
    /// Connection files too, with the tables that they name.
    #[arg(short, long, value_name = "FILE")]
    pub connections: Vec<String>,
    /// Nodes that share addresses fail the check no more: they may be meant.
    #[arg(long)]
    pub allow_overlaps: bool,
    /// Warnings fail the check too.
    #[arg(long)]
    pub strict: bool,
    /// Where the findings go.
    #[command(flatten)]
    pub forms: Forms,
}

/// How values are shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct Show {
    /// Values as decimal numbers.
    #[arg(long)]
    pub decimal: bool,
    /// The values alone, one a line.
    #[arg(long)]
    pub values: bool,
    /// The forms that programs read.
    #[command(flatten)]
    pub forms: Forms,
}

/// The forms that programs read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct Forms {
    /// One line each, tab-separated; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub tsv: Option<PathBuf>,
    /// One document; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn word_count(text: &str) -> Result<u32, String> {
    let words = units::word(text)?;
    if (1..=WORDS_MAX).contains(&words) { Ok(words) } else { Err(format!("{text} is not in 1..={WORDS_MAX}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_bound() {
        assert_eq!(word_count("0x10"), Ok(16));
        assert!(word_count("0").unwrap_err().contains("1..=4194304"));
        assert!(word_count("4194305").is_err());
    }
}
