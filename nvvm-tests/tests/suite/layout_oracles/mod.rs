//! The layout pass against two oracles: the parameter records that NVIDIA's assembler writes into a cubin,
//! and nvcc's layout of the same types in CUDA C++.

mod cpp;
mod shape;

use std::cell::Cell;
use std::process::Command;
use std::sync::Arc;

use gridlet::arch::CudaArch;

use gridlet::codegen::build_module;
use gridlet::compile::nvvm_text;
use gridlet::ir::verify::verify;
use gridlet::ir::{
    self, Block, Function, FunctionId, Kernel, KernelId, Parameter, Role, Terminator,
};
use gridlet::layout::{Layouts, compute_layouts};
use gridlet::link::cubin::parameter_records;
use gridlet::link::{Cubin, LinkOptions, check_parameters, device_link};
use gridlet::source::{FileId, SourceMap, Span};
use gridlet::toolchain::Component;
use gridlet::types::{Structs, Type};
use inkwell::context::Context;
use nvvm_tests::{Tools, toolchain_or_skip};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use shape::{Family, Signature, describe, edges, parameters, signatures};

const KERNELS_OF_A_MODULE: usize = 250;
const MODULES: u32 = 42;
const KERNELS_FOR_NVCC: usize = 256;

/// A module of kernels that do nothing, one for each list of parameters.
fn module(kernels: &[Vec<Parameter>], structs: Structs) -> ir::Module {
    let span = Span::new(FileId(0), 0..0);
    let mut module = ir::Module {
        sources: Arc::new(SourceMap::single("oracle.grid", "")),
        structs,
        globals: vec![],
        externs: vec![],
        functions: vec![],
        kernels: vec![],
        lowered: true,
        resident: None,
    };
    for (at, list) in kernels.iter().enumerate() {
        let function = |name: String, role, takes_geometry, parameters| Function {
            name,
            role,
            takes_geometry,
            parameters,
            result: Type::Unit,
            slots: vec![],
            instructions: vec![],
            blocks: vec![Block {
                name: "entry".into(),
                instructions: vec![],
                terminator: Terminator::Return(None),
                unroll: None,
            }],
            span,
        };
        let (id, next) = (KernelId(at as u32), module.functions.len() as u32);
        let name = format!("k{at}");
        let geometry = Parameter { name: "geometry".into(), ty: Type::GEOMETRY };
        let body_parameters = std::iter::once(geometry).chain(list.iter().cloned()).collect();
        module.functions.push(function(
            format!("{name}.body"),
            Role::Body(id),
            true,
            body_parameters,
        ));
        module.functions.push(function(name.clone(), Role::Entry(id), false, list.clone()));
        module.kernels.push(Kernel {
            name,
            parameters: list.clone(),
            body: FunctionId(next),
            entry: FunctionId(next + 1),
            launch_bounds: None,
            noalias: false,
            span,
        });
    }
    module
}

/// The signatures as a module with its layouts.
fn build(signatures: &[Signature]) -> (ir::Module, Layouts) {
    let mut structs = Structs::new();
    let lists: Vec<Vec<Parameter>> =
        signatures.iter().map(|signature| parameters(signature, &mut structs)).collect();
    let module = module(&lists, structs);
    verify(&module).unwrap();
    let layouts = compute_layouts(&module).unwrap();
    (module, layouts)
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

/// Through all stages to a cubin, without the device runtime: nothing launches here.
fn compile(tools: &Tools, module: &ir::Module, arch: CudaArch) -> Cubin {
    let context = Context::create();
    let llvm = build_module(&context, module).unwrap();
    let ptx = tools.ptx(&nvvm_text(&llvm, arch.dialect()).unwrap(), arch).unwrap().ptx;
    device_link(&tools.nvjitlink, &ptx, None, &[], arch, &LinkOptions::default()).unwrap().cubin
}

#[test]
fn the_edges_of_what_a_launch_takes_agree() {
    let Some(tools) = Tools::or_skip("edges") else { return };
    let (module, layouts) = build(&edges());
    let sizes: Vec<u32> = layouts.kernels.iter().map(|kernel| kernel.size).collect();
    assert_eq!(sizes, [0, 1, 4096, 4084, 4096, 4096, 4096, 4096]);
    for arch in CudaArch::SUPPORTED {
        if let Err(error) = agree(&compile(&tools, &module, arch), &module, &layouts) {
            panic!("{arch}: {error}");
        }
    }
}

/// 10,500 random signatures, some of each architecture.
#[test]
fn the_cubin_has_every_parameter_where_the_layout_pass_puts_it() {
    let Some(tools) = Tools::or_skip("parameter records") else { return };
    let next = Cell::new(0);
    let strategy = signatures(Family::Gridlet, KERNELS_OF_A_MODULE);
    let outcome = TestRunner::new(config(MODULES)).run(&strategy, |signatures| {
        let arch = CudaArch::SUPPORTED[next.get() % CudaArch::SUPPORTED.len()];
        next.set(next.get() + 1);
        let (module, layouts) = build(&signatures);
        agree(&compile(&tools, &module, arch), &module, &layouts)
    });
    finish(outcome);
    assert_eq!(next.get(), MODULES as usize);
}

#[test]
fn nvcc_lays_out_the_same_types_in_the_same_way() {
    let Some(toolchain) = toolchain_or_skip("nvcc's layout", &[Component::Nvcc]) else { return };
    let strategy = signatures(Family::Cuda, KERNELS_FOR_NVCC);
    // One round: nvcc is slow. The signatures differ from run to run.
    let mut runner = TestRunner::new(config(1));
    let outcome = runner.run(&strategy, |signatures| {
        let (module, layouts) = build(&signatures);
        let lists: Vec<Vec<Parameter>> =
            module.kernels.iter().map(|kernel| kernel.parameters.clone()).collect();
        let folder = tempfile::tempdir().unwrap();
        let (source, cubin) = (folder.path().join("oracle.cu"), folder.path().join("oracle.cubin"));
        std::fs::write(&source, cpp::program(&lists, &module.structs)).unwrap();
        let output = Command::new(toolchain.path(Component::Nvcc).unwrap())
            .args(["-std=c++17", "-cubin", "-arch=sm_90", "-w", "-o"])
            .args([&cubin, &source])
            .output()
            .unwrap();
        // A failed static assertion is a difference, too.
        let log = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(TestCaseError::fail(format!("nvcc: {log}")));
        }
        agree(&Cubin(std::fs::read(&cubin).unwrap()), &module, &layouts)
    });
    finish(outcome);
}
