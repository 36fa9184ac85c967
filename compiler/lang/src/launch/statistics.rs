//! Instrumented builds: programs that record how deep their launches nest and which SMs run their grids.
//!
//! The pass runs before the layout pass and only adds wrappers:
//! ```text
//! kernel k(p)                    launched by the host:  k.body records the block and calls gridlet.work.k(geometry, p, 0)
//! kernel gridlet.nested.k(p, d)  launched by kernels:   its body records the block and calls gridlet.work.k(geometry, p, d)
//! ```
//! The depth of a grid is a parameter after the kernel's own, so that it travels with the launch, and an argument of
//! every function that may launch; a launch passes the depth plus one. If the parameter would not fit the 4,096 bytes
//! of a parameter buffer, `gridlet.nested.k(p)` starts again from 1 and marks the depth as a lower bound.
//!
//! The first thread of each block writes to the array [`STATISTICS`]; `gridlet_artifact::manifest::Statistics` describes
//! its words. A lost launch therefore records nothing. A grid that other CUDA code launches by the kernel's own name
//! counts as launched by the host.

use gridlet_artifact::manifest::{DEPTH_WORDS, STATISTICS_SMS, statistics_words};

use crate::builtins::{AtomicOp, Builtin, Scope};
use crate::error::{Error, Result};
use crate::ir::build::{BodyBuilder, Signature, build_entry};
use crate::ir::verify::verify;
use crate::ir::{
    BinaryOp, Const, Function, FunctionId, Global, GlobalId, Init, Inst, InstId, InstKind, Kernel,
    KernelId, Module, Operand, Parameter, Role, Space, Terminator, symbol,
};
use crate::layout::{MAX_PARAMETER_BYTES, buffer_layout};
use crate::source::{FileId, Span};
use crate::types::{Scalar, Type};

/// The device global, an array of `u32`, in which blocks record how deep launches nest and which SMs run them. Only
/// instrumented builds have it: see [`super::instrument`].
pub const STATISTICS: &str = "__gridlet_statistics";

/// The function that writes to [`STATISTICS`]. Names in the language never contain a dot.
const NOTE_BLOCK: &str = "gridlet.note_block";

/// The bit that marks a depth as a lower bound.
const AT_LEAST: u32 = 1 << 31;

/// The name of the hidden parameter. Names in the language never contain a dot.
const DEPTH: &str = "launch.depth";

/// Adds the wrappers that record blocks to a program, whose launches must still be symbolic.
///
/// # Errors
/// [`Error::Internal`] if the launches are lowered already, or the module breaks the rules of [`crate::ir`].
pub fn instrument(module: &Module) -> Result<Module> {
    if module.lowered {
        return Err(Error::internal("launch", "the launches are lowered already"));
    }
    verify(module)?;
    let nested = nested_kernels(module);
    let passes_depth = super::may_launch(module);

    let mut out = module.clone();
    out.globals.push(Global {
        name: STATISTICS.into(),
        space: Space::Device,
        ty: Type::Array(Box::new(Type::U32), u64::from(statistics_words(STATISTICS_SMS))),
        init: Init::Zero,
        exported: true,
        variable: None,
    });
    let statistics = GlobalId(out.globals.len() as u32 - 1);
    for (at, function) in out.functions.iter_mut().enumerate() {
        if passes_depth[at] {
            pass_depth(function, &nested, &passes_depth);
        }
    }

    let note = FunctionId(out.functions.len() as u32);
    out.functions.push(build_note_block(statistics)?);
    for (at, _) in module.kernels.iter().enumerate().filter(|(_, kernel)| !kernel.is_extern()) {
        wrap_kernel(&mut out, KernelId(at as u32), note, &passes_depth)?;
    }
    for (kernel, nested) in module.kernels.iter().zip(&nested) {
        if let Some(nested) = nested {
            add_nested(&mut out, kernel, nested, note, &passes_depth)?;
        }
    }
    verify(&out)?;
    Ok(out)
}

/// The kernel that replaces another in launches.
#[derive(Clone, Copy)]
struct Nested {
    id: KernelId,
    /// Whether its parameter buffer has room for the depth.
    has_depth: bool,
}

