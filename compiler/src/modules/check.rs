//! Checks of a module before any tool sees it: what the tools do not notice, or say less clearly.

use gridlet_lang::arch::{CudaArch, Dialect};
use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols::{DeviceRuntimeAbi, RuntimeFunction};
use gridlet_lang::launch::{LOST_LAUNCH_RECORD, RECORD_LOST_LAUNCH};
use inkwell::llvm_sys::LLVMFastMathApproxFunc;

use super::kernels::{self, name};
use super::{
    buffers, constructs, effects, empty, ignored, initials, known, record, runtime, shared, sizes,
};
use crate::nvvm::legacy::foreign_layout;
use crate::nvvm::legacy::llvm::{Module, Shape, Value};
use crate::nvvm::{is_for_gpus, is_renamed, lacking};
use crate::ptx::culprits;
use crate::toolchain::LLVM_VERSION;

/// Functions of the first interface, before CUDA 12.
const OLD: [&str; 3] = ["cudaGetParameterBuffer", "cudaLaunchDevice", "cudaDeviceSynchronize"];

/// How the names of the intrinsics of LLVM's other targets, and of other languages, go on after `llvm.`.
const OTHER_TARGETS: [&str; 22] = [
    "aarch64",
    "amdgcn",
    "arm",
    "bpf",
    "coro",
    "dx",
    "eh",
    "hexagon",
    "loongarch",
    "mips",
    "objc",
    "ppc",
    "r600",
    "riscv",
    "s390",
    "seh",
    "spv",
    "swift",
    "ve",
    "wasm",
    "x86",
    "xcore",
];

