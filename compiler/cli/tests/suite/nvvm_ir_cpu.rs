//! NVVM IR on the CPU device: what the language lacks, in terms of what it has.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;

use crate::support::{Gridlet, Output, folder};

/// Runs the kernel `k` of a module with checks, with a buffer `p` that is printed, as optimised code and as it is.
fn run(text: &str, buffer: &str, more: &[&str]) -> [Output; 2] {
    let folder = folder();
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let run = ["run", "a.ll", "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1"];
    let count = buffer.split(['[', ']']).nth(1).unwrap();
    let print = format!("p:{count}");
    let arguments = ["--print", &print, "--timeout", "20", "--arg", buffer];
    let call = [&run[..], &arguments, more].concat();
    [&["-O", "3"][..], &["--check"]].map(|how| Gridlet::new(&folder).run(&[&call, how].concat()))
}

/// The printed elements of a run without findings.
fn printed(text: &str, buffer: &str, more: &[&str]) -> String {
    let outputs = run(text, buffer, more);
    let [fast, checked] = outputs.map(|output| {
        assert_eq!((output.status, output.stderr.as_str()), (0, ""), "{output:?}");
        output.stdout.split_once("p: ").unwrap().1.trim().to_owned()
    });
    assert_eq!(fast, checked);
    fast
}

#[test]
fn parts_of_parts_are_taken_out_and_put_in() {
    let text = "%s = type { i8, i64, [3 x { i16, <2 x i32> }], i32 }
define internal %s @made(i32 %x) {
  %narrow = trunc i32 %x to i16
  %a = insertvalue %s zeroinitializer, i16 %narrow, 2, 1, 0
  %b = insertvalue %s %a, i32 5, 3
  %c = insertvalue %s %b, <2 x i32> <i32 6, i32 7>, 2, 1, 1
  %d = insertvalue %s %c, { i16, <2 x i32> } { i16 8, <2 x i32> zeroinitializer }, 2, 2
  ret %s %d
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define ptx_kernel void @k(ptr %p) {
  %s = call %s @made(i32 77)
  %local = alloca %s
  call void @llvm.memset.p0.i64(ptr %local, i8 0, i64 72, i1 false)
  store %s %s, ptr %local
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %local, i64 72, i1 false)
  %narrow = extractvalue %s %s, 2, 1, 0
  %word = zext i16 %narrow to i32
  %at = getelementptr i32, ptr %p, i32 18
  store i32 %word, ptr %at
  %pair = extractvalue %s %s, 2, 1, 1
  %second = extractelement <2 x i32> %pair, i32 1
  %next = getelementptr i32, ptr %at, i32 1
  store i32 %second, ptr %next
  ret void
}
";
    let elements = printed(text, "[20]", &[]);
    // The struct takes 72 bytes; its parts are at 0, 8, 16 (of 16 bytes each, their vectors at 8) and 64.
    let words = "[0, 0, 0, 0, 0, 0, 0, 0, 77, 0, 6, 7, 8, 0, 0, 0, 5, 0, 77, 7]";
    assert_eq!(elements, words);
}

