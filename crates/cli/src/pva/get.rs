//! `hodo pva get`: which values do PVs have?

use super::options::{ConnectOptions, NameOptions, RequestOptions, ShowOptions, failed};
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_pva_host::image::{BYTES_MAX, decode_image};
use hodo_pva_host::machines::Value;
use std::path::{Path, PathBuf};

/// Bytes of text that are gathered before they are written.
const AT_ONCE: usize = 64 << 10;

/// Reads all at once, and shows each as soon as those before it are there.
pub fn run(options: &GetOptions) -> Result<Outcome, Error> {
    let names = options.names.all()?;
    if options.image.is_some() && names.len() != 1 {
        return Err(Error::Usage(format!("--image takes one PV, not {}: read them one after the other", names.len())));
    }
    let mut client = options.connect.open()?;
    let (mut text, mut outcome, mut written) = (String::new(), Outcome::Done, Ok(()));
    let mut flush = |text: &mut String| {
        if written.is_ok() {
            written = terminal::print(text);
        }
        text.clear();
    };
    // Names that are waited for are not held back by those that are there.
    let is_few = names.len() < 100;
    let done = client.read_each(&names, &options.request.request, |at, value| match value {
        Ok(value) => {
            if let Some(file) = &options.image
                && let Err(why) = save(value, file)
            {
                outcome = Outcome::Failed;
                terminal::remark(&format!("{}: {why}", names[at]));
            }
            options.show.write(&names[at], value, &mut text);
            if is_few || text.len() >= AT_ONCE {
                flush(&mut text);
            }
        }
        Err(why) => {
            flush(&mut text);
            outcome = Outcome::Failed;
            terminal::remark(&why.to_string());
        }
    });
    flush(&mut text);
    written?;
    done.map_err(failed)?;
    Ok(outcome)
}

/// Writes an image as a PNG file.
fn save(value: &Value, file: &Path) -> Result<(), String> {
    let image = decode_image(value, BYTES_MAX).map_err(|why| why.to_string())?;
    let picture = image.png().map_err(|why| why.to_string())?;
    std::fs::write(file, picture).map_err(|why| format!("--image {} cannot be written: {why}", file.display()))
}

/// PVs to read.
#[derive(Debug, Args)]
pub struct GetOptions {
    /// The names.
    #[command(flatten)]
    pub names: NameOptions,
    /// Write the image, an NTNDArray, to this file, decompressed; bytes and unsigned 16-bit pixels as they are, others scaled to 16 bits.
    #[arg(long, value_name = "FILE.png")]
    pub image: Option<PathBuf>,
    /// The fields.
    #[command(flatten)]
    pub request: RequestOptions,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
