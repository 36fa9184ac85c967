//! The text form of the IR, for people, for snapshots and for tests of passes. [`super::parse`] reads it.
//!
//! ```text
//! module   = "launches" ("symbolic" | "lowered") struct* global* extern* kernel* function*
//! struct   = "struct" NAME "{" NAME ":" TYPE, … "}"
//! global   = ("shared" | "device" | "constant") "@"NAME ":" TYPE ("= zero" | "=" STRING)? "exported"?
//! extern   = "extern" "fn"? "@"NAME "(" TYPE, … ")" ("->" TYPE)?
//! kernel   = "kernel" "@"NAME "(" NAME ":" TYPE, … ")" ("launch_bounds(" THREADS ("," BLOCKS)? ")")? "noalias"? "fast_math"? "body" "@"NAME ("whole" "@"NAME)?
//!          | "extern" "kernel" "@"NAME "(" NAME ":" TYPE, … ")"
//! function = ("fn" | "body" | "entry") "@"NAME "(" "%"NAME ":" TYPE, … ")" ("->" TYPE)? "{" slot* block* "}"
//! slot     = "slot" "$"NAME ":" TYPE ("," "unset")?
//! block    = NAME ":" ("unroll" ("(" COUNT ")")?)? instruction* terminator (";" position)?
//! instruction = ("%"NUMBER ":" TYPE "=")? OPERATION operand, … (";" position)?
//! terminator  = "jump" NAME | "branch" operand "," NAME "," NAME | "return" operand? | "unreachable"
//! operand  = "%"NUMBER | "%"NAME | "$"NAME | "@"NAME | LITERAL SUFFIX | "zero" TYPE
//! ```
//! - `%0`, `%1`, … are the values of a function in text order; `%name` is a parameter, `$name` the address of
//!   a slot, `@name` the address of a global or a kernel.
//! - Types are written as in the language. Literals have a type suffix: `3u32`, `0.5f32`.
//! - `field_address` and `extract` name the field, `.re`, or the element of an array, `#3`.
//! - If slots or parameters share a name, the later ones get a number: `$sum.2`.
//! - An `extern fn` is declared by the program; without `fn`, the compiler itself needs the function.
//! - An `extern kernel` is defined by another module; its entry is left out.
//! - Built-in structs are left out. Launches and calls end in a comment with their source line, `; line 38`,
//!   or `; other.grid:38` outside the first file. Other instructions may have one, too.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

use super::{
    Const, Function, FunctionId, Global, GlobalId, Init, Inst, InstId, InstKind, Kernel, KernelId,
    Launch, Module, Operand, Role, Space, Stream, Terminator,
};
use crate::check::tree::{BinaryOp, UnaryOp, Unroll};
use crate::source::Span;
use crate::types::{Scalar, StructId, Type};

/// The text of a module.
pub fn print(module: &Module) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = print_module(module, &mut text);
    text
}

fn print_module(module: &Module, out: &mut String) -> fmt::Result {
    writeln!(out, "launches {}", if module.lowered { "lowered" } else { "symbolic" })?;
    let built_in = StructId::GEOMETRY;
    let mut declarations = String::new();
    for (_, item) in module.structs.iter().filter(|(id, _)| *id > built_in) {
        let fields = item.fields.iter().map(|field| (&field.name, &field.ty));
        let fields = named(module, "", fields);
        writeln!(declarations, "struct {} {{ {fields} }}", item.name)?;
    }
    for global in &module.globals {
        print_global(module, global, &mut declarations)?;
    }
    for function in &module.externs {
        let parameters = list(function.parameters.iter().map(|ty| ty.display(&module.structs)));
        let declared = if function.span.is_some() { "fn " } else { "" };
        write!(declarations, "extern {declared}@{}({parameters})", function.name)?;
        print_result(module, &function.result, &mut declarations)?;
        declarations.push('\n');
    }
    for kernel in &module.kernels {
        print_kernel(module, kernel, &mut declarations)?;
    }
    if !declarations.is_empty() {
        write!(out, "\n{declarations}")?;
    }
    let is_declaration = |function: &Function| match function.role {
        Role::Entry(id) => module.kernels.get(id.index()).is_some_and(Kernel::is_extern),
        Role::Device | Role::Body(_) => false,
    };
    for function in module.functions.iter().filter(|function| !is_declaration(function)) {
        out.push('\n');
        FunctionPrinter::new(module, function).print(out)?;
    }
    Ok(())
}

