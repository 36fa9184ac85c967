use super::*;
use crate::manifest::{Field, MANIFEST_VERSION, Parameter, Resident, Struct, Type};
use crate::strategy::LaunchStrategy;

const CUBIN: &[u8] = b"\x7fELF and machine code";
const PTX: &[u8] = b".version 8.0\n.target sm_75\n";

fn parameter(name: &str, ty: Type, offset: u32, size: u32, alignment: u32) -> Parameter {
    Parameter { name: name.into(), ty, offset, size, alignment }
}

fn manifest() -> Manifest {
    let u32_ty = || Type::Scalar("u32".into());
    Manifest {
        manifest_version: MANIFEST_VERSION,
        program: "sort".into(),
        sources: vec!["sort.grid".into()],
        source_sha256: "00".into(),
        source_hashes: vec![],
        launch_strategy: LaunchStrategy::Cdp,
        launch_reason: None,
        kernels: vec![Kernel {
            name: "sort".into(),
            symbol: None,
            parameters: vec![
                parameter("data", Type::Pointer { mutable: true, to: Box::new(u32_ty()) }, 0, 8, 8),
                parameter("range", Type::Struct("Range".into()), 8, 8, 4),
            ],
            parameter_bytes: 16,
            max_threads_per_block: Some(128),
            min_blocks_per_sm: None,
            static_shared_bytes: 0,
            resident_shared_bytes: None,
            dynamic_shared: false,
            barriers: false,
            warp_operations: false,
            reads_in_loops: false,
            external: false,
            launches: vec!["sort".into()],
            resident: false,
        }],
        statics: vec![],
        structs: vec![Struct {
            name: "Range".into(),
            size: 8,
            alignment: 4,
            fields: vec![
                Field { name: "start".into(), ty: u32_ty(), offset: 0 },
                Field { name: "end".into(), ty: u32_ty(), offset: 4 },
            ],
        }],
        device_runtime: None,
        statistics: None,
        resident: None,
        images: vec![
            describe_image(ImageKind::Cubin, "sm_90", "sort.sm_90.cubin", CUBIN),
            describe_image(ImageKind::Ptx, "compute_75", "sort.compute_75.ptx", PTX),
        ],
        toolchain: vec![("libnvvm".into(), "13.0".into())],
    }
}

fn artifact() -> Artifact {
    Artifact::new(manifest(), vec![CUBIN.into(), PTX.into()]).unwrap()
}

/// The message for a manifest with one change.
fn refused(change: impl FnOnce(&mut Manifest)) -> String {
    let mut manifest = manifest();
    change(&mut manifest);
    Artifact::new(manifest, vec![CUBIN.into(), PTX.into()]).unwrap_err().to_string()
}

/// A zip file with these entries, as any zip tool might write it.
fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn json(manifest: &Manifest) -> Vec<u8> {
    serde_json::to_vec(manifest).unwrap()
}

fn unpack_error(bytes: &[u8]) -> String {
    Artifact::from_bytes(bytes).unwrap_err().to_string()
}

#[test]
fn bundles_round_trip() {
    let bytes = artifact().to_bytes().unwrap();
    assert_eq!(Artifact::from_bytes(&bytes).unwrap(), artifact());
    assert_eq!(bytes, artifact().to_bytes().unwrap(), "equal artifacts must encode to equal bytes");

    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let names: Vec<String> =
        (0..zip.len()).map(|i| zip.by_index(i).unwrap().name().unwrap().to_string()).collect();
    assert_eq!(names, ["manifest.json", "sort.sm_90.cubin", "sort.compute_75.ptx"]);
    for i in 0..zip.len() {
        assert_eq!(zip.by_index(i).unwrap().compression(), zip::CompressionMethod::Stored);
    }
}

