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
//! R5 gets the inner barrier; lanes of the outer one then wait for ever. `compiler/src/link/barriers.rs` looks for that, and
//! `compiler/src/ptx/nesting.rs` makes ptxas save each barrier where it begins.
//!
//! The instruction `YIELD` takes lanes apart; the device runtime then needs turns (`compiler/src/ptx/turns.rs`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gridlet::compile::{Backend, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::toolchain::Toolchain;
use nvvm_tests::{FOR_DISASSEMBLY, differential, generate, nvdisasm, toolchain_or_skip};

/// The functions that save a barrier elsewhere than where they start to use it, and those instructions.
///
/// The save of a register at the start of a function, for its caller, is right. `gridlet$deep` never runs.
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
                if !is_early && first.trim() != "RZ" && !function.ends_with("gridlet$deep") {
                    found.push(format!("{function}: {instruction}"));
                }
            }
            "BSYNC" | "CALL" => is_entry = false,
            _ => {}
        }
    }
    found
}

/// A barrier of the block after `length` branches, each with a value and with statements.
fn chains(length: usize) -> String {
    let mut source = String::from(
        "kernel chains(out: *mut u32) {\n\
         \x20   shared sums: [u32; 64];\n\
         \x20   let t = thread_idx.x;\n\
         \x20   let mut seen: u32 = 0;\n\
         \x20   let value: u32x2 = if t == 20 { u32x2(t, 1) }",
    );
    for at in 0..length {
        write!(source, " else if out[{at}] == t {{ u32x2({at}, t) }}").unwrap();
    }
    source += " else { u32x2(0, out[t]) };\n    if t == 30 { seen = out[t]; }";
    for at in 0..length {
        write!(source, " else if out[{at}] != t {{ out[t] = {at}; seen = out[{at} + t]; }}")
            .unwrap();
    }
    source += "\n    sums[t] = value.x + value.y + seen;\n    sync_threads();\n    out[t] = sums[63 - t];\n}\n";
    source
}

/// Branches and loops in each other, with code behind each, as the bits of `shape` say.
struct Nest {
    shape: u64,
    /// The branches that a jump leaves beside its loop.
    jumps: u32,
    text: String,
    indent: usize,
}

impl Nest {
    fn below(&mut self, limit: u64) -> u64 {
        self.shape = self.shape.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.shape >> 33) % limit
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "{:1$}{text}", "", self.indent * 4).unwrap();
    }

    /// A statement that cannot become a conditional instruction.
    fn step(&mut self, at: usize) {
        self.line(&format!("seen = seen * 31 + out[seen % 64 + {at}]; out[t + {at}] = seen;"));
    }

    /// `count` more levels, of `all`. `jump` leaves the loop around them and this many levels within, if there is one.
    fn levels(&mut self, all: usize, count: usize, jump: Option<(&str, u32)>) {
        let at = all - count;
        if count == 0 {
            match self.below(4) {
                0 => self.line("sync_warp(1u32 << lane_id());"),
                1 => self.line("seen += shfl(1u32 << lane_id(), seen, lane_id());"),
                2 => self.line("seen += popc(ballot(1u32 << lane_id(), seen == t));"),
                _ => {}
            }
            return self.step(at);
        }
        self.step(at);
        match self.below(7) {
            0 => self.line(&format!("if out[seen % 64] != t + {at} {{")),
            1 => {
                self.line(&format!("if out[seen % 64] == {at} {{"));
                self.indent += 1;
                self.step(at);
                self.indent -= 1;
                self.line(&format!("}} else if out[seen % 32] < t + {at} {{"));
            }
            2 => {
                self.line(&format!("if out[seen % 64] == {at} {{"));
                self.indent += 1;
                self.levels(all, count.min(3) - 1, None);
                self.indent -= 1;
                self.line("} else {");
            }
            3 => {
                self.line(&format!("for i{at} in 0..out[t + {at}] {{"));
                self.line(&format!("    if out[seen % 64] == i{at} {{ continue; }}"));
                return self.inside(all, count, &format!("if seen % 7 == i{at} {{ break; }}"));
            }
            4 => {
                self.line("loop {");
                return self.inside(all, count, "if out[seen % 64] >= t { break; }");
            }
            5 => {
                self.line(&format!("'l{at}: while out[seen % 64] < t + {at} {{"));
                return self.inside(all, count, &format!("if seen % 5 == 0 {{ break 'l{at}; }}"));
            }
            _ => {
                self.line(&format!("if out[seen % 64] > t + {at} {{"));
                if let Some((jump, _)) = jump {
                    self.line(&format!("    {jump}"));
                }
            }
        }
        self.indent += 1;
        let jump = jump.filter(|jump| jump.1 > 0).map(|(jump, levels)| (jump, levels - 1));
        self.levels(all, count - 1, jump);
        self.step(at);
        self.indent -= 1;
        self.line("}");
        self.step(at);
    }

    /// The inside of a loop, whose end can jump out.
    fn inside(&mut self, all: usize, count: usize, jump: &str) {
        self.indent += 1;
        self.levels(all, count - 1, Some((jump, self.jumps)));
        self.line(jump);
        self.indent -= 1;
        self.line("}");
        self.step(all - count);
    }
}

