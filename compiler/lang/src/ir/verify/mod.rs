//! Verifies a module against the rules of [`crate::ir`].
//!
//! Ids are checked before use, so that no invalid module can cause a panic.

mod builtin;
mod control;
mod entry;
mod instruction;

use std::collections::BTreeSet;

pub(crate) use instruction::name as instruction_name;

use super::{
    Const, Function, Global, Init, InstId, Kernel, KernelId, Module, Operand, Parameter, Role,
    Space, same_type, symbol,
};
use crate::error::{Error, Result};
use crate::float;
use crate::source::Span;
use crate::types::layout::type_layout;
use crate::types::nesting::{MAX_IR_NESTING, MAX_NESTING, innermost};
use crate::types::{FOREIGN, Field, Struct, Type};

/// Verifies all rules of [`crate::ir`].
///
/// # Errors
/// [`Error::Internal`] for the first violation, with the function, block and instruction.
pub fn verify(module: &Module) -> Result<()> {
    find(module).map_err(|broken| Error::internal("ir", broken.message))
}

/// The first violation of a rule.
pub(crate) struct Violation {
    pub(crate) message: String,
    /// The position of the function, or of the instruction or the end of a block in it.
    pub(crate) span: Option<Span>,
}

impl From<String> for Violation {
    fn from(message: String) -> Self {
        Violation { message, span: None }
    }
}

impl Violation {
    /// One about a declaration.
    fn of(what: &str, name: &str, why: &str, span: Option<Span>) -> Self {
        Violation { message: format!("{what} `{}`: {why}", shown(name)), span }
    }
}

/// A symbol as its owner knows it.
fn shown(symbol: &str) -> &str {
    symbol.strip_prefix(symbol::OWN).unwrap_or(symbol)
}

/// As [`verify`].
///
/// # Errors
/// The first violation.
pub(crate) fn find(module: &Module) -> std::result::Result<(), Violation> {
    check_module(module)?;
    for function in &module.functions {
        FunctionVerifier::new(module, function).check().map_err(|broken| Violation {
            message: format!("function `{}`{}", shown(&function.name), broken.message),
            span: Some(broken.span),
        })?;
    }
    Ok(())
}

/// A violation in a function.
struct Broken {
    message: String,
    span: Span,
}

/// The error is a description of the violation.
type Checked<T = ()> = std::result::Result<T, String>;