#[test]
fn copies_and_fills_have_any_size() {
    let text = "@from = private addrspace(1) constant [8 x i32] [i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8]
declare void @llvm.memcpy.p0.p1.i64(ptr, ptr addrspace(1), i64, i1)
declare void @llvm.memmove.p0.p0.i32(ptr, ptr, i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define ptx_kernel void @k(ptr %p, i64 %bytes) {
  %first = load i32, ptr %p
  store i32 %first, ptr %p
  call void @llvm.memcpy.p0.p1.i64(ptr %p, ptr addrspace(1) @from, i64 %bytes, i1 false)
  %second = getelementptr i32, ptr %p, i32 1
  %narrow = trunc i64 %bytes to i32
  call void @llvm.memmove.p0.p0.i32(ptr %second, ptr %p, i32 %narrow, i1 false)
  %tenth = getelementptr i32, ptr %p, i32 10
  call void @llvm.memset.p0.i64(ptr %tenth, i8 1, i64 %bytes, i1 false)
  call void @llvm.memmove.p0.p0.i32(ptr %p, ptr %second, i32 8, i1 false)
  call void @llvm.memmove.p0.p0.i32(ptr %tenth, ptr %second, i32 0, i1 false)
  %far = getelementptr i32, ptr %p, i32 20
  call void @llvm.memset.p0.i64(ptr %far, i8 2, i64 1000, i1 false)
  ret void
}
";
    let elements = printed(text, "[270]=fill:9", &["--arg", "32"]);
    let start = "[1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 16843009, 16843009, 16843009, 16843009, 16843009, 16843009, 16843009, 16843009, 9, 9";
    assert!(elements.starts_with(start), "{elements}");
    assert_eq!(elements.matches("33686018").count(), 250);
    // Nothing is copied.
    assert!(printed(text, "[270]=fill:9", &["--arg", "0"]).starts_with("[9, 9, 9"));
    let [_, beyond] = run(text, "[270]", &["--arg", "36"]);
    assert!(beyond.status == 4 && beyond.stderr.contains("a.ll:8"), "{beyond:?}");
}

#[test]
fn numbers_are_rounded_to_even() {
    let values = ["2.5", "-2.5", "3.5", "-0.25", "0.5", "1.0e9", "8388607.5", "-1.25"];
    let list: Vec<String> = values.iter().map(|value| format!("float {value}")).collect();
    let mut text = format!(
        "@values = private constant [8 x float] [{}]
declare float @llvm.rint.f32(float)
declare double @llvm.roundeven.f64(double)
declare half @llvm.nearbyint.f16(half)
declare float @__nv_rintf(float)
define ptx_kernel void @k(ptr %p) {{
",
        list.join(", ")
    );
    for at in 0..values.len() {
        text += &format!(
            "  %at{at} = getelementptr float, ptr @values, i32 {at}
  %x{at} = load float, ptr %at{at}
  %y{at} = call float @llvm.rint.f32(float %x{at})
  %z{at} = call float @__nv_rintf(float %x{at})
  %wide{at} = fpext float %x{at} to double
  %even{at} = call double @llvm.roundeven.f64(double %wide{at})
  %narrow{at} = fptrunc double %even{at} to float
  %one{at} = fadd float %y{at}, %z{at}
  %sum{at} = fadd float %one{at}, %narrow{at}
  %third{at} = fdiv float %sum{at}, 3.0
  %to{at} = getelementptr float, ptr %p, i32 {at}
  store float %third{at}, ptr %to{at}
"
        );
    }
    text += "  %h = call half @llvm.nearbyint.f16(half 1.5)
  %last = fpext half %h to float
  %to = getelementptr float, ptr %p, i32 8
  store float %last, ptr %to
  ret void
}
";
    let elements = printed(&text, "[9]", &[]);
    assert_eq!(elements, "[2.0, -2.0, 4.0, -0.0, 0.0, 1000000000.0, 8388608.0, -1.0, 2.0]");
}

#[test]
fn comparisons_of_three_ways_and_masks_of_addresses_are_computed() {
    let text = "declare i8 @llvm.scmp.i8.i32(i32, i32)
declare i32 @llvm.ucmp.i32.i32(i32, i32)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
define ptx_kernel void @k(ptr %p, i32 %x) {
  %signed = call i8 @llvm.scmp.i8.i32(i32 %x, i32 1)
  %wide = sext i8 %signed to i32
  store i32 %wide, ptr %p
  %unsigned = call i32 @llvm.ucmp.i32.i32(i32 %x, i32 1)
  %second = getelementptr i32, ptr %p, i32 1
  store i32 %unsigned, ptr %second
  %odd = getelementptr i8, ptr %p, i32 11
  %masked = call ptr @llvm.ptrmask.p0.i64(ptr %odd, i64 -4)
  store i32 7, ptr %masked
  ret void
}
";
    for (x, wanted) in
        [("-5", "[-1, 1, 7]"), ("1", "[0, 0, 7]"), ("6", "[1, 1, 7]"), ("0", "[-1, -1, 7]")]
    {
        assert_eq!(printed(text, "[3]", &["--arg", x]), wanted, "{x}");
    }
}

#[test]
fn sine_and_cosine_are_stored() {
    let text = "declare void @__nv_sincosf(float, ptr, ptr)
declare void @__nv_sincos(double, ptr, ptr)
define ptx_kernel void @k(ptr %p) {
  %sine = alloca float
  %cosine = alloca double
  %second = getelementptr double, ptr %p, i32 1
  call void @__nv_sincosf(float 0.0, ptr %sine, ptr %p)
  %zero = load float, ptr %sine
  %wide = fpext float %zero to double
  call void @__nv_sincos(double %wide, ptr %second, ptr %cosine)
  %one = load double, ptr %cosine
  store double %one, ptr %p
  ret void
}
";
    assert_eq!(printed(text, "[2]=fill:5", &[]), "[1.0, 0.0]");
}

#[test]
fn a_failed_assertion_is_shown() {
    let text = "@message = private constant [6 x i8] c\"x > 0\\00\"
@file = private constant [6 x i8] c\"a.toy\\00\"
@function = private constant [2 x i8] c\"k\\00\"
declare void @__assertfail(ptr, ptr, i32, ptr, i64)
define ptx_kernel void @k(ptr %p, i32 %x) {
  %is_right = icmp sgt i32 %x, 0
  br i1 %is_right, label %end, label %fail
fail:
  call void @__assertfail(ptr @message, ptr @file, i32 7, ptr @function, i64 1)
  br label %end
end:
  store i32 1, ptr %p
  ret void
}
";
    assert_eq!(printed(text, "[1]", &["--arg", "1"]), "[1]");
    for output in run(text, "[1]", &["--arg", "0"]) {
        assert_eq!(output.status, 4, "{output:?}");
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("a.toy:7") && said.contains("x > 0"), "{said}");
    }
}