#[test]
fn an_unknown_launch_strategy_says_what_is_known_and_what_to_do() {
    let named = |version: u32, name: &str| {
        let mut json = serde_json::to_value(manifest()).unwrap();
        assert_eq!(json["launch_strategy"], "cdp");
        json["manifest_version"] = version.into();
        json["launch_strategy"] = name.into();
        let json = serde_json::to_vec(&json).unwrap();
        Artifact::from_bytes(&zip_of(&[("manifest.json", &json)])).unwrap_err()
    };
    let error = named(MANIFEST_VERSION, "teleport");
    assert_eq!(
        error.to_string(),
        "bundle: unknown launch strategy \"teleport\"; this version of Gridlet has `cdp` and `resident`"
    );
    assert!(error.problem.hint().is_some_and(|hint| hint.contains("update Gridlet")));
    let hostile = named(MANIFEST_VERSION, &"\x1b[2J".repeat(1000)).to_string();
    assert!(!hostile.contains('\x1b') && hostile.len() < 300, "{hostile}");
    // A newer manifest is too new, whatever its strategy.
    assert!(matches!(
        named(MANIFEST_VERSION + 1, "teleport").problem,
        ArtifactProblem::TooNew { .. }
    ));
}

/// The manifest with one kernel that is launched through the resident entry.
fn resident_manifest() -> Manifest {
    let mut manifest = manifest();
    manifest.launch_strategy = LaunchStrategy::Resident;
    manifest.kernels[0].resident = true;
    manifest.resident = Some(Resident {
        symbol: "__gridlet_resident".into(),
        record_bytes: 256,
        parameter_words: 2,
        max_block_threads: 128,
        shared_bytes: 0,
    });
    manifest
}

#[test]
fn the_resident_entry_round_trips() {
    let images = vec![CUBIN.into(), PTX.into()];
    let artifact = Artifact::new(resident_manifest(), images).unwrap();
    let bytes = artifact.to_bytes().unwrap();
    assert_eq!(Artifact::from_bytes(&bytes).unwrap(), artifact);
    // Programs of the strategy `cdp` have the same manifest as before there was another.
    let plain = String::from_utf8(json(&manifest())).unwrap();
    assert!(!plain.contains("resident"), "{plain}");
}

#[test]
fn inconsistent_resident_entries_are_rejected() {
    let refused = |change: fn(&mut Manifest)| {
        let mut manifest = resident_manifest();
        change(&mut manifest);
        Artifact::new(manifest, vec![CUBIN.into(), PTX.into()]).unwrap_err().to_string()
    };
    let messages = [
        refused(|m| m.resident = None),
        refused(|m| m.launch_strategy = LaunchStrategy::Cdp),
        refused(|m| m.resident.as_mut().unwrap().symbol.clear()),
        refused(|m| m.resident.as_mut().unwrap().record_bytes = 0),
        refused(|m| m.resident.as_mut().unwrap().record_bytes = 200),
        refused(|m| m.resident.as_mut().unwrap().max_block_threads = 1025),
        refused(|m| m.resident.as_mut().unwrap().parameter_words = 1),
        refused(|m| m.resident.as_mut().unwrap().parameter_words = u32::MAX),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn every_launch_strategy_is_read_by_its_name() {
    for strategy in LaunchStrategy::ALL {
        assert_eq!(strategy.name().parse(), Ok(strategy));
    }
}

/// Another zip tool may have recompressed the bundle.
#[test]
fn compressed_bundles_are_read() {
    let json = json(&manifest());
    let entries =
        [("manifest.json", &json[..]), ("sort.sm_90.cubin", CUBIN), ("sort.compute_75.ptx", PTX)];
    let bytes = zip_of(&entries);
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).unwrap();
    assert_eq!(zip.by_index(0).unwrap().compression(), zip::CompressionMethod::Deflated);
    assert_eq!(Artifact::from_bytes(&bytes).unwrap(), artifact());
}

#[test]
fn files_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("sort.gridlet");
    artifact().write(&bundle).unwrap();
    assert_eq!(Artifact::open(&bundle).unwrap(), artifact());

    let manifest_file = folder.path().join("sort.json");
    std::fs::write(&manifest_file, json(&manifest())).unwrap();
    std::fs::write(folder.path().join("sort.sm_90.cubin"), CUBIN).unwrap();
    let error = Artifact::open(&manifest_file).unwrap_err().to_string();
    assert!(error.ends_with("sort.json: image `sort.compute_75.ptx` is missing"), "{error}");
    std::fs::write(folder.path().join("sort.compute_75.ptx"), PTX).unwrap();
    assert_eq!(Artifact::open(&manifest_file).unwrap(), artifact());

    let error = Artifact::open(folder.path().join("none.gridlet")).unwrap_err().to_string();
    assert!(error.contains("none.gridlet: No such file"), "{error}");
    let error = Artifact::open(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("is a folder; name a file in it"), "{error}");
}