fn print_global(module: &Module, global: &Global, out: &mut String) -> fmt::Result {
    let space = match global.space {
        Space::Shared => "shared",
        Space::Device => "device",
        Space::Constant => "constant",
    };
    write!(out, "{space} @{}: {}", global.name, global.ty.display(&module.structs))?;
    match &global.init {
        Init::Unset => {}
        Init::Zero => out.push_str(" = zero"),
        Init::Bytes(bytes) => write!(out, " = \"{}\"", bytes.escape_ascii())?,
    }
    out.push_str(if global.exported { " exported\n" } else { "\n" });
    Ok(())
}

fn print_kernel(module: &Module, kernel: &Kernel, out: &mut String) -> fmt::Result {
    let parameters = kernel.parameters.iter().map(|parameter| (&parameter.name, &parameter.ty));
    out.push_str(if kernel.is_extern() { "extern " } else { "" });
    write!(out, "kernel @{}({})", kernel.name, named(module, "", parameters))?;
    if kernel.is_extern() {
        out.push('\n');
        return Ok(());
    }
    if let Some(bounds) = kernel.launch_bounds {
        write!(out, " launch_bounds({}", bounds.max_threads)?;
        if let Some(blocks) = bounds.min_blocks {
            write!(out, ", {blocks}")?;
        }
        out.push(')');
    }
    out.push_str(if kernel.noalias { " noalias" } else { "" });
    out.push_str(if kernel.fast_math { " fast_math" } else { "" });
    write!(out, " body @{}", function_name(module, kernel.body))?;
    if let Some(whole) = kernel.whole {
        write!(out, " whole @{}", function_name(module, whole))?;
    }
    out.push('\n');
    Ok(())
}

fn print_result(module: &Module, result: &Type, out: &mut String) -> fmt::Result {
    match result {
        Type::Unit => Ok(()),
        _ => write!(out, " -> {}", result.display(&module.structs)),
    }
}

/// Prints one function. Ids out of range are printed as `?`, so that invalid modules can be printed.
struct FunctionPrinter<'m> {
    module: &'m Module,
    function: &'m Function,
    parameters: Vec<String>,
    slots: Vec<String>,
    /// The numbers of the values.
    values: BTreeMap<InstId, usize>,
}

impl<'m> FunctionPrinter<'m> {
    fn new(module: &'m Module, function: &'m Function) -> Self {
        let mut values = BTreeMap::new();
        for id in function.blocks.iter().flat_map(|block| &block.instructions) {
            let has_value = |inst: &Inst| inst.ty != Type::Unit;
            if function.instructions.get(id.index()).is_some_and(has_value) {
                let number = values.len();
                values.entry(*id).or_insert(number);
            }
        }
        FunctionPrinter {
            module,
            function,
            parameters: unique_names(function.parameters.iter().map(|p| p.name.as_str())),
            slots: unique_names(function.slots.iter().map(|slot| slot.name.as_str())),
            values,
        }
    }

    fn print(&self, out: &mut String) -> fmt::Result {
        let function = self.function;
        let role = match function.role {
            Role::Device => "fn",
            Role::Body(_) => "body",
            Role::Entry(_) => "entry",
        };
        let types = function.parameters.iter().map(|parameter| &parameter.ty);
        let parameters = named(self.module, "%", self.parameters.iter().zip(types));
        write!(out, "{role} @{}({parameters})", function.name)?;
        print_result(self.module, &function.result, out)?;
        out.push_str(" {\n");
        for (slot, name) in function.slots.iter().zip(&self.slots) {
            let unset = if slot.unset { ", unset" } else { "" };
            writeln!(out, "  slot ${name}: {}{unset}", slot.ty.display(&self.module.structs))?;
        }
        for block in &function.blocks {
            match block.unroll {
                None => writeln!(out, "{}:", block.name)?,
                Some(Unroll::Full) => writeln!(out, "{}: unroll", block.name)?,
                Some(Unroll::Known) => writeln!(out, "{}: unroll(known)", block.name)?,
                Some(Unroll::Count(count)) => writeln!(out, "{}: unroll({count})", block.name)?,
            }
            for id in &block.instructions {
                match function.instructions.get(id.index()) {
                    Some(inst) => self.instruction(*id, inst, out)?,
                    None => out.push_str("  ?\n"),
                }
            }
            self.terminator(&block.terminator, out)?;
        }
        out.push_str("}\n");
        Ok(())
    }

    fn instruction(&self, id: InstId, inst: &Inst, out: &mut String) -> fmt::Result {
        out.push_str("  ");
        if let Some(number) = self.values.get(&id) {
            write!(out, "%{number}: {} = ", inst.ty.display(&self.module.structs))?;
        }
        self.operation(&inst.kind, out)?;
        if matches!(
            inst.kind,
            InstKind::Call { .. } | InstKind::CallExtern { .. } | InstKind::Launch(_)
        ) {
            write!(out, "  ; {}", self.position(inst.span))?;
        }
        out.push('\n');
        Ok(())
    }