/// Returns an error with a message unless the condition holds.
macro_rules! require {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
use require;

/// Checks all but the bodies of functions. Checking them relies on the signatures of other functions.
fn check_module(module: &Module) -> std::result::Result<(), Violation> {
    check_structs(module)?;
    check_symbols(module)?;
    for global in &module.globals {
        let what = match global.space {
            Space::Shared => "shared variable",
            Space::Device | Space::Constant => "global",
        };
        check_global(module, global)
            .map_err(|e| Violation::of(what, &global.name, &e, declared(global)))?;
    }
    for item in &module.externs {
        let check = || -> Checked {
            for ty in &item.parameters {
                check_value_type(module, ty)?;
            }
            check_result_type(module, &item.result)
        };
        check().map_err(|e| Violation::of("extern", &item.name, &e, item.span))?;
    }
    for (at, kernel) in module.kernels.iter().enumerate() {
        check_kernel(module, KernelId(at as u32), kernel)
            .map_err(|e| Violation::of("kernel", &kernel.name, &e, Some(kernel.span)))?;
    }
    for function in &module.functions {
        let wrong = |span, e: String| Violation::of("function", &function.name, &e, Some(span));
        check_signature(module, function).map_err(|e| wrong(function.span, e))?;
        for slot in &function.slots {
            let span = slot.variable.as_ref().map_or(function.span, |variable| variable.span);
            check_value_type(module, &slot.ty)
                .map_err(|e| wrong(span, format!("local variable `{}`: {e}", slot.name)))?;
        }
    }
    Ok(())
}

/// Checks that the built-in structs come first, field types exist, and no struct contains itself.
fn check_structs(module: &Module) -> std::result::Result<(), Violation> {
    let built_in = crate::types::Structs::new();
    for (id, item) in built_in.iter() {
        let known = (id.0 as usize) < module.structs.len() && module.structs.get(id) == item;
        if !known {
            return Err(format!("the built-in struct `{}` is not in its place", item.name).into());
        }
    }
    let wrong = |item: &Struct, why: &str| Violation::of("struct", &item.name, why, item.span);
    for (_, item) in module.structs.iter() {
        check_fields(module, item).map_err(|e| wrong(item, &e))?;
    }
    let heights = module.structs.heights();
    let heights = heights.map_err(|id| wrong(module.structs.get(id), "it contains itself"))?;
    let mut measured = module.structs.iter().zip(heights);
    match measured.find(|(_, height)| *height > MAX_IR_NESTING) {
        Some(((_, item), _)) => {
            Err(wrong(item, &format!("it is nested over {MAX_NESTING} levels deep")))
        }
        None => Ok(()),
    }
}

fn check_fields(module: &Module, item: &Struct) -> Checked {
    for Field { name, ty } in &item.fields {
        check_value_type(module, ty).map_err(|e| format!("field `{name}`: {e}"))?;
    }
    Ok(())
}

/// The message about an id without a struct, function, kernel or global.
fn missing(what: &str, id: u32) -> String {
    match id {
        FOREIGN => format!("a {what} of another program; declare it in this one"),
        _ => format!("{what} {id} does not exist"),
    }
}

/// Whether a type is `Unit` or an array of it.
fn contains_unit(mut ty: &Type) -> bool {
    while let Type::Array(element, _) = ty {
        ty = element;
    }
    *ty == Type::Unit
}

fn check_type_ids(module: &Module, ty: &Type) -> Checked {
    let (height, innermost) = innermost(ty);
    require!(height <= MAX_IR_NESTING, "a type is nested over {MAX_NESTING} levels deep");
    match innermost {
        Type::Vector(_, count) => {
            require!((2..=4).contains(count), "a vector of {count} elements");
        }
        Type::Struct(id) => {
            require!((id.0 as usize) < module.structs.len(), "{}", missing("struct", id.0));
        }
        _ => {}
    }
    Ok(())
}

/// Checks that values may have this type.
fn check_value_type(module: &Module, ty: &Type) -> Checked {
    check_type_ids(module, ty)?;
    require!(!contains_unit(ty), "no value has the type `()`");
    Ok(())
}

fn check_result_type(module: &Module, ty: &Type) -> Checked {
    if *ty == Type::Unit { Ok(()) } else { check_value_type(module, ty) }
}

/// Where a global was declared, if that is known.
fn declared(global: &Global) -> Option<Span> {
    global.variable.as_ref().map(|variable| variable.span)
}

fn check_symbols(module: &Module) -> std::result::Result<(), Violation> {
    let functions = module.functions.iter().map(|one| (&one.name, Some(one.span)));
    let globals = module.globals.iter().map(|one| (&one.name, declared(one)));
    let externs = module.externs.iter().map(|one| (&one.name, one.span));
    let mut seen = BTreeSet::new();
    for (symbol, span) in functions.chain(globals).chain(externs) {
        let message = match seen.insert(symbol) {
            _ if symbol.is_empty() => "a symbol without a name".into(),
            true => continue,
            false => format!("the symbol `{symbol}` is defined twice"),
        };
        return Err(Violation { message, span });
    }
    Ok(())
}

fn check_global(module: &Module, global: &Global) -> Checked {
    check_value_type(module, &global.ty)?;
    match (&global.init, global.space) {
        (Init::Unset, Space::Shared) => {
            require!(!global.exported, "shared memory is not visible to the host");
        }
        (Init::Unset, _) => return Err("only shared memory starts unset".into()),
        (_, Space::Shared) => return Err("shared memory cannot be initialised".into()),
        (Init::Zero, _) => {}
        (Init::Bytes(bytes), _) => {
            let size = type_layout(&global.ty, &module.structs).size;
            let given = bytes.len();
            require!(given as u64 == size, "{given} bytes for a type of {size}");
        }
    }
    Ok(())
}

fn check_kernel(module: &Module, id: KernelId, kernel: &Kernel) -> Checked {
    let Some(body) = module.functions.get(kernel.body.index()) else {
        return Err(format!("its body, function {}, does not exist", kernel.body.0));
    };
    let Some(entry) = module.functions.get(kernel.entry.index()) else {
        return Err(format!("its entry, function {}, does not exist", kernel.entry.0));
    };
    let is_extern = kernel.is_extern();
    let has_role = is_extern || body.role == Role::Body(id);
    require!(has_role, "its body `{}` has another role", body.name);
    require!(entry.role == Role::Entry(id), "its entry `{}` has another role", entry.name);
    require!(entry.name == kernel.name, "its entry is called `{}`", entry.name);
    let types = |parameters: &[Parameter]| -> Vec<Type> {
        parameters.iter().map(|parameter| parameter.ty.clone()).collect()
    };
    let wanted = types(&kernel.parameters);
    require!(types(&entry.parameters) == wanted, "its entry has other parameters");
    if is_extern {
        require!(entry.blocks.is_empty(), "its body is its entry, which has blocks");
        require!(entry.instructions.is_empty(), "it is declared, but has instructions");
        require!(kernel.launch_bounds.is_none(), "it is declared, but has launch bounds");
        require!(!kernel.noalias, "it is declared, but promises `noalias`");
        require!(!kernel.fast_math, "it is declared, but computes with fast mathematics");
        return Ok(());
    }
    let without_geometry = body.parameters.get(1..).unwrap_or_default();
    require!(types(without_geometry) == wanted, "its body has other parameters");
    if let Some(whole) = kernel.whole {
        let Some(copy) = module.functions.get(whole.index()) else {
            return Err(format!("its copy for whole warps, function {}, does not exist", whole.0));
        };
        require!(copy.role == body.role, "its copy for whole warps has another role");
        require!(
            copy.parameters == body.parameters,
            "its copy for whole warps has other parameters"
        );
    }
    Ok(())
}

fn check_signature(module: &Module, function: &Function) -> Checked {
    for parameter in &function.parameters {
        check_value_type(module, &parameter.ty)
            .map_err(|e| format!("parameter `{}`: {e}", parameter.name))?;
    }
    check_result_type(module, &function.result)?;
    let first_is_geometry =
        function.parameters.first().is_some_and(|parameter| parameter.ty == Type::GEOMETRY);
    require!(
        first_is_geometry || !function.takes_geometry,
        "it takes the geometry, but not as its first parameter"
    );
    match function.role {
        Role::Device => return Ok(()),
        Role::Body(id) => {
            let kernel = module.kernels.get(id.index());
            require!(function.takes_geometry, "a body that does not take the geometry");
            let mut bodies = kernel.into_iter().flat_map(Kernel::bodies);
            require!(
                bodies.any(|body| module.function(body).name == function.name),
                "a body of kernel {}, which has another",
                id.0
            );
        }
        Role::Entry(id) => {
            require!(id.index() < module.kernels.len(), "kernel {} does not exist", id.0);
            require!(!function.takes_geometry, "an entry that takes the geometry");
        }
    }
    require!(function.result == Type::Unit, "a kernel that returns a value");
    Ok(())
}

/// Verifies one function.
struct FunctionVerifier<'m> {
    module: &'m Module,
    function: &'m Function,
    /// The position of each instruction: block, and index in the block.
    places: Vec<Option<(usize, usize)>>,
    /// The immediate dominator of each block.
    dominators: Vec<usize>,
}

