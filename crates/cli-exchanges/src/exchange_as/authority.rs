//! The certificate of the authority as a file.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tickpath_cli_terminal::args::{CliUsageError, bail_usage};

/// First line of the file, by which the next start knows it. Readers of PEM files skip such lines.
const MARK: &str = "# Authority of a simulated exchange, as its last start has made it: tickpath exchange --as\n";

/// Writes the certificate; replaces only a file that an earlier start has written.
pub fn write_authority(file: &Path, pem: &str) -> Result<(), CliUsageError> {
    match fs::read(file) {
        Ok(bytes) if bytes.starts_with(MARK.as_bytes()) => {}
        Ok(_) => bail_usage!(
            "{} is no authority of a simulated exchange, and is not overwritten; name another file with --write-ca FILE",
            file.display()
        ),
        Err(why) if why.kind() == ErrorKind::NotFound => {}
        Err(why) => bail_usage!("{} cannot be read ({why}); name another file with --write-ca FILE", file.display()),
    }
    fs::write(file, format!("{MARK}{pem}")).map_err(|why| {
        CliUsageError(format!("{} cannot be written ({why}); name another file with --write-ca FILE", file.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_an_earlier_start_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("ca.pem");
        for pem in ["one\n", "two\n"] {
            write_authority(&file, pem).expect("the folder is ours");
            assert_eq!(fs::read_to_string(&file).expect("it was written"), format!("{MARK}{pem}"));
        }
        fs::write(&file, "precious").expect("the folder is ours");
        let refused = write_authority(&file, "three\n").expect_err("the file is foreign").to_string();
        assert!(refused.contains("--write-ca"), "{refused}");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "precious");
    }
}