/// Whether the module has kernels, and they are what PTX's kernels are.
pub(super) fn kernels(module: Module<'_>) -> Vec<Finding<'_>> {
    let kernels = kernels::kernels(module);
    if kernels.is_empty() {
        // Perhaps it is one of another target.
        let foreign = constructs::conventions(module);
        if !foreign.is_empty() {
            return foreign;
        }
        let message = "no function is a kernel; mark one with the calling convention `ptx_kernel`, or in `!nvvm.annotations` with \
             `!{ptr @name, !\"kernel\", i32 1}`";
        return vec![Finding { at: None, message: message.into() }];
    }
    let mut findings = vec![];
    for kernel in kernels {
        let (symbol, result) = (name(kernel), kernel.value_type().result());
        if result.shape() != Shape::Void {
            let message = format!(
                "the kernel `{symbol}` returns a value of the type `{}`, which nobody gets; make it `void`, and store the value",
                result.print()
            );
            findings.push(Finding { at: Some(kernel), message });
        }
        if symbol.is_empty() {
            findings.push(Finding { at: Some(kernel), message: kernels::NO_NAME.into() });
        }
        if let Some(message) = kernels::too_large(kernel) {
            findings.push(Finding { at: Some(kernel), message });
        }
        findings.extend(runtime::calls(kernel).into_iter().map(|call| Finding {
            at: Some(call),
            message: format!(
                "the kernel `{symbol}` is called, but PTX only launches kernels; launch it, or move its body into a function"
            ),
        }));
    }
    findings
}

const UNFINISHED: &str = "the module has launches by `modules::Launches`, which are not complete; call `Launches::finish`";

/// The names that Gridlet or CUDA give to something else.
pub(super) fn reserved(module: Module<'_>) -> Vec<Finding<'_>> {
    // Other compilers give kernels names with `__`, as Clang does for OpenMP.
    let is_free = |name: &str| {
        name.starts_with("__")
            && !["__gridlet_", "__nv_", "__cuda"].iter().any(|own| name.starts_with(own))
    };
    // A module that Gridlet wrote has the functions that it adds, and then the record too.
    let is_written = module.variables().into_iter().any(|it| name(it) == LOST_LAUNCH_RECORD);
    let is_gridlets = |name: &str| {
        name.starts_with("__gridlet_")
            || name.starts_with("gridlet_cpu_")
            || (name.starts_with("own.gridlet.") && !is_written)
    };
    let functions = module.functions().into_iter().filter(|function| {
        let symbol = name(*function);
        match kernels::is_kernel(*function) {
            true => symbol::is_reserved(&symbol) && !is_free(&symbol),
            false => is_gridlets(&symbol),
        }
    });
    let variables = module.variables().into_iter();
    let variables =
        variables.filter(|variable| is_gridlets(&name(*variable)) && !record::is_record(*variable));
    let is_unfinished =
        |at: Value<'_>| at.is_declaration() && name(at) == symbol::internal(RECORD_LOST_LAUNCH);
    let finding = |at| Finding {
        at: Some(at),
        message: match is_unfinished(at) {
            true => UNFINISHED.into(),
            false => {
                format!("the name `{}` is reserved for Gridlet and CUDA; rename it", name(at))
            }
        },
    };
    functions.chain(variables).map(finding).collect()
}

/// Something that is wrong with a module.
pub(super) struct Finding<'m> {
    /// The instruction or the function that is wrong, if it is one.
    pub(super) at: Option<Value<'m>>,
    pub(super) message: String,
}

/// All that is wrong with a module on an architecture. `by_libnvvm`: libNVVM compiles it, not LLVM's own back end.
pub(super) fn all(module: Module<'_>, arch: CudaArch, by_libnvvm: bool) -> Vec<Finding<'_>> {
    let mut findings = vec![];
    for kernel in kernels::kernels(module) {
        let at = Some(kernel);
        let wrong = kernels::wrong_name(&name(kernel)).into_iter();
        let wrong = wrong.chain(kernels::wrong_linkage(kernel));
        let wrong = wrong.chain(kernels::wrong_bounds(kernel));
        let wrong = wrong.chain(kernels::wrong_parameters(kernel));
        findings.extend(wrong.map(|message| Finding { at, message }));
    }
    findings.extend(ignored::variables(module));
    findings.extend(constructs::check(module, by_libnvvm));
    findings.extend(initials::check(module));
    findings.extend(effects::check(module));
    findings.extend(empty::check(module));
    findings.extend(shared::check(module));
    findings.extend(shared::constants(module));
    findings.extend(sizes::for_gpus(module));
    findings.extend(intrinsics(module, arch, by_libnvvm));
    findings.extend(known::check(module));
    findings.extend(device_runtime(module, arch));
    findings.extend(buffers::check(&runtime::declared(module)));
    findings
}

/// All that is wrong with a module on the CPU device, beside what it lacks.
pub(super) fn for_cpu(module: Module<'_>) -> Vec<Finding<'_>> {
    let mut findings = signatures(module);
    for kernel in kernels::kernels(module) {
        let wrong = kernels::wrong_copies(kernel);
        findings.extend(wrong.into_iter().map(|message| Finding { at: Some(kernel), message }));
    }
    findings.extend(constructs::check(module, false));
    findings.extend(sizes::for_cpu(module));
    findings.extend(known::check(module));
    findings.extend(ignored::variables(module));
    findings.extend(ignored::assembly(module));
    findings.extend(buffers::check(&runtime::declared(module)));
    findings
}

/// What is wrong with the target of a module, each with how the line of the text begins that says so.
pub(super) fn target(module: Module<'_>) -> Vec<(&'static str, String)> {
    let mut findings = vec![];
    let triple = module.triple();
    if !is_for_gpus(&triple) {
        let wanted = crate::codegen::TRIPLE;
        let message = format!("its target is `{triple}`; NVVM IR is for `{wanted}`");
        findings.push(("target triple", message));
    }
    if let Some(part) = foreign_layout(&module.data_layout()) {
        let message = format!(
            "its data layout has `{part}`, which libNVVM's lacks; remove the data layout, or use LLVM's for nvptx64"
        );
        findings.push(("target datalayout", message));
    }
    findings
}

/// Intrinsics that no tool for the architecture knows.
fn intrinsics(module: Module<'_>, arch: CudaArch, by_libnvvm: bool) -> Vec<Finding<'_>> {
    // libNVVM may know more of the modern dialect than LLVM.
    let is_llvm_enough = arch.dialect() == Dialect::Legacy || !by_libnvvm;
    let wrong = |function: Value<'_>| {
        let symbol = name(function);
        let family = symbol.strip_prefix("llvm.")?.split('.').next()?;
        if function.users().is_empty() {
            None
        } else if OTHER_TARGETS.contains(&family) {
            Some(format!("`{symbol}` is an intrinsic of another target"))
        } else if lacking::needs_suffix(&symbol) {
            Some(format!(
                "only architectures with a suffix, such as sm_90a and sm_100a, have `{symbol}`, and Gridlet compiles for those without; use \
                 other instructions"
            ))
        } else if is_llvm_enough && function.intrinsic().is_none() && !is_renamed(&symbol) {
            Some(format!(
                "LLVM {LLVM_VERSION} has no intrinsic `{symbol}`; correct the name, or use inline PTX"
            ))
        } else {
            None
        }
    };
    let functions = module.functions().into_iter();
    functions
        .filter_map(|function| {
            let message = wrong(function)?;
            let first = culprits::calls(function).first().copied();
            Some(Finding { at: first.or(Some(function)), message })
        })
        .collect()
}

/// The first call of each intrinsic that the compiler for an architecture lacks, and other parts that libNVVM ignores.
pub(super) fn lacking<'m>(
    module: Module<'m>,
    arch: CudaArch,
    by_libnvvm: bool,
) -> Vec<Finding<'m>> {
    let wrong = |function: Value<'m>| {
        let symbol = name(function);
        first_call(function, |call| {
            let is_approximate = is_approximate(call);
            if !by_libnvvm {
                let instead = lacking::instead_for_llvm(&symbol, is_approximate)?;
                return Some(format!("LLVM's back end has no `{symbol}`; {instead}"));
            }
            let instead = lacking::instead(&symbol, arch.dialect(), is_approximate)?;
            Some(format!("libNVVM has no `{symbol}` for {arch}; {instead}"))
        })
    };
    let ignored = ignored::assembly(module).filter(|_| by_libnvvm);
    intrinsics_of(module).filter_map(wrong).chain(ignored).collect()
}

