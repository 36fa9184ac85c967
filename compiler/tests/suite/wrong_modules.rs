//! Modules of other compilers that are wrong: `in/llvm/wrong/*.ll`, and the messages as a user sees them, for each target. No tool of
//! NVIDIA's is needed: all of it is known before.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use gridlet::arch::CudaArch;
use gridlet::compile::{Backend, BuildOptions, CpuOptions, Session};
use gridlet::emit::{self, Input, Kind};
use gridlet::modules::Own;
use gridlet::target::Target;
use inkwell::context::Context;

/// What is wrong for a target.
fn wrong(own: &Own<'_>, target: &str) -> gridlet::Result<()> {
    let arch = || -> CudaArch { target.trim_end_matches(" nvptx").parse().unwrap() };
    if target == "cpu" {
        return own.cpu_program().map(drop);
    }
    if !target.ends_with("nvptx") {
        return own.check(arch());
    }
    let options = BuildOptions::for_arch(arch()).with_backend(Backend::Nvptx);
    let (session, targets) = (Session::new(), [Target::Cuda(arch())]);
    emit::emit(&session, Input::Own(own), Kind::Ptx, &targets, &options, &CpuOptions::default())
        .map(drop)
}

/// The messages, with the targets that give them.
fn messages(name: &str, bytes: &[u8]) -> String {
    let context = Context::create();
    let own = match Own::read(&context, name, bytes) {
        Ok(own) => own,
        Err(error) => return format!("all:\n{error}\n"),
    };
    let mut known: Vec<(Vec<&str>, String)> = vec![];
    for target in ["sm_90", "sm_120", "sm_90 nvptx", "sm_120 nvptx", "cpu"] {
        let said = wrong(&own, target).err().map_or_else(|| "nothing".into(), |e| e.to_string());
        match known.iter_mut().find(|(_, known)| *known == said) {
            Some((targets, _)) => targets.push(target),
            None => known.push((vec![target], said)),
        }
    }
    known.iter().map(|(targets, said)| format!("{}:\n{said}\n\n", targets.join(", "))).collect()
}

#[test]
fn wrong_modules_are_refused_before_a_tool_sees_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in/llvm/wrong");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        insta::with_settings!({
            prepend_module_to_snapshot => false,
            omit_expression => true,
            snapshot_path => "../out/modules",
        }, {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            insta::assert_snapshot!(stem, format!("{text}\n{}", messages(name, &bytes)));
        });
    }
}
