//! Programs for the CPU device, built from the image that the tests of `gridlet-cpu` use.

#![allow(dead_code, reason = "not every test needs all of it")]

use gridlet_runtime::Artifact;
use gridlet_runtime::artifact::{cpu_arch, describe_image};
use gridlet_runtime::manifest::{ImageKind, Manifest};

#[path = "../../cpu/tests/device/c_image.rs"]
mod kernels;

pub(crate) use kernels::image;

/// A program with one kernel of the image, described by a manifest entry; `None` without a C compiler.
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
