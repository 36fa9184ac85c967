//! Your own compiler on Gridlet's back end: an inkwell module whose kernels launch kernels, to NVVM IR and to a bundle for
//! GPUs and the CPU device. The front end is a toy: `parent` launches `child`, which adds to numbers, and then itself.
//!
//! `cargo run -p gridlet --example own_module` prints the NVVM IR, and writes the bundle `own.gridlet`.

use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{BuildOptions, CpuOptions, Session, nvvm_text};
use gridlet::inkwell::{AddressSpace, IntPredicate, context::Context, module::Module};
use gridlet::modules::{self, Launch, LaunchStream, Launches, Own, SourceLines, new_kernel};
use gridlet::target::Target;
use gridlet_artifact::Artifact;

type Made<T> = anyhow::Result<T>;

/// `child(p: ptr, step: i8)` adds `step` to the number of its thread. `parent(p, depth)` launches it with two blocks of
/// four threads, and itself into the tail stream while `depth` is not 0.
pub(crate) fn module<'ctx>(context: &'ctx Context, arch: CudaArch) -> Made<Module<'ctx>> {
    let (module, builder) = (context.create_module("own.toy"), context.create_builder());
    let pointer = context.ptr_type(AddressSpace::default());
    let (word, byte) = (context.i32_type(), context.i8_type());
    let number = |value| word.const_int(value, false);
    let lines = SourceLines::new(&module, "own.toy")?;

    let child = new_kernel(&module, &builder, "child", &[pointer.into(), byte.into()])?;
    lines.at(&builder, 2)?;
    let index = modules::thread_index(&module, &builder, 0)?;
    let p = child.parameters[0].into_pointer_value();
    // SAFETY: the number of threads is that of the numbers.
    let place = unsafe { builder.build_gep(word, p, &[index], "place") }?;
    let step = builder.build_int_s_extend(child.parameters[1].into_int_value(), word, "step")?;
    let old = builder.build_load(word, place, "old")?.into_int_value();
    builder.build_store(place, builder.build_int_add(old, step, "new")?)?;
    builder.build_return(None)?;

    let parent = new_kernel(&module, &builder, "parent", &[pointer.into(), word.into()])?;
    lines.at(&builder, 7)?;
    let [again, end] =
        ["again", "end"].map(|name| context.append_basic_block(parent.function, name));
    let (p, depth) = (parent.parameters[0], parent.parameters[1].into_int_value());
    let mut launches = Launches::new(&module, arch);
    let adds = Launch::new(child.function, &[p, byte.const_int(3, false).into()])
        .grid(&[number(2)])
        .block(&[number(4)]);
    launches.emit(&builder, &adds)?;
    let is_last = builder.build_int_compare(IntPredicate::EQ, depth, number(0), "is_last")?;
    builder.build_conditional_branch(is_last, end, again)?;
    builder.position_at_end(again);
    lines.at(&builder, 9)?;
    let less = builder.build_int_sub(depth, number(1), "less")?;
    let itself = Launch::new(parent.function, &[p, less.into()]).stream(LaunchStream::Tail);
    launches.emit(&builder, &itself)?;
    builder.build_unconditional_branch(end)?;
    builder.position_at_end(end);
    builder.build_return(None)?;
    lines.finish();
    launches.finish()?;
    Ok(module)
}

/// A bundle for a GPU and for the CPU device, or for one of them.
pub(crate) fn bundle(session: &Session, arch: CudaArch, targets: &[Target]) -> Made<Artifact> {
    let context = Context::create();
    let own = Own::of(module(&context, arch)?)?;
    let (cuda, cpu) = (BuildOptions::for_arch(arch), CpuOptions::default());
    Ok(artifact::build_own(session, &own, targets, &cuda, &cpu)?)
}

#[allow(clippy::print_stdout, reason = "a program")]
fn main() -> Made<()> {
    let (context, arch) = (Context::create(), CudaArch::DEFAULT);
    let text = nvvm_text(&module(&context, arch)?, arch.dialect())?;
    print!("{}", String::from_utf8(text.bytes)?);
    Ok(bundle(&Session::new(), arch, &[Target::Cpu])?.write("own.gridlet")?)
}
