//! Launches in a module that is built through inkwell.
//!
//! [`Launches::emit`] writes at a builder's position what the language writes for `launch`: the call that asks for a
//! parameter buffer, the test of its result, the stores of the arguments where the child reads them, the launch, and the
//! record of a launch that fails, with the caller's file and line. Launches into the tail stream need turns, because
//! CUDA's device runtime hangs otherwise; [`Launches::finish`] adds them once it knows all launches.

use gridlet_lang::arch::CudaArch;
use gridlet_lang::extents;
use gridlet_lang::ir::symbol;
use gridlet_lang::launch::RECORD_LOST_LAUNCH;
use gridlet_lang::launch::cdp::symbols::{
    DIM3_STRUCT, DeviceRuntimeAbi, ERROR_LAUNCH_PENDING_COUNT_EXCEEDED, NamedStream,
    RuntimeFunction,
};
use gridlet_lang::layout::MAX_PARAMETER_BYTES;
use inkwell::AddressSpace;
use inkwell::IntPredicate;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::ContextRef;
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicTypeEnum, StructType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue as _, BasicValueEnum, CallSiteValue, FunctionValue,
    IntValue, PointerValue, StructValue,
};

use super::declare::callees;
use super::{bounds, complete, depth, files, kernels, lines, local};
use crate::codegen::PTX_KERNEL;
use crate::error::{Error, Result};
use crate::inputs::MAX_NESTING;
use crate::nvvm::legacy::llvm::{self, Meta};

/// The metadata of a call with the position that the caller gave: a file and a line.
const POSITION: &str = "gridlet.position";

/// Keeps the position of a launch with a call, for the case that nothing reads the launch's status.
fn keep_position<'ctx>(
    call: CallSiteValue<'ctx>,
    context: ContextRef<'ctx>,
    (file, line): &(String, u32),
) {
    let line = context.i32_type().const_int(u64::from(*line), false);
    let node = context.metadata_node(&[context.metadata_string(file).into(), line.into()]);
    let value = call.try_as_basic_value().basic();
    if let Some(instruction) = value.and_then(|value| value.as_instruction_value()) {
        // It fails only for what is no node.
        let _ = instruction.set_metadata(node, context.get_kind_id(POSITION));
    }
}

/// The position that the caller gave for a call of the device runtime.
pub(super) fn given_position(module: &Module<'_>, call: llvm::Value<'_>) -> Option<(String, u32)> {
    let parts = call.metadata(module.get_context().get_kind_id(POSITION))?.meta_operands();
    match parts[..] {
        [Meta::Text(file), Meta::Constant(line)] => {
            let file = String::from_utf8_lossy(file).into_owned();
            Some((file, u32::try_from(line.unsigned()?).ok()?))
        }
        _ => None,
    }
}

/// Marks a function as a kernel. Both dialects write it as they need it.
pub fn mark_kernel(function: FunctionValue<'_>) {
    function.set_call_conventions(PTX_KERNEL);
}

/// The stream of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum LaunchStream<'ctx> {
    /// CUDA's NULL stream of the block.
    #[default]
    Default,
    /// Starts at once, ordered after nothing.
    FireAndForget,
    /// Starts after the grid and everything that it launched.
    Tail,
    /// A handle from `cudaStreamCreateWithFlags`.
    Handle(PointerValue<'ctx>),
}

/// One launch: of a grid of one block with one thread into the default stream, unless its methods say otherwise.
#[derive(Clone, Debug)]
pub struct Launch<'ctx> {
    kernel: FunctionValue<'ctx>,
    arguments: Vec<BasicValueEnum<'ctx>>,
    grid: Vec<IntValue<'ctx>>,
    block: Vec<IntValue<'ctx>>,
    shared: Option<IntValue<'ctx>>,
    stream: LaunchStream<'ctx>,
    place: Option<(String, u32)>,
}

