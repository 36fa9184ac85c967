//! Kernels with random signatures, and what the driver says of their parameters: for the layout oracles of the tests, and for
//! the program `layouts`.

pub mod driver;
pub mod shape;

use std::sync::Arc;

use gridlet::arch::CudaArch;
use gridlet::codegen::build_module;
use gridlet::compile::{BuildOptions, Session};
use gridlet::inkwell::context::Context;
use gridlet::ir::verify::verify;
use gridlet::ir::{
    self, Block, Function, FunctionId, Kernel, KernelId, Parameter, Role, Terminator,
};
use gridlet::layout::{Layouts, compute_layouts};
use gridlet::ptx::{PtxOptions, nvptx};
use gridlet::source::{FileId, SourceMap, Span};
use gridlet::types::{Structs, Type};
use shape::{Signature, parameters};

/// A module of kernels that do nothing, one for each signature, with its layouts.
///
/// # Errors
/// If the layout pass or the verifier refuses the module.
pub fn build(signatures: &[Signature]) -> gridlet::Result<(ir::Module, Layouts)> {
    let mut structs = Structs::new();
    let lists: Vec<Vec<Parameter>> =
        signatures.iter().map(|signature| parameters(signature, &mut structs)).collect();
    let module = module(&lists, structs);
    verify(&module)?;
    let layouts = compute_layouts(&module)?;
    Ok((module, layouts))
}

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
            addressed: vec![],
            blocks: vec![Block {
                name: "entry".into(),
                instructions: vec![],
                terminator: Terminator::Return(None),
                end: None,
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
            whole: None,
            launch_bounds: None,
            noalias: false,
            fast_math: false,
            span,
        });
    }
    module
}

/// What a module is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// Machine code by ptxas.
    Cubin,
    /// PTX, for the driver to compile.
    Ptx,
}

/// Compiles a module by LLVM's own back end.
///
/// # Errors
/// As [`nvptx::compile`] and [`Session::device_link`].
pub fn compile(
    session: &Session,
    module: &ir::Module,
    arch: CudaArch,
    image: Image,
) -> gridlet::Result<Vec<u8>> {
    let context = Context::create();
    let llvm = build_module(&context, module)?;
    let ptx = nvptx::compile(&llvm, None, arch, &PtxOptions::default())?;
    match image {
        Image::Ptx => Ok(ptx.0.into_bytes()),
        Image::Cubin => {
            let (cubin, _) = session.device_link(&ptx, false, &BuildOptions::for_arch(arch))?;
            Ok(cubin.0)
        }
    }
}
