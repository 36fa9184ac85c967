//! Bit masks of 16-bit numbers that conversions from `f32` make, in machine code.
//!
//! ptxas (CUDA 13.0) drops some of them where two halves of a register are put together; `compiler/src/ptx/masks.rs` has the rule.

use gridlet::arch::CudaArch;
use gridlet::compile::{Backend, BuildOptions, Session};
use gridlet::toolchain::Toolchain;
use nvvm_tests::{FOR_DISASSEMBLY, differential, nvdisasm, toolchain_or_skip};

/// Ways to a value of 16 bits, and what one of the instructions of each has.
const VALUES: [(&str, &str); 6] = [
    ("abs(x as f16)", "0x7fff"),
    ("abs(x as bf16)", "0x7fff"),
    ("bitcast::<u16>(x as f16) & 0x3ff", "0x3ff"),
    ("(bitcast::<u16>(x as bf16) as u8) as u16", "0xff,"),
    ("abs(bitcast::<f16x2>(bitcast::<u32>(f16x2(y, x as f16))).y)", "0x7fff"),
    ("abs(if y < 1.0 { x as f16 } else { y })", "0x7fff"),
];

fn program() -> String {
    let mut source = String::new();
    for (at, (value, _)) in VALUES.iter().enumerate() {
        source += &format!(
            "kernel k{at}(out: *mut u16x2, from: *const f32, halves: *const f16) {{\n\
             \x20   let x = from[thread_idx.x];\n\
             \x20   let y = halves[thread_idx.x];\n\
             \x20   out[thread_idx.x] = u16x2(bitcast::<u16>({value}), bitcast::<u16>(y));\n}}\n"
        );
    }
    source
}

/// The instructions of a kernel in disassembled code.
fn code<'a>(text: &'a str, kernel: &str) -> &'a str {
    let start = text.find(&format!(".text.{kernel}:")).expect("the kernel's code");
    let rest = &text[start..];
    &rest[..rest.find("EXIT").expect("the kernel's end")]
}

#[test]
fn masks_of_converted_numbers_are_in_the_machine_code() {
    let test = "masks_of_converted_numbers_are_in_the_machine_code";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    let source = program();
    let program = differential::check(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut lost = vec![];
    for arch in CudaArch::SUPPORTED.into_iter().filter(|arch| arch.has_bf16()) {
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let options = BuildOptions::default().with_arch(arch).with_backend(backend);
            let built = session.cubin(&program, &options).unwrap();
            let text = nvdisasm(&toolchain, &["-c"], &built.cubin.0);
            for (at, (value, mask)) in VALUES.iter().enumerate() {
                let code = code(&text, &format!("k{at}"));
                // `HADD2 |R0|` is the absolute value, too.
                if !code.contains(mask) && !code.contains('|') {
                    lost.push(format!("{value} on {arch:?} by {backend:?}:\n{code}"));
                }
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}