/// The first call of each intrinsic that an older libNVVM lacks, after a tool refused the module.
pub(super) fn newer<'m>(module: Module<'m>, log: &str) -> Vec<Finding<'m>> {
    let wrong = |function: Value<'m>| {
        let symbol = name(function);
        first_call(function, |call| {
            let may_lack = lacking::is_newer(&symbol, is_approximate(call));
            may_lack.then(|| {
                format!(
                    "the compiler refuses the module, probably for `{symbol}`, which libNVVM of CUDA 13.5 has and older ones lack:\n{log}"
                )
            })
        })
    };
    intrinsics_of(module).filter_map(wrong).collect()
}

/// The functions and intrinsics that a compiler's log is about, line by line.
pub(super) fn named<'m>(module: Module<'m>, log: &str) -> Vec<Finding<'m>> {
    let functions = module.functions();
    let finding = |line: &str| {
        let (symbol, call) = culprits::named(line)?;
        let function = functions.iter().copied().find(|function| name(*function) == symbol)?;
        let calls = culprits::calls(function);
        let call = match call {
            Some(number) => calls.get(number),
            None => calls.first().filter(|_| function.is_declaration()),
        };
        Some(Finding { at: call.copied().or(Some(function)), message: line.to_owned() })
    };
    log.lines().filter_map(finding).collect()
}

/// The call of an intrinsic that libNVVM names when it refuses a module, because it has other types or uses there. If it may be one of
/// several calls, the declaration.
pub(super) fn refused<'m>(module: Module<'m>, log: &str) -> Vec<Finding<'m>> {
    let is_named = |function: &Value<'m>| {
        let symbol = format!("@{}", name(*function));
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        log.match_indices(&symbol).any(|(at, _)| !log[at + symbol.len()..].starts_with(is_part))
    };
    let mut named = intrinsics_of(module).filter(is_named);
    let (Some(function), None) = (named.next(), named.next()) else { return vec![] };
    let symbol = name(function);
    let calls = culprits::calls(function);
    if calls.iter().any(|call| lacking::is_newer(&symbol, is_approximate(*call))) {
        return vec![];
    }
    let is_quoted = |call: &&Value<'m>| log.contains(&bare(&call.print()));
    let mut quoted = calls.iter().filter(|call| calls.len() == 1 || is_quoted(call));
    let at = match (quoted.next(), quoted.next()) {
        (Some(call), None) => *call,
        _ => function,
    };
    let instead = culprits::INSTEAD;
    let message = format!("libNVVM refuses `{symbol}` as it is here; {instead}:\n{log}");
    vec![Finding { at: Some(at), message }]
}

/// The text of an instruction without its metadata. What tools get is a copy, which may have other debug information.
pub(super) fn bare(text: &str) -> String {
    text.split(", !").next().unwrap_or_default().trim().to_owned()
}

fn intrinsics_of(module: Module<'_>) -> impl Iterator<Item = Value<'_>> {
    let functions = module.functions().into_iter();
    functions.filter(|function| name(*function).starts_with("llvm."))
}

/// The first call of a function about which there is something to say.
fn first_call<'m>(
    function: Value<'m>,
    say: impl Fn(Value<'m>) -> Option<String>,
) -> Option<Finding<'m>> {
    // LLVM lists the last one first.
    let calls = runtime::calls(function).into_iter().rev();
    calls.filter_map(|at| Some(Finding { at: Some(at), message: say(at)? })).next()
}

