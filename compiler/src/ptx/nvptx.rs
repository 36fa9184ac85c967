//! PTX from LLVM's own NVPTX back end. It needs no libNVVM, and only programs that use mathematical
//! functions need anything else from NVIDIA's toolkit.

use std::path::Path;

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMCallConv;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetData, TargetMachine,
    TargetTriple,
};
use inkwell::types::AnyType as _;
use inkwell::values::FunctionValue;

use super::guard::{self, Process, Stop};
use super::libnvvm::PtxOutput;
use super::{
    Ptx, PtxOptions, absolute, barriers, bit_fields, byte_products, contraction, counters,
    disjoint, early_copies, early_loads, fall_through, fast_math, geometry, half_tests,
    invariant_loads, latches, late_motion, local_arrays, meeting_points, minimum,
    narrow_differences, narrow_quotients, quotients, reflect, remainders, selections, sinking,
    stack, strength, subprogram_types, switches, trailing_zeros, unrolling, vector_loads,
    wide_absolutes, wide_registers, workarounds,
};
use crate::error::{Error, Result};
use crate::messages::{self, Messages};
use crate::nvvm::legacy::llvm;
use crate::{codegen, fatal, nvvm};
use gridlet_lang::arch::{CudaArch, Dialect};

/// Optimises a copy of `module` and compiles it to the oldest PTX version that supports `arch`,
/// which every later ptxas reads. `libdevice` is `libdevice.10.bc`, for modules that use its
/// functions. This runs in a child process, because LLVM's back end crashes on some modules.
///
/// Only the level and fast mathematics in `options` matter: a module's source lines stay, as its compile unit says.
///
/// With optimisation, ptxas may fuse products and sums, as in libNVVM's PTX.
///
/// # Errors
/// `Invalid` if LLVM's verifier refuses the module or it calls an unknown intrinsic, `Missing` if the module uses libdevice and there is none, `Io` if it cannot be read, `Tool` with
/// LLVM's message if LLVM refuses the module or libdevice, or ends over it, and if the system gives no further process.
pub fn compile(
    module: &Module<'_>,
    libdevice: Option<&Path>,
    arch: CudaArch,
    options: &PtxOptions,
) -> Result<Ptx> {
    Ok(compile_in(Process::Child, module, libdevice, arch, options)?)
}

/// As [`compile()`], in either process, and tells an end of LLVM from its other errors. It optimises only in a child: see
/// `set_options`.
pub(crate) fn compile_in(
    process: Process,
    module: &Module<'_>,
    libdevice: Option<&Path>,
    arch: CudaArch,
    options: &PtxOptions,
) -> std::result::Result<Ptx, Stop> {
    let (bitcode, libdevice) = prepare(module, libdevice)?;
    let options = *options;
    let of_bitcode = move || of_bitcode(&bitcode, libdevice.as_deref(), arch, &options);
    match process {
        Process::This if options.opt_level == 0 => {
            let _inside = guard::inside();
            Ok(fatal::caught(WRITING, of_bitcode)?)
        }
        Process::This | Process::Child => {
            fatal::install();
            warm_up();
            let work = || {
                set_options();
                Ok(PtxOutput { ptx: of_bitcode()?, log: String::new() })
            };
            Ok(guard::apart("LLVM", work)?.ptx)
        }
    }
}

/// Keeps LLVM from what [`reduce_strength`], [`unrolling`] or ptxas do better. The options are for all of LLVM in a process, so only a child
/// may set them.
fn set_options() {
    let words = [
        c"gridlet".as_ptr(),
        c"--disable-lsr".as_ptr(),
        c"--unroll-runtime=0".as_ptr(),
        // Tables of jumps: a load and an indirect jump in turn, and no loop around them is unrolled. libNVVM writes none.
        c"--min-jump-table-entries=4294967295".as_ptr(),
        // With an exit in the middle, `unrolling` would not know a loop's number of iterations.
        c"--unroll-allow-partial=0".as_ptr(),
        local_arrays::MOST_BOUND_OPTION.as_ptr(),
        // There are no instructions for vectors of small integers, so the back end takes them apart.
        c"--vectorize-loops=0".as_ptr(),
    ];
    // SAFETY: C strings, and options that LLVM has. LLVM copies what it keeps.
    unsafe { LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), c"".as_ptr()) };
}

