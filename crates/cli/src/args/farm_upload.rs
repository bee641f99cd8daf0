use clap::Args;
use std::path::PathBuf;

/// Where closed files of the store are copied to.
#[derive(Debug, Args)]
pub struct FarmUpload {
    /// Copy each closed segment of the store into this folder, as of a shared file system.
    #[arg(long, value_name = "DIR", requires = "store")]
    pub upload: Option<PathBuf>,
    /// Copy each closed segment of the store into an object store, as s3://bucket/run7; its keys are in the environment
    /// (AWS_ACCESS_KEY_ID, AWS_ENDPOINT, …).
    #[cfg(feature = "cloud")]
    #[arg(long, value_name = "URL", requires = "store", conflicts_with = "upload")]
    pub upload_to: Option<String>,
}
