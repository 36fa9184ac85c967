//! Artifacts for tests: the kernels of `gpu/kernels.ptx` with a handwritten manifest.

use gridlet_runtime::artifact::describe_image;
use gridlet_runtime::manifest::{ImageKind, Manifest};
use gridlet_runtime::{Artifact, Result};
use serde_json::{Value, json};

/// PTX for every GPU of compute capability 7.5 and later.
pub(crate) const PTX: &str = include_str!("../gpu/kernels.ptx");

fn parameter(name: &str, ty: Value, offset: u32, size: u32, alignment: u32) -> Value {
    json!({ "name": name, "type": ty, "offset": offset, "size": size, "alignment": alignment })
}

fn pointer(name: &str, offset: u32, mutable: bool, to: &str) -> Value {
    let ty = json!({ "pointer": { "mutable": mutable, "to": { "scalar": to } } });
    parameter(name, ty, offset, 8, 8)
}

fn scalar(name: &str, offset: u32, ty: &str, size: u32) -> Value {
    parameter(name, json!({ "scalar": ty }), offset, size, size)
}

fn kernel(name: &str, bytes: u32, parameters: Vec<Value>) -> Value {
    json!({
        "name": name, "parameters": parameters, "parameter_bytes": bytes, "static_shared_bytes": 0,
        "dynamic_shared": name == "through_shared", "launches": [],
    })
}

/// The manifest of `gpu/kernels.ptx` with the given image.
pub(crate) fn manifest() -> Manifest {
    let view = json!({ "name": "View", "size": 24, "alignment": 8, "fields": [
        { "name": "lo", "type": { "vector": { "element": "f32", "count": 2 } }, "offset": 0 },
        { "name": "hi", "type": { "vector": { "element": "f32", "count": 2 } }, "offset": 8 },
        { "name": "n", "type": { "scalar": "u32" }, "offset": 16 },
    ] });
    let kernels = [
        kernel(
            "vector_add",
            28,
            vec![
                pointer("x", 0, false, "f32"),
                pointer("y", 8, false, "f32"),
                pointer("out", 16, true, "f32"),
                scalar("n", 24, "u32", 4),
            ],
        ),
        kernel(
            "unpack",
            33,
            vec![
                parameter("view", json!({ "struct": "View" }), 0, 24, 8),
                pointer("out", 24, true, "f32"),
                scalar("tag", 32, "u8", 1),
            ],
        ),
        kernel("mark_sms", 8, vec![pointer("seen", 0, true, "u32")]),
        kernel("spin", 8, vec![pointer("flag", 0, false, "u32")]),
        kernel("stop", 0, vec![]),
        kernel("poke", 8, vec![pointer("to", 0, true, "u32")]),
        kernel(
            "lose",
            12,
            vec![
                scalar("error", 0, "i32", 4),
                scalar("file", 4, "u32", 4),
                scalar("line", 8, "u32", 4),
            ],
        ),
        kernel(
            "through_shared",
            12,
            vec![pointer("out", 0, true, "u32"), scalar("bytes", 8, "u32", 4)],
        ),
    ];
    let image =
        describe_image(ImageKind::Ptx, "compute_75", "kernels.compute_75.ptx", PTX.as_bytes());
    serde_json::from_value(json!({
        "manifest_version": 1,
        "program": "kernels",
        "sources": ["kernels.grid", "more.grid"],
        "source_sha256": "00",
        "launch_strategy": "cdp",
        "kernels": kernels,
        "structs": [view],
        "device_runtime": { "lost_launch_record": "__gridlet_lost_launches" },
        "images": [image],
    }))
    .expect("the manifest above is one")
}

/// `gpu/kernels.ptx` as an artifact.
pub(crate) fn artifact() -> Result<Artifact> {
    Ok(Artifact::new(manifest(), vec![PTX.into()])?)
}
