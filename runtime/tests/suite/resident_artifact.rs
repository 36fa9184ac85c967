//! An artifact with resident launches, for the fake driver: no GPU accepts its image.

use gridlet_runtime::artifact::describe_image;
use gridlet_runtime::manifest::ImageKind;
use gridlet_runtime::{Artifact, Result};
use serde_json::json;

use crate::common::{PTX, manifest};

/// `gpu/kernels.ptx` as if its kernel `lose` launched kernels by resident launches: blocks of at most 96 threads with 64
/// bytes of shared memory. `plain` is the same kernel, but launches nothing.
pub(crate) fn resident_artifact() -> Result<Artifact> {
    let mut manifest = serde_json::to_value(manifest()).expect("a manifest is JSON");
    let mut plain = manifest["kernels"][6].clone();
    plain["name"] = "plain".into();
    plain["symbol"] = "lose".into();
    manifest["launch_strategy"] = "resident".into();
    manifest["kernels"][6]["resident"] = true.into();
    manifest["kernels"][6]["static_shared_bytes"] = 100.into();
    manifest["kernels"].as_array_mut().expect("kernels are a list").push(plain);
    manifest["resident"] = json!({
        "symbol": "__gridlet_resident", "record_bytes": 256, "parameter_words": 2, "max_block_threads": 96,
        "shared_bytes": 64,
    });
    let ptx = format!("{PTX}\n// __gridlet_resident\n");
    let image =
        describe_image(ImageKind::Ptx, "compute_75", "kernels.compute_75.ptx", ptx.as_bytes());
    manifest["images"] = json!([image]);
    let manifest = serde_json::from_value(manifest).expect("the manifest above is one");
    Ok(Artifact::new(manifest, vec![ptx.into()])?)
}