impl<'ctx> Launch<'ctx> {
    /// A launch of a kernel of the same module. An argument for a `byval` parameter is the value itself.
    pub fn new(kernel: FunctionValue<'ctx>, arguments: &[BasicValueEnum<'ctx>]) -> Self {
        Launch {
            kernel,
            arguments: arguments.to_vec(),
            grid: vec![],
            block: vec![],
            shared: None,
            stream: LaunchStream::Default,
            place: None,
        }
    }

    /// The number of blocks along x, y and z, each an `i32`; missing ones are 1.
    pub fn grid(mut self, blocks: &[IntValue<'ctx>]) -> Self {
        self.grid = blocks.to_vec();
        self
    }

    /// The number of threads per block along x, y and z, each an `i32`; missing ones are 1.
    pub fn block(mut self, threads: &[IntValue<'ctx>]) -> Self {
        self.block = threads.to_vec();
        self
    }

    /// The dynamic shared memory of a block in bytes, an `i32`.
    pub fn shared(mut self, bytes: IntValue<'ctx>) -> Self {
        self.shared = Some(bytes);
        self
    }

    /// The stream.
    pub fn stream(mut self, stream: LaunchStream<'ctx>) -> Self {
        self.stream = stream;
        self
    }

    /// The position in the caller's own source, for the report of a lost launch and for errors. Otherwise it is that of the
    /// builder's debug location. [`Launches::emit`] refuses the files and lines that [`SourceLines`] refuses.
    ///
    /// [`SourceLines`]: super::SourceLines
    pub fn at(mut self, file: &str, line: u32) -> Self {
        self.place = Some((file.into(), line));
        self
    }
}

/// The launches of one module.
#[must_use = "`finish` completes the launches"]
pub struct Launches<'m, 'ctx> {
    module: &'m Module<'ctx>,
    arch: CudaArch,
}

impl<'m, 'ctx> Launches<'m, 'ctx> {
    /// The launches of a module for an architecture, on which the device runtime's names depend.
    pub fn new(module: &'m Module<'ctx>, arch: CudaArch) -> Self {
        Launches { module, arch }
    }

    /// Emits a launch at the builder's position, the end of a block without a terminator. If the launch fails, it is recorded for
    /// the host.
    ///
    /// It ends that block, and leaves the builder at the end of a new one, in which the code behind the launch goes. A `phi` for a
    /// branch from there must name this block: `builder.get_insert_block()`.
    ///
    /// A launch passes integers, floating-point numbers, vectors, structs, arrays and pointers; integers have 1, 8, 16, 32, 64 or 128
    /// bits.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the function is not a kernel, an argument or an extent has another type than its parameter,
    /// the parameters take more than 4,096 bytes, a constant extent or the shared memory is one that no launch can have, the module
    /// gives a name of the device runtime another meaning, or its launches are complete.
    pub fn emit(&mut self, builder: &Builder<'ctx>, launch: &Launch<'ctx>) -> Result<()> {
        let context = self.module.get_context();
        let word = context.i32_type();
        let attempt = self.attempt(builder, launch, true)?;
        let Attempt { status, function, record: Some(record) } = attempt else {
            return Err(Error::internal("modules", "a launch has no function for its record"));
        };
        let (file, line) = place(builder, launch).unwrap_or_default();
        let file = files::number(self.module, &file)?;
        let emit = || {
            let [lost, next] = ["launch.lost", "launch.next"]
                .map(|name| context.append_basic_block(function, name));
            let zero = word.const_zero();
            let failed = builder.build_int_compare(IntPredicate::NE, status, zero, "failed")?;
            builder.build_conditional_branch(failed, lost, next)?;
            builder.position_at_end(lost);
            let numbers = [file, line].map(|at| word.const_int(u64::from(at), false).into());
            let arguments = [status.into(), numbers[0], numbers[1]];
            builder.build_call(record, &arguments, "")?;
            builder.build_unconditional_branch(next)?;
            builder.position_at_end(next);
            Ok(())
        };
        emit().map_err(building)
    }

    /// Emits a launch as [`Launches::emit`] does, but gives its status, an `i32` with CUDA's error or 0, in place of
    /// recording a failure.
    ///
    /// # Errors
    /// As [`Launches::emit`].
    pub fn emit_try(
        &mut self,
        builder: &Builder<'ctx>,
        launch: &Launch<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        self.attempt(builder, launch, false).map(|attempt| attempt.status)
    }

    /// Completes the launches of the module, also those of other `Launches`: adds the functions that they call. A module with
    /// launches of [`Launches::emit`] is not valid before, and no launch can follow.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the module uses a name of Gridlet's for something else.
    pub fn finish(self) -> Result<()> {
        complete::complete(self.module)
    }

    /// The functions that a launch calls; all are declared, or none.
    fn runtime(&self, is_recorded: bool) -> Result<Runtime<'ctx>> {
        let context = self.module.get_context();
        let (word, pointer) = (context.i32_type(), context.ptr_type(AddressSpace::default()));
        let fields: [BasicTypeEnum<'_>; 3] = [word.into(); 3];
        let known = self.module.get_struct_type(DIM3_STRUCT);
        let dim3 = known.unwrap_or_else(|| context.opaque_struct_type(DIM3_STRUCT));
        if dim3.is_opaque() {
            dim3.set_body(&fields, false);
        }
        if dim3.is_packed() || dim3.get_field_types() != fields {
            return Err(yours(format!(
                "the module has a struct `{DIM3_STRUCT}` that is not `{{ i32, i32, i32 }}`, as CUDA's of that name is; rename yours"
            )));
        }
        let abi = DeviceRuntimeAbi::for_arch(self.arch);
        let buffer =
            pointer.fn_type(&[pointer.into(), dim3.into(), dim3.into(), word.into()], false);
        let launch = word.fn_type(&[pointer.into(), pointer.into()], false);
        let function = |function, ty| (abi.symbol(function), ty, CUDAS);
        let buffer = function(RuntimeFunction::GetParameterBuffer, buffer);
        let launch = function(RuntimeFunction::LaunchDevice, launch);
        if !is_recorded {
            let [get_buffer, launch_device] = callees(self.module, [buffer, launch])?;
            return Ok(Runtime { dim3, get_buffer, launch_device, record: None });
        }
        let words: [BasicMetadataTypeEnum<'_>; 3] = [word.into(); 3];
        let record = context.void_type().fn_type(&words, false);
        let record = (symbol::internal(RECORD_LOST_LAUNCH), record, GRIDLETS);
        let [record, get_buffer, launch_device] = callees(self.module, [record, buffer, launch])?;
        Ok(Runtime { dim3, get_buffer, launch_device, record: Some(record) })
    }

    /// Emits the attempt. One that is not recorded keeps its position: see [`keep_position`].
    fn attempt(
        &mut self,
        builder: &Builder<'ctx>,
        launch: &Launch<'ctx>,
        is_recorded: bool,
    ) -> Result<Attempt<'ctx>> {
        let attempt = || {
            if let Some((file, line)) = &launch.place {
                lines::check(file, *line)?;
            }
            if complete::is_complete(self.module) {
                return Err(yours(
                    "the launches of the module are complete; call `Launches::finish` after the last launch",
                ));
            }
            let offsets = self.check(launch)?;
            let block = builder.get_insert_block();
            let place = block.and_then(|block| Some((block, block.get_parent()?)));
            let (block, function) =
                place.ok_or_else(|| yours("the builder has no position for a launch"))?;
            if !self.has(function) {
                return Err(yours(format!(
                    "the builder is in function `{}` of another module than the one of `Launches::new`; put it into a function of \
                     that one",
                    function.get_name().to_string_lossy()
                )));
            }
            if block.get_terminator().is_some() {
                return Err(yours("the builder is not at the end of an open block"));
            }
            let runtime = self.runtime(is_recorded)?;
            let status =
                self.calls(builder, launch, function, &offsets, &runtime).map_err(building)?;
            Ok(Attempt { status, function, record: runtime.record })
        };
        attempt().map_err(|error| located(error, builder, launch))
    }

    /// Whether a function is one of the module.
    fn has(&self, function: FunctionValue<'ctx>) -> bool {
        let name = function.get_name().to_string_lossy();
        // A search of all functions, for one without a name, would take long in modules with many launches.
        self.module.get_function(&name) == Some(function)
            || name.is_empty() && self.module.get_functions().any(|known| known == function)
    }

    /// Checks a launch, and gives the offset of each argument in the parameter buffer.
    fn check(&self, launch: &Launch<'ctx>) -> Result<Vec<u64>> {
        let name = launch.kernel.get_name().to_string_lossy().into_owned();
        if !self.has(launch.kernel) {
            return Err(yours(format!("kernel `{name}` belongs to another module")));
        }
        let kernel = llvm::Value::of(&launch.kernel);
        if !kernels::is_kernel(kernel) {
            return Err(yours(format!("`{name}` is not a kernel; call `mark_kernel` on it")));
        }
        let parameters = kernels::parameters(kernel);
        if parameters.len() != launch.arguments.len() {
            return Err(yours(format!(
                "kernel `{name}` has {} parameter(s), but is launched with {} argument(s)",
                parameters.len(),
                launch.arguments.len()
            )));
        }
        let (mut offsets, mut end) = (vec![], 0);
        for (parameter, argument) in parameters.iter().zip(&launch.arguments) {
            if [parameter.ty, llvm::Value::of(argument).ty()].into_iter().any(depth::is_too_deep) {
                return Err(yours(format!(
                    "the type of parameter `{}` of kernel `{name}`, or of its argument, nests more than {MAX_NESTING} deep; \
                     pass a pointer",
                    parameter.name
                )));
            }
            let given = argument.get_type().print_to_string().to_string();
            let declared = parameter.ty.print();
            let declared = declared.split(" = type").next().unwrap_or_default();
            let given = given.split(" = type").next().unwrap_or_default();
            if given != declared {
                return Err(yours(format!(
                    "parameter `{}` of kernel `{name}` is `{declared}`, but the argument is `{given}`",
                    parameter.name
                )));
            }
            let extent = parameter.extent().ok_or_else(|| {
                yours(format!("a launch cannot pass `{}`, a `{declared}`", parameter.name))
            })?;
            if let Some(memory) = local::passed(llvm::Value::of(argument), parameter) {
                return Err(yours(format!(
                    "the argument for `{}` of kernel `{name}` is the address of {memory}, which the child grid cannot reach; \
                     pass the value itself, or a pointer to device memory",
                    parameter.name
                )));
            }
            let offset = u64::next_multiple_of(end, extent.alignment.max(1));
            offsets.push(offset);
            end = offset + extent.size;
        }
        if end > u64::from(MAX_PARAMETER_BYTES) {
            return Err(yours(format!(
                "the parameters of kernel `{name}` take {end} bytes; a launch passes at most {MAX_PARAMETER_BYTES}"
            )));
        }
        let words = launch.grid.iter().chain(&launch.block).chain(&launch.shared);
        if launch.grid.len() > 3 || launch.block.len() > 3 {
            return Err(yours("a grid and a block have at most three extents"));
        }
        if words.into_iter().any(|value| value.get_type().get_bit_width() != 32) {
            return Err(yours("the extents and the shared memory of a launch are `i32`"));
        }
        if let LaunchStream::Handle(handle) = launch.stream
            && handle.get_type().get_address_space() != AddressSpace::default()
        {
            return Err(yours(format!(
                "the handle of a stream is a `ptr`, but that of this launch is a `{}`",
                handle.get_type().print_to_string().to_string()
            )));
        }
        let constant = |value: &IntValue<'ctx>| value.get_zero_extended_constant().map(i128::from);
        let sizes = |values: &[IntValue<'ctx>]| values.iter().map(constant).collect::<Vec<_>>();
        let bounds = kernels::launch_bounds(kernel).map(|bounds| (&*name, bounds.max_threads));
        let mut problems = extents::grid(&sizes(&launch.grid));
        problems.extend(extents::block(&sizes(&launch.block), bounds));
        problems.extend(launch.shared.as_ref().and_then(constant).and_then(extents::shared));
        let problem = problems.into_iter().next().map(|problem| {
            let note = problem.note.map_or_else(String::new, |note| format!("; {note}"));
            problem.message + &note
        });
        // Extents that are not given are 1.
        let all = |values: &[IntValue<'ctx>]| {
            let mut all = sizes(values);
            all.resize(3, Some(1));
            all
        };
        let mismatch = || bounds::mismatch(kernel, &all(&launch.grid), &all(&launch.block));
        if let Some(problem) = problem.or_else(mismatch) {
            return Err(yours(format!("a launch of kernel `{name}` cannot succeed: {problem}")));
        }
        Ok(offsets)
    }

    fn calls(
        &self,
        builder: &Builder<'ctx>,
        launch: &Launch<'ctx>,
        function: FunctionValue<'ctx>,
        offsets: &[u64],
        runtime: &Runtime<'ctx>,
    ) -> std::result::Result<IntValue<'ctx>, BuilderError> {
        let context = self.module.get_context();
        let (word, wide) = (context.i32_type(), context.i64_type());
        let pointer = context.ptr_type(AddressSpace::default());
        let extents = |given: &[IntValue<'ctx>]| {
            let mut value: StructValue<'ctx> = runtime.dim3.get_undef();
            for axis in 0..3 {
                let extent = given.get(axis as usize).copied();
                let extent = extent.unwrap_or_else(|| word.const_int(1, false));
                let next = builder.build_insert_value(value, extent, axis, "extent")?;
                value = next.into_struct_value();
            }
            Ok::<_, BuilderError>(value)
        };
        let arguments: [BasicMetadataValueEnum<'ctx>; 4] = [
            launch.kernel.as_global_value().as_pointer_value().into(),
            extents(&launch.grid)?.into(),
            extents(&launch.block)?.into(),
            launch.shared.unwrap_or_else(|| word.const_zero()).into(),
        ];
        let buffer_call = builder.build_call(runtime.get_buffer, &arguments, "buffer")?;
        let buffer = buffer_call.try_as_basic_value().unwrap_basic().into_pointer_value();
        let [ok, end] =
            ["launch.ok", "launch.end"].map(|name| context.append_basic_block(function, name));
        let before = builder.get_insert_block();
        // NULL: the pool of pending launches is full, as CUDA documents it. GPUs and the CPU device fail the launch instead.
        let is_full = builder.build_is_null(buffer, "is_full")?;
        builder.build_conditional_branch(is_full, end, ok)?;

        builder.position_at_end(ok);
        for (offset, argument) in offsets.iter().zip(&launch.arguments) {
            let offset = wide.const_int(*offset, false);
            // SAFETY: the offset is within the buffer, which is as large as the parameters.
            let place =
                unsafe { builder.build_gep(context.i8_type(), buffer, &[offset], "argument") }?;
            builder.build_store(place, *argument)?;
        }
        let named =
            |stream: NamedStream| wide.const_int(stream.handle(), false).const_to_pointer(pointer);
        let stream = match launch.stream {
            LaunchStream::Default => pointer.const_null(),
            LaunchStream::FireAndForget => named(NamedStream::FireAndForget),
            LaunchStream::Tail => named(NamedStream::TailLaunch),
            LaunchStream::Handle(handle) => handle,
        };
        let status =
            builder.build_call(runtime.launch_device, &[buffer.into(), stream.into()], "status")?;
        if let (None, Some(at)) = (runtime.record, place(builder, launch)) {
            [buffer_call, status].into_iter().for_each(|call| keep_position(call, context, &at));
        }
        let status = status.try_as_basic_value().unwrap_basic().into_int_value();
        builder.build_unconditional_branch(end)?;

        builder.position_at_end(end);
        let result = builder.build_phi(word, "launch_status")?;
        let full = word.const_int(ERROR_LAUNCH_PENDING_COUNT_EXCEEDED as u64, false);
        if let Some(before) = before {
            result.add_incoming(&[(&full, before), (&status, ok)]);
        }
        Ok(result.as_basic_value().into_int_value())
    }
}

/// The functions of the device runtime that a launch calls.
struct Runtime<'ctx> {
    dim3: StructType<'ctx>,
    get_buffer: FunctionValue<'ctx>,
    launch_device: FunctionValue<'ctx>,
    /// The function that records a failure, if that is what happens with it.
    record: Option<FunctionValue<'ctx>>,
}

