//! The layout pass against four oracles: the parameters that both back ends declare in PTX, the parameter records that
//! NVIDIA's assembler writes into a cubin, nvcc's layout of the same types in CUDA C++, and what the driver says of the loaded
//! kernels.
//!
//! `GRIDLET_SIGNATURES=100000` asks for that many random signatures.

mod cpp;
mod ptx;

use std::cell::Cell;
use std::process::Command;

use gridlet::arch::CudaArch;

use gridlet::codegen::build_module;
use gridlet::compile::{Session, nvvm_text};
use gridlet::ir::{self, Parameter};
use gridlet::layout::{Layouts, ParamSlot};
use gridlet::link::cubin::parameter_records;
use gridlet::link::{Cubin, LinkOptions, check_parameters, device_link};
use gridlet::ptx::{Ptx, PtxOptions, nvptx};
use gridlet::toolchain::{Component, Toolchain};
use gridlet::types::Scalar;
use inkwell::context::Context;
use nvvm_tests::layouts::driver::{self, Driver};
use nvvm_tests::layouts::shape::{self, Family, Shape, Signature, describe, edges};
use nvvm_tests::layouts::{self, Image};
use nvvm_tests::{Tools, toolchain_or_skip};
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

const KERNELS_OF_A_MODULE: usize = 250;
const KERNELS_FOR_NVCC: usize = 256;

/// The signatures as a module with its layouts.
fn build(signatures: &[Signature]) -> (ir::Module, Layouts) {
    layouts::build(signatures).unwrap()
}

/// Lists of random signatures.
fn signatures(family: Family, count: usize) -> impl Strategy<Value = Vec<Signature>> {
    any::<u64>().prop_map(move |seed| shape::signatures(family, count, seed))
}

/// The number of random signatures, if it is given.
fn wanted() -> Option<usize> {
    std::env::var("GRIDLET_SIGNATURES").ok().map(|count| count.parse().unwrap())
}

/// Compares, and names the kernel with its types where the two differ.
fn agree(cubin: &Cubin, module: &ir::Module, layouts: &Layouts) -> Result<(), TestCaseError> {
    let all = &layouts.kernels;
    if check_parameters(cubin, all).is_err() {
        for (kernel, layout) in module.kernels.iter().zip(all) {
            if let Err(error) = check_parameters(cubin, [layout]) {
                let signature = describe(&kernel.parameters, &module.structs);
                return Err(TestCaseError::fail(format!("{error}\n{signature}")));
            }
        }
    }
    let count = parameter_records(cubin).unwrap().len();
    if count != module.kernels.len() {
        return Err(TestCaseError::fail(format!("{count} kernels in the cubin")));
    }
    Ok(())
}

/// Failures are named instead of shrunk, because shrinking would compile a module for each step: see [`agree`].
fn config(cases: u32) -> Config {
    Config { cases, max_shrink_iters: 0, failure_persistence: None, ..Config::default() }
}

/// Fails with the reason alone: the input has hundreds of kernels, and the reason names the wrong one.
fn finish(outcome: Result<(), TestError<Vec<Signature>>>) {
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, _) | TestError::Abort(reason)) => {
            panic!("{}", reason.message())
        }
    }
}

/// Through all stages to PTX by both back ends, and to a cubin, without the device runtime: nothing launches here.
fn compile(tools: &Tools, module: &ir::Module, arch: CudaArch) -> ([Ptx; 2], Cubin) {
    let context = Context::create();
    let llvm = build_module(&context, module).unwrap();
    let ptx = tools.ptx(&nvvm_text(&llvm, arch.dialect()).unwrap(), arch).unwrap().ptx;
    let other = nvptx::compile(&llvm, None, arch, &PtxOptions::default()).unwrap();
    let options = LinkOptions::default();
    let linked = device_link(&tools.nvjitlink, &ptx, None, &[], arch, &options).unwrap();
    ([ptx, other], linked.cubin)
}

/// Compares the layouts with PTX and a cubin.
fn all_agree(
    tools: &Tools,
    module: &ir::Module,
    layouts: &Layouts,
    arch: CudaArch,
) -> Result<(), TestCaseError> {
    let (texts, cubin) = compile(tools, module, arch);
    for (text, by) in texts.iter().zip(["libNVVM", "NVPTX"]) {
        if let Some(difference) = ptx::difference(&text.0, &layouts.kernels) {
            return Err(TestCaseError::fail(format!("{arch}, PTX by {by}: {difference}")));
        }
    }
    agree(&cubin, module, layouts)
}

#[test]
fn the_edges_of_what_a_launch_takes_agree() {
    let Some(tools) = Tools::or_skip("edges") else { return };
    let (module, layouts) = build(&edges());
    let sizes: Vec<u32> = layouts.kernels.iter().map(|kernel| kernel.size).collect();
    assert_eq!(sizes, [0, 1, 4096, 4084, 4096, 4096, 4096, 4096]);
    for arch in CudaArch::SUPPORTED {
        if let Err(error) = all_agree(&tools, &module, &layouts, arch) {
            panic!("{arch}: {error}");
        }
    }
}

/// 10,500 random signatures unless told otherwise, some of each architecture.
#[test]
fn the_cubin_has_every_parameter_where_the_layout_pass_puts_it() {
    let Some(tools) = Tools::or_skip("parameter records") else { return };
    let next = Cell::new(0);
    let strategy = signatures(Family::Gridlet, KERNELS_OF_A_MODULE);
    let modules = wanted().unwrap_or(10_500).div_ceil(KERNELS_OF_A_MODULE);
    let outcome = TestRunner::new(config(modules as u32)).run(&strategy, |signatures| {
        let arch = CudaArch::SUPPORTED[next.get() % CudaArch::SUPPORTED.len()];
        next.set(next.get() + 1);
        let (module, layouts) = build(&signatures);
        all_agree(&tools, &module, &layouts, arch)
    });
    finish(outcome);
    assert_eq!(next.get(), modules);
}

