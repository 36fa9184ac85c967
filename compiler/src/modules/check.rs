//! Checks of a module before any tool sees it: what the tools do not notice, or say less clearly.

use gridlet_lang::arch::CudaArch;
use gridlet_lang::ir::symbol;
use gridlet_lang::launch::LOST_LAUNCH_RECORD;
use gridlet_lang::launch::cdp::symbols::{DeviceRuntimeAbi, RuntimeFunction};

use super::kernels::{self, name};
use super::{buffers, runtime};
use crate::nvvm::legacy::foreign_layout;
use crate::nvvm::legacy::llvm::{Module, Shape, Value};

/// Functions of the first interface, before CUDA 12.
const OLD: [&str; 3] = ["cudaGetParameterBuffer", "cudaLaunchDevice", "cudaDeviceSynchronize"];

/// How the names of the intrinsics of LLVM's other targets go on after `llvm.`.
const OTHER_TARGETS: [&str; 17] = [
    "aarch64",
    "amdgcn",
    "arm",
    "bpf",
    "dx",
    "hexagon",
    "loongarch",
    "mips",
    "ppc",
    "r600",
    "riscv",
    "s390",
    "spv",
    "ve",
    "wasm",
    "x86",
    "xcore",
];

/// Checks that the module has kernels.
pub(super) fn kernels(module: Module<'_>) -> Result<(), String> {
    if kernels::kernels(module).is_empty() {
        return Err(
            "no function is a kernel; mark one with the calling convention `ptx_kernel`, or in `!nvvm.annotations` with \
             `!{ptr @name, !\"kernel\", i32 1}`"
                .into(),
        );
    }
    Ok(())
}

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
    let is_record = |variable: Value<'_>| {
        name(variable) == LOST_LAUNCH_RECORD
            && variable.ty().shape() == Shape::Pointer(u32::from(super::GLOBAL))
            && super::layout::extent(variable.value_type()).is_some_and(|extent| extent.size == 16)
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
        variables.filter(|variable| is_gridlets(&name(*variable)) && !is_record(*variable));
    let finding = |at| Finding {
        at: Some(at),
        message: format!("the name `{}` is reserved for Gridlet and CUDA; rename it", name(at)),
    };
    functions.chain(variables).map(finding).collect()
}

/// Something that is wrong with a module.
pub(super) struct Finding<'m> {
    /// The instruction or the function that is wrong, if it is one.
    pub(super) at: Option<Value<'m>>,
    pub(super) message: String,
}

/// All that is wrong with a module on an architecture.
pub(super) fn all(module: Module<'_>, arch: CudaArch) -> Vec<Finding<'_>> {
    let findings = whole(module, arch).into_iter();
    let mut findings: Vec<_> = findings.map(|message| Finding { at: None, message }).collect();
    for kernel in kernels::kernels(module) {
        let wrong = kernels::wrong_parameters(kernel).into_iter();
        findings.extend(wrong.map(|message| Finding { at: Some(kernel), message }));
    }
    findings.extend(buffers::check(&runtime::declared(module)));
    findings
}

/// What is wrong with a module apart from its instructions.
fn whole(module: Module<'_>, arch: CudaArch) -> Vec<String> {
    let mut findings = vec![];
    let triple = module.triple();
    let is_ours = triple.is_empty() || triple.starts_with("nvptx64-") || triple == "unknown";
    if !is_ours {
        findings
            .push(format!("its target is `{triple}`; NVVM IR is for `{}`", crate::codegen::TRIPLE));
    }
    if let Some(part) = foreign_layout(&module.data_layout()) {
        findings.push(format!(
            "its data layout has `{part}`, which libNVVM's lacks; remove the data layout, or use LLVM's for nvptx64"
        ));
    }
    for kernel in kernels::kernels(module) {
        findings.extend(kernels::wrong_name(&name(kernel)));
    }
    for function in module.functions() {
        let symbol = name(function);
        let family = symbol.strip_prefix("llvm.").and_then(|rest| rest.split('.').next());
        if family.is_some_and(|family| OTHER_TARGETS.contains(&family))
            && !function.users().is_empty()
        {
            findings.push(format!("`{symbol}` is an intrinsic of another target"));
        }
    }
    let declared = runtime::declared(module);
    findings.extend(
        declared.iter().filter_map(|(function, known)| runtime::wrong_signature(*function, *known)),
    );
    for function in module.functions().into_iter().filter(|function| function.is_declaration()) {
        let symbol = name(function);
        if OLD.contains(&symbol.as_str()) && !runtime::calls(function).is_empty() {
            findings.push(format!(
                "`{symbol}` belongs to the first interface of CUDA's device runtime, which CUDA 12 removed; use \
                 `cudaGetParameterBufferV2` and `cudaLaunchDeviceV2`"
            ));
        }
    }
    let wanted = DeviceRuntimeAbi::for_arch(arch);
    if wanted == DeviceRuntimeAbi::Cdp2 {
        let public = declared.iter().find(|(function, known)| {
            name(*function) == DeviceRuntimeAbi::Public.symbol(*known)
                && *known != RuntimeFunction::MemsetAsync
        });
        if let Some((_, known)) = public {
            findings.push(format!(
                "on {arch}, `{}` means the old interface of CUDA's device runtime, which cannot be mixed with the current \
                 one; below sm_90 the current one is `{}`",
                DeviceRuntimeAbi::Public.symbol(*known),
                wanted.symbol(*known)
            ));
        }
    }
    findings
}
