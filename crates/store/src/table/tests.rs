use super::*;
use hodo_machine::Bytes;
use std::borrow::Cow;

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, repeats: matches!(kind, Kind::Text) }
}

const COLUMNS: &[Column] = &[
    column("bool", Kind::Bool),
    column("int", Kind::Int),
    column("long", Kind::Long),
    column("ulong", Kind::Ulong),
    column("double", Kind::Double),
    column("text", Kind::Text),
    column("time", Kind::Time),
    column("bools", Kind::Bools),
    column("ints", Kind::Ints),
    column("longs", Kind::Longs),
    column("ulongs", Kind::Ulongs),
    column("floats", Kind::Floats),
    column("doubles", Kind::Doubles),
    column("texts", Kind::Texts),
];

fn row(at: i32) -> Vec<Cell<'static>> {
    let (count, long) = ((at % 3) as usize, i64::from(at));
    let row = vec![
        Cell::Bool(at % 2 == 0),
        Cell::Int(-at),
        Cell::Long(i64::MIN + long),
        Cell::Ulong(u64::MAX - long as u64),
        Cell::Double(f64::from(at) / 3.0),
        Cell::Text(Bytes::from(format!("text {}", at % 7))),
        Cell::Long(long),
        Cell::Bools(Cow::Owned(vec![true; count])),
        Cell::Ints(Cow::Owned(vec![at; count])),
        Cell::Longs(Cow::Owned(vec![long; count])),
        Cell::Ulongs(Cow::Owned(vec![u64::MAX; count])),
        Cell::Floats(Cow::Owned(vec![0.5; count])),
        Cell::Doubles(Cow::Owned(vec![0.1; count])),
        Cell::Texts(vec![Bytes::from_static(b"x"); count]),
    ];
    let keep = |(column, cell): (usize, _)| if (at as usize + column).is_multiple_of(5) { Cell::Empty } else { cell };
    row.into_iter().enumerate().map(keep).collect()
}

fn batch(range: std::ops::Range<i32>) -> Batch {
    let mut batch = Batch::new(COLUMNS);
    range.for_each(|at| batch.push(&row(at)));
    batch
}

fn read(path: &Path) -> Vec<Vec<Cell<'static>>> {
    let mut reader = TableReader::open(path, COLUMNS).unwrap();
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        // As text, for cells borrow from their batch.
        let from = rows.len();
        for (at, cells) in batch.rows().enumerate() {
            assert_eq!(cells, row((from + at) as i32));
            rows.push(row((from + at) as i32));
        }
    }
    rows
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hodo-table-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_kind_of_cell_is_read_back_after_each_batch() {
    let folder = Folder::new("kinds");
    let path = folder.0.join("table.parquet");
    let mut writer = TableWriter::create(&path, COLUMNS).unwrap();
    assert!(read(&path).is_empty());
    for from in [0, 100, 200] {
        writer.write(&batch(from..from + 100)).unwrap();
        assert_eq!(read(&path).len(), from as usize + 100);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), writer.length());
    }
}

#[test]
fn a_file_that_exists_is_left_alone() {
    let folder = Folder::new("exists");
    let path = folder.0.join("table.parquet");
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(TableWriter::create(&path, COLUMNS), Err(Error::Io { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert!(matches!(TableReader::open(&path, COLUMNS), Err(Error::Table { .. })));
}
