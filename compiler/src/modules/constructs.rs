//! Constructs of LLVM that no GPU of NVIDIA has, or that libNVVM refuses without the line: tools ignore some of them without a word.

use std::collections::HashMap;

use gridlet_lang::launch::cdp::symbols::runtime_function;
use inkwell::llvm_sys::{LLVMAtomicRMWBinOp as Rmw, LLVMLinkage, LLVMOpcode};

use super::check::Finding;
use super::kernels::{is_kernel, name};
use super::layout::extent;
use crate::nvvm::is_known_convention;
use crate::nvvm::legacy::llvm::{Kind, Module, Shape, Type, Value};
use crate::nvvm::scope::Scope;

/// The other end of a choice between back ends, in messages.
const OTHER: &str = "or compile with LLVM's own back end (`--backend nvptx`)";

const NO_EXCEPTIONS: &str = "GPUs have no exceptions; use `call` and `br`";

/// The first uses of each construct that the compilers of a module lack. `by_libnvvm`: libNVVM is the compiler.
pub(super) fn check(module: Module<'_>, by_libnvvm: bool) -> Vec<Finding<'_>> {
    let mut found = Found { findings: vec![], said: HashMap::new() };
    for variable in module.variables() {
        found.add(variable, wrong_variable(variable));
        found.add(variable, initial_value_of_shared(variable, by_libnvvm));
        if by_libnvvm {
            found.add(variable, refused_linkage(variable));
        }
    }
    for alias in module.aliases() {
        found.add(alias, wrong_alias(alias));
    }
    for resolver in module.resolvers() {
        let symbol = name(resolver);
        found.add(
            resolver,
            Some(format!("PTX has no `ifunc`, as `{symbol}`; call through a pointer")),
        );
    }
    for function in module.functions() {
        found.add(function, wrong_function(function));
        if by_libnvvm {
            found.add(function, refused_linkage(function));
            found.add(function, refused_section(function));
        }
        for instruction in function.blocks().into_iter().flat_map(|block| block.instructions()) {
            found.add(instruction, wrong_instruction(instruction));
            if by_libnvvm {
                found.add(instruction, refused_instruction(instruction));
            }
        }
    }
    found.findings
}

/// The functions with calling conventions of other targets.
pub(super) fn conventions(module: Module<'_>) -> Vec<Finding<'_>> {
    let functions = module.functions().into_iter();
    let wrong = functions.filter(|function| !is_known_convention(function.calling_convention()));
    wrong
        .map(|function| Finding {
            at: Some(function),
            message: wrong_convention(&name(function), function.calling_convention()),
        })
        .collect()
}

/// The most places that are named for one message.
const MAX_PLACES: usize = 3;

/// Findings, each message at its first places.
struct Found<'m> {
    findings: Vec<Finding<'m>>,
    said: HashMap<String, usize>,
}

impl<'m> Found<'m> {
    fn add(&mut self, at: Value<'m>, message: Option<String>) {
        let Some(message) = message else { return };
        let places = self.said.entry(message.clone()).or_default();
        *places += 1;
        if *places <= MAX_PLACES {
            self.findings.push(Finding { at: Some(at), message });
        }
    }
}

/// The address space of a pointer.
fn space(ty: Type<'_>) -> Option<u32> {
    match ty.shape() {
        Shape::Pointer(space) => Some(space),
        _ => None,
    }
}

fn wrong_variable(variable: Value<'_>) -> Option<String> {
    let (symbol, ty) = (name(variable), variable.value_type());
    if let Some(space) = space(variable.ty()).filter(|space| ![0, 1, 3, 4].contains(space)) {
        let instead = "use global (1), shared (3) or constant (4) memory, or an `alloca`";
        return Some(format!(
            "no variable can be in address space {space}, as `{symbol}`; {instead}"
        ));
    }
    foreign(ty).map(|ty| no_type(&ty))
}

/// Zero is what LLVM's own back end takes, as other front ends write it for no value.
fn initial_value_of_shared(variable: Value<'_>, by_libnvvm: bool) -> Option<String> {
    let value = variable.initializer()?;
    let is_unset = value.kind() == Kind::Undefined || value.is_zero() && !by_libnvvm;
    let is_shared = variable.ty().shape() == Shape::Pointer(SHARED);
    (is_shared && !is_unset).then(|| {
        format!(
            "shared memory has no initial values, as `{}` has one; use `undef`, and store the value in a kernel",
            name(variable)
        )
    })
}

/// The address spaces of shared and constant memory.
const SHARED: u32 = 3;
const CONSTANT: u32 = 4;

fn no_type(ty: &str) -> String {
    format!("GPUs have no type `{ty}`; use `double`, integers, or vectors of a fixed length")
}

/// The text of a type that no GPU has.
fn foreign(ty: Type<'_>) -> Option<String> {
    let Shape::Foreign(text) = ty.shape() else { return None };
    let is_foreign = ["fp128", "x86_fp80", "ppc_fp128", "x86_amx"].contains(&text.as_str())
        || text.starts_with("<vscale ");
    is_foreign.then_some(text)
}

fn wrong_alias(alias: Value<'_>) -> Option<String> {
    let of = alias.operand(0);
    let is_right = of.kind() == Kind::Function && !is_kernel(of) && !of.is_declaration();
    (!is_right).then(|| {
        format!(
            "PTX has aliases only of functions that the module defines and that are not kernels, but not `{}`; use the aliased symbol",
            name(alias)
        )
    })
}

fn wrong_function(function: Value<'_>) -> Option<String> {
    let (symbol, convention) = (name(function), function.calling_convention());
    if !is_known_convention(convention) {
        return Some(wrong_convention(&symbol, convention));
    }
    let extra = function.function_extra()?;
    Some(format!("GPUs have no `{extra}`, as `{symbol}`; remove it from the function"))
}

/// The conventions that compilers for other GPUs and for CPUs write.
const CONVENTIONS: [(u32, &str); 14] = [
    (10, "ghccc"),
    (14, "preserve_mostcc"),
    (15, "preserve_allcc"),
    (16, "swiftcc"),
    (18, "tailcc"),
    (20, "swifttailcc"),
    (64, "x86_stdcallcc"),
    (65, "x86_fastcallcc"),
    (70, "x86_thiscallcc"),
    (75, "spir_func"),
    (76, "spir_kernel"),
    (78, "x86_64_sysvcc"),
    (79, "win64cc"),
    (91, "amdgpu_kernel"),
];

fn wrong_convention(symbol: &str, convention: u32) -> String {
    let known = CONVENTIONS.iter().find(|(number, _)| *number == convention);
    let shown = known.map_or_else(|| format!("cc {convention}"), |(_, name)| (*name).to_owned());
    format!(
        "`{symbol}` has the calling convention `{shown}`, which GPUs of NVIDIA lack; mark kernels with `ptx_kernel`, and leave it out \
         elsewhere"
    )
}

/// What no GPU does, or does as the module says.
fn wrong_instruction(instruction: Value<'_>) -> Option<String> {
    use LLVMOpcode::*;
    let opcode = instruction.opcode();
    match opcode {
        LLVMInvoke | LLVMLandingPad | LLVMResume | LLVMCleanupRet | LLVMCatchRet | LLVMCatchPad
        | LLVMCleanupPad | LLVMCatchSwitch => return Some(NO_EXCEPTIONS.into()),
        LLVMIndirectBr => {
            return Some(
                "GPUs do not branch to addresses of blocks (`indirectbr`); use `switch`".into(),
            );
        }
        LLVMCall => {
            if let Some(wrong) = wrong_call(instruction) {
                return Some(wrong);
            }
        }
        LLVMAlloca => {
            let space = space(instruction.ty()).filter(|space| ![0, 5].contains(space));
            if let Some(space) = space {
                return Some(format!(
                    "no `alloca` can be in address space {space}; use address space 0"
                ));
            }
        }
        LLVMFence | LLVMAtomicRMW | LLVMAtomicCmpXchg => return wrong_access(instruction, opcode),
        LLVMLoad | LLVMStore => {
            if let Some(wrong) = wrong_access(instruction, opcode) {
                return Some(wrong);
            }
        }
        _ => {}
    }
    if let Some(ty) = foreign(instruction.ty()) {
        return Some(no_type(&ty));
    }
    let operands = instruction.operands();
    let is_block = |operand: &Value<'_>| {
        operand.kind() == Kind::Foreign && operand.print().contains("blockaddress(")
    };
    operands.iter().any(is_block).then(|| {
        "GPUs have no addresses of blocks (`blockaddress`); use numbers and `switch`".into()
    })
}

