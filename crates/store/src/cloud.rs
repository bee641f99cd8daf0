//! Object stores as a destination of segments: S3 and what speaks it (Ceph, MinIO, EOS), WebDAV, a folder.

use crate::error::Error;
use crate::upload::Destination;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart, parse_url_opts};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// The size of an upload's parts; S3 requires 5 MiB or more.
const PART: usize = 8 << 20;
/// The number of parts in flight.
const PARTS_MAX: usize = 4;

/// A place in an object store.
#[derive(Debug)]
pub struct Cloud {
    store: Box<dyn ObjectStore>,
    prefix: Key,
    runtime: Runtime,
    url: String,
}

impl Cloud {
    /// Opens the place of a URL, as `s3://bucket/run7`, with options as the crate `object_store` names them in the environment:
    /// `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, … in any case.
    ///
    /// # Errors
    /// [`Error::Destination`] if the URL or an option is wrong.
    pub fn open(url: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Destination { url: url.to_owned(), reason };
        let parsed = Url::parse(url).map_err(|why| wrong(why.to_string()))?;
        let options = options.into_iter().map(|(name, value)| (name.to_lowercase(), value));
        let (store, prefix) = parse_url_opts(&parsed, options).map_err(|why| wrong(why.to_string()))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|why| wrong(why.to_string()))?;
        Ok(Cloud { store, prefix, runtime, url: url.to_owned() })
    }
}

impl Destination for Cloud {
    fn put(&mut self, name: &str, file: &Path) -> Result<(), String> {
        let key = self.prefix.clone().join(name);
        let sent = self.runtime.block_on(send(&*self.store, &key, file));
        sent.map_err(|why| format!("cannot upload {} to {}: {why}", file.display(), self.url))
    }
}

async fn send(store: &dyn ObjectStore, key: &Key, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = File::open(path)?;
    let mut upload = WriteMultipart::new_with_chunk_size(store.put_multipart(key).await?, PART);
    let mut part = vec![0; PART];
    loop {
        let count = match file.read(&mut part) {
            Ok(0) => break,
            Ok(count) => count,
            Err(why) => {
                upload.abort().await?;
                return Err(why.into());
            }
        };
        upload.wait_for_capacity(PARTS_MAX).await?;
        upload.write(&part[..count]);
    }
    upload.finish().await?;
    Ok(())
}
