//! LLVM modules as Gridlet's IR, for the CPU device and its checker.
//!
//! Each function becomes a function of the IR, and each kernel a body and an entry. All pointers are pointers to bytes in
//! one address space, integers are unsigned, and a value that crosses a join by a `phi` goes through a slot. The calls of
//! the device runtime stay as they are: the CPU device implements them.
//!
//! Not every module can be imported: constructs that only a GPU has (inline PTX, most `llvm.nvvm.*`), calls through
//! pointers, and integers of unusual widths end in an error that names them.

mod arithmetic;
mod atomics;
mod body;
mod calls;
mod constants;
mod copies;
mod functions;
mod intrinsics;
mod memory;
mod overflow;
mod printf;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use gridlet_lang::builtins::Builtin;
use gridlet_lang::ir::build::{BodyBuilder, Signature, build_entry};
use gridlet_lang::ir::{
    Extern, ExternId, Function, FunctionId, Global, GlobalId, Init, InstKind, Kernel, KernelId,
    Module, Operand, Parameter, Role, Space, Terminator,
};
use gridlet_lang::launch::LOST_LAUNCH_RECORD;
use gridlet_lang::source::{SourceMap, Span};
use gridlet_lang::types::Type;

use super::complete::is_turn;
use super::kernels::{self, name};
use super::layout::{Extent, Types, bytes, extent};
use super::positions::Positions;
use crate::error::Result;
use crate::nvvm::legacy::llvm::{self, Kind, Shape, Value};

/// Why part of a module cannot be imported.
pub(super) type Missing = String;

/// The result of one step.
pub(super) type Step<T> = std::result::Result<T, Missing>;

/// An imported module.
pub(super) struct Imported {
    pub(super) module: Module,
    /// Why the bodies of some functions are missing, and where the first one has what is not imported; they end in a trap.
    pub(super) missing: Option<(Missing, Span)>,
}

/// Imports a module whose text is in `sources`.
pub(super) fn import(module: llvm::Module<'_>, sources: Arc<SourceMap>) -> Result<Imported> {
    Importer::new(module, &sources).import(sources)
}

struct Importer<'m> {
    types: Types<'m>,
    positions: Positions,
    globals: Vec<Global>,
    global_ids: HashMap<Value<'m>, Memory>,
    externs: Vec<Extern>,
    functions: HashMap<Value<'m>, FunctionId>,
    kernels: HashMap<Value<'m>, KernelId>,
    order: Vec<Value<'m>>,
    missing: Option<(Missing, Span)>,
}

/// The memory of a variable.
#[derive(Clone)]
enum Memory {
    Global(GlobalId),
    /// The block's dynamic shared memory.
    Dynamic,
    Missing(Missing),
}

impl<'m> Importer<'m> {
    fn new(module: llvm::Module<'m>, sources: &SourceMap) -> Self {
        let order: Vec<Value<'m>> =
            module.functions().into_iter().filter(|function| is_imported(*function)).collect();
        let (mut functions, mut kernel_ids, mut next) = (HashMap::new(), HashMap::new(), 0);
        for &function in &order {
            functions.insert(function, FunctionId(next));
            next += 1;
            if kernels::is_kernel(function) {
                // Its entry follows its body.
                next += 1;
                kernel_ids.insert(function, KernelId(kernel_ids.len() as u32));
            }
        }
        let mut importer = Importer {
            types: Types::default(),
            positions: Positions::of(sources),
            globals: vec![],
            global_ids: HashMap::new(),
            externs: vec![],
            functions,
            kernels: kernel_ids,
            order,
            missing: None,
        };
        for variable in module.variables() {
            let memory = importer.variable(variable).unwrap_or_else(Memory::Missing);
            importer.global_ids.insert(variable, memory);
        }
        importer
    }

    fn variable(&mut self, variable: Value<'m>) -> Step<Memory> {
        let symbol = name(variable);
        let ty = variable.value_type();
        let Shape::Pointer(space) = variable.ty().shape() else {
            return Err(format!("`@{symbol}` is not a variable"));
        };
        let whole = extent(ty).ok_or_else(|| format!("`@{symbol}` is of type `{}`", ty.print()))?;
        if space == 3 && whole.size == 0 {
            return Ok(Memory::Dynamic);
        }
        let wanted = match u64::from(variable.alignment()) {
            0 => whole,
            alignment => Extent { alignment: alignment.min(16).max(whole.alignment), ..whole },
        };
        let own = self.types.value(ty).filter(|_| wanted == whole);
        let ty = own
            .or_else(|| bytes(wanted))
            .ok_or_else(|| format!("the alignment of `@{symbol}` is {}", wanted.alignment))?;
        let is_record = symbol == LOST_LAUNCH_RECORD;
        let ty = if is_record { Type::Array(Box::new(Type::U32), 4) } else { ty };
        let (space, init) = match (space, variable.initializer()) {
            (3, _) => (Space::Shared, Init::Unset),
            (_, None) => return Err(format!("another module defines `@{symbol}`")),
            (_, Some(value)) => {
                let size = gridlet_lang::layout::type_layout(&ty, &self.types.structs).size;
                let space =
                    if variable.is_global_constant() { Space::Constant } else { Space::Device };
                (space, constants::initial_value(value, size)?)
            }
        };
        let name = if is_record { symbol } else { format!("own.{symbol}") };
        self.globals.push(Global { name, space, ty, init, exported: is_record, variable: None });
        Ok(Memory::Global(GlobalId(self.globals.len() as u32 - 1)))
    }

