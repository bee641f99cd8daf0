use crate::Error;
use hodo_io::host::HostFacts;

/// Checks that the kernel has this congestion control. If the kernel does not list what it has, the socket
/// checks.
///
/// # Errors
/// [`Error::Usage`] if the kernel lists its congestion controls, and this one is not among them.
pub fn check_congestion(asked: Option<&str>) -> Result<(), Error> {
    match asked {
        Some(name) => among(name, &HostFacts::collect().congestion_controls),
        None => Ok(()),
    }
}

fn among(name: &str, loaded: &[String]) -> Result<(), Error> {
    if loaded.is_empty() || loaded.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "--congestion {name}: this kernel has {}; `modprobe tcp_{name}` as root loads another",
        loaded.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_there_is() {
        let loaded = ["reno".to_owned(), "cubic".to_owned()];
        assert_eq!(among("cubic", &loaded), Ok(()));
        assert_eq!(among("cubic", &[]), Ok(()));
        let Err(Error::Usage(text)) = among("vegas", &loaded) else { panic!("vegas is not there") };
        assert!(text.contains("--congestion vegas") && text.contains("reno, cubic"), "{text}");
    }
}
