//! Validation of manifests and images before use.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::arch;
use crate::error::ArtifactProblem;
use crate::launch::MAX_KERNEL_PARAMETER_BYTES;
use crate::manifest::{Image, ImageKind, MANIFEST_FILE, MANIFEST_VERSION, Manifest, Type};
use crate::resident::{ALIGNMENT, PARAMETERS_OFFSET};
use crate::strategy::LaunchStrategy;
use crate::types::extent;

/// Maximum number of threads in a block, on every GPU (CUDA C++ Programming Guide, Technical Specifications).
const MAX_BLOCK_THREADS: u32 = 1024;

/// Maximum number of SMs in a manifest's statistics.
const MAX_SMS: u32 = 1 << 20;

/// Parses a manifest. If parsing fails, checks the version and then the launch strategy, so that any newer manifest gets
/// the helpful error, whatever its structure.
pub(super) fn parse(json: &[u8]) -> Result<Manifest, ArtifactProblem> {
    if let Ok(manifest) = serde_json::from_slice(json) {
        return Ok(manifest);
    }
    let value: serde_json::Value = serde_json::from_slice(json)
        .map_err(|error| ArtifactProblem::NotAManifest(error.to_string()))?;
    let Some(found) = value.get("manifest_version").and_then(serde_json::Value::as_u64) else {
        return Err(ArtifactProblem::NotAManifest("it has no `manifest_version`".into()));
    };
    if found > u64::from(MANIFEST_VERSION) {
        return Err(ArtifactProblem::TooNew { found, supported: MANIFEST_VERSION });
    }
    if let Some(name) = value.get("launch_strategy").and_then(serde_json::Value::as_str) {
        name.parse::<LaunchStrategy>().map_err(ArtifactProblem::Strategy)?;
    }
    serde_json::from_value(value).map_err(|error| ArtifactProblem::NotAManifest(error.to_string()))
}

/// Checks everything that this crate relies on later.
pub(super) fn manifest(manifest: &Manifest) -> Result<(), ArtifactProblem> {
    if manifest.manifest_version > MANIFEST_VERSION {
        let found = u64::from(manifest.manifest_version);
        return Err(ArtifactProblem::TooNew { found, supported: MANIFEST_VERSION });
    }
    consistent(manifest).map_err(ArtifactProblem::Inconsistent)
}

fn consistent(manifest: &Manifest) -> Result<(), String> {
    unique("structs", manifest.structs.iter().map(|s| s.name.as_str()))?;
    unique("kernels", manifest.kernels.iter().map(|kernel| kernel.name.as_str()))?;
    unique("image files", manifest.images.iter().map(|image| image.file.as_str()))?;

    for s in &manifest.structs {
        let at = format!("struct `{}`", s.name);
        if !s.alignment.is_power_of_two() || s.size % s.alignment != 0 {
            return Err(format!("{at}: invalid size {} or alignment {}", s.size, s.alignment));
        }
        let fields =
            s.fields.iter().map(|field| (field.name.as_str(), &field.ty, field.offset, None));
        laid_out(&at, fields, s.size, manifest)?;
    }
    for kernel in &manifest.kernels {
        let at = format!("kernel `{}`", kernel.name);
        symbol(&at, &kernel.name)?;
        if let Some(name) = &kernel.symbol {
            symbol(&at, name)?;
        }
        if kernel.parameter_bytes > MAX_KERNEL_PARAMETER_BYTES {
            return Err(format!(
                "{at}: {} bytes of parameters exceed the limit of {MAX_KERNEL_PARAMETER_BYTES}",
                kernel.parameter_bytes
            ));
        }
        let parameters = kernel.parameters.iter().map(|parameter| {
            let declared = Some((u64::from(parameter.size), u64::from(parameter.alignment)));
            (parameter.name.as_str(), &parameter.ty, u64::from(parameter.offset), declared)
        });
        laid_out(&at, parameters, u64::from(kernel.parameter_bytes), manifest)?;
    }
    for variable in &manifest.statics {
        let at = format!("the variable `{}`", variable.name);
        symbol(&at, variable.symbol.as_ref().unwrap_or(&variable.name))?;
    }
    if let Some(runtime) = &manifest.device_runtime {
        symbol("the lost-launch record", &runtime.lost_launch_record)?;
        if let Some(notice) = &runtime.lost_launch_notice {
            symbol("the notice of lost launches", notice)?;
        }
    }
    if let Some(statistics) = &manifest.statistics {
        symbol("the statistics", &statistics.symbol)?;
        if statistics.sms == 0 || statistics.sms % 32 != 0 || statistics.sms > MAX_SMS {
            return Err(format!("statistics of {} SMs", statistics.sms));
        }
    }
    resident(manifest)?;
    for image in &manifest.images {
        plain_file_name(&image.file)?;
        arch::check(image.kind, &image.arch)
            .map_err(|error| format!("image `{}`: {error}", image.file))?;
    }
    Ok(())
}