/// A call that no device can make.
fn wrong_call(call: Value<'_>) -> Option<String> {
    let (convention, callee) = (call.call_convention(), call.callee());
    if !is_known_convention(convention) {
        return Some(wrong_convention(&name(callee), convention));
    }
    let symbol = name(callee);
    match callee.kind() {
        Kind::Null | Kind::Undefined => {
            Some("a call of `null` or an undefined address; call a function".into())
        }
        // Those of the device runtime have messages of their own.
        Kind::Function if runtime_function(&symbol).is_some() => None,
        Kind::Function if call.call_type() != callee.value_type() => Some(format!(
            "`{symbol}` is called as `{}`, but it is `{}`; call it with its own type",
            call.call_type().print(),
            callee.value_type().print()
        )),
        Kind::Function if symbol.starts_with("llvm.mem") => {
            let to = call.arguments().first().map(|to| to.ty().shape());
            (to == Some(Shape::Pointer(CONSTANT))).then(|| NO_WRITES.into())
        }
        Kind::Function if symbol.starts_with("llvm.nvvm.barrier.cta.") => {
            let number = call.operand(0).unsigned().filter(|number| *number >= BARRIERS)?;
            Some(format!("a block has barriers 0 to {}, but not {number}", BARRIERS - 1))
        }
        _ => None,
    }
}