/// Unrolls fully the loops that run at most eight times, whatever their number of iterations.
const UNROLL_SHORT: &str = "function(loop-unroll<O3;upperbound;full-unroll-max=8;no-peeling;no-profile-peeling;no-partial;no-runtime>)";

/// The module as bitcode, and the bytes of libdevice if it uses them.
fn prepare(module: &Module<'_>, libdevice: Option<&Path>) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    // LLVM's back end does not check its input, and may crash on a module that the verifier refuses.
    nvvm::verify(module, |_| false)?;
    let bitcode = module.write_bitcode_to_memory().as_slice().to_vec();
    if !codegen::uses_libdevice(module) {
        return Ok((bitcode, None));
    }
    let path = libdevice.ok_or_else(|| Error::Missing {
        what: "libdevice.10.bc was not found, and the program uses mathematical functions".into(),
        help: "Install NVIDIA's CUDA toolkit, or its Python wheel `nvidia-nvvm`.".into(),
    })?;
    let bytes =
        std::fs::read(path).map_err(|source| Error::Io { path: path.to_path_buf(), source })?;
    Ok((bitcode, Some(bytes)))
}

/// Initialises the target, for which LLVM registers destructors: see `inputs::read`.
fn warm_up() {
    Target::initialize_nvptx(&InitializationConfig::default());
}

const WRITING: &str = "writing PTX";

fn of_bitcode(
    bitcode: &[u8],
    libdevice: Option<&[u8]>,
    arch: CudaArch,
    options: &PtxOptions,
) -> Result<Ptx> {
    let context = Context::create();
    let messages = Messages::of(&context);
    let buffer = MemoryBuffer::create_from_memory_range_copy(bitcode, "module");
    // Reading bitcode also upgrades the intrinsics that libNVVM knows by their former names.
    let mut copy = Module::parse_bitcode_from_buffer(&buffer, &context)
        .map_err(|message| refused("copying the module", message.to_string()))?;
    let has_variables = has_variables(&copy);
    if has_variables {
        copy = subprogram_types::complete(copy)?;
    }
    if let Some(libdevice) = libdevice {
        link_libdevice(&copy, libdevice, &context)?;
        reflect::answer_precision(&copy, !options.fast_math);
    }
    if options.fast_math {
        fast_math::apply(&copy);
    }
    nvvm::atomics::write(&copy, nvvm::atomics::Compiler::Nvptx)?;
    minimum::of_numbers(&copy);
    if options.opt_level > 0 {
        contraction::keep_rounded(&copy)?;
    }
    let mut machine = target_machine(arch, options, "")?;
    if arch.dialect() == Dialect::Legacy {
        // The newer of the two, because the last one counts.
        if has_many_parameters(&copy, &machine.get_target_data()) {
            machine = target_machine(arch, options, LARGE_PARAMETERS)?;
        } else if has_variables {
            machine = target_machine(arch, options, DEBUG_SECTIONS)?;
        }
    }
    copy.set_data_layout(&machine.get_target_data().get_data_layout());
    if options.opt_level == 0 {
        meeting_points::remove(&copy);
        trailing_zeros::expand(&copy)?;
        run(&copy, &machine, "globaldce,default<O0>")?;
    } else {
        copy = optimise(copy, &machine, &context)?;
    }
    let ptx = machine
        .write_to_memory_buffer(&copy, FileType::Assembly)
        .map_err(|message| refused(WRITING, message.to_string()))?;
    let errors = messages.take_errors();
    if !errors.is_empty() {
        return Err(refused(WRITING, errors.join("\n")));
    }
    let mut ptx = String::from_utf8_lossy(ptx.as_slice()).trim_end_matches('\0').to_owned();
    if options.opt_level > 0 {
        ptx = stack::localise(absolute::widen(selections::join(contraction::relax(&ptx))));
        ptx = early_loads::hoist(fall_through::jump_once(bit_fields::split(ptx)));
        ptx = wide_registers::widen(narrow_differences::widen(half_tests::halve(ptx)));
    }
    let ptx = workarounds::apply(ptx);
    Ok(Ptx(if options.opt_level > 0 { quotients::expand(ptx) } else { ptx }))
}

