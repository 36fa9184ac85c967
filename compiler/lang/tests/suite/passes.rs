//! Passes from IR to IR: each `tests/passes/*.gir` is a module whose first line names the pass.
//!
//! ```text
//! ; launch ARCH [count]     lowers launches and built-ins for a GPU, or for the CPU if ARCH is `cpu`
//! ; instrument              adds wrappers that record how deep launches nest
//! ```
//! The snapshot beside it is the result.

use std::path::Path;

use gridlet_lang::error::Result;
use gridlet_lang::ir::{Module, parse::parse, print::print, verify::verify};
use gridlet_lang::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet_lang::layout::compute_layouts;

fn run(pass: &str, module: &Module) -> Result<Module> {
    verify(module)?;
    let words: Vec<&str> = pass.split_whitespace().collect();
    let (arch, count_launches) = match words[..] {
        [";", "instrument"] => return launch::instrument(module),
        [";", "launch", arch] => (arch, false),
        [";", "launch", arch, "count"] => (arch, true),
        _ => panic!("`{pass}` names no pass"),
    };
    let options = match arch {
        "cpu" => LaunchOptions::CPU,
        arch => {
            LaunchOptions::for_arch(LaunchStrategy::Cdp, arch.parse().expect("an architecture"))
        }
    };
    launch::lower(module, &compute_layouts(module)?, &options.with_count_launches(count_launches))
}

#[test]
fn passes_give_the_modules_of_their_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gir"));
    files.sort();
    assert!(!files.is_empty(), "there are no inputs");
    for path in files {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        let module = parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
        let pass = text.lines().next().expect("a first line");
        let after = run(pass, &module).unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::with_settings!({
            prepend_module_to_snapshot => false,
            omit_expression => true,
            snapshot_path => "../passes",
        }, {
            insta::assert_snapshot!(name.trim_end_matches(".gir"), print(&after));
        });
    }
}
