//! Prints values at random, each with its seed and its type, little-endian in hexadecimal digits: for a peer to decode and encode
//! again, see tests/interop/pva/golden.py.

#[path = "../tests/any/mod.rs"]
mod any;

use hodo_pva::wire::Side;
use hodo_pva::{Order, Value, Writer};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for seed in 0..any::SEEDS {
        let mut writer = Writer::new(Side::Client, Order::Little);
        Value::encode_any(Some(&any::of_seed(seed)), &mut writer);
        let digits: String = writer.to_vec().iter().map(|byte| format!("{byte:02X}")).collect();
        writeln!(out, "{seed} {digits}")?;
    }
    Ok(())
}