    fn import(mut self, sources: Arc<SourceMap>) -> Result<Imported> {
        let (mut functions, mut items) = (vec![], vec![]);
        let mut names = BTreeSet::new();
        for function in self.order.clone() {
            let span = self.positions.function(&name(function), function);
            let signature = self.signature(function, span, &mut names);
            let made = match signature {
                Ok(signature) => body::build(&mut self, function, signature.clone())
                    .or_else(|(why, at)| self.trapping(signature, why, at))?,
                Err((signature, why)) => self.trapping(signature, why, span)?,
            };
            let kernel = self.kernels.get(&function).copied();
            functions.push(made);
            if let Some(id) = kernel {
                let item = self.kernel(function, id, span);
                functions.push(build_entry(&item, id)?);
                items.push(item);
            }
        }
        let module = Module {
            sources,
            structs: self.types.structs,
            globals: self.globals,
            externs: self.externs,
            functions,
            kernels: items,
            lowered: false,
            resident: None,
        };
        Ok(Imported { module, missing: self.missing })
    }

    /// A function that cannot be imported, because of what is `at` a position.
    fn trapping(&mut self, signature: Signature, why: Missing, at: Span) -> Result<Function> {
        let text = || format!("function `{}`: {why}", plain(&signature.name));
        self.missing.get_or_insert_with(|| (text(), at));
        let mut body = BodyBuilder::new();
        let trap = InstKind::Builtin { builtin: Builtin::Trap, arguments: vec![], format: None };
        body.emit(trap, Type::Unit, signature.span);
        body.terminate(Terminator::Unreachable);
        Ok(body.finish(signature)?)
    }

    fn kernel(&mut self, function: Value<'m>, id: KernelId, span: Span) -> Kernel {
        let parameters = self.launch_parameters(function);
        let body = self.functions[&function];
        debug_assert_eq!(self.kernels.get(&function), Some(&id));
        Kernel {
            name: name(function),
            parameters,
            body,
            entry: FunctionId(body.0 + 1),
            whole: None,
            launch_bounds: kernels::launch_bounds(function),
            noalias: false,
            fast_math: false,
            span,
        }
    }

    /// The parameters of a kernel as a launch passes them.
    fn launch_parameters(&mut self, function: Value<'m>) -> Vec<Parameter> {
        let parameters = kernels::parameters(function).into_iter().map(|parameter| {
            let ty = parameter.launch_type(&mut self.types).unwrap_or(Type::U64);
            Parameter { name: parameter.name, ty }
        });
        parameters.collect()
    }

    /// The signature of the IR's function. Every function takes the geometry.
    fn signature(
        &mut self,
        function: Value<'m>,
        span: Span,
        names: &mut BTreeSet<String>,
    ) -> std::result::Result<Signature, (Signature, Missing)> {
        let role = self.kernels.get(&function).map_or(Role::Device, |id| Role::Body(*id));
        let mut missing = None;
        let mut own = match role {
            Role::Body(_) => self.launch_parameters(function),
            _ => {
                let parameters = function.parameters().into_iter().zip(0..).map(|(value, at)| {
                    let ty = self.types.value(value.ty()).unwrap_or_else(|| {
                        missing = Some(format!("a parameter of type `{}`", value.ty().print()));
                        Type::U64
                    });
                    Parameter { name: format!("p{at}"), ty }
                });
                parameters.collect()
            }
        };
        own.insert(0, Parameter { name: "geometry".into(), ty: Type::GEOMETRY });
        let result = function.value_type().result();
        let result = self.types.value(result).unwrap_or_else(|| {
            missing = Some(format!("a result of type `{}`", result.print()));
            Type::Unit
        });
        if function.value_type().is_variadic() {
            missing = Some("variable arguments".into());
        }
        let mut symbol = match role {
            Role::Body(_) => format!("{}.body", name(function)),
            _ => format!("own.{}", name(function)),
        };
        while !names.insert(symbol.clone()) {
            symbol.push('_');
        }
        let signature =
            Signature { name: symbol, role, takes_geometry: true, parameters: own, result, span };
        match missing {
            Some(why) => Err((signature, why)),
            None => Ok(signature),
        }
    }

    /// The declaration of a function of the device runtime.
    fn device_function(&mut self, declaration: Extern) -> ExternId {
        if let Some(at) = self.externs.iter().position(|known| known.name == declaration.name) {
            return ExternId(at as u32);
        }
        self.externs.push(declaration);
        ExternId(self.externs.len() as u32 - 1)
    }

    /// The address of a variable, which has the type that is given with it.
    fn address(&self, variable: Value<'m>) -> Step<Option<(GlobalId, Type)>> {
        match self.global_ids.get(&variable) {
            Some(Memory::Global(id)) => {
                Ok(Some((*id, Type::pointer_mut(self.globals[id.index()].ty.clone()))))
            }
            Some(Memory::Dynamic) => Ok(None),
            Some(Memory::Missing(why)) => Err(why.clone()),
            None => Err(format!("the variable `@{}`", name(variable))),
        }
    }
}

/// Whether a function is imported: turns are for GPUs.
fn is_imported(function: Value<'_>) -> bool {
    !function.is_declaration() && !is_turn(&name(function))
}

/// A function's name in the module.
fn plain(symbol: &str) -> &str {
    symbol.strip_prefix("own.").or_else(|| symbol.strip_suffix(".body")).unwrap_or(symbol)
}

/// The operand of a function's address, for kernels.
fn kernel_address<'m>(importer: &Importer<'m>, function: Value<'m>) -> Step<Operand> {
    debug_assert!(function.kind() == Kind::Function);
    match importer.kernels.get(&function) {
        Some(id) => Ok(Operand::Kernel(*id)),
        None => Err(format!("the address of the function `@{}`", name(function))),
    }
}