/// For each kernel, the kernel that replaces it in launches; `None` if nothing launches it, or if another module defines it.
fn nested_kernels(module: &Module) -> Vec<Option<Nested>> {
    let mut nested = vec![None; module.kernels.len()];
    let mut next = module.kernels.len() as u32;
    for inst in module.functions.iter().flat_map(|function| &function.instructions) {
        let InstKind::Launch(launch) = &inst.kind else { continue };
        if module.kernel(launch.kernel).is_extern() {
            continue;
        }
        nested[launch.kernel.index()] = Some(Nested { id: KernelId(0), has_depth: false });
    }
    // In source order, not in the order of the launches.
    for (kernel, nested) in module.kernels.iter().zip(&mut nested) {
        if let Some(nested) = nested {
            let types = kernel.parameters.iter().map(|parameter| &parameter.ty);
            let buffer = buffer_layout(types.chain([&Type::U32]), &module.structs);
            let has_depth = buffer.size <= u64::from(MAX_PARAMETER_BYTES);
            *nested = Nested { id: KernelId(next), has_depth };
            next += 1;
        }
    }
    nested
}

fn depth_parameter() -> Parameter {
    Parameter { name: DEPTH.into(), ty: Type::U32 }
}

fn number(value: u32) -> Operand {
    Operand::Const(Const::Int(Scalar::U32, i128::from(value)))
}

/// Adds the depth as a function's last parameter, and passes it on in its launches and calls.
fn pass_depth(function: &mut Function, nested: &[Option<Nested>], passes_depth: &[bool]) {
    let depth = Operand::Parameter(function.parameters.len() as u32);
    function.parameters.push(depth_parameter());
    for block in 0..function.blocks.len() {
        let old = std::mem::take(&mut function.blocks[block].instructions);
        let mut new = Vec::with_capacity(old.len());
        for id in old {
            let next = InstId(function.instructions.len() as u32);
            let inst = &mut function.instructions[id.index()];
            let mut deeper = None;
            match &mut inst.kind {
                InstKind::Call { function: callee, arguments } if passes_depth[callee.index()] => {
                    arguments.push(depth.clone());
                }
                InstKind::Launch(launch) => {
                    if let Some(nested) = nested[launch.kernel.index()] {
                        launch.kernel = nested.id;
                        if nested.has_depth {
                            launch.arguments.push(Operand::Inst(next));
                            let kind = InstKind::Binary(BinaryOp::Add, depth.clone(), number(1));
                            deeper = Some(Inst { kind, ty: Type::U32, span: inst.span });
                        }
                    }
                }
                _ => {}
            }
            if let Some(deeper) = deeper {
                function.instructions.push(deeper);
                new.push(next);
            }
            new.push(id);
        }
        function.blocks[block].instructions = new;
    }
}

/// Inserts a body that records the block between a kernel's entry and its work.
fn wrap_kernel(
    module: &mut Module,
    id: KernelId,
    note: FunctionId,
    passes_depth: &[bool],
) -> Result<()> {
    let kernel = module.kernel(id).clone();
    let work = kernel.body;
    let body_name = module.function(work).name.clone();
    let function = &mut module.functions[work.index()];
    function.name = symbol::work(&kernel.name);
    function.role = Role::Device;

    let body = FunctionId(module.functions.len() as u32);
    module.kernels[id.index()].body = body;
    for inst in &mut module.functions[kernel.entry.index()].instructions {
        if let InstKind::Call { function, .. } = &mut inst.kind
            && *function == work
        {
            *function = body;
        }
    }
    let from_host = Wrapper {
        note,
        work,
        first_word: DEPTH_WORDS,
        depth: number(0),
        passes_depth: passes_depth[work.index()],
    };
    let function = from_host.body(body_name, id, &kernel, kernel.parameters.len())?;
    module.functions.push(function);
    Ok(())
}

/// Adds the kernel that replaces `original` in launches; `original` is the kernel before it was wrapped.
fn add_nested(
    module: &mut Module,
    original: &Kernel,
    nested: &Nested,
    note: FunctionId,
    passes_depth: &[bool],
) -> Result<()> {
    // `wrap_kernel` has made its body the work.
    let work = original.body;
    let mut kernel = original.clone();
    let own = kernel.parameters.len();
    kernel.name = symbol::nested(&kernel.name);
    let depth = if nested.has_depth {
        kernel.parameters.push(depth_parameter());
        Operand::Parameter(own as u32 + 1)
    } else {
        number(AT_LEAST | 1)
    };
    kernel.body = FunctionId(module.functions.len() as u32);
    kernel.entry = FunctionId(module.functions.len() as u32 + 1);
    let from_kernels = Wrapper {
        note,
        work,
        first_word: DEPTH_WORDS + STATISTICS_SMS / 32,
        depth,
        passes_depth: passes_depth[work.index()],
    };
    let body = from_kernels.body(format!("{}.body", kernel.name), nested.id, &kernel, own)?;
    let entry = build_entry(&kernel, nested.id)?;
    module.functions.extend([body, entry]);
    module.kernels.push(kernel);
    Ok(())
}

/// A body that only records its block and calls the function with the work.
struct Wrapper {
    note: FunctionId,
    work: FunctionId,
    /// The first word of the SM bits that it sets.
    first_word: u32,
    depth: Operand,
    passes_depth: bool,
}

