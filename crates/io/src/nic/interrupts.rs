//! Interrupts of an interface and the processors that serve them: `/proc/interrupts`, `/proc/irq/N/smp_affinity_list`.

use super::{Nic, sysfs};
use crate::affinity::parse_list;
use std::fs;
use std::path::Path;

/// One interrupt of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interrupt {
    /// The number.
    pub number: u32,
    /// The name that the driver gave it, as `eth0-TxRx-0`.
    pub name: String,
    /// The processors that may serve it; none if that cannot be read.
    pub allowed: Vec<usize>,
    /// The processors that do; none if that cannot be read.
    pub serving: Vec<usize>,
    /// The number of times that it was raised.
    pub count: u64,
}

impl Nic {
    /// Returns the interrupts of the interface of this name; none if it has none, or they cannot be recognised.
    #[must_use]
    pub fn interrupts(name: &str) -> Vec<Interrupt> {
        let Ok(table) = fs::read_to_string("/proc/interrupts") else { return Vec::new() };
        let device = sysfs(name).and_then(|folder| fs::canonicalize(folder.join("device")).ok());
        let numbers = device.as_deref().map(message_numbers).unwrap_or_default();
        // A virtio device names its interrupts after itself, not after the interface.
        let device = device.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
        let is_named = |found: &str| belongs(found, name) || device.as_deref().is_some_and(|own| belongs(found, own));
        let list = |number: u32, file: &str| {
            let text = fs::read_to_string(format!("/proc/irq/{number}/{file}")).unwrap_or_default();
            parse_list(text.trim()).unwrap_or_default()
        };
        parse_table(&table)
            .filter(|found| numbers.contains(&found.number) || is_named(&found.name))
            .map(|found| Interrupt {
                allowed: list(found.number, "smp_affinity_list"),
                serving: list(found.number, "effective_affinity_list"),
                ..found
            })
            .collect()
    }
}

/// Returns the numbers of a device's message-signalled interrupts: its own, or those of the PCI device below a virtio one.
fn message_numbers(device: &Path) -> Vec<u32> {
    let folders = [Some(device), device.parent()].into_iter().flatten().map(|folder| folder.join("msi_irqs"));
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns whether the name of an interrupt is `owner`, alone or with more behind a separator.
fn belongs(interrupt: &str, owner: &str) -> bool {
    interrupt
        .split(", ")
        .any(|each| each.strip_prefix(owner).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric())))
}

/// Parses ` 38:  0  7984  PCI-MSIX-0000:00:03.0  1-edge  virtio2-input.0` under a heading with a column a processor.
fn parse_table(table: &str) -> impl Iterator<Item = Interrupt> + '_ {
    let mut lines = table.lines();
    let processors = lines.next().unwrap_or_default().split_whitespace().count();
    lines.filter_map(move |line| {
        let (number, rest) = line.split_once(':')?;
        let number = number.trim().parse().ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let counts = fields.get(..processors)?.iter().map(|count| count.parse::<u64>().ok());
        // Names shared by several devices are joined with `, `, so that the last field is the end of the last of them.
        let name = rest.rsplit_once("  ").map_or(rest, |(_, name)| name).trim().to_owned();
        Some(Interrupt { number, name, count: counts.sum::<Option<u64>>()?, ..Interrupt::default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Linux 6.18 and of Linux 6.1 in a guest.
    const TABLE: &str = "           CPU0       CPU1       
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 38:          0       7984 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 40:          5          7   PCI-MSI 1048577-edge      eth0-TxRx-0
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

    #[test]
    fn interrupts_have_numbers_names_and_counts() {
        let found: Vec<(u32, String, u64)> =
            parse_table(TABLE).map(|found| (found.number, found.name, found.count)).collect();
        let expected = [(24, "ACPI:Ged", 1), (38, "virtio2-input.0", 7984), (40, "eth0-TxRx-0", 12)]
            .map(|(number, name, count)| (number, name.to_owned(), count));
        assert_eq!(found, expected);
        assert_eq!(parse_table("").count(), 0);
    }

    #[test]
    fn an_interrupt_belongs_to_the_whole_name() {
        assert!(belongs("eth0", "eth0") && belongs("eth0-rx-1", "eth0") && belongs("i801, eth1:x", "eth1"));
        assert!(!belongs("eth01", "eth0") && !belongs("virtio12-input", "virtio1") && !belongs("", "eth0"));
    }

    #[test]
    fn the_loopback_has_no_interrupts() {
        assert_eq!(Nic::interrupts("lo"), []);
    }
}