/// A barrier of the block behind nested branches: of the kernel, then of the kernel and a function that it calls.
fn nests(count: usize, shape: u64, jumps: u32) -> String {
    let mut nest = Nest { shape, jumps, text: String::new(), indent: 0 };
    nest.line("fn deep(out: *mut u32, t: u32, depth: u32) -> u32 {");
    nest.indent = 1;
    nest.line("let mut seen = out[t];");
    nest.line("if depth > 0 { seen += deep(out, t, depth - 1); }");
    nest.line("if seen == t { return 1; }");
    nest.levels(count / 2, count / 2, None);
    nest.line("seen");
    nest.indent = 0;
    nest.line("}");
    for name in ["nested", "calling"] {
        nest.line(&format!("kernel {name}(out: *mut u32) {{"));
        nest.indent = 1;
        nest.line("let t = thread_idx.x;");
        nest.line("let mut seen: u32 = 0;");
        nest.levels(count, count, None);
        if name == "calling" {
            nest.line("if out[t] == 5 {");
            nest.indent += 1;
            nest.levels(count / 2, count / 2, None);
            nest.line("seen += deep(out, t, seen % 3);");
            nest.indent -= 1;
            nest.line("}");
        }
        nest.line("sync_threads();");
        nest.line("out[t] = seen;");
        nest.indent = 0;
        nest.line("}");
    }
    nest.text
}

/// Compiles a program in all ways to a GPU at these levels. `check` gets the way, the log and the disassembled code. Returns whether
/// the tools are there.
fn compile(
    options: &BuildOptions,
    test: &str,
    name: &str,
    source: &str,
    levels: &[bool],
    check: &mut dyn FnMut(&str, &str, &str),
) -> bool {
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return false };
    let session = Session::with_toolchain(Toolchain::discover());
    let program = differential::check(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        for &optimize in levels {
            let options = options.with_backend(backend).with_optimize(optimize);
            let what = format!("{name} by {backend:?}, optimised: {optimize}");
            let built = session.cubin(&program, &options);
            let built = built.unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&what, &built.log, &nvdisasm(&toolchain, &["-c"], &built.cubin.0));
        }
    }
    true
}

#[test]
fn branches_that_end_together_need_one_barrier() {
    let test = "branches_that_end_together_need_one_barrier";
    let check = &mut |what: &str, _: &str, code: &str| {
        assert!(!code.contains("gridlet$deep"), "{what} needs more barriers than there are");
        let saves = late_saves(code);
        assert!(saves.is_empty(), "{what}:\n{}", saves.join("\n"));
    };
    compile(&BuildOptions::default(), test, "chains", &chains(20), &[false, true], check);
    // The ends of shorter ones are inside each other, but take no more barriers.
    compile(&BuildOptions::default(), test, "short chains", &chains(8), &[false, true], check);
    for seed in 95600..95604 {
        compile(
            &BuildOptions::default(),
            test,
            &format!("seed {seed}"),
            &generate::program(seed).source,
            &[false],
            check,
        );
    }
}