/// A launch whose status is known.
struct Attempt<'ctx> {
    status: IntValue<'ctx>,
    /// The function around it.
    function: FunctionValue<'ctx>,
    /// As in [`Runtime`].
    record: Option<FunctionValue<'ctx>>,
}

/// Whose functions a launch calls, for messages.
const GRIDLETS: &str = "a function of Gridlet";
const CUDAS: &str = "a function of CUDA's device runtime";

/// A mistake of the caller, with the position of the launch.
fn located(error: Error, builder: &Builder<'_>, launch: &Launch<'_>) -> Error {
    let place = place(builder, launch).filter(|(file, line)| lines::check(file, *line).is_ok());
    match (error, place) {
        (Error::Invalid(why), Some((file, line))) => {
            let why = why.strip_prefix(YOURS).unwrap_or(&why);
            yours(format!("{file}:{line}: {why}"))
        }
        (other, _) => other,
    }
}

/// The position of a launch: the caller's, otherwise that of the builder's instructions.
fn place(builder: &Builder<'_>, launch: &Launch<'_>) -> Option<(String, u32)> {
    if launch.place.is_some() {
        return launch.place.clone();
    }
    let at = llvm::builder_position(builder).filter(|at| !at.file.is_empty())?;
    Some((at.file, at.line))
}

/// How errors about mistakes of the caller start.
const YOURS: &str = "your module: ";

/// A mistake of the caller.
pub(super) fn yours(message: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("{YOURS}{message}"))
}

pub(super) fn building(error: BuilderError) -> Error {
    yours(error)
}