pub(super) fn run(module: &Module<'_>, machine: &TargetMachine, passes: &str) -> Result<()> {
    module
        .run_passes(passes, machine, PassBuilderOptions::create())
        .map_err(|message| refused("optimising", message.to_string()))
}

fn optimise<'ctx>(
    mut module: Module<'ctx>,
    machine: &TargetMachine,
    context: &'ctx Context,
) -> Result<Module<'ctx>> {
    vector_loads::join(&module)?;
    unrolling::mark_hints(&module, context)?;
    latches::join(&module, context)?;
    if local_arrays::align(&module, &machine.get_target_data())? {
        let simple = module.clone();
        run(&simple, machine, local_arrays::SIMPLIFY)?;
        let mut unrolls = local_arrays::unroll(&simple, machine)?;
        if unrolls {
            run(&simple, machine, local_arrays::UNROLL)?;
        }
        for _ in 0..local_arrays::MOST_LEVELS {
            let asked = local_arrays::unroll_bounded(&simple)?;
            if asked == 0 {
                break;
            }
            run(&simple, machine, local_arrays::UNROLL)?;
            if unrolling::forget_bounded(&simple, context)? == asked {
                break;
            }
            unrolls = true;
        }
        if unrolls {
            module = simple;
        }
    }
    let run = |passes: &str| run(&module, machine, passes);
    run("default<O3>")?;
    invariant_loads::mark(&module, context)?;
    unrolling::hold_short(&module, context)?;
    run(UNROLL_SHORT)?;
    unrolling::release_short(&module, context)?;
    counters::join(&module)?;
    let loops = unrolling::unroll_more(&module, context)?;
    if !loops.is_empty() {
        let lifted = barriers::lift(&module, context, &loops);
        run("function(loop-unroll<O3>)")?;
        if let Some(lifted) = lifted {
            lifted.restore(context);
        }
        // What copies share is found before what only one branch uses is moved there.
        run("function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg)")?;
        unrolling::forget(&module, context)?;
    }
    late_motion::hoist(&module, machine, !loops.is_empty())?;
    byte_products::join(&module, machine)?;
    // The tests of a divisor divide a loop into blocks. ptxas computes the reciprocal of a divisor before the loop only if all
    // divisions are in one block.
    sinking::sink(&module, machine)?;
    run("function(simplifycfg)")?;
    meeting_points::remove(&module);
    switches::select(&module)?;
    // LLVM merges neighbouring accesses of memory only if the address shows their alignment, which it does for a variable in
    // shared memory, but not for a generic pointer to it, and for a local variable, but not for a pointer to local memory. The inference
    // of address spaces crashes (LLVM 22.1) on tables of `switch`, which have none yet.
    run(
        "generic-to-nvvm,function(infer-alignment,infer-address-spaces,early-cse,infer-alignment)",
    )?;
    trailing_zeros::expand(&module)?;
    run("always-inline")?;
    strength::reduce(&module, machine)?;
    remainders::restore(&module)?;
    narrow_quotients::widen(&module)?;
    disjoint::add(&module)?;
    wide_absolutes::widen(&module)?;
    geometry::order(&module);
    early_copies::add(&module, context)?;
    // LLVM's back end does not check its input: it would read a register before it is written.
    module.verify().map_err(|log| Error::internal("ptx", log.to_string()))?;
    Ok(module)
}

