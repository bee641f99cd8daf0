use super::*;
use crate::machines::Item;
use crate::record::COLUMNS;
use crate::server::{Bound, ServerOptions};
use hodo_store::table::{Cell, TableWriter};
use std::path::PathBuf;

const DOUBLE: &str = r#"{"structure":"epics:nt/NTScalar:1.0","fields":[["value","double"]]}"#;
const STRING: &str = r#"{"structure":"epics:nt/NTScalar:1.0","fields":[["value","string"]]}"#;

/// Returns a row with a number, or one with a text if the type is that of texts.
fn row(arrived_ms: i64, pv: &str, event: &str, of: &str, value: f64) -> Vec<Cell<'static>> {
    let text = |text: &str| Cell::Text(Bytes::from(text.to_owned()));
    let cell = |name: &str| match name {
        "arrived" => Cell::Long(arrived_ms * 1_000_000),
        "pv" => text(pv),
        "event" => text(event),
        "double" if of == DOUBLE => Cell::Double(value),
        "string" if of == STRING => text(&value.to_string()),
        "changed" => text("value"),
        "type" if !of.is_empty() => text(of),
        _ => Cell::Empty,
    };
    COLUMNS.iter().map(|column| cell(column.name)).collect()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hodo-replay-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    /// Writes a file whose batches are these.
    fn file(&self, name: &str, batches: &[&[Vec<Cell<'static>>]]) -> PathBuf {
        let path = self.0.join(name);
        let mut writer = TableWriter::create(&path, COLUMNS).unwrap();
        for rows in batches {
            let mut batch = Batch::new(COLUMNS);
            rows.iter().for_each(|row| batch.push(row));
            writer.write(&batch).unwrap();
        }
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn number(value: &Value) -> Option<f64> {
    value.get("value").and_then(Item::as_f64)
}

#[test]
fn a_recording_knows_its_pvs_their_first_values_and_where_a_type_changes() {
    let folder = Folder::new("known");
    let update = |at, pv, of, value| row(at, pv, "update", of, value);
    folder.file(
        "1.parquet",
        &[
            &[row(0, "SILENT", "connected", "", 0.0), update(10, "A", DOUBLE, 1.0), update(20, "A", DOUBLE, 2.0)],
            &[update(30, "A", DOUBLE, 3.0)],
        ],
    );
    folder.file(
        "2.parquet",
        &[&[update(40, "B", DOUBLE, 4.0), update(50, "A", STRING, 5.0), update(60, "B", DOUBLE, 6.0)]],
    );
    let recording = Recording::open(&folder.0).unwrap();
    assert_eq!((recording.updates(), recording.span(), recording.pv_count()), (6, Duration::from_millis(50), 2));
    let found: Vec<_> =
        recording.pvs().iter().map(|(name, of)| (&name[..], number(&of.first), of.changes_type_at)).collect();
    assert_eq!(found, [("A", Some(1.0), Some(4)), ("B", Some(4.0), None)]);
    assert_eq!(recording.check_is_unchanged(), Ok(()));
    folder.file("3.parquet", &[]);
    assert!(recording.check_is_unchanged().is_err_and(|why| why.contains("has changed since")));
    let empty = folder.0.join("3.parquet");
    assert!(Recording::open(&empty).is_err_and(|why| why.contains("has no updates")));
}

#[test]
fn pvs_are_played_under_other_names_at_their_pace_and_others_are_left_out() {
    let folder = Folder::new("paced");
    // An hour apart, so that only a pace of its own ends in time.
    let hour = 3_600_000;
    let rows: Vec<_> =
        (0..6).flat_map(|at| ["A", "B"].map(|pv| row(at * hour, pv, "update", DOUBLE, at as f64))).collect();
    let file = folder.file("run.parquet", &[&rows[..5], &rows[5..]]);
    let recording = Arc::new(Recording::open(&file).unwrap());
    let bound =
        Bound::new(ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into()));
    let (bound, stop) = (bound.unwrap(), Stop::default());
    let pvs = bound.pvs();
    let serve = |name: &str, of: &str| {
        let pv = pvs.pv(name, recording.pvs()[of].first.clone()).serve();
        (of.to_owned(), pv)
    };
    let (one, other) = (serve("ONE", "A"), serve("OTHER", "A"));
    let served = vec![one.clone(), other.clone(), serve("THIRD", "A")];
    let options = ReplayOptions { every: Some(Duration::from_micros(1)), ..ReplayOptions::default() };
    let mut player = Player::of(Arc::clone(&recording), served);
    assert_eq!(player.run(&options, &stop), Ok(Replayed { updates: 6, merged: 0 }));
    assert_eq!([&one, &other].map(|(_, pv)| number(&pv.value())), [Some(5.0); 2]);
    // What is gone cannot be played again.
    std::fs::remove_file(&file).unwrap();
    assert!(player.run(&options, &stop).is_err_and(|why| why.contains("run.parquet has changed since")));
}
