//! NVVM IR of other producers (`in/modules`): how it is read, checked and described.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, Backend, BuildOptions, CpuOptions, Session};
use gridlet::modules::{self, Own};
use gridlet::nvvm::legacy::{self, LegacyOptions};
use gridlet::ptx::{PtxOptions, nvptx};
use gridlet::target::Target;
use gridlet::types::{Scalar, Type};
use gridlet_runtime::{Arg, Buffer, CpuConfig, Device, LaunchConfig, Program};
use inkwell::context::Context;

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == ending));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn legacy_text(bytes: &[u8]) -> gridlet::Result<String> {
    let context = Context::create();
    legacy::write(&modules::read(&context, "m.ll", bytes)?, &LegacyOptions::device_runtime())
}

/// Text without the names of values, which reading may change, and without blank lines.
fn shape(text: &str) -> Vec<String> {
    let word = |word: &str| match word.trim_start_matches(['(', '{', '[']).starts_with('%') {
        true => "%".to_owned(),
        false => word.to_owned(),
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

#[test]
fn legacy_text_is_read_again() {
    for file in files("out/legacy", "snap") {
        let snapshot = std::fs::read_to_string(&file).unwrap();
        let written = snapshot.splitn(3, "---\n").nth(2).unwrap();
        let again = legacy_text(written.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let third = legacy_text(again.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(shape(&again), shape(&third), "{}", file.display());
        // Reading removes casts of a type to itself, and nothing else.
        let count = |text: &str| text.lines().filter(|line| line.starts_with("  ")).count();
        let (before, after) = (count(written), count(&again));
        assert!(before.abs_diff(after) <= 8, "{}: {before} and {after}", file.display());
    }
}

#[test]
fn atomic_operations_of_the_legacy_dialect_have_device_scope() {
    let text = "target triple = \"nvptx64-nvidia-cuda\"\n\
        define void @k(i32* %p) {\n  %1 = atomicrmw add i32* %p, i32 1 seq_cst\n  ret void\n}\n\
        !nvvm.annotations = !{!0}\n!0 = !{void (i32*)* @k, !\"kernel\", i32 1}\n";
    let context = Context::create();
    let module = modules::read(&context, "m.ll", text.as_bytes()).unwrap();
    let read = module.print_to_string().to_string();
    assert!(read.contains("i32 1 syncscope(\"device\") monotonic"), "{read}");
    assert!(read.contains("define ptx_kernel void @k"), "{read}");
}

/// A pointer that leads either to a variable or to a constant table, as LLVM makes one of a `switch`. LLVM's inference of address
/// spaces crashes on it while the table has none.
#[test]
fn tables_without_an_address_space_are_compiled_by_llvm() {
    let text = "target triple = \"nvptx64-nvidia-cuda\"
        @words = addrspace(1) global [8 x i64] zeroinitializer
        @table = private unnamed_addr constant [3 x i64] [i64 16, i64 5, i64 -1]
        define ptx_kernel void @choose(ptr %out, i64 %key) {
        entry:
          %large = icmp ugt i64 %key, 2
          br i1 %large, label %end, label %small
        small:
          %in_table = getelementptr inbounds i64, ptr @table, i64 %key
          br label %end
        end:
          %from = phi ptr [ getelementptr (i8, ptr addrspacecast (ptr addrspace(1) @words to ptr), i64 24), %entry ],
                          [ %in_table, %small ]
          %value = load i64, ptr %from
          store i64 %value, ptr %out
          ret void
        }";
    let context = Context::create();
    let module = modules::read(&context, "m.ll", text.as_bytes()).unwrap();
    let options = PtxOptions::default();
    let ptx = nvptx::compile(&module, None, CudaArch::DEFAULT, &options).unwrap().0;
    assert!(ptx.contains("ld.global"), "{ptx}");
}

/// Sections for debuggers have differences of labels, which ptxas reads from PTX 7.5 on; LLVM ends over functions without a type.
#[test]
fn variables_for_debuggers_are_written_for_every_architecture() {
    let text = "target triple = \"nvptx64-nvidia-cuda\"
        define ptx_kernel void @k(ptr %p) !dbg !3 {
          store i32 1, ptr %p, !dbg !4
          ret void, !dbg !4
        }
        !llvm.dbg.cu = !{!0}
        !llvm.module.flags = !{!2}
        !0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
        !1 = !DIFile(filename: \"start.toy\", directory: \".\")
        !2 = !{i32 2, !\"Debug Info Version\", i32 3}
        !3 = distinct !DISubprogram(name: \"start\", file: !1, line: 6, unit: !0, spFlags: DISPFlagDefinition)
        !4 = !DILocation(line: 7, scope: !3)\n";
    let context = Context::create();
    let module = modules::read(&context, "m.ll", text.as_bytes()).unwrap();
    let options = PtxOptions::default().with_opt_level(0);
    for (arch, version) in [("sm_75", "7.8"), ("sm_90", "7.8"), ("sm_120", "8.7")] {
        let ptx = nvptx::compile(&module, None, arch.parse().unwrap(), &options).unwrap().0;
        assert!(ptx.contains(&format!(".version {version}\n")), "{arch}: {ptx}");
        assert!(ptx.contains(".debug_info") && ptx.contains(".loc\t1 7"), "{ptx}");
    }
}

/// LLVM 22.1 fails at a 64-bit count that is compared with 1, and branches around the sum for zero.
#[test]
fn trailing_zeros_are_counted_by_the_same_sum_for_zero() {
    let kernel = |name: &str, ty: &str, one: &str| {
        let of = ty.strip_prefix("<2 x ").map_or(ty.into(), |rest| format!("v2{}", &rest[..3]));
        format!(
            "declare {ty} @llvm.cttz.{of}({ty}, i1)
            define ptx_kernel void @{name}(ptr %out, {ty} %value) {{
              %count = call {ty} @llvm.cttz.{of}({ty} %value, i1 false)
              store {ty} %count, ptr %out
              %is_odd = icmp ule {ty} %count, {one}
              %at = getelementptr i64, ptr %out, i32 4
              store {condition} %is_odd, ptr %at
              ret void
            }}\n",
            condition = ty.replace("i8", "i1").replace("i32", "i1").replace("i64", "i1"),
        )
    };
    let text = "target triple = \"nvptx64-nvidia-cuda\"\n".to_owned()
        + &kernel("bytes", "i8", "1")
        + &kernel("words", "i32", "1")
        + &kernel("doubles", "i64", "1")
        + &kernel("pairs", "<2 x i64>", "splat (i64 1)");
    let context = Context::create();
    let module = modules::read(&context, "m.ll", text.as_bytes()).unwrap();
    for level in [0, 3] {
        let options = PtxOptions::default().with_opt_level(level);
        let ptx = nvptx::compile(&module, None, CudaArch::DEFAULT, &options).unwrap().0;
        assert_eq!(ptx.matches("popc.b64").count(), 3, "{ptx}");
        assert!(!ptx.contains("bra"), "{ptx}");
    }
}

/// A module whose kernel `start` launches `child`.
const LAUNCH: &str = concat!(
    "target triple = \"nvptx64-nvidia-cuda\"\n",
    device_runtime!(),
    "define ptx_kernel void @child(ptr %p, i32 %n) {
  ret void
}
define ptx_kernel void @start(ptr %p) {
  %b = ",
    buffer_of!("child"),
    "  store ptr %p, ptr %b
  %n = getelementptr i8, ptr %b, i64 8
  store i32 7, ptr %n
  %r = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  ret void
}
"
);

/// A module as unoptimised code has it: the buffer goes through a variable.
fn kept_in_variables(text: &str) -> String {
    text.replace("  %b = call", "  %slot = alloca ptr\n  %asked = call").replace(
        "  store ptr %p, ptr %b\n",
        "  store ptr %asked, ptr %slot\n  %b = load ptr, ptr %slot\n  store ptr %p, ptr %b\n",
    )
}

/// All findings about a module, or the error with which reading it ends.
fn findings(text: &str, arch: &str) -> String {
    let context = Context::create();
    let arch: CudaArch = arch.parse().unwrap();
    match Own::read(&context, "m.ll", text.as_bytes()).and_then(|own| own.check(arch)) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_correct_launch_has_no_findings() {
    for arch in ["sm_90", "sm_100"] {
        assert_eq!(findings(LAUNCH, arch), "");
        assert_eq!(findings(&kept_in_variables(LAUNCH), arch), "");
    }
    let private = LAUNCH.replace("@cuda", "@__cudaCDP2");
    for arch in ["sm_75", "sm_89", "sm_90"] {
        assert_eq!(findings(&private, arch), "", "{arch}");
    }
}

/// The padding of a struct that is passed by value is not stored.
#[test]
fn a_struct_may_have_padding() {
    let text = LAUNCH.replace("ptr %p, i32 %n)", "ptr %p, ptr byval([16 x i8]) align 8 %n)");
    assert_eq!(findings(&text, "sm_90"), "");
    let fields = LAUNCH
        .replace("ptr %p, i32 %n)", "ptr %p, ptr byval({ i32, double }) align 8 %n)")
        .replace(
            "  %r = call",
            "  %d = getelementptr i8, ptr %b, i64 16\n  store double 1.0, ptr %d\n  %r = call",
        );
    assert_eq!(findings(&fields, "sm_90"), "");
    let forgotten = fields.replace("  store double 1.0, ptr %d\n", "");
    let found = findings(&forgotten, "sm_90");
    assert!(found.contains("does not store the parameter `n`, bytes 8 to 23"), "{found}");
    let nothing = text.replace("  store i32 7, ptr %n\n", "");
    let found = findings(&nothing, "sm_90");
    assert!(found.contains("does not store the parameter `n`, bytes 8 to 23"), "{found}");
}

#[test]
fn mistakes_that_no_tool_notices_are_found() {
    let without_kernels = LAUNCH.replace("ptx_kernel ", "");
    let cases = [
        (
            "sm_90",
            LAUNCH.replace("define ptx_kernel void @child", "define void @child"),
            "m.ll:9: `start` launches `child`, which is not marked as a kernel",
        ),
        ("sm_90", without_kernels, "no function is a kernel"),
        (
            "sm_90",
            LAUNCH
                .replace("cudaLaunchDeviceV2(ptr, ptr)", "cudaLaunchDeviceV2(ptr, ptr, i32)")
                .replace("ptr null)", "ptr null, i32 0)"),
            "`cudaLaunchDeviceV2` has the wrong signature",
        ),
        (
            "sm_90",
            LAUNCH.replace("ptr %p, i32 %n", "ptr byval([4096 x i8]) %p, i32 %n"),
            "whose parameters take 4100 bytes; a launch passes at most 4096",
        ),
        (
            "sm_90",
            LAUNCH.replace("i64 8\n", "i64 16\n"),
            "stores bytes 16 to 19 of its parameters, where it has none",
        ),
        (
            "sm_90",
            LAUNCH.replace("  store i32 7, ptr %n\n", ""),
            "does not store the parameter `n`, bytes 8 to 11",
        ),
        ("sm_90", LAUNCH.replace("store i32 7", "store i64 7"), "stores bytes 8 to 15"),
        ("sm_90", LAUNCH.replace("i64 8\n", "i64 -4\n"), "stores bytes -4 to -1"),
        (
            "sm_90",
            kept_in_variables(&LAUNCH.replace("i64 8\n", "i64 16\n")),
            "stores bytes 16 to 19 of its parameters, where it has none",
        ),
        (
            "sm_90",
            kept_in_variables(&LAUNCH.replace("  store i32 7, ptr %n\n", "")),
            "does not store the parameter `n`, bytes 8 to 11",
        ),
        (
            "sm_90",
            LAUNCH.replace("ptr %p, i32 %n)", "ptr %p, ptr byval({ i32 }) align 8 %n)"),
            "m.ll:5: kernel `child`: the parameter `n` has the type `{ i32 }`; its size is no multiple",
        ),
        (
            "sm_90",
            LAUNCH.replace("{ i32 1, i32 1, i32 1 }, i32 0)", "{ i32 1025, i32 1, i32 1 }, i32 0)"),
            "`start` launches `child`, which cannot succeed: a block of 1025 threads",
        ),
        (
            "sm_90",
            LAUNCH
                .replace(
                    ", %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)",
                    ", %struct.dim3 %size, i32 0)",
                )
                .replace(
                    "  %b = ",
                    "  %y = insertvalue %struct.dim3 undef, i32 2, 1\n  \
                     %xy = insertvalue %struct.dim3 %y, i32 2000, 0\n  \
                     %size = insertvalue %struct.dim3 %xy, i32 1, 2\n  %b = ",
                ),
            "m.ll:12: `start` launches `child`, which cannot succeed: a block of 4000 threads",
        ),
        ("sm_90", LAUNCH.replace("@child", "@0"), "a kernel has no name; give it one"),
        (
            "sm_90",
            LAUNCH.replace("@start", "@child.1"),
            "name of the kernel `child.1`; rename it; LLVM names a second `child` so",
        ),
        (
            "sm_80",
            LAUNCH.to_owned(),
            "m.ll:3: on sm_80, `cudaLaunchDeviceV2` means the old interface",
        ),
        (
            "sm_90",
            LAUNCH.replace("nvptx64-nvidia-cuda", "x86_64-linux-gnu"),
            "its target is `x86_64",
        ),
        (
            "sm_90",
            format!("target datalayout = \"E-p:32:32\"\n{LAUNCH}"),
            "its data layout has `E`",
        ),
        (
            "sm_90",
            LAUNCH.replace("@start", "@\"start.it\""),
            "m.ll:8: PTX cannot spell the name of the kernel `start.it`",
        ),
        (
            "sm_90",
            format!(
                "{LAUNCH}declare i64 @llvm.x86.rdtsc()\ndefine i64 @f() {{\n  \
                 %x = call i64 @llvm.x86.rdtsc()\n  ret i64 %x\n}}\n"
            ),
            "m.ll:18: `llvm.x86.rdtsc` is an intrinsic of another target",
        ),
        (
            "sm_90",
            LAUNCH.replace(
                "  store i32 7, ptr %n\n",
                "  call ptx_kernel void @child(ptr %p, i32 1)\n",
            ),
            "m.ll:12: the kernel `child` is called, but PTX only launches kernels",
        ),
        (
            "sm_90",
            format!("{LAUNCH}define ptx_kernel i32 @value() {{\n  ret i32 1\n}}\n"),
            "m.ll:16: the kernel `value` returns a value of the type `i32`",
        ),
        (
            "sm_90",
            format!(
                "{LAUNCH}declare i32 @llvm.nvvm.more()\ndefine i32 @f() {{\n  \
                 %x = call i32 @llvm.nvvm.more()\n  ret i32 %x\n}}\n"
            ),
            "has no intrinsic `llvm.nvvm.more`; correct the name",
        ),
        ("sm_90", LAUNCH.replace("ret void", "br label %nowhere"), "not a module that LLVM"),
        (
            "sm_90",
            LAUNCH
                .replace("  store i32 7, ptr %n\n", "")
                .replace("ptr null)\n  ret", "ptr null)\n  store i32 7, ptr %n\n  ret"),
            "m.ll:13: `start` stores a parameter of `child` after its launch",
        ),
        (
            "sm_90",
            LAUNCH.replace("  store ptr %p, ptr %b\n", "  store i32 7, ptr %n\n"),
            "not valid LLVM IR",
        ),
    ];
    for (arch, text, wanted) in cases {
        let found = findings(&text, arch);
        assert!(wanted.split('|').any(|wanted| found.contains(wanted)), "{wanted}:\n{found}");
        assert!(found.starts_with("m.ll:"), "{found}");
        assert!(!found.contains("bug in Gridlet"), "{found}");
    }
}

/// The position is that of the store, in the text or in the source that the module's debug information names.
/// LLVM leaves out calls of functions that write nothing.
#[test]
fn launches_in_functions_that_promise_to_write_nothing_are_found() {
    // `start` calls `outer`, which calls `inner`, which launches.
    let nested = LAUNCH
        .replace("define ptx_kernel void @start(ptr %p)", "define void @inner(ptr %p) #0")
        + "define void @outer(ptr %p) #1 {\n  call void @inner(ptr %p) #2\n  ret void\n}\n\
           define ptx_kernel void @start(ptr %p) #3 {\n  call void @outer(ptr %p)\n  ret void\n}\n";
    let with = |attributes: [&str; 4]| {
        let groups = attributes.iter().enumerate();
        let groups: String =
            groups.map(|(at, list)| format!("attributes #{at} = {{ {list} }}\n")).collect();
        findings(&(nested.clone() + &groups), "sm_90")
    };
    let right = "nounwind willreturn";
    for none in ["memory(none)", "memory(read)", "memory(argmem: readwrite)", "readnone"] {
        let list = format!("nounwind willreturn {none}");
        for (at, wanted) in [(0, "m.ll:8: `inner`"), (1, "`outer`"), (2, "this call of `inner`")] {
            let mut attributes = [right; 4];
            attributes[at] = &list;
            let found = with(attributes);
            let wanted = format!("{wanted} launches a kernel, but has an attribute");
            assert!(found.contains(&wanted) && found.lines().count() == 1, "{none}: {found}");
        }
        // Nobody calls the kernel.
        assert_eq!(with([right, right, right, &list]), "");
    }
    for some in
        ["memory(readwrite)", "memory(inaccessiblemem: write)", "memory(write, argmem: none)"]
    {
        assert_eq!(with([some; 4]), "", "{some}");
    }
    let declared = LAUNCH
        .replace("@cudaLaunchDeviceV2(ptr, ptr)", "@cudaLaunchDeviceV2(ptr, ptr) memory(none)");
    assert!(
        declared != LAUNCH
            && findings(&declared, "sm_90").contains("`cudaLaunchDeviceV2` launches")
    );
}

#[test]
fn definitions_of_the_device_runtime_are_refused() {
    let own = "define i32 @cudaLaunchDeviceV2(ptr %b, ptr %s) {\n  ret i32 0\n}\n";
    let text = LAUNCH.replace("declare i32 @cudaLaunchDeviceV2(ptr, ptr)\n", own);
    let wanted = "the module defines `cudaLaunchDeviceV2`, which CUDA's device runtime defines";
    assert!(text != LAUNCH && findings(&text, "sm_90").contains(wanted));
    let context = Context::create();
    let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
    let error = own.cpu_program().err().unwrap().to_string();
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn addresses_that_a_child_grid_cannot_reach_are_found() {
    let stores = |value: &str| {
        let store = format!("  store ptr {value}, ptr %b\n");
        LAUNCH
            .replace("@start(ptr %p) {\n", "@start(ptr %p) {\n  %v = alloca [4 x i32]\n")
            .replace("  store ptr %p, ptr %b\n", &store)
            + "@s = internal addrspace(3) global i32 undef\n"
    };
    let before = |code: &str, value: &str| {
        stores(value)
            .replace("  store ptr", &format!("  {}\n  store ptr", code.replace('\n', "\n  ")))
    };
    let local = "`start` passes the address of a local variable as `p` to `child`";
    let shared = "m.ll:11: `start` passes the address of shared memory as `p` to `child`";
    let through =
        "inttoptr (i64 ptrtoint (ptr addrspacecast (ptr addrspace(3) @s to ptr) to i64) to ptr)";
    let number = "%x = ptrtoint ptr %v to i64";
    let added = "%x = ptrtoint ptr %v to i64\n%y = add i64 %x, 4";
    let address = "%at = inttoptr i64 %p to ptr";
    // Stores a number in the place of `%v`.
    let numbers = |text: &str, number: &str| {
        text.replace("store ptr %v, ptr %b", &format!("store i64 {number}, ptr %b"))
    };
    // The child takes a number, with which it does something.
    let takes = |text: &str, code: &str| {
        text.replace(
            "@child(ptr %p, i32 %n) {\n",
            &format!("@child(i64 %p, i32 %n) {{\n  {code}\n"),
        )
    };
    let mixed = "%c = icmp eq ptr %p, null\n%x = select i1 %c, ptr %v, ptr";
    let kept = "%kept = alloca ptr\nstore ptr %v, ptr %kept\n%x = load ptr, ptr %kept";
    let cases = [
        (stores("%v"), format!("m.ll:11: {local}")),
        (before("%x = getelementptr i8, ptr %v, i64 4", "%x"), format!("m.ll:12: {local}")),
        (before(&format!("{mixed} %v"), "%x"), format!("m.ll:13: {local}")),
        (before(kept, "%x"), format!("m.ll:14: {local}")),
        (stores("addrspacecast (ptr addrspace(3) @s to ptr)"), "address of shared memory".into()),
        // Through numbers.
        (stores(through), shared.into()),
        (numbers(&stores("%v"), "ptrtoint (ptr addrspace(3) @s to i64)"), shared.into()),
        (numbers(&before(number, "%v"), "%x"), format!("m.ll:12: {local}")),
        (numbers(&before(added, "%v"), "%y"), format!("m.ll:13: {local}")),
        (takes(&numbers(&before(number, "%v"), "%x"), address), format!("m.ll:13: {local}")),
        // What may be right is not refused. The child does not use the number as an address.
        (takes(&numbers(&before(number, "%v"), "%x"), "%at = add i64 %p, 1"), String::new()),
        (before(&format!("{mixed} %p"), "%x"), String::new()),
        (before(&kept.replace("ptr %v,", "ptr %p,"), "%x"), String::new()),
        (before("store ptr %p, ptr %v\n%x = load ptr, ptr %p", "%x"), String::new()),
    ];
    for (text, wanted) in cases {
        let found = findings(&text, "sm_90");
        assert!(found.contains(&wanted) && found.is_empty() == wanted.is_empty(), "{text}{found}");
    }
    let lines = r#"
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "start.toy", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "start", file: !1, line: 3, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 7, scope: !3)
"#;
    let text = stores("%v").replace("@start(ptr %p) {", "@start(ptr %p) !dbg !3 {");
    let text =
        text.replace("  store ptr %v, ptr %b\n", "  store ptr %v, ptr %b, !dbg !4\n") + lines;
    let found = findings(&text, "sm_90");
    assert!(found.starts_with(&format!("m.ll: start.toy:7: {local}")), "{found}");
}

/// Without turns, CUDA's device runtime hangs when lanes of a warp launch into the tail stream at the same time.
#[test]
fn tail_launches_of_other_compilers_take_turns() {
    let turns = |text: &str| {
        let context = Context::create();
        let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
        own.check(CudaArch::DEFAULT).unwrap();
        assert_eq!(own.cpu_program().is_ok(), !text.contains("call void %f"));
        let text = own.module().print_to_string().to_string();
        let calls = |name: &str| text.matches(&format!("call void @{name}(")).count();
        let wrapped = text.matches("@own.gridlet.turn.cudaLaunchDeviceV2(").count();
        (calls("own.gridlet.open_turns"), wrapped, own.launches().to_vec())
    };
    let tail = LAUNCH.replace("ptr null)", "ptr inttoptr (i64 3 to ptr))");
    let launched = vec![vec![], vec!["child".to_owned()]];
    // The call and the definition.
    assert_eq!(turns(&tail), (1, 2, launched.clone()));
    assert_eq!(turns(LAUNCH), (0, 0, launched.clone()));
    let fire = tail.replace("i64 3 to", "i64 4 to");
    assert_eq!(turns(&fire), (0, 0, launched.clone()));
    let instruction = LAUNCH
        .replace("  %r = call", "  %t = inttoptr i64 3 to ptr\n  %r = call")
        .replace("ptr null)", "ptr %t)");
    assert_eq!(turns(&instruction), (1, 2, launched.clone()));

    // A block of one thread.
    let bounded = |bound: &str| {
        tail.replace("@start(ptr %p) {", &format!("@start(ptr %p) \"nvvm.maxntid\"=\"{bound}\" {{"))
    };
    assert_eq!(turns(&bounded("1")), (0, 0, launched.clone()));
    assert_eq!(turns(&bounded("1,1,1")), (0, 0, launched.clone()));
    assert_eq!(turns(&bounded("1,2")), (1, 2, launched.clone()));

    // Other kernels of the module take turns only in functions that `start` may call.
    let (before, start) = tail.split_once("define ptx_kernel void @start").unwrap();
    let start = format!("define ptx_kernel void @start{start}");
    let other = LAUNCH.split_once("define ptx_kernel void @start").unwrap().1;
    let other = format!("define ptx_kernel void @other{other}");
    let both = [launched.clone(), vec![vec!["child".to_owned()]]].concat();
    assert_eq!(turns(&format!("{tail}{other}")), (1, 2, both.clone()));
    let called = other.replace("ptx_kernel ", "");
    let through =
        "define ptx_kernel void @through(ptr %p) {\n  call void @other(ptr %p)\n  ret void\n}\n";
    assert_eq!(turns(&format!("{tail}{called}{through}")), (1, 2, both.clone()));
    let calls = start.replace("  ret void", "  call void @other(ptr %p)\n  ret void");
    assert_eq!(turns(&format!("{before}{calls}{called}{through}")), (2, 3, both.clone()));
    // A pointer may be that of each function.
    let pointer = "define ptx_kernel void @pointer(ptr %p, ptr %f) {\n  call void %f(ptr %p)\n  ret void\n}\n";
    let all = [both, vec![vec![]]].concat();
    assert_eq!(turns(&format!("{}{called}{through}{pointer}", bounded("1"))), (3, 3, all));
    // Lines are those of the text.
    let wrong = tail.replace("i64 8\n", "i64 16\n");
    let found = findings(&wrong, "sm_90");
    assert!(found.starts_with("m.ll:9: `start` launches `child`, and stores bytes 16"), "{found}");
}

#[test]
fn damaged_files_are_errors() {
    let context = Context::create();
    let module = modules::read(&context, "m.ll", LAUNCH.as_bytes()).unwrap();
    let bitcode = module.write_bitcode_to_memory().as_slice().to_vec();
    for length in (0..bitcode.len()).step_by(bitcode.len() / 64) {
        let read = modules::read(&context, "m.bc", &bitcode[..length]);
        // Nothing is an empty module.
        assert!(read.is_err() || length == 0, "{length} of {} bytes", bitcode.len());
    }
    for seed in 0..200_usize {
        let mut damaged = bitcode.clone();
        let at = (seed * 7919) % damaged.len();
        damaged[at] ^= 1 << (seed % 8);
        let _ = modules::read(&context, "m.bc", &damaged);
    }
}

#[test]
fn changed_modules_are_described_or_refused() {
    let inputs = ["in/modules", "in/llvm"].map(|folder| files(folder, "ll")).concat();
    for file in inputs {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let count = std::env::var("GRIDLET_CHANGES").map_or(12, |count| count.parse().unwrap());
        for seed in 0..count {
            let at = (seed * 7919 + 13) % lines.len();
            let mut changed = lines.clone();
            match seed % 3 {
                0 => _ = changed.remove(at),
                1 => changed.swap(at, (at * 31 + 7) % lines.len()),
                _ => changed.insert(at, lines[(at * 17 + 5) % lines.len()]),
            }
            let text = changed.join("\n").replace("i32 1", ["i32 1", "i32 0"][seed % 2]);
            let context = Context::create();
            let Ok(own) = Own::read(&context, "m.ll", text.as_bytes()) else { continue };
            let _ = own.check(CudaArch::DEFAULT);
            let _ = artifact::describe_own(&own);
            if let Ok(program) = own.cpu_program() {
                let made = compile::cpu_llvm(program, &CpuOptions::default());
                if let Err(error @ gridlet::Error::Internal { .. }) = made {
                    panic!("{}, {seed}: {error}", file.display());
                }
            }
        }
    }
}

/// PTX passes an array of three numbers as it passes CUDA's `dim3`.
#[test]
fn sizes_of_grids_may_be_arrays_on_the_cpu() {
    let text = LAUNCH
        .replace("%struct.dim3 {", "[3 x i32] [")
        .replace("i32 1 },", "i32 1 ],")
        .replace("%struct.dim3, %struct.dim3,", "[3 x i32], [3 x i32],")
        .replace("i32 %n) {\n", "i32 %n) {\n  store i32 %n, ptr %p\n");
    let context = Context::create();
    let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
    own.check("sm_90".parse().unwrap()).unwrap();
    let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default());
    let bundle = artifact::build_own(&Session::new(), &own, &[Target::Cpu], &cuda, &cpu).unwrap();
    let device = Device::open_cpu(CpuConfig::default()).unwrap();
    let program = Program::load(&device, &bundle).unwrap();
    let mut number = Buffer::<i32>::alloc_zeroed(&device, 1).unwrap();
    let stream = device.stream().unwrap();
    let start = program.kernel("start").unwrap();
    stream.launch(&start, &LaunchConfig::new(1, 1), &[Arg::from(&mut number)]).unwrap();
    stream.synchronize(Duration::from_secs(60)).unwrap();
    assert_eq!(number.to_vec().unwrap(), [7]);
}

/// Each of `count` kernels launches the next with its pointer, and the last stores `i16`s.
fn chain(count: usize) -> String {
    let mut text = String::from(device_runtime!());
    let one = one!();
    for (at, next) in (0..count).zip(1..) {
        text += &format!(
            "define ptx_kernel void @k{at}(ptr %p) {{\n  \
             %b = call ptr @cudaGetParameterBufferV2(ptr @k{next}, {one}, {one}, i32 0)\n  \
             store ptr %p, ptr %b\n  \
             %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)\n  ret void\n}}\n"
        );
    }
    text + &format!(
        "define ptx_kernel void @k{count}(ptr %p) {{\n  store i16 1, ptr %p\n  ret void\n}}\n"
    )
}

#[test]
fn what_a_pointer_points_to_is_found_along_chains_and_circles_of_launches() {
    let types = |text: &str| {
        let context = Context::create();
        let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
        let buffers = own.parameter_buffers();
        buffers.map(|buffer| buffer.slots[0].ty.clone()).collect::<Vec<_>>()
    };
    let shorts = Type::pointer_mut(Type::Scalar(Scalar::I16));
    assert_eq!(types(&chain(3)), vec![shorts.clone(); 4]);
    // The last launches the first, so all point to the same.
    let last = "  store i16 1, ptr %p\n";
    let circle = chain(3)
        .replace(last, "")
        .replace("@k1,", "@k3,")
        .replace("@k0(ptr %p) {\n", &format!("@k0(ptr %p) {{\n{last}"));
    let bytes = Type::pointer_mut(Type::Scalar(Scalar::U8));
    assert_eq!(types(&circle), [shorts.clone(), bytes.clone(), bytes.clone(), bytes.clone()]);
    let circle = chain(3).replace("@k3,", "@k0,");
    assert_eq!(types(&circle), [bytes.clone(), bytes.clone(), bytes.clone(), shorts.clone()]);
    let circle = circle.replace("@k1(ptr %p) {\n", "@k1(ptr %p) {\n  store i16 2, ptr %p\n");
    assert_eq!(types(&circle), vec![shorts.clone(); 4]);
    // Another type in the circle leaves none.
    let both = circle.replace("@k2(ptr %p) {\n", "@k2(ptr %p) {\n  store float 2.0, ptr %p\n");
    assert_eq!(types(&both), [bytes.clone(), bytes.clone(), bytes, shorts]);
}

/// A search of its own for each kernel would take seconds.
#[test]
fn long_chains_of_launches_take_linear_time() {
    let read = |count: usize| {
        let text = chain(count);
        let start = std::time::Instant::now();
        let context = Context::create();
        assert_eq!(
            Own::read(&context, "m.ll", text.as_bytes()).unwrap().launches().len(),
            count + 1
        );
        start.elapsed()
    };
    let (short, long) = (read(500), read(4000));
    assert!(long < short * 30, "{short:?}, {long:?}");
}

/// LLVM's triple for GPUs is not libNVVM's. Functions that nothing defines are the linker's to find.
#[test]
fn what_only_the_tools_notice_is_explained() {
    let session = Session::new();
    if let Err(error) = session.libnvvm() {
        assert!(std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_none(), "{error}");
        eprintln!("SKIPPED: needs libNVVM: {error}");
        return;
    }
    let build = |text: &str, arch: &str, backend| {
        let context = Context::create();
        let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
        let targets = [arch.parse::<Target>().unwrap()];
        let cuda = BuildOptions::default().with_backend(backend);
        artifact::build_own(&session, &own, &targets, &cuda, &CpuOptions::portable())
    };
    let triple = LAUNCH.replace("nvptx64-nvidia-cuda", "nvptx64-unknown-unknown");
    let open = LAUNCH
        .replace("  store i32 7, ptr %n\n", "  call void @away()\n  store i32 7, ptr %n\n")
        + "declare void @away()\n";
    for (arch, backend) in
        [("sm_90", Backend::LibNvvm), ("sm_100", Backend::LibNvvm), ("sm_90", Backend::Nvptx)]
    {
        build(&triple, arch, backend).unwrap();
        let error = build(&open, arch, backend).unwrap_err().to_string();
        let wanted = "m.ll:17: neither the module nor one that is linked in defines `away`; give one that does with `--link`";
        assert_eq!(error, wanted);
    }
}

#[test]
fn modules_of_other_producers_are_built_for_every_device() {
    let session = Session::new();
    if let Err(error) = session.libnvvm() {
        assert!(std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_none(), "{error}");
        eprintln!("SKIPPED: needs libNVVM: {error}");
        return;
    }
    for file in files("in/modules", "ll") {
        let context = Context::create();
        let bytes = std::fs::read(&file).unwrap();
        let own = Own::read(&context, &name(&file), &bytes).unwrap();
        // As bitcode too.
        let bitcode = own.module().write_bitcode_to_memory().as_slice().to_vec();
        let other = Context::create();
        let again = Own::read(&other, &name(&file), &bitcode).unwrap();
        assert!(own.parameter_buffers().eq(again.parameter_buffers()), "{}", file.display());

        let targets = ["sm_90", "sm_100", "cpu"].map(|target| target.parse::<Target>().unwrap());
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let cuda = BuildOptions::default().with_backend(backend);
            let made =
                artifact::build_own(&session, &own, &targets, &cuda, &CpuOptions::portable());
            let made = made.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert_eq!(made.manifest().images.len(), 3);
        }
    }
}

#[test]
fn a_module_that_only_a_gpu_runs_says_why() {
    let text = LAUNCH.replace(
        "  store ptr %p",
        "  %x = call i32 asm \"mov.u32 $0, %smid;\", \"=r\"()\n  store ptr %p",
    );
    let context = Context::create();
    let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
    let error = own.cpu_program().unwrap_err().to_string();
    assert!(
        error.contains(
            "m.ll:10: the CPU device cannot run this module: function `start`: inline PTX"
        ),
        "{error}"
    );
    assert_eq!(own.launches(), [vec![], vec!["child".to_owned()]]);
    assert_eq!(own.parameter_buffers().count(), 2);
}

/// Unoptimised code accesses memory through parameters that it keeps in variables.
#[test]
fn pointers_have_the_type_of_the_accesses_through_them() {
    let text = kept_in_variables(LAUNCH).replace(
        "define ptx_kernel void @child(ptr %p, i32 %n) {\n",
        "define ptx_kernel void @child(ptr %p, i32 %n) {\n  %kept = alloca ptr\n  \
         store ptr %p, ptr %kept\n  %at = load ptr, ptr %kept\n  \
         %next = getelementptr float, ptr %at, i64 1\n  store float 1.0, ptr %next\n",
    );
    let context = Context::create();
    let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
    let program = own.cpu_program().unwrap();
    let types: Vec<_> =
        program.module.kernels.iter().map(|kernel| kernel.parameters[0].ty.clone()).collect();
    // Of the launcher's parameter, through the buffer.
    assert_eq!(types, [Type::pointer_mut(Type::Scalar(Scalar::F32)), types[0].clone()]);
}

#[test]
fn loops_may_have_any_metadata() {
    let text = "
        target triple = \"nvptx64-nvidia-cuda\"
        define ptx_kernel void @k(ptr %p) {
        entry:
          br label %again
        again:
          %i = phi i32 [ 0, %entry ], [ %next, %again ]
          store volatile i32 %i, ptr %p
          %next = add i32 %i, 1
          %ends = icmp eq i32 %next, 1024
          br i1 %ends, label %end, label %again, !llvm.loop !0
        end:
          ret void
        }
        !0 = distinct !{!0, null, !1, !2}
        !1 = !{null}
        !2 = !{!\"llvm.loop.mustprogress\"}";
    let context = Context::create();
    let module = modules::read(&context, "m.ll", text.as_bytes()).unwrap();
    let options = PtxOptions::default();
    let ptx = nvptx::compile(&module, None, CudaArch::DEFAULT, &options).unwrap().0;
    assert!(ptx.contains("st.volatile"), "{ptx}");
}
