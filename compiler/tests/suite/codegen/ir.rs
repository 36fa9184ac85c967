//! Builds lowered IR by hand.

use std::sync::Arc;

use gridlet::ir::{
    Block, BlockId, Function, FunctionId, Inst, InstId, InstKind, Kernel, KernelId, LaunchBounds,
    Module, Operand, Parameter, Role, Slot, SlotId, Terminator,
};
use gridlet::source::{FileId, SourceMap, Span};
use gridlet::types::{Structs, Type};

/// A span for code without a source.
fn nowhere() -> Span {
    Span::new(FileId(0), 0..0)
}

/// A function under construction.
pub(crate) struct Code {
    function: Function,
    at: BlockId,
}

impl Code {
    /// A device function with an empty entry block.
    pub(crate) fn device(name: &str, parameters: &[(&str, Type)], result: Type) -> Code {
        let parameters = parameters
            .iter()
            .map(|(name, ty)| Parameter { name: (*name).into(), ty: ty.clone() })
            .collect();
        let function = Function {
            name: name.into(),
            role: Role::Device,
            takes_geometry: false,
            parameters,
            result,
            slots: vec![],
            instructions: vec![],
            blocks: vec![],
            addressed: vec![],
            span: nowhere(),
        };
        let mut code = Code { function, at: BlockId(0) };
        code.block("entry");
        code
    }

    /// A new block, not yet entered.
    pub(crate) fn block(&mut self, name: &str) -> BlockId {
        self.function.blocks.push(Block {
            name: name.into(),
            instructions: vec![],
            terminator: Terminator::Unreachable,
            end: None,
            unroll: None,
        });
        BlockId(self.function.blocks.len() as u32 - 1)
    }

    /// Continues in another block.
    pub(crate) fn enter(&mut self, block: BlockId) {
        self.at = block;
    }

    /// Adds an instruction; returns its value.
    pub(crate) fn emit(&mut self, kind: InstKind, ty: Type) -> Operand {
        let id = InstId(self.function.instructions.len() as u32);
        self.function.instructions.push(Inst { kind, ty, span: nowhere() });
        self.function.blocks[self.at.index()].instructions.push(id);
        Operand::Inst(id)
    }

    /// Adds a store.
    pub(crate) fn store(&mut self, pointer: Operand, value: Operand) {
        self.emit(InstKind::Store { pointer, value }, Type::Unit);
    }

    /// Adds a local variable; returns its address.
    pub(crate) fn slot(&mut self, name: &str, ty: Type) -> Operand {
        self.function.slots.push(Slot { name: name.into(), ty, unset: false, variable: None });
        Operand::Slot(SlotId(self.function.slots.len() as u32 - 1))
    }

    /// Ends the current block.
    pub(crate) fn end(&mut self, terminator: Terminator) {
        self.function.blocks[self.at.index()].terminator = terminator;
    }

    /// Ends the current block with `return`.
    pub(crate) fn end_return(mut self) -> Function {
        self.end(Terminator::Return(None));
        self.function
    }

    /// The function as it is.
    pub(crate) fn finish(self) -> Function {
        self.function
    }
}

/// An empty lowered module whose source is `name`.
pub(crate) fn module(name: &str, structs: Structs) -> Module {
    Module {
        sources: Arc::new(SourceMap::single(name, "")),
        structs,
        globals: vec![],
        externs: vec![],
        functions: vec![],
        kernels: vec![],
        lowered: true,
        resident: None,
    }
}

/// Adds a function.
pub(crate) fn add(module: &mut Module, function: Function) -> FunctionId {
    module.functions.push(function);
    FunctionId(module.functions.len() as u32 - 1)
}

/// Adds a kernel with the device function `body` as its body. The geometry is the body's first
/// parameter, so the kernel's own parameters count from 1.
pub(crate) fn add_kernel(
    module: &mut Module,
    mut body: Function,
    launch_bounds: Option<LaunchBounds>,
) {
    let id = KernelId(module.kernels.len() as u32);
    let name = body.name.clone();
    let parameters = body.parameters.clone();
    body.name = format!("{name}.body");
    body.role = Role::Body(id);
    body.takes_geometry = true;
    body.parameters.insert(0, Parameter { name: "geometry".into(), ty: Type::GEOMETRY });
    let body = add(module, body);

    let mut entry = Code::device(&name, &[], Type::Unit);
    entry.function.role = Role::Entry(id);
    entry.function.parameters.clone_from(&parameters);
    let geometry = entry.emit(InstKind::HardwareGeometry, Type::GEOMETRY);
    let arguments = (0..parameters.len() as u32).map(Operand::Parameter);
    let arguments = std::iter::once(geometry).chain(arguments).collect();
    entry.emit(InstKind::Call { function: body, arguments }, Type::Unit);
    let entry = add(module, entry.end_return());
    module.kernels.push(Kernel {
        name,
        parameters,
        body,
        entry,
        whole: None,
        launch_bounds,
        noalias: false,
        fast_math: false,
        span: nowhere(),
    });
}
