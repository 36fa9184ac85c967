//! The layouts of a whole module, and the errors in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{BufferLayout, MAX_PARAMETER_BYTES, MAX_TYPE_BYTES, ParamLayout, ParamSlot};
use super::{buffer_layout, type_layout};
use crate::diagnostics::{Collector, Diagnostic, MAX_MESSAGES, ids};
use crate::error::{Error, Result};
use crate::ir::{GlobalId, InstKind, Kernel, KernelId, Module, Operand, Space, graph, symbol};
use crate::source::Span;
use crate::types::layout::SATURATED;
use crate::types::{Structs, Type};

/// The layouts of a module's kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layouts {
    /// The parameter buffer of each kernel, in the order of [`KernelId`].
    pub kernels: Vec<ParamLayout>,
}

impl Layouts {
    /// The parameter buffer of a kernel of the module that these layouts were computed for.
    pub fn parameters(&self, id: KernelId) -> &ParamLayout {
        &self.kernels[id.index()]
    }
}

/// By kernel, the bytes taken by its `shared` variables and those of all functions that it may call, laid out
/// consecutively in source order.
pub fn static_shared_bytes(module: &Module) -> Vec<u64> {
    let used = graph::used_globals(module, |global| global.space == Space::Shared);
    let bytes = |used: Vec<GlobalId>| {
        let types = used.into_iter().map(|id| &module.globals[id.index()].ty);
        buffer_layout(types, &module.structs).size
    };
    used.into_iter().map(bytes).collect()
}

/// Lays out the parameter buffers of all kernels.
///
/// # Errors
/// [`Error::Program`] with `type-too-large` for each type over [`MAX_TYPE_BYTES`], or with
/// `param-buffer-too-large` at each kernel whose parameters take more than [`MAX_PARAMETER_BYTES`] and at
/// each launch of it.
pub fn compute_layouts(module: &Module) -> Result<Layouts> {
    let mut errors = too_large_types(module);
    if !errors.is_empty() {
        return Err(Error::Program(errors.into_vec()));
    }
    let mut kernels = Vec::with_capacity(module.kernels.len());
    let mut too_large = BTreeMap::new();
    for (index, kernel) in module.kernels.iter().enumerate() {
        let types = kernel.parameters.iter().map(|parameter| &parameter.ty);
        let buffer = buffer_layout(types, &module.structs);
        // The host alone launches Gridlet's own entries, and passes up to 32,764 bytes (CUDA C++ Programming Guide,
        // "Kernel Parameters").
        let is_own = symbol::is_reserved(&kernel.name);
        if is_own || buffer.size <= u64::from(MAX_PARAMETER_BYTES) {
            kernels.push(param_layout(kernel, &buffer));
        } else {
            too_large.insert(KernelId(index as u32), (buffer, vec![]));
        }
    }
    if too_large.is_empty() {
        return Ok(Layouts { kernels });
    }
    for inst in module.functions.iter().flat_map(|function| &function.instructions) {
        if let InstKind::Launch(launch) = &inst.kind
            && let Some((_, launches)) = too_large.get_mut(&launch.kernel)
        {
            launches.push(inst.span);
        }
    }
    for (id, (buffer, launches)) in &too_large {
        // Computing the tables alone may take long.
        if errors.is_full() {
            break;
        }
        let kernel = module.kernel(*id);
        errors.push(too_large_at_kernel(kernel, buffer, &module.structs));
        for launch in launches.iter().take(MAX_MESSAGES) {
            errors.push(too_large_at_launch(kernel, *launch, buffer, &module.structs));
        }
    }
    Err(Error::Program(errors.into_vec()))
}

/// A buffer of at most [`MAX_PARAMETER_BYTES`] with the parameters' names.
fn param_layout(kernel: &Kernel, buffer: &BufferLayout) -> ParamLayout {
    let slots = kernel.parameters.iter().zip(&buffer.slots).map(|(parameter, slot)| ParamSlot {
        name: parameter.name.clone(),
        ty: parameter.ty.clone(),
        offset: slot.offset as u32,
        size: slot.size as u32,
        alignment: slot.alignment as u32,
    });
    ParamLayout { kernel: kernel.name.clone(), slots: slots.collect(), size: buffer.size as u32 }
}

fn too_large_at_kernel(kernel: &Kernel, buffer: &BufferLayout, structs: &Structs) -> Diagnostic {
    let message = format!(
        "the parameters of kernel `{}` take {} bytes; a launch passes at most {MAX_PARAMETER_BYTES}",
        kernel.name, buffer.size
    );
    Diagnostic::error(ids::PARAM_BUFFER_TOO_LARGE, kernel.span, message)
        .at_caret(format!("{} bytes of parameters", buffer.size))
        .note(buffer_table("parameter", kernel, buffer, structs))
        .hint("pass a pointer to the large data instead of the data")
}

