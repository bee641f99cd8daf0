//! Uploads through `object_store`, to a folder as its URL: `cargo test -p hodo-store --features cloud --test cloud`.

use crate::scratch;

use hodo_store::{Cloud, Destination, Error};
use scratch::Scratch;
use std::fs;

#[test]
fn a_file_of_several_parts_arrives_whole() {
    let scratch = Scratch::new("parts");
    let (from, there) = (scratch.path().join("from"), scratch.path().join("there"));
    fs::create_dir(&there).expect("the disk has room");
    let url = format!("file://{}", there.display());
    let mut cloud = Cloud::open(&url, []).expect("it is a URL");
    for bytes in [0, 1, 8 << 20, (20 << 20) + 3] {
        let data: Vec<u8> = (0..bytes).map(|place: u32| (place % 251) as u8).collect();
        fs::write(&from, &data).expect("the disk has room");
        cloud.put("segment-00000001.hodo", &from).expect("the folder can be written to");
        assert!(fs::read(there.join("segment-00000001.hodo")).expect("it arrived") == data, "{bytes} bytes");
    }
    let why = cloud.put("x", &scratch.path().join("nothing")).expect_err("there is no such file");
    assert!(why.contains("nothing"), "{why}");
}

#[test]
fn a_wrong_url_is_named() {
    for url in ["no url", "ftp://there/run7"] {
        let error = Cloud::open(url, []).expect_err("it is none");
        assert!(matches!(&error, Error::Destination { url: named, .. } if named == url), "{error}");
    }
}
