//! Damaged inputs of every kind, through the C API: an error that names the input, and no crash.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod calls;

use calls::{Answer, OK, build};
use gridlet::toolchain::Component;
use gridlet_compiler_c::gridlet_compile_status;

const NVVM: &str = include_str!("fill.ll");
const IR: &str = include_str!("fill.gir");
const LANGUAGE: &str = "
extern fn step(x: u32) -> u32;
kernel fill(p: *mut u32) { p[thread_idx.x] = step(thread_idx.x); }
kernel start(p: *mut u32) { launch fill<<<1, 4>>>(p); }
";

/// A refusal of a wrong program, with its message.
fn refusal((status, error): Answer, ids: &[&str]) -> String {
    let (id, message) = error.unwrap();
    assert_eq!(status, gridlet_compile_status::Program, "{message}");
    assert!(ids.contains(&id.as_str()), "{id}: {message}");
    message
}

/// As [`std::iter::successors`] of a linear congruential generator: the same numbers on every machine.
fn numbers(seed: u64) -> impl Iterator<Item = usize> {
    let next =
        |x: &u64| Some(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    std::iter::successors(Some(seed), next).skip(1).map(|x| (x >> 33) as usize)
}

/// Damaged copies of `data`: cut short at many places, and with a few other bytes.
fn damaged(data: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut numbers = numbers(data.len() as u64);
    let mut next = move |below: usize| numbers.next().unwrap_or(0) % below.max(1);
    let mut all = vec![];
    for _ in 0..count {
        all.push(data[..next(data.len())].to_vec());
        let mut copy = data.to_vec();
        for _ in 0..=next(4) {
            let at = next(copy.len());
            copy[at] = match next(3) {
                0 => copy[at] ^ (1 << next(8)),
                1 => next(256) as u8,
                _ => copy[next(data.len())],
            };
        }
        all.push(copy);
    }
    all
}

fn bitcode() -> Vec<u8> {
    let (answer, bytes) = build(("a.ll", NVVM.as_bytes()), None, c"bitcode", c"sm_100");
    assert_eq!(answer, OK);
    bytes
}

#[test]
fn damaged_modules_are_refused_or_read() {
    let inputs: [(&str, &[u8], &[&str]); 3] = [
        ("a.ll", NVVM.as_bytes(), &["nvvm-ir"]),
        ("a.bc", &bitcode(), &["nvvm-ir"]),
        ("a.gir", IR.as_bytes(), &["gridlet-ir", "unreadable-source", "param-buffer-too-large"]),
    ];
    for (name, data, ids) in inputs {
        let mut refused = 0;
        for copy in damaged(data, 150) {
            let (answer, _) = build((name, &copy), None, c"layout", c"sm_90");
            if answer != OK {
                let message = refusal(answer, ids);
                assert!(!message.is_empty());
                refused += 1;
                continue;
            }
            for (kind, target) in [(c"nvvm", c"sm_90"), (c"nvvm", c"cpu"), (c"bitcode", c"sm_100")]
            {
                let (answer, _) = build((name, &copy), None, kind, target);
                assert!(answer.0 != gridlet_compile_status::Internal, "{answer:?}");
            }
        }
        assert!(refused > 100, "{name}: only {refused} were refused");
    }
}

#[test]
fn bitcode_of_another_version_is_refused() {
    let bitcode = bitcode();
    let flipped = (0..64 * 8).map(|bit| {
        let mut copy = bitcode.clone();
        copy[bit / 8] ^= 1 << (bit % 8);
        copy
    });
    // The number that LLVM counts up with incompatible versions is at the start.
    let answers = flipped.map(|copy| build(("a.bc", &copy), None, c"layout", c"sm_90").0);
    let mut messages = answers.filter(|it| *it != OK).map(|it| refusal(it, &["nvvm-ir"]));
    let message = messages.find(|message| message.contains("epoch")).unwrap();
    assert!(message.starts_with("a.bc: not a module that LLVM 22.1 can read: "), "{message}");
}

/// A library for GPUs, and a program that needs it.
const LIBRARY: &str = "
target triple = \"nvptx64-nvidia-cuda\"
define i32 @step(i32 %x) {
  %sum = add i32 %x, 7
  ret i32 %sum
}
";

/// The library as a relocatable cubin; `None` without NVIDIA's compiler parts.
fn cubin(test: &str) -> Option<Vec<u8>> {
    let toolchain = gridlet::toolchain::Toolchain::discover();
    let found = toolchain.libnvvm().and(toolchain.path(Component::Ptxas));
    let ptxas = match found {
        Ok(ptxas) => ptxas,
        Err(error) => {
            let text = format!("SKIPPED: {test} needs NVIDIA's compiler parts: {error}");
            let required = std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_some_and(|v| v == "1");
            assert!(!required, "{text}");
            eprintln!("{text}");
            return None;
        }
    };
    let (answer, ptx) = build(("step.ll", LIBRARY.as_bytes()), None, c"ptx", c"sm_90");
    assert_eq!(answer, OK);
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["step.ptx", "step.cubin"].map(|name| folder.path().join(name));
    std::fs::write(&from, ptx).unwrap();
    let mut command = std::process::Command::new(ptxas);
    assert!(
        command.args(["-c", "-arch", "sm_90", "-o"]).args([&to, &from]).status().unwrap().success()
    );
    Some(std::fs::read(to).unwrap())
}

#[test]
fn linked_machine_code_that_is_damaged_is_refused() {
    let Some(cubin) = cubin("linked_machine_code_that_is_damaged_is_refused") else { return };
    let program = ("a.grid", LANGUAGE.as_bytes());
    let (answer, linked) = build(program, Some(("step.cubin", &cubin)), c"cubin", c"sm_90");
    assert_eq!((answer, linked.is_empty()), (OK, false));

    // At each place in the file's parts: header, contents, names, and the table of sections at the end.
    for length in (0..cubin.len()).step_by(7).chain([cubin.len() - 1]) {
        let cut = Some(("step.cubin", &cubin[..length]));
        let ((status, error), _) = build(program, cut, c"cubin", c"sm_90");
        assert_eq!(status, gridlet_compile_status::InvalidArgument, "{length}: {error:?}");
        let (_, message) = error.unwrap();
        assert!(message.starts_with("step.cubin: "), "{message}");
    }
}

#[test]
fn objects_of_another_machine_are_refused() {
    let program = ("a.grid", LANGUAGE.as_bytes());
    let Some(cubin) = cubin("objects_of_another_machine_are_refused") else { return };
    // The machine is at bytes 18 and 19 of the header; 183 is 64-bit Arm, 62 is x86-64, 243 is RISC-V.
    let of = |machine: u8| {
        let mut object = cubin.clone();
        object[16..20].copy_from_slice(&[1, 0, machine, 0]);
        object
    };
    let other = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    for (machine, name, target) in [
        (other, "step.o", c"cpu"),
        (243, "step.o", c"cpu"),
        (other, "step.o", c"sm_90"),
        (other, "step.cubin", c"sm_90"),
    ] {
        let object = of(machine);
        let kind = if target == c"cpu" { c"shared-object" } else { c"cubin" };
        let ((status, error), _) = build(program, Some((name, &object)), kind, target);
        let (_, message) = error.unwrap();
        assert_ne!(status, gridlet_compile_status::Internal, "{message}");
        assert!(message.contains("machine") || message.contains("step"), "{message}");
    }
}