fn too_large_at_launch(
    launched: &Kernel,
    launch: Span,
    buffer: &BufferLayout,
    structs: &Structs,
) -> Diagnostic {
    let message = format!(
        "this launch of `{}` passes {} bytes of arguments; at most {MAX_PARAMETER_BYTES} fit",
        launched.name, buffer.size
    );
    Diagnostic::error(ids::PARAM_BUFFER_TOO_LARGE, launch, message)
        .at_caret(format!("{} bytes of arguments", buffer.size))
        .label(launched.span, "the kernel")
        .note(buffer_table("argument", launched, buffer, structs))
}

/// One line for each parameter: offset, size, alignment, name and type.
fn buffer_table(what: &str, kernel: &Kernel, buffer: &BufferLayout, structs: &Structs) -> String {
    let mut table = format!("{:>10} {:>10} {:>5}  {what}", "offset", "size", "align");
    for (parameter, slot) in kernel.parameters.iter().zip(&buffer.slots) {
        let end = slot.offset + slot.size;
        let over = if end > u64::from(MAX_PARAMETER_BYTES) { "  (beyond the limit)" } else { "" };
        table.push_str(&format!(
            "\n{:>10} {:>10} {:>5}  {}: {}{over}",
            slot.offset,
            slot.size,
            slot.alignment,
            parameter.name,
            parameter.ty.display(structs)
        ));
    }
    table
}

/// `type-too-large` for each type in the module over [`MAX_TYPE_BYTES`], once, at its first mention.
fn too_large_types(module: &Module) -> Collector {
    let structs = vec![None; module.structs.len()];
    let errors = Collector::default();
    let mut sizes = SizeCheck { module, structs, reported: HashSet::new(), errors };
    for (id, item) in module.structs.iter() {
        for field in &item.fields {
            sizes.visit(&field.ty, item.span.unwrap_or(NOWHERE));
        }
        sizes.visit(&Type::Struct(id), item.span.unwrap_or(NOWHERE));
    }
    for function in &module.functions {
        let parameters = function.parameters.iter().map(|parameter| &parameter.ty);
        for ty in parameters.chain(function.slots.iter().map(|slot| &slot.ty)) {
            sizes.visit(ty, function.span);
        }
        for inst in &function.instructions {
            sizes.visit(&inst.ty, inst.span);
            inst.kind.for_each_operand(|operand| match operand {
                Operand::Global(id) => {
                    sizes.visit(&module.globals[id.index()].ty, inst.span);
                }
                Operand::Const(constant) => {
                    sizes.visit(&constant.ty(), inst.span);
                }
                _ => {}
            });
        }
    }
    // The name of a shared variable starts with the name of its function and a `.`.
    let first_part = |name: &str| name.find('.').unwrap_or(name.len());
    let mut owners = HashMap::new();
    for function in &module.functions {
        let name = &function.name[..first_part(&function.name)];
        owners.entry(name).or_insert(function.span);
    }
    for global in &module.globals {
        let owner = owners.get(&global.name[..first_part(&global.name)]);
        sizes.visit(&global.ty, owner.copied().unwrap_or(NOWHERE));
    }
    sizes.errors
}

/// The span of declarations that are not in the source.
const NOWHERE: Span = Span::NOWHERE;

struct SizeCheck<'m> {
    module: &'m Module,
    /// The result for each struct, if known.
    structs: Vec<Option<bool>>,
    reported: HashSet<Type>,
    errors: Collector,
}

impl SizeCheck<'_> {
    /// Checks the types that a type is composed of, then the type itself: only the innermost is reported.
    /// Returns whether any of them is too large.
    fn visit(&mut self, ty: &Type, span: Span) -> bool {
        let inner = match ty {
            Type::Array(inner, _) | Type::Pointer { pointee: inner, .. } => self.visit(inner, span),
            Type::Struct(id) => {
                if let Some(known) = self.structs[id.0 as usize] {
                    return known;
                }
                let fields = &self.module.structs.get(*id).fields;
                fields
                    .iter()
                    .any(|field| !field.ty.is_pointer() && self.reported.contains(&field.ty))
            }
            _ => false,
        };
        let structs = &self.module.structs;
        let size = type_layout(ty, structs).size;
        if !inner && size > MAX_TYPE_BYTES && !self.reported.contains(ty) {
            let name = ty.display(structs).to_string();
            let message = if size >= SATURATED {
                format!("`{name}` takes more bytes than 64 bits can count")
            } else {
                format!("`{name}` takes {size} bytes; a type may take at most {MAX_TYPE_BYTES}")
            };
            self.errors.push(
                Diagnostic::error(ids::TYPE_TOO_LARGE, span, message)
                    .hint("allocate large data on the host and pass a pointer to its elements"),
            );
            self.reported.insert(ty.clone());
        }
        let too_large = inner || size > MAX_TYPE_BYTES;
        if let Type::Struct(id) = ty {
            self.structs[id.0 as usize] = Some(too_large);
        }
        too_large
    }
}
