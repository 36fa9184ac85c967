//! Compiles the image `kernels.c`.

use std::io::Write;
use std::process::Command;

/// Bytes of the compiled image; `None` without a C compiler.
pub(crate) fn image(flags: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("kernels.c"), folder.path().join("kernels.so"));
    std::fs::write(&source, include_str!("kernels.c")).unwrap();
    let mut cc = Command::new("cc");
    let cc = cc.args(["-shared", "-fPIC", "-O2", "-w", "-o"]).arg(&library).args(flags).arg(source);
    match cc.status() {
        Ok(status) => assert!(status.success(), "cc: {status}"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no `cc` on the path");
            return None;
        }
        Err(error) => panic!("cc: {error}"),
    }
    Some(std::fs::read(library).unwrap())
}