const NO_WRITES: &str =
    "a kernel cannot write constant memory (`addrspace(4)`); use global memory (`addrspace(1)`)";

/// The number of barriers of a block (PTX ISA, "bar").
const BARRIERS: u64 = 16;

/// An access of memory that has no such addresses, or of a scope of another target.
fn wrong_access(instruction: Value<'_>, opcode: LLVMOpcode) -> Option<String> {
    const SPACES: [u32; 7] = [0, 1, 3, 4, 5, 7, 101];
    if opcode != LLVMOpcode::LLVMFence {
        let at = u32::from(opcode == LLVMOpcode::LLVMStore);
        let space = space(instruction.operand(at).ty()).filter(|space| !SPACES.contains(space));
        if let Some(space) = space {
            return Some(format!(
                "no load, store or atomic operation reaches address space {space}; use generic (0), global (1), shared (3), constant \
                 (4) or local (5) pointers"
            ));
        }
        let writes = opcode != LLVMOpcode::LLVMLoad;
        if writes && instruction.operand(at).ty().shape() == Shape::Pointer(CONSTANT) {
            return Some(NO_WRITES.into());
        }
    }
    if !instruction.is_atomic() {
        return None;
    }
    let accessed = match opcode {
        LLVMOpcode::LLVMLoad => Some(instruction.ty()),
        LLVMOpcode::LLVMStore => Some(instruction.operand(0).ty()),
        _ => None,
    };
    if let Some(ty) = accessed {
        let size = extent(ty).map_or(0, |extent| extent.size);
        if ![1, 2, 4, 8].contains(&size) || u64::from(instruction.alignment()) < size {
            return Some(format!(
                "an atomic load or store of `{}` with the alignment {} would become several; use integers, floats or pointers of at most 64 \
                 bits, aligned to their size",
                ty.print(),
                instruction.alignment()
            ));
        }
    }
    let name = Scope::of(instruction).err()?;
    Some(format!("NVPTX has no synchronisation scope `{name}`; {}", Scope::INSTEAD))
}

/// What libNVVM refuses, and LLVM's own back end takes.
fn refused_instruction(instruction: Value<'_>) -> Option<String> {
    let what = match instruction.opcode() {
        LLVMOpcode::LLVMAlloca if space(instruction.ty()) == Some(5) => {
            return Some(format!(
                "libNVVM has no `alloca` in address space 5; use address space 0 and `addrspacecast`, {OTHER}"
            ));
        }
        LLVMOpcode::LLVMAtomicRMW => {
            let operation = match instruction.rmw_operation() {
                Rmw::LLVMAtomicRMWBinOpUSubCond => Some("usub_cond"),
                Rmw::LLVMAtomicRMWBinOpUSubSat => Some("usub_sat"),
                Rmw::LLVMAtomicRMWBinOpFMaximum => Some("fmaximum"),
                Rmw::LLVMAtomicRMWBinOpFMinimum => Some("fminimum"),
                _ => None,
            };
            match operation {
                Some(operation) => format!("`atomicrmw {operation}`"),
                None => format!("atomic operation on `{}`", narrow(instruction.ty())?),
            }
        }
        LLVMOpcode::LLVMAtomicCmpXchg => {
            format!("atomic operation on `{}`", narrow(instruction.operand(1).ty())?)
        }
        _ => return None,
    };
    Some(format!(
        "libNVVM has no {what}; use a loop with `cmpxchg` on the 32 or 64 bits that hold the value, {OTHER}"
    ))
}

/// The text of an integer type of less than 32 bits.
fn narrow(ty: Type<'_>) -> Option<String> {
    matches!(ty.shape(), Shape::Int(..32)).then(|| ty.print())
}

fn refused_linkage(symbol: Value<'_>) -> Option<String> {
    let instead = match symbol.linkage() {
        LLVMLinkage::LLVMExternalWeakLinkage => "declare it as external",
        LLVMLinkage::LLVMAppendingLinkage if !name(symbol).starts_with("llvm.") => {
            "define it in one module"
        }
        _ => return None,
    };
    let word = match symbol.linkage() {
        LLVMLinkage::LLVMExternalWeakLinkage => "extern_weak",
        _ => "appending",
    };
    Some(format!("libNVVM has no linkage `{word}`, as `{}`; {instead}", name(symbol)))
}

fn refused_section(function: Value<'_>) -> Option<String> {
    let section = function.section();
    (!section.is_empty()).then(|| {
        format!(
            "libNVVM has no sections, as `{section}` of `{}`; remove it from the function",
            name(function)
        )
    })
}
