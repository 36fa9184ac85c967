//! The state of writing a module, and the order of its text.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use inkwell::llvm_sys::LLVMLinkage as Linkage;

use crate::codegen::{DATA_LAYOUT, OWN_DATA_LAYOUT, TRIPLE};
use crate::error::{Error, Result};

use super::LegacyOptions;
use super::attributes::Attributes;
use super::functions::Signature;
use super::lines::{Lines, Variables};
use super::llvm::{Module, Value};
use super::metadata::Nodes;
use super::names::{Names, spell};
use super::refusal::{Refusal, Written, refuse};
use super::types::Types;

/// Data layout entries that [`DATA_LAYOUT`] also implies, or that concern features the legacy
/// dialect refuses anyway (address space 6). Widths of native integers only guide optimisation.
const SAME_LAYOUT: [&str; 34] = [
    "",
    "e",
    "p:64:64",
    "p:64:64:64",
    "p6:32:32",
    "i1:8",
    "i1:8:8",
    "i8:8",
    "i8:8:8",
    "i16:16",
    "i16:16:16",
    "i32:32",
    "i32:32:32",
    "i64:64",
    "i64:64:64",
    "i128:128",
    "i128:128:128",
    "i256:256",
    "f32:32",
    "f32:32:32",
    "f64:64",
    "f64:64:64",
    "v16:16",
    "v16:16:16",
    "v32:32",
    "v32:32:32",
    "v64:64",
    "v64:64:64",
    "v128:128",
    "v128:128:128",
    "n16:32:64",
    "n8:16:32:64",
    "n32:64",
    "a:8:8",
];

/// The part of a data layout that differs from libNVVM's.
pub(crate) fn foreign_layout(layout: &str) -> Option<&str> {
    layout.split('-').find(|part| !SAME_LAYOUT.contains(part) && layout != OWN_DATA_LAYOUT)
}

/// The state shared by all parts of the writer.
pub(super) struct Writer<'m, 'o> {
    pub(super) module: Module<'m>,
    pub(super) options: &'o LegacyOptions,
    pub(super) types: Types<'m>,
    pub(super) attributes: Attributes,
    pub(super) nodes: Nodes<'m>,
    pub(super) lines: Lines,
    /// Debug information with variables, if it is to be kept.
    pub(super) variables: Option<Variables<'m>>,
    /// The nodes of `!nvvm.annotations`.
    pub(super) annotations: Vec<usize>,
    pub(super) signatures: HashMap<Value<'m>, Rc<Signature>>,
    /// Additional declarations, needed by rewrites, by name.
    declarations: BTreeMap<String, String>,
    /// The spelled names of globals and functions.
    globals: HashMap<Value<'m>, String>,
}

impl<'m, 'o> Writer<'m, 'o> {
    pub(super) fn new(module: Module<'m>, options: &'o LegacyOptions) -> Self {
        let mut names = Names::default();
        let globals: Vec<Value<'m>> = module
            .variables()
            .into_iter()
            .chain(module.aliases())
            .chain(module.functions())
            .collect();
        globals.iter().filter_map(|global| global.name()).for_each(|name| names.take(&name));
        let named = globals.into_iter().map(|global| {
            let name = match global.name() {
                None => names.fresh("__unnamed").into_bytes(),
                Some(name) if is_local(global) && !is_local_name(&name) => {
                    let name: String = name
                        .iter()
                        .map(|&byte| if is_symbol_byte(byte) { char::from(byte) } else { '_' })
                        .collect();
                    names.fresh(&format!("_{name}")).into_bytes()
                }
                Some(name) => name,
            };
            (global, spell('@', &name))
        });
        Writer {
            module,
            options,
            types: Types::default(),
            attributes: Attributes::new(),
            nodes: Nodes::default(),
            lines: Lines::default(),
            variables: Variables::of(module, options),
            annotations: Vec::new(),
            signatures: HashMap::new(),
            declarations: BTreeMap::new(),
            globals: named.collect(),
        }
    }

    /// Writes the whole text.
    pub(super) fn write(mut self) -> Result<String> {
        self.check_module().map_err(|refusal| refusal.at("the module", ""))?;
        if let Some(alias) = self.module.aliases().first() {
            let refusal: Written<()> = refuse(
                "libNVVM drops aliases of variables, and ptxas rejects its output for aliases of functions",
                "use the aliased symbol",
            );
            refusal.map_err(|refusal| at_global(refusal, "the alias", *alias))?;
        }
        self.check_names()?;
        self.check_debug_info()?;
        let mut globals = Vec::new();
        for variable in self.module.variables() {
            let line = self
                .variable(variable)
                .map_err(|refusal| at_global(refusal, "the global", variable))?;
            let described = self.described(variable);
            globals.extend(line.map(|line| line + &described));
        }
        let mut functions = Vec::new();
        for function in self.module.functions() {
            if function.intrinsic().is_none() {
                functions.push(self.function(function)?);
            }
        }
        let lists =
            self.named_metadata().map_err(|refusal| refusal.at("the module's metadata", ""))?;

        let is_own = self.module.data_layout() == OWN_DATA_LAYOUT;
        let layout = if is_own { OWN_DATA_LAYOUT } else { DATA_LAYOUT };
        let header = vec![
            format!("target datalayout = \"{layout}\""),
            format!("target triple = \"{TRIPLE}\""),
        ];
        let mut sections = vec![header, self.types.definitions().to_vec(), globals];
        sections.extend(functions);
        sections.push(self.declarations.into_values().collect());
        sections.push(lists);
        sections.push(self.nodes.lines().collect());
        let sections: Vec<String> = sections
            .into_iter()
            .filter(|lines| !lines.is_empty())
            .map(|lines| lines.join("\n") + "\n")
            .collect();
        Ok(sections.join("\n"))
    }

