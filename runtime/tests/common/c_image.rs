//! Images of the CPU device from `cpu_device/kernels.c`.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use gridlet_runtime::Artifact;
use gridlet_runtime::artifact::{cpu_arch, describe_image};
use gridlet_runtime::manifest::{ImageKind, Manifest};

/// The bytes of an image; `None` without a C compiler.
pub(crate) fn image(flags: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("kernels.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cpu_device/kernels.c");
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

/// One of its kernels, as the manifest describes it, as a program; `None` without a C compiler.
pub(crate) fn artifact(kernel: serde_json::Value) -> Option<Artifact> {
    let image = image(&[])?;
    let description = describe_image(ImageKind::SharedObject, &cpu_arch(), "kernels.so", &image);
    let manifest: Manifest = serde_json::from_value(serde_json::json!({
        "manifest_version": 1,
        "program": "kernels",
        "sources": ["kernels.c"],
        "source_sha256": "00",
        "launch_strategy": "cdp",
        "kernels": [kernel],
        "structs": [],
        "images": [description],
    }))
    .unwrap();
    Some(Artifact::new(manifest, vec![image]).unwrap())
}
