//! Convergence barriers in machine code: the lanes of a warp wait in them for each other where branches end.
//!
//! ptxas (CUDA 13.0) has 12 of them. It keeps the lanes of any other in a register, as
//!
//! ```text
//! BMOV.32.CLEAR R5, B0    the outer barrier
//! BSSY B0, join
//! BMOV.32.CLEAR R3, B0    the inner barrier
//! BMOV.32 B0, R5
//! ```
//!
//! but only a block that all lanes of the outer barrier run together may save it. If another branch waits in B0 already,
//! R5 gets the inner barrier; lanes of the outer one then wait for ever.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gridlet::compile::{Backend, BuildOptions, Session};
use gridlet::toolchain::{Component, Toolchain};
use nvvm_tests::{differential, generate, nvdisasm, toolchain_or_skip};

/// The functions that save a barrier elsewhere than where they start to use it, and those instructions.
///
/// The save of a register at the start of a function, for its caller, is right.
fn late_saves(code: &str) -> Vec<String> {
    let (mut function, mut is_entry, mut begun) = ("", true, BTreeSet::new());
    let mut found = vec![];
    for line in code.lines().map(str::trim) {
        if let Some((name, _)) = line.strip_prefix(".type").and_then(|rest| rest.split_once(',')) {
            (function, is_entry) = (name.trim(), true);
        }
        if line.ends_with(':') {
            begun.clear();
        }
        let Some((_, instruction)) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
        else {
            continue;
        };
        let instruction = instruction.trim().trim_end_matches(';').trim();
        let (word, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let (first, second) = operands.split_once(',').unwrap_or((operands, ""));
        match word.split_once('.').map_or(word, |(name, _)| name) {
            "BSSY" => {
                begun.insert(first.trim());
                is_entry = false;
            }
            "BMOV" if word.ends_with("CLEAR") => {
                let is_early = is_entry || begun.contains(second.trim());
                if !is_early && first.trim() != "RZ" {
                    found.push(format!("{function}: {instruction}"));
                }
            }
            "BSYNC" | "CALL" => is_entry = false,
            _ => {}
        }
    }
    found
}

/// A barrier of the block after 20 branches, each with a value and with statements.
fn chains() -> String {
    let mut source = String::from(
        "kernel chains(out: *mut u32) {\n\
         \x20   shared sums: [u32; 64];\n\
         \x20   let t = thread_idx.x;\n\
         \x20   let mut seen: u32 = 0;\n\
         \x20   let value: u32x2 = if t == 20 { u32x2(t, 1) }",
    );
    for at in 0..20 {
        write!(source, " else if out[{at}] == t {{ u32x2({at}, t) }}").unwrap();
    }
    source += " else { u32x2(0, out[t]) };\n    if t == 30 { seen = out[t]; }";
    for at in 0..20 {
        write!(source, " else if out[{at}] != t {{ out[t] = {at}; seen = out[{at} + t]; }}")
            .unwrap();
    }
    source += "\n    sums[t] = value.x + value.y + seen;\n    sync_threads();\n    out[t] = sums[63 - t];\n}\n";
    source
}

#[test]
fn branches_that_end_together_need_one_barrier() {
    let test = "branches_that_end_together_need_one_barrier";
    let needed = [
        Component::Cuobjdump,
        Component::Ptxas,
        Component::LibNvvm,
        Component::LibDevice,
        Component::NvJitLink,
        Component::CudaDevRt,
    ];
    let Some(toolchain) = toolchain_or_skip(test, &needed) else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    let check = |name: &str, source: &str, levels: &[bool]| {
        let program = differential::check(source).unwrap();
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            for &optimize in levels {
                let options = BuildOptions::default().with_backend(backend).with_optimize(optimize);
                let what = format!("{name} by {backend:?}, optimised: {optimize}");
                let built = session.cubin(&program, &options);
                let built = built.unwrap_or_else(|error| panic!("{what}: {error}"));
                let saves = late_saves(&nvdisasm(&toolchain, &["-c"], &built.cubin.0));
                assert!(saves.is_empty(), "{what}:\n{}", saves.join("\n"));
            }
        }
    };
    check("chains", &chains(), &[false, true]);
    for seed in 95600..95604 {
        check(&format!("seed {seed}"), &generate::program(seed).source, &[false]);
    }
}

#[test]
fn late_saves_are_told_from_early_ones() {
    let code = "\
.text.f:
        .type           f,@function
        /*0000*/                   BMOV.32.CLEAR R2, B6 ;
        /*0010*/                   BSSY.RECONVERGENT B0, `(.L_x_0) ;
        /*0020*/                   BMOV.32.CLEAR R3, B0 ;
        /*0030*/               @P0 BRA `(.L_x_1) ;
.L_x_1:
        /*0040*/                   BMOV.32.CLEAR RZ, B0 ;
        /*0050*/                   CALL.REL.NOINC `(g) ;
        /*0060*/                   BMOV.32 B0, R3 ;
        /*0070*/                   BSYNC.RECONVERGENT B0 ;
";
    assert!(late_saves(code).is_empty());
    let late = format!("{code}        /*0080*/                   BMOV.32.CLEAR R4, B1 ;\n");
    assert_eq!(late_saves(&late), ["f: BMOV.32.CLEAR R4, B1"]);
}