/// Checks the entry of resident launches, and that every kernel that needs it can be launched through it.
fn resident(manifest: &Manifest) -> Result<(), String> {
    let kernels = || manifest.kernels.iter().filter(|kernel| kernel.resident);
    let Some(resident) = &manifest.resident else {
        return match kernels().next() {
            Some(kernel) => Err(format!("kernel `{}`: there is no resident entry", kernel.name)),
            None => Ok(()),
        };
    };
    if manifest.launch_strategy != LaunchStrategy::Resident {
        return Err(format!("a resident entry with the strategy `{}`", manifest.launch_strategy));
    }
    symbol("the resident entry", &resident.symbol)?;
    let record_bytes = resident.record_bytes;
    if record_bytes == 0 || !record_bytes.is_multiple_of(ALIGNMENT) {
        return Err(format!("the resident entry: records of {record_bytes} bytes"));
    }
    if resident.max_block_threads > MAX_BLOCK_THREADS {
        let threads = resident.max_block_threads;
        return Err(format!("the resident entry: blocks of {threads} threads"));
    }
    let bytes = u64::from(resident.parameter_words) * 8;
    if bytes + PARAMETERS_OFFSET as u64 > u64::from(MAX_KERNEL_PARAMETER_BYTES) {
        return Err(format!("the resident entry: {bytes} bytes of parameters"));
    }
    match kernels().find(|kernel| u64::from(kernel.parameter_bytes) > bytes) {
        Some(kernel) => Err(format!(
            "kernel `{}`: {} bytes of parameters exceed the resident entry's {bytes}",
            kernel.name, kernel.parameter_bytes
        )),
        None => Ok(()),
    }
}

/// Checks that parameters or fields are in order, aligned and disjoint, lie within `bytes`, and have the size of their
/// types. A parameter declares its own size and alignment; a field takes its type's.
fn laid_out<'a>(
    at: &str,
    parts: impl Iterator<Item = (&'a str, &'a Type, u64, Option<(u64, u64)>)>,
    bytes: u64,
    manifest: &Manifest,
) -> Result<(), String> {
    let mut end = 0;
    for (name, ty, offset, declared) in parts {
        let at = format!("{at}, `{name}`");
        known(ty, manifest).map_err(|what| format!("{at}: {what} is unknown"))?;
        let extent =
            extent(ty, &manifest.structs).map_err(|what| format!("{at}: {what} is unknown"))?;
        if let Some((size, alignment)) = declared
            && (size, alignment) != (extent.size, extent.alignment)
        {
            return Err(format!(
                "{at}: `{ty}` has size {} and alignment {}, not {size} and {alignment}",
                extent.size, extent.alignment
            ));
        }
        if offset < end || offset % extent.alignment.max(1) != 0 {
            return Err(format!("{at}: offset {offset} overlaps or is not aligned"));
        }
        end = offset
            .checked_add(extent.size)
            .ok_or_else(|| format!("{at}: offset {offset} is too large"))?;
        if end > bytes {
            return Err(format!("{at}: ends at byte {end}, but there are only {bytes} bytes"));
        }
    }
    Ok(())
}

/// Checks every type name in a type, including those behind pointers.
fn known(ty: &Type, manifest: &Manifest) -> Result<(), String> {
    match ty {
        Type::Pointer { to, .. } => known(to, manifest),
        Type::Array { element, .. } => known(element, manifest),
        other => extent(other, &manifest.structs).map(|_| ()),
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("two {what} `{name}`"));
        }
    }
    Ok(())
}

/// Symbols are passed to the driver as C strings.
fn symbol(at: &str, name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains('\0') {
        return Err(format!("{at}: {name:?} is not a symbol"));
    }
    Ok(())
}

/// Images lie next to their manifest; a name that points elsewhere must not be followed.
fn plain_file_name(name: &str) -> Result<(), String> {
    let plain = !name.is_empty()
        && name != MANIFEST_FILE
        && name != "."
        && name != ".."
        && !name.contains(['/', '\\', ':', '\0']);
    if plain { Ok(()) } else { Err(format!("image {name:?}: not a plain file name")) }
}

/// Checks an image against its manifest entry, except for its [`hash`]. The driver reads images without knowing
/// their length, so bytes of the wrong kind must not reach it.
pub(super) fn image(image: &Image, bytes: &[u8]) -> Result<(), ArtifactProblem> {
    let file = || image.file.clone();
    let found = bytes.len() as u64;
    if found != image.bytes {
        return Err(ArtifactProblem::ImageSize { file: file(), expected: image.bytes, found });
    }
    if let Some(expected) = &image.crc32 {
        let found = crc32(bytes);
        if found != *expected {
            let expected = expected.clone();
            return Err(ArtifactProblem::ImageChecksum { file: file(), expected, found });
        }
    }
    let right_kind = match image.kind {
        ImageKind::Cubin | ImageKind::SharedObject => bytes.starts_with(b"\x7fELF"),
        ImageKind::Ptx => std::str::from_utf8(bytes).is_ok_and(|text| text.contains(".version")),
    };
    if !right_kind {
        let kind = match image.kind {
            ImageKind::Cubin => "a cubin",
            ImageKind::Ptx => "PTX",
            ImageKind::SharedObject => "a shared object",
        };
        return Err(ArtifactProblem::Inconsistent(format!("image `{}` is not {kind}", image.file)));
    }
    Ok(())
}

/// Checks an image's SHA-256.
pub(super) fn hash(image: &Image, bytes: &[u8]) -> Result<(), ArtifactProblem> {
    let found = sha256(bytes);
    if found != image.sha256 {
        let (file, expected) = (image.file.clone(), image.sha256.clone());
        return Err(ArtifactProblem::ImageHash { file, expected, found });
    }
    Ok(())
}

/// CRC-32 in lower-case hexadecimal, as zip tools show it.
pub(super) fn crc32(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

/// SHA-256 in lower-case hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