impl<'m> FunctionVerifier<'m> {
    fn new(module: &'m Module, function: &'m Function) -> Self {
        let places = vec![None; function.instructions.len()];
        FunctionVerifier { module, function, places, dominators: vec![] }
    }

    fn check(mut self) -> std::result::Result<(), Broken> {
        let at = |message, span| Broken { message, span };
        let mut last = self.function.span;
        self.place_instructions()?;
        self.check_blocks().map_err(|e| at(e, last))?;
        for (index, block) in self.function.blocks.iter().enumerate() {
            for (place, id) in block.instructions.iter().enumerate() {
                let inst = &self.function.instructions[id.index()];
                last = inst.span;
                self.check_instruction(inst, (index, place)).map_err(|e| {
                    let name = instruction::name(&inst.kind);
                    let text =
                        format!(", block `{}`, instruction {place} ({name}): {e}", block.name);
                    at(text, last)
                })?;
            }
            let end = (index, block.instructions.len());
            self.check_terminator(&block.terminator, end).map_err(|e| Broken {
                message: format!(", block `{}`, terminator: {e}", block.name),
                span: block.end.unwrap_or(last),
            })?;
        }
        self.check_entry()
    }

    /// Checks that every instruction belongs to exactly one block and has an existing type.
    fn place_instructions(&mut self) -> std::result::Result<(), Broken> {
        let span = self.function.span;
        let wrong = |message| Broken { message, span };
        for (at, block) in self.function.blocks.iter().enumerate() {
            for (place, id) in block.instructions.iter().enumerate() {
                let Some(known) = self.places.get_mut(id.index()) else {
                    return Err(wrong(format!(
                        ", block `{}`: instruction id {} does not exist",
                        block.name, id.0
                    )));
                };
                if known.replace((at, place)).is_some() {
                    return Err(wrong(format!(
                        ", block `{}`: instruction id {} occurs twice in the function",
                        block.name, id.0
                    )));
                }
                let inst = &self.function.instructions[id.index()];
                check_result_type(self.module, &inst.ty).map_err(|e| Broken {
                    message: format!(", block `{}`, instruction {place}: {e}", block.name),
                    span: inst.span,
                })?;
            }
        }
        let lost = self.places.iter().position(Option::is_none);
        match lost {
            Some(id) => Err(wrong(format!(": instruction id {id} belongs to no block"))),
            None => Ok(()),
        }
    }