/// `GRIDLET_NESTS=1000` asks for other shapes.
#[test]
fn deep_nests_save_barriers_before_lanes_wait() {
    let test = "deep_nests_save_barriers_before_lanes_wait";
    let first = std::env::var("GRIDLET_NESTS").map_or(0, |first| first.parse().unwrap());
    let (mut is_compiled, mut mended, mut told) = (true, 0, vec![]);
    for count in 13..=24 {
        let shape = first + count as u64;
        let name = format!("{count} branches, shape {shape}");
        is_compiled &= compile(
            &BuildOptions::default(),
            test,
            &name,
            &nests(count, shape, 1),
            &[false, true],
            &mut |what, log, code| {
                let saves = late_saves(code);
                let is_told = log.contains("lanes of a warp");
                assert_eq!(is_told, !saves.is_empty(), "{what}: {log}\n{}", saves.join("\n"));
                if is_told {
                    told.push(what.to_owned());
                } else {
                    mended += usize::from(code.contains("gridlet$deep"));
                }
            },
        );
    }
    // Optimisation merges the ends of loops, so that a jump leaves more branches than in the source.
    assert!(told.len() <= 2, "{}", told.join("\n"));
    assert!(
        mended >= 12 || !is_compiled,
        "only {mended} programs need more barriers than there are"
    );
}

/// ptxas keeps the barriers of all regions that a jump leaves at once.
#[test]
fn nests_that_lose_lanes_are_told() {
    let test = "nests_that_lose_lanes_are_told";
    let mut told = 0;
    let is_compiled = compile(
        &BuildOptions::default(),
        test,
        "24 branches",
        &nests(24, 24, 24),
        &[true],
        &mut |what, log, code| {
            let saves = late_saves(code);
            assert_eq!(!saves.is_empty(), log.contains("lanes of a warp"), "{what}: {log}");
            told += usize::from(!saves.is_empty());
        },
    );
    assert!(told > 0 || !is_compiled, "choose another shape");
}

/// ptxas lets lanes go on without those in a loop around an atomic operation: `compiler/src/ptx/turns.rs`.
#[test]
fn lanes_take_turns_in_the_device_runtime_behind_such_a_loop() {
    let test = "lanes_take_turns_in_the_device_runtime_behind_such_a_loop";
    let cases = [
        ("while atomic_cas(&LOCK, 0, 1) != 0 {}", true),
        ("wait();", true),
        ("atomic_add(&LOCK, 1);", false),
        ("for i in 0..out[0] { out[i] = i; }", false),
    ];
    let options = BuildOptions::default().with_launch(LaunchStrategy::Cdp.into());
    for (code, takes_turns) in cases {
        let source = format!(
            "static LOCK: u32 = 0;
            fn wait() {{ while atomic_cas(&LOCK, 0, 1) != 0 {{}} }}
            fn start(out: *mut u32) {{ launch child<<<1, 1>>>(out); }}
            kernel child(out: *mut u32) {{ while atomic_cas(&LOCK, 0, 1) != 0 {{}} }}
            kernel parent(out: *mut u32) {{ if out[thread_idx.x] > 5 {{ {code} }} start(out); }}"
        );
        compile(&options, test, code, &source, &[false, true], &mut |what, _, code| {
            let is_turned = code.contains("gridlet$turn$cudaLaunchDeviceV2");
            assert_eq!(is_turned, takes_turns, "{what}");
        });
    }
}

#[test]
fn lost_lanes_are_told_where_the_source_has_them() {
    let test = "lost_lanes_are_told_where_the_source_has_them";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return };
    let program = differential::check(&nests(24, 24, 24)).unwrap();
    let session = Session::with_toolchain(toolchain);
    let mut found = BTreeSet::new();
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        let options = BuildOptions::default().with_backend(backend);
        let built = session.cubin(&program, &options).unwrap();
        // What was assembled has the calls, whether they helped or not.
        assert!(built.ptx.0.contains("call gridlet$deep"), "{backend:?}");
        let warnings = session.take_tool_warnings();
        for warning in warnings.iter().filter(|warning| warning.id == "lost-lanes") {
            let [label] = &warning.labels[..] else { panic!("{warning:?}") };
            let name = program.sources.text(label.span);
            assert!(warning.message.contains(&format!(" nested in `{name}` ")), "{warning:?}");
            assert!(built.log.contains(&warning.message), "{}", built.log);
            found.insert(name);
        }
    }
    let kernels = BTreeSet::from(["nested", "calling"]);
    assert!(!found.is_empty() && found.is_subset(&kernels), "{found:?}");
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
