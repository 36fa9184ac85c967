//! Your own compiler on Gridlet's back end: an inkwell module whose kernels launch kernels, to NVVM IR and to a bundle for
//! GPUs and the CPU device. The front end is a toy: `parent` launches `child`, which adds to numbers, and then itself.
//!
//! `cargo run -p gridlet --example own_module` prints the NVVM IR.

use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{BuildOptions, CpuOptions, Session, nvvm_text};
use gridlet::inkwell::context::Context;
use gridlet::inkwell::module::Module;
use gridlet::inkwell::{AddressSpace, IntPredicate};
use gridlet::modules::{Launch, LaunchStream, Launches, Own, mark_kernel};
use gridlet::target::Target;
use gridlet_artifact::Artifact;

type Made<T> = Result<T, Box<dyn std::error::Error>>;

/// `child(p: ptr, step: i8)` adds `step` to the number of its thread. `parent(p, depth)` launches it with two blocks of
/// four threads, and itself into the tail stream while `depth` is not 0.
fn module<'ctx>(context: &'ctx Context, arch: CudaArch) -> Made<Module<'ctx>> {
    let module = context.create_module("own.toy");
    let builder = context.create_builder();
    let pointer = context.ptr_type(AddressSpace::default());
    let (word, byte, nothing) = (context.i32_type(), context.i8_type(), context.void_type());

    let child =
        module.add_function("child", nothing.fn_type(&[pointer.into(), byte.into()], false), None);
    mark_kernel(child);
    builder.position_at_end(context.append_basic_block(child, "entry"));
    let register = |name: &str| -> Made<_> {
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}.x");
        let function = module.get_function(&name);
        let function =
            function.unwrap_or_else(|| module.add_function(&name, word.fn_type(&[], false), None));
        Ok(builder
            .build_call(function, &[], "")?
            .try_as_basic_value()
            .unwrap_basic()
            .into_int_value())
    };
    let first = builder.build_int_mul(register("ctaid")?, register("ntid")?, "first")?;
    let index = builder.build_int_add(first, register("tid")?, "index")?;
    let p = child.get_first_param().ok_or("no parameter")?.into_pointer_value();
    // SAFETY: the number of threads is that of the numbers.
    let place = unsafe { builder.build_gep(word, p, &[index], "place") }?;
    let step = child.get_nth_param(1).ok_or("no parameter")?.into_int_value();
    let step = builder.build_int_s_extend(step, word, "step")?;
    let old = builder.build_load(word, place, "old")?.into_int_value();
    builder.build_store(place, builder.build_int_add(old, step, "new")?)?;
    builder.build_return(None)?;

    let parent =
        module.add_function("parent", nothing.fn_type(&[pointer.into(), word.into()], false), None);
    mark_kernel(parent);
    let [entry, again, end] =
        ["entry", "again", "end"].map(|name| context.append_basic_block(parent, name));
    builder.position_at_end(entry);
    let p = parent.get_first_param().ok_or("no parameter")?;
    let depth = parent.get_nth_param(1).ok_or("no parameter")?.into_int_value();
    let number = |value| word.const_int(value, false);

    // From here on, the launches.
    let mut launches = Launches::new(&module, arch);
    let adds = Launch::new(child, &[p, byte.const_int(3, false).into()]);
    let adds = adds.grid(&[number(2)]).block(&[number(4)]).at("own.toy", 7);
    launches.emit(&builder, &adds)?;
    let is_last = builder.build_int_compare(IntPredicate::EQ, depth, number(0), "is_last")?;
    builder.build_conditional_branch(is_last, end, again)?;
    builder.position_at_end(again);
    let less = builder.build_int_sub(depth, number(1), "less")?;
    let itself = Launch::new(parent, &[p, less.into()]).stream(LaunchStream::Tail).at("own.toy", 9);
    launches.emit(&builder, &itself)?;
    builder.build_unconditional_branch(end)?;
    builder.position_at_end(end);
    builder.build_return(None)?;
    launches.finish()?;
    Ok(module)
}

/// The NVVM IR, in the dialect for the architecture.
pub(crate) fn text(arch: CudaArch) -> Made<String> {
    let context = Context::create();
    Ok(String::from_utf8(nvvm_text(&module(&context, arch)?, arch.dialect())?.bytes)?)
}

/// A bundle for a GPU and for the CPU device, or for one of them.
pub(crate) fn bundle(session: &Session, arch: CudaArch, targets: &[Target]) -> Made<Artifact> {
    let context = Context::create();
    let own = Own::of(module(&context, arch)?)?;
    let (cuda, cpu) = (BuildOptions::for_arch(arch), CpuOptions::default());
    Ok(artifact::build_own(session, &own, targets, &cuda, &cpu)?)
}

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]
fn main() -> Made<()> {
    print!("{}", text(CudaArch::DEFAULT)?);
    let bundle =
        bundle(&Session::new(), CudaArch::DEFAULT, &[CudaArch::DEFAULT.into(), Target::Cpu])?;
    eprintln!("{} bytes for {} images", bundle.to_bytes()?.len(), bundle.manifest().images.len());
    Ok(())
}
