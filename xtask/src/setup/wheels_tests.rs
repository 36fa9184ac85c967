//! The cache against damage, with small wheels and no network.

use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// A wheel with these entries: path, content, mode.
fn wheel(entries: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, content, mode) in entries {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
        archive.start_file(*path, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn wheels() -> Vec<(&'static str, Vec<u8>)> {
    let library = vec![7; 300_000];
    let nvvm = wheel(&[
        ("nvidia/cu13/lib/libnvvm.so.4", &library, 0o644),
        ("nvidia/cu13/lib/cmake/nvvm.cmake", b"skipped", 0o644),
        ("nvidia/__init__.py", b"", 0o644),
        ("nvidia_nvvm-1.0.dist-info/METADATA", b"skipped", 0o644),
        ("nvidia_nvvm-1.0.dist-info/licenses/License.txt", b"a licence", 0o644),
    ]);
    // As the packages of CUDA 12 are laid out.
    let nvcc = wheel(&[("nvidia/cuda_nvcc/bin/ptxas", b"a program", 0o744)]);
    vec![("nvidia-nvvm", nvvm), ("nvidia-cuda-nvcc", nvcc)]
}

fn pins() -> Pins {
    let wheels = wheels().into_iter().map(|(package, content)| Wheel {
        package: package.into(),
        version: "1.0".into(),
        sha256: hex(&Sha256::digest(&content)),
        bytes: content.len() as u64,
    });
    let (name, machine) = ("cuda-1.0-1".into(), "x86_64".into());
    Pins { name, machine, wheels: wheels.collect(), file: "xtask/toolkit.txt", text: "" }
}

/// Hands out [`wheels`], after `spoil` has changed them for the call of that number, counted from 1.
struct Fake<F> {
    calls: usize,
    spoil: F,
}

impl<F: FnMut(usize, &mut Vec<(&'static str, Vec<u8>)>) -> Result<()>> Download for Fake<F> {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn download(&mut self, pins: &Pins, folder: &Path) -> Result<()> {
        self.calls += 1;
        let mut wheels = wheels();
        (self.spoil)(self.calls, &mut wheels)?;
        std::fs::create_dir_all(folder.join("wheels"))?;
        for (package, content) in wheels {
            let name = format!("{}-1.0-py3-none-{}.whl", package.replace('-', "_"), pins.machine);
            std::fs::write(folder.join("wheels").join(name), content)?;
        }
        Ok(())
    }
}

type Spoil = fn(usize, &mut Vec<(&'static str, Vec<u8>)>) -> Result<()>;

fn fake(spoil: Spoil) -> Fake<Spoil> {
    Fake { calls: 0, spoil }
}

fn sound() -> Fake<Spoil> {
    fake(|_, _| Ok(()))
}

/// A fresh cache with a complete toolkit.
fn filled() -> (tempfile::TempDir, PathBuf) {
    let cache = tempfile::tempdir().unwrap();
    let installed = install(cache.path(), &pins(), Check::Sizes, &mut sound()).unwrap();
    (cache, installed.folder)
}

/// Names in `<cache>/toolkit`, sorted.
fn names(cache: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cache.join("toolkit")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Asserts that an install with `check` fetches once and leaves a toolkit that passes every check.
fn assert_repairs(cache: &Path, check: Check) {
    let mut download = sound();
    let installed = install(cache, &pins(), check, &mut download).unwrap();
    assert_eq!((installed.fetched, download.calls), (true, 1));
    assert_whole(cache);
}

fn assert_whole(cache: &Path) {
    let mut download = sound();
    let installed = install(cache, &pins(), Check::Hashes, &mut download).unwrap();
    assert_eq!((installed.fetched, download.calls), (false, 0));
    assert_eq!(names(cache), ["cuda-1.0-1", "lock"]);
    assert_eq!(cache::toolkits_in(cache), [installed.folder]);
}

#[test]
fn wheels_are_unpacked_once_without_what_nobody_uses() {
    let (cache, folder) = filled();
    assert_whole(cache.path());
    let library = folder.join("nvidia/cu13/lib/libnvvm.so.4");
    assert_eq!(std::fs::read(library).unwrap(), vec![7; 300_000]);
    assert!(folder.join("nvidia_nvvm-1.0.dist-info/licenses/License.txt").is_file());
    for skipped in ["nvidia/cu13/lib/cmake", "nvidia/__init__.py", "download"] {
        assert!(!folder.join(skipped).exists(), "{skipped}");
    }
    assert!(!folder.join("nvidia_nvvm-1.0.dist-info/METADATA").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path| std::fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("nvidia/cu13/bin/ptxas"), 0o755);
        assert_eq!(mode("nvidia/cu13/lib/libnvvm.so.4") & 0o111, 0);
    }
}

#[test]
fn a_damaged_download_is_fetched_once_more() {
    let cache = tempfile::tempdir().unwrap();
    let mut download = fake(|call, wheels| {
        if call == 1 {
            wheels[0].1[1000] ^= 1;
        }
        Ok(())
    });
    install(cache.path(), &pins(), Check::Sizes, &mut download).unwrap();
    assert_eq!(download.calls, 2);
    assert_whole(cache.path());
}

#[test]
fn a_download_that_stays_damaged_leaves_nothing_and_names_the_package() {
    let cache = tempfile::tempdir().unwrap();
    let mut download = fake(|_, wheels| {
        wheels[1].1.truncate(50);
        Ok(())
    });
    let result = install(cache.path(), &pins(), Check::Sizes, &mut download);
    let error = format!("{:#}", result.err().unwrap());
    assert!(error.contains("nvidia-cuda-nvcc 1.0 came damaged: 50 bytes"), "{error}");
    assert_eq!((download.calls, names(cache.path())), (2, vec!["lock".to_string()]));
    assert_repairs(cache.path(), Check::Sizes);
}

#[test]
fn a_failed_or_short_download_is_an_error_that_says_so() {
    let cache = tempfile::tempdir().unwrap();
    let mut failing = fake(|_, _| bail!("no network"));
    let result = install(cache.path(), &pins(), Check::Sizes, &mut failing);
    assert_eq!((result.err().unwrap().to_string().as_str(), failing.calls), ("no network", 2));
    let mut short = fake(|_, wheels| {
        wheels.remove(0);
        Ok(())
    });
    let result = install(cache.path(), &pins(), Check::Sizes, &mut short);
    assert_eq!(result.err().unwrap().to_string(), "nvidia-nvvm 1.0 did not come");
}

#[test]
fn what_an_interrupted_set_up_left_is_removed_and_made_again() {
    // Killed while fetching or unpacking.
    let cache = tempfile::tempdir().unwrap();
    let partial = cache.path().join("toolkit/cuda-1.0-1.partial-4194305/nvidia/cu13/lib");
    std::fs::create_dir_all(&partial).unwrap();
    std::fs::write(partial.join("libnvvm.so.4"), "half").unwrap();
    assert_repairs(cache.path(), Check::Sizes);
    // Killed between the rename and the last file, or while an old toolkit was removed.
    let folder = cache.path().join("toolkit/cuda-1.0-1");
    std::fs::remove_file(folder.join(cache::COMPLETE)).unwrap();
    assert!(cache::toolkits_in(cache.path()).is_empty());
    std::fs::remove_file(folder.join(MANIFEST)).unwrap();
    assert_repairs(cache.path(), Check::Sizes);
}

#[test]
fn a_file_that_is_missing_or_of_another_size_is_repaired() {
    let (cache, folder) = filled();
    std::fs::write(folder.join("nvidia/cu13/bin/ptxas"), "a prog").unwrap();
    assert_repairs(cache.path(), Check::Sizes);
    std::fs::remove_file(folder.join("nvidia/cu13/lib/libnvvm.so.4")).unwrap();
    assert_repairs(cache.path(), Check::Sizes);
    std::fs::write(folder.join(MANIFEST), "no such line\n").unwrap();
    assert_repairs(cache.path(), Check::Sizes);
    std::fs::remove_file(folder.join(MANIFEST)).unwrap();
    assert_repairs(cache.path(), Check::Sizes);
}

#[test]
fn a_changed_byte_is_found_by_its_hash() {
    let (cache, folder) = filled();
    std::fs::write(folder.join("nvidia/cu13/bin/ptxas"), "A program").unwrap();
    let quick = install(cache.path(), &pins(), Check::Sizes, &mut sound()).unwrap();
    assert!(!quick.fetched);
    assert_repairs(cache.path(), Check::Hashes);
}

#[test]
fn other_pins_under_the_same_name_are_fetched() {
    let (cache, folder) = filled();
    std::fs::write(folder.join(cache::COMPLETE), "0123\n").unwrap();
    assert_repairs(cache.path(), Check::Sizes);
}

#[test]
fn a_wheel_cannot_write_outside_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evil.whl");
    std::fs::write(&file, wheel(&[("nvidia/../../escaped", b"x", 0o644)])).unwrap();
    let inner = folder.path().join("inner");
    let error = unpack(&file, &inner, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("outside"), "{error}");
    assert!(!folder.path().join("escaped").exists());
}

#[test]
fn two_set_ups_wait_for_each_other() {
    let cache = tempfile::tempdir().unwrap();
    let toolkits = cache.path().join("toolkit");
    std::fs::create_dir_all(&toolkits).unwrap();
    let held = lock(&toolkits.join("lock")).unwrap();
    let (send, receive) = mpsc::channel();
    let path = cache.path().to_path_buf();
    let other = std::thread::spawn(move || {
        install(&path, &pins(), Check::Sizes, &mut sound()).unwrap();
        send.send(()).unwrap();
    });
    let early = receive.recv_timeout(Duration::from_millis(300));
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
    assert_eq!(names(cache.path()), ["lock"]);
    drop(held);
    receive.recv_timeout(Duration::from_secs(60)).unwrap();
    other.join().unwrap();
    assert_whole(cache.path());
}