    fn operation(&self, kind: &InstKind, out: &mut String) -> fmt::Result {
        match kind {
            InstKind::Load(pointer) => write!(out, "load {}", self.operand(pointer)),
            InstKind::Store { pointer, value } => {
                write!(out, "store {}, {}", self.operand(pointer), self.operand(value))
            }
            InstKind::Unary(op, operand) => {
                let name = match op {
                    UnaryOp::Neg => "neg",
                    UnaryOp::Not => "not",
                };
                write!(out, "{name} {}", self.operand(operand))
            }
            InstKind::Binary(op, left, right) => {
                let name = binary_name(*op);
                write!(out, "{name} {}, {}", self.operand(left), self.operand(right))
            }
            InstKind::Advance(counter, step) => {
                write!(out, "advance {}", self.operands([counter, step]))
            }
            InstKind::Cast(operand) => write!(out, "cast {}", self.operand(operand)),
            InstKind::Select(condition, yes, no) => {
                write!(out, "select {}", self.operands([condition, yes, no]))
            }
            InstKind::FieldAddress { base, index } => {
                let ty = self.operand_type(base).and_then(|ty| ty.pointee().cloned());
                let part = self.part(ty.as_ref(), *index);
                write!(out, "field_address {} {part}", self.operand(base))
            }
            InstKind::ElementAddress { base, index } => {
                write!(out, "element_address {}", self.operands([base, index]))
            }
            InstKind::PointerDifference(left, right) => {
                write!(out, "pointer_difference {}", self.operands([left, right]))
            }
            InstKind::ByteOffset { base, bytes } => {
                write!(out, "byte_offset {}, {bytes}", self.operand(base))
            }
            InstKind::Extract { base, index } => {
                let part = self.part(self.operand_type(base).as_ref(), *index);
                write!(out, "extract {} {part}", self.operand(base))
            }
            InstKind::Aggregate(parts) => write!(out, "aggregate {}", self.operands(parts)),
            InstKind::Call { function, arguments } => {
                let name = function_name(self.module, *function);
                write!(out, "call @{name}({})", self.operands(arguments))
            }
            InstKind::CallExtern { function, arguments } => {
                let known = self.module.externs.get(function.index());
                let name = known.map_or("?", |known| &known.name);
                write!(out, "call extern @{name}({})", self.operands(arguments))
            }
            InstKind::Builtin { builtin, arguments, format } => {
                let format = format.map(|format| global_name(self.module, format));
                let format = format.map(|name| format!("@{name}"));
                let arguments = arguments.iter().map(|argument| self.operand(argument));
                let order = builtin.order().map(|order| order.name().to_owned());
                let all = format.into_iter().chain(arguments).chain(order);
                write!(out, "{}({})", builtin.name(), list(all))
            }
            InstKind::HardwareGeometry => out.write_str("hardware_geometry"),
            InstKind::Launch(launch) => self.launch(launch, out),
        }
    }

    fn launch(&self, launch: &Launch, out: &mut String) -> fmt::Result {
        let stream = match &launch.stream {
            Stream::Default => "default".into(),
            Stream::FireAndForget => "fire_and_forget".into(),
            Stream::Tail => "tail".into(),
            Stream::Value(stream) => self.operand(stream),
        };
        write!(
            out,
            "{}launch @{}<<<{}, {}, shared = {}, stream = {stream}>>>({})",
            if launch.is_try { "try " } else { "" },
            kernel_name(self.module, launch.kernel),
            self.operand(&launch.grid),
            self.operand(&launch.block),
            self.operand(&launch.shared),
            self.operands(&launch.arguments)
        )
    }

    fn terminator(&self, terminator: &Terminator, out: &mut String) -> fmt::Result {
        let block = |id: super::BlockId| {
            self.function.blocks.get(id.index()).map_or("?", |block| &block.name)
        };
        match terminator {
            Terminator::Jump(target) => writeln!(out, "  jump {}", block(*target)),
            Terminator::Branch { condition, then, otherwise } => {
                let condition = self.operand(condition);
                writeln!(out, "  branch {condition}, {}, {}", block(*then), block(*otherwise))
            }
            Terminator::Return(Some(value)) => writeln!(out, "  return {}", self.operand(value)),
            Terminator::Return(None) => writeln!(out, "  return"),
            Terminator::Unreachable => writeln!(out, "  unreachable"),
        }
    }

