//! Which data of an artifact reaches the driver, and what the driver keeps while the image is loaded.

use std::io::{Cursor, Write};

use gridlet_runtime::artifact::describe_image;
use gridlet_runtime::{Device, Program};

use super::{common, say, scenario};

scenario!(a_refused_image_shows_the_drivers_log, "full", ["FAKE_LOAD" = "218"], || {
    Program::load(&Device::open(0)?, &common::artifact()?).map(|_| ())
});

scenario!(
    the_drivers_parameters_must_be_the_manifests,
    "full",
    ["FAKE_PARAMETER_BYTES" = "8"],
    || {
        let program = Program::load(&Device::open(0)?, &common::artifact()?)?;
        program.kernel("lose").map(|_| ())
    }
);

scenario!(a_record_of_another_size_is_refused, "full", ["FAKE_RECORD_BYTES" = "8"], || {
    let program = Program::load(&Device::open(0)?, &common::artifact()?)?;
    say("loaded");
    program.kernel("lose").map(|_| ())
});

/// A bundle of the kernels; the manifest may lack the CRC-32, as other tools' manifests do, and may describe
/// another image.
fn bundle(image: &[u8], crc32: bool, described: &[u8]) -> Vec<u8> {
    let mut manifest = common::manifest();
    let [of] = &mut manifest.images[..] else { panic!("one image") };
    *of = describe_image(of.kind, &of.arch, &of.file, described);
    if !crc32 {
        of.crc32 = None;
    }
    let file = of.file.clone();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let json = serde_json::to_vec(&manifest).unwrap();
    for (name, bytes) in [("manifest.json", &json[..]), (&file, image)] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The image with one byte changed.
fn changed() -> Vec<u8> {
    let mut image = common::PTX.as_bytes().to_vec();
    image[500] ^= 1;
    image
}

scenario!(an_image_of_another_program_is_not_loaded, "full", ["FAKE_TALLY" = "1"], || {
    let device = Device::open(0)?;
    for crc32 in [true, false] {
        let whole = bundle(common::PTX.as_bytes(), crc32, common::PTX.as_bytes());
        Program::from_bundle(&device, &whole)?;
        say("whole");
        let mixed = bundle(&changed(), crc32, common::PTX.as_bytes());
        say(Program::from_bundle(&device, &mixed).unwrap_err());
        say(Program::from_static_bundle(&device, mixed.leak()).unwrap_err());
    }
    Ok(())
});

scenario!(a_damaged_file_is_not_loaded, "full", ["FAKE_TALLY" = "1"], || {
    let folder = tempfile::tempdir().unwrap();
    let whole = common::artifact()?;
    let manifest = folder.path().join("kernels.json");
    std::fs::write(&manifest, serde_json::to_vec(whole.manifest()).unwrap()).unwrap();
    let file = folder.path().join(&whole.manifest().images[0].file);
    let device = Device::open(0)?;
    std::fs::write(&file, common::PTX).unwrap();
    Program::open(&device, &manifest)?;
    say("whole");
    std::fs::write(&file, changed()).unwrap();
    let error = Program::open(&device, &manifest).unwrap_err().to_string();
    say(error.replace(&*folder.path().display().to_string(), "FOLDER"));
    Ok(())
});

// The fake driver reads the image when a kernel is requested, like a driver that loads lazily.
scenario!(the_driver_reads_an_image_as_long_as_it_is_loaded, "full", ["FAKE_TALLY" = "1"], || {
    let device = Device::open(0)?;
    let program = {
        let bundle = common::artifact()?.to_bytes()?;
        Program::from_bundle(&device, &bundle)?
    };
    program.kernel("lose").map(|_| ())
});