/// Whether a call may be computed approximately.
pub(super) fn is_approximate(call: Value<'_>) -> bool {
    call.fast_math() & LLVMFastMathApproxFunc != 0
}

/// Functions of the device runtime with other signatures than its own, and calls with other types than they are declared with.
pub(super) fn signatures(module: Module<'_>) -> Vec<Finding<'_>> {
    let mut findings = vec![];
    for (function, known) in runtime::declared(module) {
        let symbol = name(function);
        let abis = [DeviceRuntimeAbi::Public, DeviceRuntimeAbi::Cdp2];
        if !function.is_declaration() && abis.iter().any(|abi| abi.symbol(known) == symbol) {
            let message = format!(
                "the module defines `{symbol}`, which CUDA's device runtime defines; only declare it, or rename yours"
            );
            findings.push(Finding { at: Some(function), message });
        }
        let wrong = runtime::wrong_signature(function, known);
        findings.extend(wrong.map(|message| Finding { at: Some(function), message }));
        let other = |call: &Value<'_>| call.call_type() != function.value_type();
        let calls = runtime::calls(function).into_iter().filter(other);
        findings.extend(calls.map(|call| Finding {
            at: Some(call),
            message: format!(
                "`{}` is called as `{}`, but declared as `{}`; call it with its own type",
                name(function),
                call.call_type().print(),
                function.value_type().print()
            ),
        }));
    }
    findings
}

/// Functions of the device runtime that are not as it has them.
fn device_runtime(module: Module<'_>, arch: CudaArch) -> Vec<Finding<'_>> {
    let declared = runtime::declared(module);
    let mut findings = signatures(module);
    for function in module.functions().into_iter().filter(|function| function.is_declaration()) {
        let symbol = name(function);
        if OLD.contains(&symbol.as_str()) && !runtime::calls(function).is_empty() {
            let message = format!(
                "`{symbol}` belongs to the first interface of CUDA's device runtime, which CUDA 12 removed; use \
                 `cudaGetParameterBufferV2` and `cudaLaunchDeviceV2`"
            );
            findings.push(Finding { at: Some(function), message });
        }
    }
    let fills = declared.iter().filter(|(_, known)| *known == RuntimeFunction::MemsetAsync);
    findings.extend(
        fills.flat_map(|(function, _)| runtime::calls(*function).into_iter().rev()).filter_map(
            |call| {
                let message = runtime::wrong_fill(call)?;
                Some(Finding { at: Some(call), message })
            },
        ),
    );
    let wanted = DeviceRuntimeAbi::for_arch(arch);
    if wanted == DeviceRuntimeAbi::Cdp2 {
        let public = declared.iter().find(|(function, known)| {
            name(*function) == DeviceRuntimeAbi::Public.symbol(*known)
                && *known != RuntimeFunction::MemsetAsync
        });
        if let Some((function, known)) = public {
            let message = format!(
                "on {arch}, `{}` means the old interface of CUDA's device runtime, which cannot be mixed with the current \
                 one; below sm_90 the current one is `{}`",
                DeviceRuntimeAbi::Public.symbol(*known),
                wanted.symbol(*known)
            );
            findings.push(Finding { at: Some(*function), message });
        }
    }
    findings
}

/// The functions that the module uses and does not define. CUDA, libdevice and Gridlet define those with reserved names.
pub(super) fn undefined(module: Module<'_>) -> Vec<Value<'_>> {
    let mut functions = module.functions();
    functions.retain(|function| {
        let symbol = name(*function);
        let is_known = symbol.starts_with("llvm.") || symbol::is_reserved(&symbol);
        function.is_declaration() && !is_known && !function.users().is_empty()
    });
    functions
}

/// Names a function that a link found undefined, if the module calls it.
pub(super) fn not_linked<'m>(module: Module<'m>, log: &str) -> Vec<Finding<'m>> {
    // nvJitLink: "Undefined reference to 'f' in 'program.ptx'"; ptxas: "Unresolved extern function 'f'".
    let is_about = |line: &&str| line.contains("Undefined") || line.contains("Unresolved");
    let lines = log.lines().filter(is_about);
    let names: Vec<&str> = lines.filter_map(|line| line.split('\'').nth(1)).collect();
    let functions = module.functions().into_iter();
    let open = functions
        .filter(|function| function.is_declaration() && names.contains(&name(*function).as_str()));
    let finding = |function| Finding {
        at: Some(function),
        message: format!(
            "neither the module nor one that is linked in defines `{}`; give one that does with `--link`",
            name(function)
        ),
    };
    open.map(finding).collect()
}