pub(super) fn refused(operation: &str, log: String) -> Error {
    Error::Tool { tool: "LLVM", operation: operation.into(), log: log.trim().into() }
}

/// The oldest version of PTX in which kernels take more than [`MOST_BYTES`] of parameters (PTX ISA, "Kernel Function Parameters").
/// Architectures of the modern dialect have newer ones.
const LARGE_PARAMETERS: &str = "+ptx81";
const MOST_BYTES: u64 = 4352;

/// A version of PTX whose sections for debuggers have differences of labels, as LLVM writes them; ptxas asks for 7.5. Some
/// architectures of the legacy dialect start with this one.
const DEBUG_SECTIONS: &str = "+ptx78";

/// Whether a module describes variables and types for debuggers.
fn has_variables(module: &Module<'_>) -> bool {
    let lists = llvm::Module::new(module).named_metadata().into_iter();
    let mut units = lists.filter(|list| list.name == "llvm.dbg.cu").flat_map(|list| list.nodes);
    units.any(|unit| unit.print().contains("emissionKind: FullDebug"))
}

/// Whether a function is an entry.
pub(super) fn is_kernel(function: &FunctionValue<'_>) -> bool {
    function.get_call_conventions() == LLVMCallConv::LLVMPTXKernelCallConv as u32
}

/// Whether a kernel takes more bytes of parameters than older versions of PTX allow.
fn has_many_parameters(module: &Module<'_>, data: &TargetData) -> bool {
    let byval = Attribute::get_named_enum_kind_id("byval");
    let bytes = |function: FunctionValue<'_>| {
        let parameters = (0..).zip(function.get_params());
        let sizes = parameters.map(|(at, parameter)| {
            let copied = function.get_enum_attribute(AttributeLoc::Param(at), byval);
            let ty = match &copied {
                Some(attribute) => attribute.get_type_value(),
                None => parameter.get_type().as_any_type_enum(),
            };
            data.get_abi_size(&ty).saturating_add(data.get_abi_alignment(&ty).into())
        });
        sizes.fold(0, u64::saturating_add)
    };
    module.get_functions().filter(is_kernel).any(|kernel| bytes(kernel) > MOST_BYTES)
}

/// LLVM's NVPTX target for an architecture, with `features` of its own beyond those of the architecture.
pub(super) fn target_machine(
    arch: CudaArch,
    options: &PtxOptions,
    features: &str,
) -> Result<TargetMachine> {
    Target::initialize_nvptx(&InitializationConfig::default());
    let triple = TargetTriple::create(codegen::TRIPLE);
    let target = Target::from_triple(&triple)
        .map_err(|message| refused("finding the NVPTX target", message.to_string()))?;
    let level = match options.opt_level {
        0 => OptimizationLevel::None,
        _ => OptimizationLevel::Aggressive,
    };
    target
        .create_target_machine(
            &triple,
            &arch.sm(),
            features,
            level,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| refused("finding the NVPTX target", format!("no target for {arch}")))
}

/// Links libdevice and makes its functions internal, so that unused ones are removed.
fn link_libdevice<'ctx>(
    module: &Module<'ctx>,
    libdevice: &[u8],
    context: &'ctx Context,
) -> Result<()> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(libdevice, "libdevice");
    let library = Module::parse_bitcode_from_buffer(&buffer, context)
        .map_err(|message| refused("reading libdevice", message.to_string()))?;
    // libdevice names its own target, which LLVM would warn about.
    library.set_triple(&module.get_triple());
    library.set_data_layout(&module.get_data_layout());
    let defined: Vec<String> = library
        .get_functions()
        .filter(|function| function.count_basic_blocks() > 0)
        .map(|function| function.get_name().to_string_lossy().into_owned())
        .collect();
    messages::link(module, library).map_err(|message| refused("linking libdevice", message))?;
    for function in defined.iter().filter_map(|name| module.get_function(name)) {
        function.set_linkage(Linkage::Internal);
    }
    Ok(())
}
