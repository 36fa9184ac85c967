//! Types of other compilers' modules that nest too deep: errors instead of a stack that overflows. Types of programs may form a
//! chain of any length.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::arch::CudaArch;
use gridlet::compile::{CpuOptions, check, cpu_llvm, cpu_object};
use gridlet::modules::{Launch, Launches, Own, new_kernel};
use gridlet::source::SourceMap;
use inkwell::context::Context;
use inkwell::types::{BasicType as _, BasicTypeEnum};

/// LLVM itself takes long to make structs with names.
const CASES: [(usize, bool); 2] = [(100_000, false), (2_000, true)];

/// A type inside so many others: arrays, or structs with names.
fn deep(context: &Context, levels: usize, is_named: bool) -> BasicTypeEnum<'_> {
    let mut ty: BasicTypeEnum<'_> = context.i32_type().into();
    for at in 0..levels {
        ty = if is_named {
            let named = context.opaque_struct_type(&format!("s{at}"));
            named.set_body(&[ty], false);
            named.into()
        } else {
            ty.array_type(1).into()
        };
    }
    ty
}

#[test]
fn modules_built_through_inkwell_with_deep_types_are_refused() {
    for (levels, is_named) in CASES {
        let context = Context::create();
        let (module, builder) = (context.create_module("p.toy"), context.create_builder());
        new_kernel(&module, &builder, "k", &[deep(&context, levels, is_named).into()]).unwrap();
        builder.build_return(None).unwrap();
        let error = Own::of(module).err().unwrap().to_string();
        let said = "the function `k` has a type that nests more than 500 deep";
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn launches_with_deep_arguments_are_refused() {
    for (levels, is_named) in CASES {
        let context = Context::create();
        let (module, builder) = (context.create_module("p.toy"), context.create_builder());
        let ty = deep(&context, levels, is_named);
        let child = new_kernel(&module, &builder, "child", &[ty.into()]).unwrap();
        builder.build_return(None).unwrap();
        new_kernel(&module, &builder, "parent", &[]).unwrap();
        let argument = match ty {
            BasicTypeEnum::ArrayType(ty) => ty.get_undef().into(),
            ty => ty.into_struct_type().get_undef().into(),
        };
        let launch = Launch::new(child.function, &[argument]).at("p.toy", 7);
        let error = Launches::new(&module, CudaArch::DEFAULT).emit(&builder, &launch);
        let error = error.unwrap_err().to_string();
        let said =
            "p.toy:7: the type of parameter `p0` of kernel `child`, or of its argument, nests";
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn text_with_deep_types_is_refused_at_its_line() {
    let mut text =
        "define ptx_kernel void @k(ptr %p) {\n  %x = load %s19999, ptr %p\n  ret void\n}\n\
                    %s0 = type { i32 }\n"
            .to_owned();
    (1..20_000).for_each(|at| text += &format!("%s{at} = type {{ i32, %s{} }}\n", at - 1));
    let context = Context::create();
    let error = Own::read(&context, "a.ll", text.as_bytes()).err().unwrap().to_string();
    let said = "a.ll:505: this type has more than 500 others inside each other";
    assert!(error.contains(said), "{error}");
}

/// Structs that each point to the one before; `kernel` has pointers to some of them, in this order.
fn chain(length: usize, variables: impl Iterator<Item = usize>) -> String {
    let structs = (1..length).map(|at| format!("struct S{at} {{ next: *mut S{} }}\n", at - 1));
    let variables = variables.map(|at| format!("let v{at} = p as *mut S{at};\n"));
    let (structs, variables): (String, String) = (structs.collect(), variables.collect());
    format!("struct S0 {{ a: u32 }}\n{structs}kernel k(p: *mut u8) {{\n{variables}}}\n")
}

#[test]
fn structs_in_chains_of_any_length_have_debug_information() {
    let options = CpuOptions::default().with_optimize(false).with_debug_lines(true);
    let last = 19_999;
    let programs = [
        ("the last", chain(last + 1, std::iter::once(last)), 1),
        // No description needs more than the one before, but LLVM may begin with the last.
        ("the first to the last", chain(4_000, 0..4_000), 3_500),
        ("the last to the first", chain(4_000, (0..4_000).rev()), 3_500),
    ];
    for (what, text, declared) in programs {
        let checked = check(SourceMap::single("chain.grid", text)).expect(what);
        let module = cpu_llvm(&checked, &options).expect(what);
        let types = module.lines().filter(|line| line.contains("name: \"S"));
        let (declarations, others): (Vec<_>, Vec<_>) =
            types.partition(|line| line.contains("DIFlagFwdDecl"));
        assert_eq!((declarations.len(), others.len()), (declared, 500), "{what}");
        cpu_object(&checked, &options).expect(what);
    }
}