    fn operands<'o>(&self, operands: impl IntoIterator<Item = &'o Operand>) -> String {
        list(operands.into_iter().map(|operand| self.operand(operand)))
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Inst(id) => match self.values.get(id) {
                Some(number) => format!("%{number}"),
                None => "%?".into(),
            },
            Operand::Parameter(at) => {
                format!("%{}", self.parameters.get(*at as usize).map_or("?", |name| name))
            }
            Operand::Slot(id) => {
                format!("${}", self.slots.get(id.index()).map_or("?", |name| name))
            }
            Operand::Global(id) => format!("@{}", global_name(self.module, *id)),
            Operand::Kernel(id) => format!("@{}", kernel_name(self.module, *id)),
            Operand::Const(Const::Int(scalar, value)) => format!("{value}{}", scalar.name()),
            Operand::Const(Const::Float(scalar, value)) => float(*scalar, *value),
            Operand::Const(Const::Bool(value)) => value.to_string(),
            Operand::Const(Const::Zero(ty)) => format!("zero {}", ty.display(&self.module.structs)),
        }
    }

    fn operand_type(&self, operand: &Operand) -> Option<Type> {
        let known = match operand {
            Operand::Inst(id) => id.index() < self.function.instructions.len(),
            Operand::Parameter(at) => (*at as usize) < self.function.parameters.len(),
            Operand::Slot(id) => id.index() < self.function.slots.len(),
            Operand::Global(id) => id.index() < self.module.globals.len(),
            Operand::Kernel(_) | Operand::Const(_) => true,
        };
        known.then(|| self.module.operand_type(self.function, operand))
    }

    /// A field of a struct or vector by name, an element of an array by number.
    fn part(&self, ty: Option<&Type>, index: u32) -> String {
        let name = match ty {
            Some(Type::Struct(id)) if (id.0 as usize) < self.module.structs.len() => {
                let fields = &self.module.structs.get(*id).fields;
                fields.get(index as usize).map(|field| field.name.as_str())
            }
            Some(Type::Vector(..)) => ["x", "y", "z", "w"].get(index as usize).copied(),
            _ => None,
        };
        name.map_or_else(|| format!("#{index}"), |name| format!(".{name}"))
    }

    fn position(&self, span: Span) -> String {
        let sources = &self.module.sources;
        match sources.files().get(span.file.0 as usize) {
            Some(_) if span.file.0 == 0 => format!("line {}", sources.line(span)),
            Some(file) => format!("{}:{}", file.name, sources.line(span)),
            None => "?".into(),
        }
    }
}

/// A literal that reads back as the same float, with its type.
fn float(scalar: Scalar, value: f64) -> String {
    let digits =
        if scalar == Scalar::F64 { format!("{value:?}") } else { format!("{:?}", value as f32) };
    format!("{digits}{}", scalar.name())
}

/// Every operator on two values.
pub(super) const BINARY_OPS: [BinaryOp; 16] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
];

/// The name of an operator in the text.
pub(super) fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "div",
        BinaryOp::Rem => "rem",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::Shl => "shl",
        BinaryOp::Shr => "shr",
        BinaryOp::Eq => "eq",
        BinaryOp::Ne => "ne",
        BinaryOp::Lt => "lt",
        BinaryOp::Le => "le",
        BinaryOp::Gt => "gt",
        BinaryOp::Ge => "ge",
    }
}

fn function_name(module: &Module, id: FunctionId) -> &str {
    module.functions.get(id.index()).map_or("?", |function| &function.name)
}

fn global_name(module: &Module, id: GlobalId) -> &str {
    module.globals.get(id.index()).map_or("?", |global| &global.name)
}

fn kernel_name(module: &Module, id: KernelId) -> &str {
    module.kernels.get(id.index()).map_or("?", |kernel| &kernel.name)
}

/// The names made unique: the second occurrence of a name gets the suffix `.2`, and so on.
fn unique_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    names
        .map(|name| {
            let count = used.entry(name).or_default();
            *count += 1;
            if *count == 1 { name.to_string() } else { format!("{name}.{count}") }
        })
        .collect()
}

/// `name: type, …`, each name prefixed with `sigil`.
fn named<'p>(
    module: &Module,
    sigil: &str,
    parts: impl Iterator<Item = (&'p String, &'p Type)>,
) -> String {
    list(parts.map(|(name, ty)| format!("{sigil}{name}: {}", ty.display(&module.structs))))
}

fn list(items: impl Iterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for item in items {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{item}");
    }
    text
}