    /// The type of an operand used at a place.
    fn operand(&self, operand: &Operand, (block, place): (usize, usize)) -> Checked<Type> {
        match operand {
            Operand::Inst(id) => self.check_use(*id, (block, place))?,
            Operand::Parameter(at) => {
                let count = self.function.parameters.len();
                // The geometry is not among the parameters that the source counts.
                let hidden = u32::from(self.function.takes_geometry);
                require!(
                    (*at as usize) < count,
                    "there is no parameter {} (counted from 0): the function has {}",
                    at.saturating_sub(hidden),
                    count as u32 - hidden
                );
            }
            Operand::Slot(id) => {
                require!(id.index() < self.function.slots.len(), "slot {} does not exist", id.0);
            }
            Operand::Global(id) => {
                let known = id.index() < self.module.globals.len();
                require!(known, "{}", missing("global variable", id.0));
            }
            Operand::Kernel(id) => {
                let known = id.index() < self.module.kernels.len();
                require!(known, "{}", missing("kernel", id.0));
            }
            Operand::Const(constant) => self.check_constant(constant)?,
        }
        Ok(self.module.operand_type(self.function, operand))
    }

    fn check_use(&self, id: InstId, (block, place): (usize, usize)) -> Checked {
        let Some(Some((home, at))) = self.places.get(id.index()).copied() else {
            return Err(format!("instruction id {} does not exist", id.0));
        };
        let inst = &self.function.instructions[id.index()];
        let name = instruction::name(&inst.kind);
        require!(inst.ty != Type::Unit, "the value of a `{name}` that has none");
        if home == block {
            require!(at < place, "the value of a `{name}` that comes later in the block");
        } else {
            require!(
                self.dominates(home, block),
                "the value of a `{name}` in block `{}`, which does not dominate this one",
                self.function.blocks[home].name
            );
        }
        Ok(())
    }

    fn check_constant(&self, constant: &Const) -> Checked {
        match constant {
            Const::Int(scalar, value) => {
                require!(scalar.is_integer(), "an integer constant of type `{}`", scalar.name());
                let bits = scalar.bits();
                let fits = (-(1 << (bits - 1))..1 << bits).contains(value);
                require!(fits, "the constant {value} does not fit `{}`", scalar.name());
            }
            Const::Float(scalar, value) => {
                require!(scalar.is_float(), "a float constant of type `{}`", scalar.name());
                let rounded =
                    value.is_nan() || float::round(*value, *scalar).to_bits() == value.to_bits();
                require!(rounded, "the constant {value:?} is not rounded to `{}`", scalar.name());
            }
            Const::Bool(_) => {}
            Const::Zero(ty) => check_value_type(self.module, ty)?,
        }
        Ok(())
    }

    /// Returns an error unless a value has the expected type.
    fn expect(&self, what: &str, wanted: &Type, found: &Type) -> Checked {
        let structs = &self.module.structs;
        require!(
            same_type(wanted, found),
            "{what} has type `{}`, not `{}`",
            found.display(structs),
            wanted.display(structs)
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests;