/// On a GPU: the driver's records of 1,000 random signatures, or as many as are asked for. The program `layouts` compares more, in
/// parallel.
#[test]
fn the_driver_has_every_parameter_where_the_layout_pass_puts_it() {
    let test = "the_driver_has_every_parameter_where_the_layout_pass_puts_it";
    let Some(_) = toolchain_or_skip(test, &[Component::Ptxas]) else { return };
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(error) => return eprintln!("SKIPPED: {test} needs an NVIDIA GPU: {error:#}"),
    };
    let session = Session::new();
    for seed in 0..wanted().unwrap_or(1000).div_ceil(KERNELS_OF_A_MODULE) as u64 {
        let (module, layouts) =
            build(&shape::signatures(Family::Gridlet, KERNELS_OF_A_MODULE, seed));
        for image in [Image::Cubin, Image::Ptx] {
            let image = layouts::compile(&session, &module, driver.arch(), image).unwrap();
            let found = driver.parameters(&image, &layouts.kernels).unwrap();
            assert_eq!(driver::difference(&found, &layouts), None, "seed {seed}");
        }
    }
}

#[test]
fn nvcc_lays_out_the_same_types_in_the_same_way() {
    let Some(toolchain) = toolchain_or_skip("nvcc's layout", &[Component::Nvcc]) else { return };
    let strategy = signatures(Family::Cuda, KERNELS_FOR_NVCC);
    // One round unless told otherwise: nvcc is slow. The signatures differ from run to run.
    let rounds = wanted().unwrap_or(KERNELS_FOR_NVCC).div_ceil(KERNELS_FOR_NVCC);
    let mut runner = TestRunner::new(config(rounds as u32));
    let outcome = runner.run(&strategy, |signatures| {
        let (module, layouts) = build(&signatures);
        let lists: Vec<Vec<Parameter>> =
            module.kernels.iter().map(|kernel| kernel.parameters.clone()).collect();
        let text = cpp::program(&lists, &module.structs);
        // A failed static assertion is a difference, too.
        let cubin = by_nvcc(&toolchain, &text).map_err(TestCaseError::fail)?;
        agree(&cubin, &module, &layouts)
    });
    finish(outcome);
}

/// A program in CUDA C++, or what nvcc says of it.
fn by_nvcc(toolchain: &Toolchain, text: &str) -> Result<Cubin, String> {
    let folder = tempfile::tempdir().unwrap();
    let (source, cubin) = (folder.path().join("oracle.cu"), folder.path().join("oracle.cubin"));
    std::fs::write(&source, text).unwrap();
    let output = Command::new(toolchain.path(Component::Nvcc).unwrap())
        .args(["-std=c++17", "-cubin", "-arch=sm_90", "-w", "-o"])
        .args([&cubin, &source])
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(format!("nvcc: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Cubin(std::fs::read(&cubin).unwrap()))
}

/// The edges without the parameters that C++ lacks, as a module with its layouts.
fn small() -> (ir::Module, Layouts) {
    let byte = || Shape::Scalar(Scalar::U8);
    let pair = Shape::Struct(vec![byte(), Shape::Scalar(Scalar::F64)]);
    build(&[vec![byte(), pair, Shape::Vector(Scalar::F32, 3)]])
}

#[test]
fn the_oracles_of_the_assembler_tell_every_difference() {
    let Some(tools) = Tools::or_skip("differences of oracles") else { return };
    let (module, right) = small();
    let ([first, second], cubin) = compile(&tools, &module, CudaArch::DEFAULT);
    let wrong = |text: Option<&Ptx>, layouts: &Layouts| match text {
        Some(text) => ptx::difference(&text.0, &layouts.kernels).is_some(),
        None => agree(&cubin, &module, layouts).is_err(),
    };
    for oracle in [Some(&first), Some(&second), None] {
        assert!(!wrong(oracle, &right));
        for slot in 0..3 {
            let change = |change: fn(&mut ParamSlot)| {
                let mut layouts = right.clone();
                change(&mut layouts.kernels[0].slots[slot]);
                wrong(oracle, &layouts)
            };
            assert!(change(|slot| slot.offset += 1), "offset of {slot}: {oracle:?}");
            assert!(change(|slot| slot.size += 1), "size of {slot}: {oracle:?}");
            // A cubin does not tell alignments.
            let sees = change(|slot| slot.alignment *= 2);
            assert_eq!(sees, oracle.is_some(), "alignment of {slot}: {oracle:?}");
        }
        let mut fewer = right.clone();
        fewer.kernels[0].slots.pop();
        assert!(wrong(oracle, &fewer), "{oracle:?}");
        let mut other = right.clone();
        other.kernels[0].kernel = "other".into();
        assert!(wrong(oracle, &other), "{oracle:?}");
    }
}

#[test]
fn nvcc_tells_every_difference() {
    let Some(toolchain) = toolchain_or_skip("differences of nvcc", &[Component::Nvcc]) else {
        return;
    };
    let (module, _) = small();
    let text = cpp::program(&[module.kernels[0].parameters.clone()], &module.structs);
    assert!(by_nvcc(&toolchain, &text).is_ok());
    for assertion in ["sizeof(", "alignof(", "offsetof("] {
        let at = text.rfind(&format!("static_assert({assertion}")).unwrap();
        let number = at + text[at..].find("== ").unwrap() + 3;
        let wrong = format!("{}1{}", &text[..number], &text[number..]);
        let said = by_nvcc(&toolchain, &wrong).unwrap_err();
        assert!(said.contains("static assertion failed"), "{said}");
    }
}