impl Wrapper {
    /// Builds the body, which passes on the first `own` of the kernel's parameters.
    fn body(self, name: String, id: KernelId, kernel: &Kernel, own: usize) -> Result<Function> {
        let span = kernel.span;
        let geometry = Operand::Parameter(0);
        let mut body = BodyBuilder::new();
        let arguments = vec![geometry.clone(), number(self.first_word), self.depth.clone()];
        body.emit(InstKind::Call { function: self.note, arguments }, Type::Unit, span);
        let mut arguments = vec![geometry];
        arguments.extend((1..=own as u32).map(Operand::Parameter));
        arguments.extend(self.passes_depth.then_some(self.depth));
        body.emit(InstKind::Call { function: self.work, arguments }, Type::Unit, span);
        body.terminate(Terminator::Return(None));
        let mut parameters = vec![Parameter { name: "geometry".into(), ty: Type::GEOMETRY }];
        parameters.extend(kernel.parameters.iter().cloned());
        body.finish(Signature {
            name,
            role: Role::Body(id),
            takes_geometry: true,
            parameters,
            result: Type::Unit,
            span,
        })
    }
}

/// `gridlet.note_block(geometry, first_word: u32, depth: u32)`: the block's first thread records its SM, in bits from
/// `first_word` on, and the depth of its grid.
fn build_note_block(statistics: GlobalId) -> Result<Function> {
    let span = Span::new(FileId(0), 0..0);
    let mut body = BodyBuilder::new();
    let [first_word, depth] = [1, 2].map(Operand::Parameter);

    let thread = InstKind::Extract { base: Operand::Parameter(0), index: 0 };
    let thread = body.emit(thread, Type::DIM3, span);
    let mut any = number(0);
    for index in 0..3 {
        let axis = InstKind::Extract { base: thread.clone(), index };
        let axis = body.emit(axis, Type::U32, span);
        any = body.emit(InstKind::Binary(BinaryOp::Or, any, axis), Type::U32, span);
    }
    let is_first = InstKind::Binary(BinaryOp::Eq, any, number(0));
    let is_first = body.emit(is_first, Type::BOOL, span);
    let [note, end] = body.blocks("block", ["note", "end"]);
    body.branch(is_first, note, end);

    body.place(note);
    let binary = |body: &mut BodyBuilder, op, left, right| {
        body.emit(InstKind::Binary(op, left, right), Type::U32, span)
    };
    let builtin = |body: &mut BodyBuilder, builtin, arguments| {
        let kind = InstKind::Builtin { builtin, arguments, format: None };
        body.emit(kind, Type::U32, span)
    };
    let word = |body: &mut BodyBuilder, index| {
        let kind = InstKind::ElementAddress { base: Operand::Global(statistics), index };
        body.emit(kind, Type::pointer_mut(Type::U32), span)
    };
    let sm = builtin(&mut body, Builtin::SmId, vec![]);
    // On a device with more SMs, the write would be out of bounds.
    let is_known = InstKind::Binary(BinaryOp::Lt, sm.clone(), number(STATISTICS_SMS));
    let is_known = body.emit(is_known, Type::BOOL, span);
    let sm = InstKind::Select(is_known, sm, number(STATISTICS_SMS - 1));
    let sm = body.emit(sm, Type::U32, span);
    let index = binary(&mut body, BinaryOp::Shr, sm.clone(), number(5));
    let index = binary(&mut body, BinaryOp::Add, index, first_word);
    let bit = binary(&mut body, BinaryOp::And, sm, number(31));
    let bit = binary(&mut body, BinaryOp::Shl, number(1), bit);
    let address = word(&mut body, index);
    builtin(&mut body, Builtin::Atomic(AtomicOp::Or, Scope::Device), vec![address, bit]);

    let which = binary(&mut body, BinaryOp::Shr, depth.clone(), number(31));
    let value = binary(&mut body, BinaryOp::And, depth, number(!AT_LEAST));
    let address = word(&mut body, which);
    builtin(&mut body, Builtin::Atomic(AtomicOp::Max, Scope::Device), vec![address, value]);
    body.jump(end);

    body.place(end);
    body.terminate(Terminator::Return(None));
    let parameters =
        [("geometry", Type::GEOMETRY), ("first_word", Type::U32), ("depth", Type::U32)];
    body.finish(Signature {
        name: NOTE_BLOCK.into(),
        role: Role::Device,
        takes_geometry: true,
        parameters: parameters.map(|(name, ty)| Parameter { name: name.into(), ty }).to_vec(),
        result: Type::Unit,
        span,
    })
}
