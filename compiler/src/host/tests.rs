use std::fs;
use std::path::Path;
use std::process::Command;

use gridlet_lang::launch::LaunchStrategy;

use super::*;

/// A program with every kind of parameter, and the module generated from it, with which the runtime
/// tests which arguments rustc refuses.
fn kinds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/typed/kinds.grid")
}

fn module() -> String {
    let names = ["tile::<8, true>", "tile::<-1, false>"].map(|name| name.parse().unwrap());
    let program = compile::check_for(compile::load(&kinds()).unwrap(), &names).unwrap();
    generate(
        &artifact::describe(&program, LaunchStrategy::Cdp),
        &kernel_docs(&program),
        "include_bytes!(\"kinds.grid\")",
    )
}

#[test]
fn the_module_matches_the_runtime_tests() {
    let (module, path) = (module(), kinds().with_extension("rs"));
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        fs::write(&path, &module).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), module, "INSTA_UPDATE=always accepts it");
}

#[test]
fn the_module_is_formatted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kinds.rs");
    fs::write(&file, module()).unwrap();
    let mut rustfmt = Command::new("rustfmt");
    let Ok(output) = rustfmt.args(["--edition", "2024", "--check"]).arg(&file).output() else {
        eprintln!("SKIPPED: the_module_is_formatted needs rustfmt");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn programs_of_one_file_name_get_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    for (of, kernel) in [("a", "one"), ("b", "two")] {
        let file = folder.path().join(of).join("main.grid");
        fs::create_dir(folder.path().join(of)).unwrap();
        fs::write(&file, format!("kernel {kernel}() {{}}")).unwrap();
        let build = Build::new(&file).ptx(CudaArch::DEFAULT).out_dir(folder.path());
        build.name(format!("main-{of}")).compile().unwrap();
    }
    for (of, kernel) in [("a", "one"), ("b", "two")] {
        let module = fs::read_to_string(folder.path().join(format!("main-{of}.rs"))).unwrap();
        assert!(module.contains(&format!("fn {kernel}(")), "{module}");
        assert!(module.contains(&format!("\"main-{of}.gridlet\"")), "{module}");
        assert!(folder.path().join(format!("main-{of}.gridlet")).exists());
    }
}

#[test]
fn the_launch_strategy_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.grid");
    fs::write(&file, "kernel k() { launch k<<<1, 1>>>(); }").unwrap();
    let built = |build: Build| {
        build.out_dir(folder.path()).cpu().compile().unwrap();
        let manifest = Artifact::open(folder.path().join("a.gridlet")).unwrap().manifest().clone();
        (manifest.launch_strategy, manifest.launch_reason)
    };
    let resident = built(Build::new(&file).launch(LaunchStrategy::Resident));
    assert_eq!(resident, (LaunchStrategy::Resident, Some("requested".into())));
    let auto = built(Build::new(&file));
    assert_eq!(auto.0, LaunchStrategy::Resident);
    assert_ne!(auto.1, resident.1);
    let cdp = built(Build::new(&file).launch(LaunchStrategy::Cdp));
    assert_eq!(cdp.0, LaunchStrategy::Cdp);
}

#[test]
fn build_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.grid");
    let out = || Build::new(&file).out_dir(folder.path());
    fs::write(&file, "kernel k(p: *mut u32) { *p = true; }").unwrap();
    let error = out().cpu().compile().unwrap_err();
    // A path relative to the package's folder, which editors and terminals can follow.
    let place = format!("{}:1:30", file.display());
    assert!(format!("{error:?}").contains(&place), "{error}");
    fs::write(&file, "kernel k(p: *mut u32) { launch k<<<1, 1>>>(p); }").unwrap();
    insta::assert_snapshot!(
        [
            // Only `cdp` has to be linked with the device runtime.
            out()
                .launch(LaunchStrategy::Cdp)
                .ptx(CudaArch::DEFAULT)
                .compile()
                .unwrap_err()
                .to_string(),
            out().compile().unwrap_err().to_string(),
            out().cpu().kernel("k::<").compile().unwrap_err().to_string(),
            out().cpu().kernel("other").compile().unwrap_err().to_string(),
        ]
        .join("\n")
    );
}
