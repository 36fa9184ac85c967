//! Adds a program written in the language to the program that is being lowered.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::parse_and_check_part;
use crate::error::{Error, Result};
use crate::ir::build::build_ir;
use crate::ir::{FunctionId, InstKind, KernelId, Module, Operand, Role};
use crate::source::{SourceMap, Span};
use crate::types::Structs;

/// A position for code that is not in the program's sources.
pub(super) const NOWHERE: Span = Span::NOWHERE;

/// What `add` has added, by the names in the added source.
pub(super) struct Added {
    file: &'static str,
    functions: BTreeMap<String, FunctionId>,
    kernels: BTreeMap<String, KernelId>,
}

impl Added {
    /// A function.
    pub(super) fn function(&self, name: &str) -> Result<FunctionId> {
        self.functions.get(name).copied().ok_or_else(|| self.missing(name))
    }

    /// A kernel.
    pub(super) fn kernel(&self, name: &str) -> Result<KernelId> {
        self.kernels.get(name).copied().ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> Error {
        Error::internal("launch", format!("{} lacks `{name}`", self.file))
    }
}

/// Adds all functions, globals, externs and kernels of a source. `rename` gives the names that functions, globals and
/// kernels have in the module; an extern becomes a function that the compiler itself calls.
pub(super) fn add(
    module: &mut Module,
    file: &'static str,
    source: &str,
    rename: impl Fn(&str) -> String,
) -> Result<Added> {
    let mut sources = SourceMap::default();
    sources.add(file, source);
    let (program, _) = parse_and_check_part(&sources);
    let broken = |what: &str| Error::internal("launch", format!("{file} has {what}"));
    let program = program.ok_or_else(|| broken("errors"))?;
    let added = build_ir(&program, Arc::new(sources))?;
    if added.structs.len() != Structs::new().len() {
        return Err(broken("structs of its own"));
    }

    let counts = [
        module.functions.len() as u32,
        module.kernels.len() as u32,
        module.globals.len() as u32,
        module.externs.len() as u32,
    ];
    let [functions, kernels, globals, externs] = counts;
    let mut names = Added { file, functions: BTreeMap::new(), kernels: BTreeMap::new() };
    for (id, mut function) in (functions..).zip(added.functions) {
        function.span = NOWHERE;
        function.slots.iter_mut().for_each(|slot| slot.variable = None);
        function.role = match function.role {
            Role::Body(id) => Role::Body(KernelId(id.0 + kernels)),
            Role::Entry(id) => Role::Entry(KernelId(id.0 + kernels)),
            Role::Device => {
                names.functions.insert(function.name.clone(), FunctionId(id));
                Role::Device
            }
        };
        function.name = rename(&function.name);
        for inst in &mut function.instructions {
            inst.span = NOWHERE;
            match &mut inst.kind {
                InstKind::Call { function, .. } => function.0 += functions,
                InstKind::CallExtern { function, .. } => function.0 += externs,
                InstKind::Launch(launch) => launch.kernel.0 += kernels,
                _ => {}
            }
            if let InstKind::Builtin { format: Some(format), .. } = &mut inst.kind {
                format.0 += globals;
            }
            inst.kind.for_each_operand_mut(|operand| match operand {
                Operand::Global(id) => id.0 += globals,
                Operand::Kernel(id) => id.0 += kernels,
                _ => {}
            });
        }
        module.functions.push(function);
    }
    for (id, mut kernel) in (kernels..).zip(added.kernels) {
        names.kernels.insert(kernel.name.clone(), KernelId(id));
        kernel.span = NOWHERE;
        kernel.name = rename(&kernel.name);
        kernel.body.0 += functions;
        kernel.entry.0 += functions;
        module.kernels.push(kernel);
    }
    for mut global in added.globals {
        global.name = rename(&global.name);
        global.variable = None;
        module.globals.push(global);
    }
    for mut item in added.externs {
        item.name = rename(&item.name);
        item.span = None;
        module.externs.push(item);
    }
    Ok(names)
}
