//! The address tables and connection files under `tables/`, as they lie on a disk.

use hodo_uhal::connections::Connections;
use hodo_uhal::files::Source;
use hodo_uhal::pattern::Pattern;
use hodo_uhal::table::{Limits, Mode, Permission, Table, WriteWord, check};
use hodo_uhal::uri::{Route, Uri};
use std::fs;
use std::io::Read;
use std::path::Path;

struct Disk;

impl Source for Disk {
    fn read(&self, file: &str, max: usize) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let file = fs::File::open(file).map_err(|error| error.to_string())?;
        file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(if folder.is_empty() { "." } else { folder }).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "TABLES").then(|| folder("").trim_end_matches('/').to_owned())
    }
}

fn folder(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name).to_string_lossy().into_owned()
}

fn readout() -> Table {
    Table::read(&folder("readout.xml"), &Disk, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_board_has_its_modules() {
    let table = readout();
    assert_eq!(table.iter().count(), 79);
    let link = table.node("links.link3").unwrap();
    assert_eq!((link.address(), link.mode(), link.tags()), (0x1300, Mode::Hierarchical, "spare"));
    assert_eq!(link.description(), "A front-end link");
    let mut parameters: Vec<_> = link.parameters().collect();
    parameters.sort_unstable();
    assert_eq!(parameters, [("cable", "B2"), ("polarity", "inverted"), ("rate", "4800")]);
    let spy = table.node("daq.spy").unwrap();
    assert_eq!((spy.address(), spy.last_address(), spy.size()), (0x0011_0000, 0x0011_FFFF, 65536));
    assert_eq!(spy.permission(), Permission::Read);
    assert_eq!(table.node("timing.phase").unwrap().mask().0, 0x1FF);
    assert_eq!(
        table.node("timing").unwrap().firmware_info().collect::<Vec<_>>(),
        [("type", "endpoint"), ("width", "4")]
    );
    assert_eq!(table.root().description(), "Readout board, firmware 3 & later");
    let delays = table.nodes(&Pattern::new(".*delay").unwrap());
    assert_eq!(delays.len(), 4);
    let write = delays[1].write(0x3F).unwrap();
    assert_eq!(write, WriteWord::Bits { address: 0x1101, and: 0xFFFF_C0FF, or: 0x3F00 });
}

#[test]
fn a_sound_board_has_nothing_but_a_users_class_told() {
    let report = check(&folder("readout.xml"), &Disk, &Limits::default());
    let told: Vec<String> = report.findings.iter().map(|finding| finding.problem.to_string()).collect();
    assert_eq!(told, ["class `opencores_i2c;speed=100` belongs to a user's program; the node is a plain one here"]);
    assert_eq!(report.overlaps, []);
    assert_eq!(report.errors(), 0);
}

#[test]
fn a_broken_board_is_told_to_the_end() {
    let file = folder("broken/several.xml");
    let report = check(&file, &Disk, &Limits::default());
    let told: Vec<String> =
        report.findings.iter().map(|finding| finding.to_string().replace(&file, "several.xml")).collect();
    let known = "id, address, mask, mode, size, permission, module, class, parameters, tags, description, fwinfo";
    let nowhere = folder("broken/nowhere.xml");
    assert_eq!(
        told,
        [
            "several.xml:3:23: error: mask=\"0x1g\" is not a number; write decimal digits, or 0x and hexadecimal digits"
                .to_owned(),
            "several.xml:4:33: error: `mode` cannot be combined with `mask`; remove one of them".to_owned(),
            "several.xml:6:3: warning: `control` is on line 2 already; only the one at the lower address is found by its \
             name: rename one"
                .to_owned(),
            "several.xml:7:3: error: a block needs its size; add size=\"…\", in words".to_owned(),
            format!(
                "several.xml:8:38: error: `{nowhere}` cannot be read: No such file or directory (os error 2); check the \
                 path"
            ),
            format!("several.xml:10:36: error: there is no attribute `permision`; the known ones are {known}"),
        ]
    );
    let overlaps: Vec<String> = report.overlaps.iter().map(|overlap| overlap.to_string().replace(&file, "f")).collect();
    assert_eq!(
        overlaps,
        [
            "f:9:3: overlap: `spy` (0x00000020-0x0000002F) and `counter` (0x0000002F) of f:11:3 have bits in common; give \
          one of them another address or mask"
        ]
    );
}

#[test]
fn a_cycle_is_one_error_with_its_chain() {
    let error = Table::read(&folder("broken/cycle.xml"), &Disk, &Limits::default()).unwrap_err().to_string();
    let broken = folder("broken");
    assert_eq!(
        error.replace(&broken, "broken"),
        "broken/cycle_inner.xml:2:20: error: files include each other in a cycle: broken/cycle.xml -> \
         broken/cycle_inner.xml -> broken/../broken/cycle.xml; remove one `module`"
    );
}

#[test]
fn a_connection_leads_to_its_device_and_table() {
    let all = Connections::read("file://$TABLES/conn*.xml", &Disk, &Limits::default()).unwrap();
    assert_eq!(all.iter().count(), 5);
    let hub = all.connection("readout.hub").unwrap();
    let uri: Uri = hub.uri.parse().unwrap();
    assert!(matches!(&uri.route, Route::Hub { hub, target } if (hub.port, target.port) == (10203, 50001)));
    let table = Table::read(&hub.table_file(&Disk).unwrap(), &Disk, &Limits::default()).unwrap();
    assert!(table.has_node("daq.events"));
    let direct = Pattern::new("readout\\.(direct|jumbo)").unwrap();
    assert_eq!(all.matching(&direct).count(), 2);
}
