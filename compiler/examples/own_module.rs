//! Your own compiler on Gridlet's back end: an inkwell module whose kernel launches another kernel.
//! Gridlet provides the device runtime's interface and the layout of the arguments, writes the
//! module in the dialect that libNVVM requires, and links it.
//!
//! `cargo run -p gridlet --example own_module` prints the NVVM IR.

use gridlet::arch::CudaArch;
use gridlet::compile::{BuildOptions, Session, nvvm_text};
use gridlet::inkwell::AddressSpace;
use gridlet::inkwell::builder::BuilderError;
use gridlet::inkwell::context::Context;
use gridlet::inkwell::module::Module;
use gridlet::launch::cdp::symbols::{DIM3_STRUCT, DeviceRuntimeAbi, NamedStream, RuntimeFunction};
use gridlet::layout::{BufferLayout, ParamLayout, ParamSlot, buffer_layout};
use gridlet::link::{Cubin, check_parameters};
use gridlet::types::{Scalar, Structs, Type};

/// LLVM's number for the calling convention `ptx_kernel`.
const PTX_KERNEL: u32 = 71;

/// The parameters of `child`: `p: *mut u32, flag: u8, scale: f32`.
fn parameters() -> [Type; 3] {
    [Type::pointer_mut(Type::U32), Type::Scalar(Scalar::U8), Type::Scalar(Scalar::F32)]
}

/// Their layout in the parameter buffer of a launch.
fn layout() -> BufferLayout {
    buffer_layout(&parameters(), &Structs::new())
}

/// Builds a kernel `child` that stores `scale` as an integer if `flag` is not 0, and a kernel
/// `parent` that launches it with two blocks of 32 threads into the tail stream.
fn module<'ctx>(context: &'ctx Context, arch: CudaArch) -> Result<Module<'ctx>, BuilderError> {
    let module = context.create_module("own");
    let builder = context.create_builder();
    let pointer = context.ptr_type(AddressSpace::default());
    let (word, byte, float) = (context.i32_type(), context.i8_type(), context.f32_type());
    let nothing = context.void_type();

    let parameters = [pointer.into(), byte.into(), float.into()];
    let child = module.add_function("child", nothing.fn_type(&parameters, false), None);
    child.set_call_conventions(PTX_KERNEL);
    builder.position_at_end(context.append_basic_block(child, "entry"));
    let [p, flag, scale] = [0, 1, 2].map(|at| child.get_nth_param(at));
    if let (Some(p), Some(flag), Some(scale)) = (p, flag, scale) {
        let flag = builder.build_int_z_extend(flag.into_int_value(), word, "flag")?;
        let scale = builder.build_float_to_unsigned_int(scale.into_float_value(), word, "scale")?;
        let product = builder.build_int_mul(flag, scale, "product")?;
        builder.build_store(p.into_pointer_value(), product)?;
    }
    builder.build_return(None)?;

    // The device runtime's names depend on the architecture.
    let abi = DeviceRuntimeAbi::for_arch(arch);
    let dim3 = context.opaque_struct_type(DIM3_STRUCT);
    dim3.set_body(&[word.into(), word.into(), word.into()], false);
    let get_buffer = module.add_function(
        &abi.symbol(RuntimeFunction::GetParameterBuffer),
        pointer.fn_type(&[pointer.into(), dim3.into(), dim3.into(), word.into()], false),
        None,
    );
    let launch = module.add_function(
        &abi.symbol(RuntimeFunction::LaunchDevice),
        word.fn_type(&[pointer.into(), pointer.into()], false),
        None,
    );

    let parent = module.add_function("parent", nothing.fn_type(&[pointer.into()], false), None);
    parent.set_call_conventions(PTX_KERNEL);
    let [entry, launches, end] =
        ["entry", "launches", "end"].map(|name| context.append_basic_block(parent, name));
    builder.position_at_end(entry);
    let one = word.const_int(1, false).into();
    let extent = |x| dim3.const_named_struct(&[word.const_int(x, false).into(), one, one]).into();
    let arguments = [
        child.as_global_value().as_pointer_value().into(),
        extent(2),
        extent(32),
        word.const_zero().into(),
    ];
    let buffer = builder.build_call(get_buffer, &arguments, "buffer")?.try_as_basic_value();
    let buffer = buffer.unwrap_basic().into_pointer_value();
    // NULL: the pool of pending launches is full.
    let is_full = builder.build_is_null(buffer, "is_full")?;
    builder.build_conditional_branch(is_full, end, launches)?;

    builder.position_at_end(launches);
    let p = parent.get_nth_param(0).unwrap_or(pointer.const_null().into());
    let values = [p, byte.const_int(1, false).into(), float.const_float(7.0).into()];
    for (slot, value) in layout().slots.iter().zip(values) {
        let offset = context.i64_type().const_int(slot.offset, false);
        // SAFETY: the offset is within the buffer, which is as large as the layout.
        let place = unsafe { builder.build_gep(byte, buffer, &[offset], "argument") }?;
        builder.build_store(place, value)?;
    }
    let stream = context.i64_type().const_int(NamedStream::TailLaunch.handle(), false);
    let stream = builder.build_int_to_ptr(stream, pointer, "stream")?;
    builder.build_call(launch, &[buffer.into(), stream.into()], "status")?;
    builder.build_unconditional_branch(end)?;
    builder.position_at_end(end);
    builder.build_return(None)?;
    Ok(module)
}

/// The NVVM IR, in the dialect for the architecture.
pub(crate) fn text(arch: CudaArch) -> Result<String, Box<dyn std::error::Error>> {
    let context = Context::create();
    let module = module(&context, arch)?;
    Ok(String::from_utf8(nvvm_text(&module, arch.dialect())?.bytes)?)
}

/// The machine code, device-linked with `libcudadevrt`, after checking that the launch's parameters
/// lie where `child` reads them.
pub(crate) fn cubin(
    session: &Session,
    arch: CudaArch,
) -> Result<Cubin, Box<dyn std::error::Error>> {
    let context = Context::create();
    let module = module(&context, arch)?;
    let options = BuildOptions::for_arch(arch);
    let (ptx, _log) = session.ptx_of(&module, &options)?;
    let (cubin, _log) = session.device_link(&ptx, true, &options)?;
    let slots = layout().slots.into_iter().zip(parameters()).map(|(slot, ty)| ParamSlot {
        name: String::new(),
        ty,
        offset: slot.offset as u32,
        size: slot.size as u32,
        alignment: slot.alignment as u32,
    });
    let size = layout().size as u32;
    let child = ParamLayout { kernel: "child".into(), slots: slots.collect(), size };
    check_parameters(&cubin, [&child])?;
    Ok(cubin)
}

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", text(CudaArch::DEFAULT)?);
    let cubin = cubin(&Session::new(), CudaArch::DEFAULT)?;
    eprintln!("{} bytes of machine code", cubin.0.len());
    Ok(())
}
