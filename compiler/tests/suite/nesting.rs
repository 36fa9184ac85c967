//! Types of other compilers' modules that nest too deep: errors instead of a stack that overflows.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::arch::CudaArch;
use gridlet::modules::{Launch, Launches, Own, new_kernel};
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