    /// Checks the module as a whole.
    fn check_module(&self) -> Written<()> {
        let triple = self.module.triple();
        if !(triple.is_empty() || triple.starts_with("nvptx64-")) {
            return refuse(
                format!("it is for `{triple}`"),
                "build the module for `nvptx64-nvidia-cuda`",
            );
        }
        let layout = self.module.data_layout();
        if let Some(foreign) = foreign_layout(&layout) {
            return refuse(
                format!("its data layout has `{foreign}`, which libNVVM's lacks"),
                "remove the data layout, or use LLVM's for nvptx64",
            );
        }
        if !self.module.inline_asm().trim().is_empty() {
            return refuse(
                "libNVVM ignores assembly outside functions (`module asm`)",
                "put it into a function",
            );
        }
        if let Some(resolver) = self.module.resolvers().first() {
            return refuse(
                format!("PTX has no `ifunc`: {}", resolver.print()),
                "call the function through a pointer",
            );
        }
        Ok(())
    }

    /// Refuses symbols that libNVVM cannot spell. Local symbols are renamed where necessary.
    fn check_names(&self) -> Result<()> {
        let globals = self
            .module
            .variables()
            .into_iter()
            .chain(self.module.aliases())
            .chain(self.module.functions());
        for global in globals {
            let name = global.name().unwrap_or_default();
            let symbol = name.iter().all(|&byte| is_symbol_byte(byte))
                && !name.first().is_some_and(u8::is_ascii_digit);
            if symbol || is_local(global) || name.starts_with(b"llvm.") {
                continue;
            }
            let refusal: Written<()> = refuse(
                "libNVVM allows only letters, digits, `_` and `$` in the name of a symbol that other modules see",
                "rename it, or make it internal",
            );
            refusal.map_err(|refusal| at_global(refusal, "the symbol", global))?;
        }
        Ok(())
    }

    /// Refuses debug information, unless the options drop it.
    fn check_debug_info(&self) -> Result<()> {
        let found = self
            .module
            .named_metadata()
            .iter()
            .any(|list| list.name == "llvm.dbg.cu" && !list.nodes.is_empty())
            || self.module.functions().iter().any(|function| function.has_subprogram());
        if found && !self.options.drop_debug_info && !self.options.debug_lines {
            return Err(Error::Invalid(
                "the module has debug information (`!llvm.dbg.cu`), which the legacy dialect writer does not support; \
                 set `LegacyOptions::drop_debug_info` to write the module without it, or `debug_lines` to keep its lines"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The named metadata at the end: annotations, module flags and the version of the IR.
    fn named_metadata(&mut self) -> Written<Vec<String>> {
        let mut flags = Vec::new();
        for list in self.module.named_metadata() {
            match list.name.as_str() {
                "nvvm.annotations" => {
                    for node in list.nodes {
                        let number = self.node(node)?;
                        self.annotations.push(number);
                    }
                }
                "llvm.module.flags" => {
                    for flag in list.nodes {
                        flags.extend(self.module_flag(flag)?);
                    }
                }
                // The rest is for tools (`llvm.ident`) or debuggers, or is written afresh
                // (`nvvmir.version`).
                _ => {}
            }
        }
        let units = self.lines.units();
        let mut version = "!{i32 2, i32 0}";
        if !units.is_empty() {
            flags.push(self.nodes.add("!{i32 2, !\"Debug Info Version\", i32 3}"));
            // The version of the debug information in this dialect follows.
            version = "!{i32 2, i32 0, i32 3, i32 1}";
        }
        let version = self.nodes.add(version);
        let annotations = std::mem::take(&mut self.annotations);
        let lists = [
            ("nvvm.annotations", annotations),
            ("llvm.dbg.cu", units),
            ("llvm.module.flags", flags),
            ("nvvmir.version", vec![version]),
        ];
        Ok(lists
            .into_iter()
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(name, nodes)| {
                let nodes: Vec<String> = nodes.into_iter().map(|node| format!("!{node}")).collect();
                format!("!{name} = !{{{}}}", nodes.join(", "))
            })
            .collect())
    }

    /// The spelled name of a global, function or alias.
    pub(super) fn global_name(&self, global: Value<'m>) -> String {
        self.globals.get(&global).cloned().unwrap_or_default()
    }

    /// Declares a function that the module does not declare: `result @name(parameters)`.
    pub(super) fn declare(&mut self, name: &str, result: &str, parameters: &str) {
        let declaration = format!("declare {result} {}({parameters})", spell('@', name.as_bytes()));
        self.declarations.insert(name.to_owned(), declaration);
    }
}

/// Whether a symbol is invisible to other modules.
fn is_local(global: Value<'_>) -> bool {
    matches!(global.linkage(), Linkage::LLVMInternalLinkage | Linkage::LLVMPrivateLinkage)
}

fn is_symbol_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Whether libNVVM accepts a local symbol: it respells `.` and `-` for PTX.
fn is_local_name(name: &[u8]) -> bool {
    name.iter().all(|&byte| is_symbol_byte(byte) || byte == b'.' || byte == b'-')
        && !name.first().is_some_and(u8::is_ascii_digit)
}

/// The first line of a global or function, as LLVM 22 writes it.
pub(super) fn heading(global: Value<'_>) -> String {
    let printed = global.print();
    let line = printed.lines().find(|line| !line.starts_with(';') && !line.is_empty());
    line.unwrap_or_default().trim_end_matches(" {").to_owned()
}

fn at_global(refusal: Refusal, what: &str, global: Value<'_>) -> Error {
    let name = global.name().unwrap_or_default();
    refusal.at(&format!("{what} `{}`", String::from_utf8_lossy(&name)), &heading(global))
}
