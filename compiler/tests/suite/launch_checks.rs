//! What is found about launches in modules of other compilers, beyond `modules.rs`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::arch::CudaArch;
use gridlet::diagnostics::ids;
use gridlet::modules::Own;
use inkwell::context::Context;

/// All findings about a module, or the error with which reading it ends.
fn findings(text: &str) -> String {
    let context = Context::create();
    let checked = Own::read(&context, "m.ll", text.as_bytes());
    match checked.and_then(|own| own.check(CudaArch::DEFAULT)) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// A module in which `start(p, n)` runs `code`, then stores `%p` and `%q` into a buffer for `child(p, q)` and launches it.
fn launching(code: &str, (first, second): (&str, &str)) -> String {
    [
        device_runtime!(),
        "%pair = type { ptr, i64 }
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.nvvm.ptr.shared.to.gen.p0.p3(ptr addrspace(3))
@s = internal addrspace(3) global [4 x i32] undef
@elsewhere = addrspace(1) global ptr null
define ptx_kernel void @child(%pair %p, ptr %q) {
  ret void
}
define ptx_kernel void @start(ptr %p, i64 %n) {
  %v = alloca [4 x i32]
  %pair = alloca %pair
  %second = getelementptr %pair, ptr %pair, i32 0, i32 1
  %other = alloca %pair
  %pointer = alloca ptr
",
        code,
        "\n  %b = ",
        buffer_of!("child"),
        "  ",
        first,
        "\n  %at = getelementptr i8, ptr %b, i64 16\n  ",
        second,
        "\n  %r = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)\n  ret void\n}\n",
    ]
    .concat()
}

const FIRST: &str = "store %pair zeroinitializer, ptr %b";
const SECOND: &str = "store ptr null, ptr %at";

#[test]
fn addresses_inside_structs_and_variables_are_found() {
    let local = "passes the address of a local variable as";
    let shared = "passes the address of shared memory as";
    let loaded = ("%whole = load %pair, ptr %pair\n  store %pair %whole, ptr %b", SECOND);
    let copied = ("call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %pair, i64 16, i1 false)", SECOND);
    let q = (FIRST, "store ptr %q, ptr %at");
    let both = "store i64 %n, ptr %second\n  store ptr";
    let generic = "%g = call ptr @llvm.nvvm.ptr.shared.to.gen.p0.p3(ptr addrspace(3) @s)";
    let cases: &[(&str, &str, (&str, &str))] = &[
        // Parts of a struct that is kept in a variable.
        (local, &format!("  {both} %v, ptr %pair"), loaded),
        (local, &format!("  {both} %v, ptr %pair"), copied),
        (shared, &format!("  {generic}\n  {both} %g, ptr %pair"), copied),
        (
            local,
            &format!(
                "  {both} %v, ptr %pair\n  call void @llvm.memcpy.p0.p0.i64(ptr %other, ptr %pair, i64 16, i1 false)"
            ),
            ("%whole = load %pair, ptr %other\n  store %pair %whole, ptr %b", SECOND),
        ),
        (local, &format!("  {both} %v, ptr %pair\n  %q = load ptr, ptr %pair"), q),
        (
            local,
            "  %one = insertvalue %pair undef, ptr %v, 0\n  %two = insertvalue %pair %one, i64 %n, 1\n  \
             %q = extractvalue %pair %two, 0",
            q,
        ),
        // A copy of a struct, of which a part is changed, or loaded.
        (
            local,
            "  store ptr %v, ptr %other\n  call void @llvm.memcpy.p0.p0.i64(ptr %pair, ptr %other, i64 16, i1 false)\n  store i64 %n, ptr %second",
            copied,
        ),
        (
            local,
            "  store ptr %v, ptr %other\n  call void @llvm.memcpy.p0.p0.i64(ptr %pair, ptr %other, i64 16, i1 false)\n  %q = load ptr, ptr %pair",
            q,
        ),
        (
            "",
            "  store ptr %v, ptr %other\n  call void @llvm.memcpy.p0.p0.i64(ptr %pair, ptr %other, i64 16, i1 false)\n  store ptr %p, ptr %pair\n  %q = load ptr, ptr %pair",
            q,
        ),
        // Arithmetic.
        (
            local,
            "  %x = ptrtoint ptr %v to i64\n  %m = mul i64 %n, 4\n  %y = add i64 %m, %x\n  %q = inttoptr i64 %y to ptr",
            q,
        ),
        (
            shared,
            "  %x = getelementptr i32, ptr addrspace(3) @s, i64 %n\n  %q = addrspacecast ptr addrspace(3) %x to ptr",
            q,
        ),
        (
            shared,
            &format!("  {generic}\n  store ptr %g, ptr %pointer\n  %q = load ptr, ptr %pointer"),
            q,
        ),
        // What may be right.
        ("", &format!("  {both} %p, ptr %pair"), copied),
        ("", &format!("  {both} %v, ptr %pair\n  store ptr %p, ptr %pair"), copied),
        (
            "",
            &format!(
                "  {both} %v, ptr %pair\n  call void @llvm.memset.p0.i64(ptr %pair, i8 0, i64 16, i1 false)"
            ),
            copied,
        ),
        (
            "",
            &format!("  {both} %v, ptr %pair\n  store ptr %pair, ptr addrspace(1) @elsewhere"),
            copied,
        ),
        (
            "",
            "  %x = ptrtoint ptr %v to i64\n  %y = add i64 %n, %x\n  %q = inttoptr i64 %y to ptr",
            q,
        ),
        (
            "",
            "  store ptr %v, ptr %pair\n  store i64 %n, ptr %second\n  %m = load i64, ptr %second\n  %q = inttoptr i64 %m to ptr",
            q,
        ),
        (
            "",
            "  %one = insertvalue %pair undef, ptr %v, 0\n  %two = insertvalue %pair %one, ptr %p, 0\n  \
             %q = extractvalue %pair %two, 0",
            q,
        ),
    ];
    for (wanted, code, stores) in cases {
        let found = findings(&launching(code, *stores));
        assert!(
            found.contains(wanted) && found.is_empty() == wanted.is_empty(),
            "{code}\n{stores:?}\n{found}"
        );
    }
}

/// By attributes of the child, the error about a launch of 3 blocks of 32 threads.
#[test]
fn sizes_that_the_child_requires_are_compared() {
    let cases = [
        (
            "\"nvvm.reqntid\"=\"64\"",
            "a block has 32 threads in x, but `child` requires 64 (`reqntid`)",
        ),
        (
            "\"nvvm.reqntid\"=\"32,2\"",
            "a block has 1 threads in y, but `child` requires 2 (`reqntid`)",
        ),
        ("\"nvvm.maxntid\"=\"16\"", "a block of 32 threads; the launch bounds of `child` allow 16"),
        (
            "\"nvvm.cluster_dim\"=\"2\"",
            "a grid has 3 blocks in x, but `child` runs in clusters of 2",
        ),
        ("\"nvvm.reqntid\"=\"32\" \"nvvm.cluster_dim\"=\"3,1,1\"", ""),
    ];
    for (attributes, wanted) in cases {
        let text = launching("", (FIRST, SECOND))
            .replace("ptr %q) {", &format!("ptr %q) {attributes} {{"))
            .replacen(
                "%struct.dim3 { i32 1, i32 1, i32 1 }",
                "%struct.dim3 { i32 3, i32 1, i32 1 }",
                1,
            )
            .replacen(
                "%struct.dim3 { i32 1, i32 1, i32 1 }",
                "%struct.dim3 { i32 32, i32 1, i32 1 }",
                1,
            );
        let found = findings(&text);
        assert!(found.contains(wanted) && found.is_empty() == wanted.is_empty(), "{text}{found}");
    }
}

#[test]
fn launches_through_addresses_are_refused() {
    let right = launching("", (FIRST, SECOND));
    let call = "call i32 @cudaLaunchDeviceV2(";
    let said = "the address of `cudaLaunchDeviceV2` is used";
    let table = "@table = addrspace(1) constant [1 x ptr] [ptr @cudaLaunchDeviceV2]\n";
    let cases = [
        (
            right.replace(
                "  %r = call i32 @cudaLaunchDeviceV2(",
                "  %c = icmp eq i64 %n, 0\n  %f = select i1 %c, ptr @cudaLaunchDeviceV2, ptr null\n  %r = call i32 %f(",
            ),
            said,
        ),
        (
            right.replace(
                "  %r = call i32 @cudaLaunchDeviceV2(",
                "  store ptr @cudaLaunchDeviceV2, ptr %pointer\n  %f = load ptr, ptr %pointer\n  %r = call i32 %f(",
            ),
            said,
        ),
        (right.clone() + table, said),
        (
            right.clone()
                + "@llvm.used = appending global [1 x ptr] [ptr @cudaLaunchDeviceV2], section \"llvm.metadata\"\n",
            "",
        ),
    ];
    assert!(right.contains(call));
    for (text, wanted) in cases {
        let found = findings(&text);
        assert!(found.contains(wanted) && found.is_empty() == wanted.is_empty(), "{text}{found}");
    }
}

/// Whether a module gets a record of failures.
fn has_record(text: &str) -> bool {
    let context = Context::create();
    let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
    own.module()
        .print_to_string()
        .to_string()
        .contains("call void @own.gridlet.record_lost_launch(")
}

/// A module whose kernel asks for a buffer, continues with `test`, and launches in the block `launch`.
fn tested(test: &str, after: &str) -> String {
    [
        device_runtime!(),
        "define ptx_kernel void @child() {\n  ret void\n}
define ptx_kernel void @start(ptr %p) {
  %b = ",
        buffer_of!("child"),
        "  %full = icmp eq ptr %b, null\n  ",
        test,
        "\nlaunch:\n  %r = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)\n  ",
        after,
        "\n}\n",
    ]
    .concat()
}

#[test]
fn failures_after_which_nothing_happens_are_recorded() {
    let read = "store i32 %r, ptr %p\n  ret void";
    let skips = "br i1 %full, label %end, label %launch\nend:\n  ret void";
    let cases = [
        // Both ways lead to one block.
        (
            "br label %launch",
            "%c = icmp eq i32 %r, 0\n  br i1 %c, label %end, label %end\nend:\n  ret void",
            true,
        ),
        (
            "br label %launch",
            "%c = icmp eq i32 %r, 0\n  br i1 %c, label %end, label %bad\nbad:\n  store i32 1, ptr %p\n  br label %end\nend:\n  ret void",
            false,
        ),
        (
            "br label %launch",
            "switch i32 %r, label %end [ i32 1, label %end ]\nend:\n  ret void",
            true,
        ),
        // The status is read, but not the buffer that is NULL.
        (skips, read, true),
        (
            "br i1 %full, label %end, label %launch",
            "store i32 %r, ptr %p\n  br label %end\nend:\n  store i32 1, ptr %p\n  ret void",
            true,
        ),
        (
            "br i1 %full, label %bad, label %launch\nbad:\n  br label %end",
            "store i32 %r, ptr %p\n  br label %end\nend:\n  ret void",
            true,
        ),
        // These do something, or launch all the same, which fails.
        (
            "br i1 %full, label %bad, label %launch\nbad:\n  store i32 65, ptr %p\n  ret void",
            read,
            false,
        ),
        ("br i1 %full, label %launch, label %launch", read, false),
        ("br i1 %full, label %launch, label %more\nmore:\n  br label %launch", read, false),
        (
            "br i1 %full, label %end, label %launch",
            "br label %end\nend:\n  %s = phi i32 [ 65, %0 ], [ %r, %launch ]\n  store i32 %s, ptr %p\n  ret void",
            false,
        ),
        (
            "store i1 %full, ptr %p\n  br i1 %full, label %end, label %launch\nend:\n  ret void",
            read,
            false,
        ),
    ];
    for (test, after, wanted) in cases {
        let text = tested(test, after);
        assert_eq!(has_record(&text), wanted, "{text}");
    }
}

#[test]
fn buffers_that_are_never_launched_are_warnings() {
    let warnings = |text: &str| {
        let context = Context::create();
        let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
        own.check(CudaArch::DEFAULT).unwrap();
        let sources = std::sync::Arc::clone(&own.program().sources);
        let line = |warning: &gridlet::diagnostics::Diagnostic| {
            (warning.id, sources.line(warning.labels[0].span))
        };
        own.warnings().iter().map(line).collect::<Vec<_>>()
    };
    let launched = tested("br label %launch", "store i32 %r, ptr %p\n  ret void");
    assert_eq!(warnings(&launched), []);
    let launch = "  %r = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)\n";
    let not = launched.replace(launch, "").replace("store i32 %r, ptr %p", "");
    let line = 1 + not.lines().position(|line| line.contains("%b = ")).unwrap() as u32;
    assert_eq!(warnings(&not), [(ids::UNUSED_BUFFER, line)]);
    // Another function may launch it.
    let given = not.replace("  \n  ret void", "  store ptr %b, ptr %p\n  ret void");
    assert_eq!(warnings(&given), []);
}

/// A search of the whole kernel for each launch, or for each wrong one, would take minutes.
#[test]
fn many_launches_in_a_kernel_take_linear_time() {
    let check = |count: usize, is_right: bool| {
        let mut text = String::from(device_runtime!())
            + "define ptx_kernel void @child() {\n  ret void\n}\ndefine ptx_kernel void @start() {\n";
        for at in 0..count {
            let (buffer, launch) = (buffer_of!("child"), "call i32 @cudaLaunchDeviceV2");
            text += &format!("  %b{at} = {buffer}");
            text += &if is_right { String::new() } else { format!("  store i32 1, ptr %b{at}\n") };
            text += &format!("  %r{at} = {launch}(ptr %b{at}, ptr null)\n");
        }
        text += "  ret void\n}\n";
        let start = std::time::Instant::now();
        let found = findings(&text);
        assert_eq!(
            found.lines().filter(|line| line.contains("m.ll:")).count(),
            if is_right { 0 } else { count }
        );
        start.elapsed()
    };
    for is_right in [true, false] {
        let (few, many) = (check(250, is_right), check(2000, is_right));
        assert!(many < few * 30, "{few:?}, {many:?}");
    }
}