/// Reading a pipe that nobody writes never ends.
#[test]
#[cfg(unix)]
fn pipes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sort.json"), json(&manifest())).unwrap();
    for name in ["sort.gridlet", "sort.sm_90.cubin"] {
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status();
        assert!(made.unwrap().success());
    }
    for name in ["sort.gridlet", "sort.json"] {
        let error = Artifact::open(folder.path().join(name)).unwrap_err().to_string();
        assert!(
            error.ends_with("is not a file, but a pipe or a device; copy its contents into a file"),
            "{error}"
        );
    }
}

#[test]
fn invalid_bundles_are_rejected() {
    let whole = artifact().to_bytes().unwrap();
    let newer = serde_json::json!({ "manifest_version": 7, "anything": [] }).to_string();
    let without_version = serde_json::json!({ "name": "left-pad" }).to_string();
    let mut wrong_type = serde_json::to_value(manifest()).unwrap();
    wrong_type["kernels"][0]["parameters"] = "none".into();
    let messages = [
        unpack_error(b""),
        unpack_error(b"PK"),
        unpack_error(b"kernel sort(data: *mut u32) {}"),
        unpack_error(&zip_of(&[("readme.txt", b"hello")])),
        unpack_error(&zip_of(&[("manifest.json", b"{ \"manifest_version\": 1,")])),
        unpack_error(&zip_of(&[("manifest.json", without_version.as_bytes())])),
        unpack_error(&zip_of(&[("manifest.json", newer.as_bytes())])),
        unpack_error(&zip_of(&[("manifest.json", wrong_type.to_string().as_bytes())])),
        unpack_error(&whole[..whole.len() / 2]),
        unpack_error(&whole[..whole.len() - 1]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

/// The message for a damaged bundle; `change` receives its bytes and the offset of the last image.
fn stored_damage(change: impl FnOnce(&mut [u8], usize)) -> String {
    let mut bytes = artifact().to_bytes().unwrap();
    let at = bytes.windows(PTX.len()).position(|window| window == PTX).unwrap();
    change(&mut bytes, at);
    unpack_error(&bytes)
}

#[test]
fn damaged_images_are_rejected() {
    let with = |cubin: &[u8]| {
        zip_of(&[
            ("manifest.json", &json(&manifest())),
            ("sort.sm_90.cubin", cubin),
            ("sort.compute_75.ptx", PTX),
        ])
    };
    assert_eq!(Artifact::from_bytes(&with(CUBIN)).unwrap(), artifact());
    let mut flipped = CUBIN.to_vec();
    flipped[9] ^= 1;
    let without_checksum = || {
        let mut manifest = manifest();
        manifest.images[0].crc32 = None;
        json(&manifest)
    };
    let messages = [
        unpack_error(&zip_of(&[
            ("manifest.json", &json(&manifest())),
            ("sort.sm_90.cubin", CUBIN),
        ])),
        unpack_error(&with(&CUBIN[..10])),
        unpack_error(&with(&[CUBIN, &[0; 1000]].concat())),
        unpack_error(&with(&flipped)),
        unpack_error(&zip_of(&[
            ("manifest.json", &without_checksum()),
            ("sort.sm_90.cubin", &flipped),
            ("sort.compute_75.ptx", PTX),
        ])),
        Artifact::new(manifest(), vec![CUBIN.into()]).unwrap_err().to_string(),
        refused(|m| m.images[0] = describe_image(ImageKind::Ptx, "sm_90", "sort.ptx", CUBIN)),
        stored_damage(|bytes, at| bytes[at] ^= 1),
        stored_damage(|bytes, _| {
            // The unpacked size of the last entry in the central directory (APPNOTE.TXT, 4.3.12).
            let at = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
            bytes[at + 24..at + 28].copy_from_slice(&0x00ff_ffffu32.to_le_bytes());
        }),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

/// A damaged byte either causes an error or, where it does not matter, leaves the artifact unchanged: never a panic,
/// never a different artifact.
#[test]
fn every_damaged_byte_is_detected_or_harmless() {
    let whole = artifact().to_bytes().unwrap();
    let gpu = ImageTarget::Gpu(ComputeCapability::new(9, 0));
    let own = Artifact::from_bytes_for(gpu, &whole).unwrap();
    let mut refused = 0;
    for index in 0..whole.len() {
        for bit in [0x01, 0x80] {
            let mut bytes = whole.clone();
            bytes[index] ^= bit;
            match Artifact::from_bytes(&bytes) {
                Ok(read) => assert_eq!(read, artifact(), "byte {index}"),
                Err(_) => refused += 1,
            }
            // The same must hold when only the device's own image is read.
            if let Ok(read) = Artifact::from_bytes_for(gpu, &bytes) {
                assert_eq!(read, own, "byte {index}");
            }
        }
        let _ = Artifact::from_bytes(&whole[..index]).unwrap_err();
    }
    assert!(refused > whole.len(), "only {refused} of {} changes were detected", 2 * whole.len());
}

#[test]
fn inconsistent_manifests_are_rejected() {
    let messages = [
        refused(|m| m.manifest_version = 2),
        refused(|m| m.kernels.push(m.kernels[0].clone())),
        refused(|m| m.kernels[0].name = "so\0rt".into()),
        refused(|m| m.kernels[0].parameter_bytes = 12),
        refused(|m| m.kernels[0].parameter_bytes = 1 << 20),
        refused(|m| m.kernels[0].parameters[1].offset = 4),
        refused(|m| m.kernels[0].parameters[1].offset = 10),
        refused(|m| m.kernels[0].parameters[1].size = 4),
        refused(|m| m.kernels[0].parameters[1].ty = Type::Struct("View".into())),
        refused(|m| {
            m.kernels[0].parameters[0].ty =
                Type::Pointer { mutable: true, to: Box::new(Type::Scalar("u128".into())) }
        }),
        refused(|m| m.structs[0].alignment = 0),
        refused(|m| m.structs[0].fields[1].offset = u64::MAX - 3),
        refused(|m| m.structs.push(m.structs[0].clone())),
        refused(|m| m.images[0].file = "../sort.cubin".into()),
        refused(|m| m.images[0].file = "manifest.json".into()),
        refused(|m| m.images[0].arch = "gfx90a".into()),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_best_image_is_chosen() {
    let image = |kind, arch: &str| {
        let bytes = if kind == ImageKind::Cubin { CUBIN } else { PTX };
        describe_image(kind, arch, &format!("{arch}.{kind:?}"), bytes)
    };
    use ImageKind::{Cubin, Ptx};
    let images = vec![
        image(Cubin, "sm_80"),
        image(Ptx, "compute_75"),
        image(Cubin, "sm_86"),
        image(Ptx, "compute_90"),
        image(Cubin, "sm_90"),
        image(Cubin, "sm_90a"),
    ];
    let bytes = images
        .iter()
        .map(|i| if i.kind == Cubin { CUBIN.to_vec() } else { PTX.to_vec() })
        .collect();
    let artifact = Artifact::new(Manifest { images, ..manifest() }, bytes).unwrap();
    let chosen = |major, minor| {
        artifact
            .image_for(ComputeCapability::new(major, minor))
            .map(|(image, _)| image.file.as_str())
    };
    assert_eq!(chosen(7, 0), None);
    assert_eq!(chosen(7, 5), Some("compute_75.Ptx"));
    assert_eq!(chosen(8, 0), Some("sm_80.Cubin"));
    assert_eq!(chosen(8, 7), Some("sm_86.Cubin"));
    assert_eq!(chosen(9, 0), Some("sm_90a.Cubin"));
    assert_eq!(chosen(10, 0), Some("compute_90.Ptx"));
}

#[test]
fn kernels_are_found_by_name() {
    assert_eq!(artifact().kernel("sort").unwrap().parameter_bytes, 16);
    assert_eq!(artifact().kernel("srot"), None);
}

#[test]
fn each_device_gets_its_own_image() {
    let mut manifest = manifest();
    let object = b"\x7fELF and host code".to_vec();
    let (own, foreign) = (cpu_arch(), "cpu-z80");
    manifest.images.extend([
        describe_image(ImageKind::SharedObject, foreign, "sort.z80.so", &object),
        describe_image(ImageKind::SharedObject, &own, "sort.cpu.so", &object),
    ]);
    let images = vec![CUBIN.into(), PTX.into(), object.clone(), object];
    let artifact = Artifact::new(manifest, images).unwrap();
    assert_eq!(artifact.image_for_cpu().unwrap().0.file, "sort.cpu.so");
    let gpu = artifact.image_for(ComputeCapability::new(9, 0)).unwrap();
    assert_eq!(gpu.0.file, "sort.sm_90.cubin");
    assert_eq!(self::artifact().image_for_cpu(), None);
}

#[test]
fn a_device_reads_only_its_own_image() {
    let mut manifest = manifest();
    let object = b"\x7fELF and host code".to_vec();
    manifest.images.push(describe_image(ImageKind::SharedObject, &cpu_arch(), "sort.so", &object));
    let images = vec![CUBIN.to_vec(), PTX.to_vec(), object.clone()];
    let whole = Artifact::new(manifest.clone(), images).unwrap();
    // The cubin is truncated, and the PTX has the wrong contents.
    let json = json(&manifest);
    let bundle = zip_of(&[
        ("manifest.json", &json),
        ("sort.sm_90.cubin", b"\x7fELF"),
        ("sort.compute_75.ptx", PTX),
        ("sort.so", &object),
    ]);
    let read = Artifact::from_bytes_for(ImageTarget::Cpu, &bundle).unwrap();
    let files: Vec<&str> = read.images().map(|(image, _)| image.file.as_str()).collect();
    assert_eq!(files, ["sort.so"]);
    assert_eq!(read.image_for_cpu(), whole.image_for_cpu());

    let gpu = |major| ImageTarget::Gpu(ComputeCapability::new(major, 0));
    let error = Artifact::from_bytes_for(gpu(9), &bundle).unwrap_err().to_string();
    assert!(error.contains("sort.sm_90.cubin"), "{error}");
    let older = Artifact::from_bytes_for(gpu(8), &bundle).unwrap();
    assert_eq!(older.images().next().unwrap().1, PTX);
    // After loading for one device, the manifest lists only that device's image.
    let whole = whole.to_bytes().unwrap();
    assert_eq!(Artifact::from_bytes_for(gpu(6), &whole).unwrap().images().count(), 3);

    let contained: &'static [u8] = whole.leak();
    let read = Artifact::from_static_for(gpu(9), contained).unwrap();
    let image = read.images().next().unwrap().1.as_ptr_range();
    let bundle = contained.as_ptr_range();
    assert!(bundle.start < image.start && image.end < bundle.end, "the image was copied");

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("manifest.json"), json).unwrap();
    std::fs::write(folder.path().join("sort.so"), &object).unwrap();
    let path = folder.path().join("manifest.json");
    assert_eq!(Artifact::open_for(ImageTarget::Cpu, &path).unwrap().images().count(), 1);
    assert!(Artifact::open(&path).is_err());
}
