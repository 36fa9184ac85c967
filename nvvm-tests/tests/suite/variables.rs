//! Variables in the debug information (`-g`) of cubins and of images for the CPU, read as a debugger reads them.

use std::collections::BTreeMap;

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit};
use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::cpu::CpuOptions;
use gridlet::launch::LaunchStrategy;
use gridlet::modules;
use gridlet::program::Checked;
use gridlet::source::SourceMap;
use gridlet::toolchain::{Component, Toolchain};
use inkwell::context::Context;
use nvvm_tests::{FOR_DISASSEMBLY, nvdisasm, toolchain_or_skip};
use object::{Object, ObjectSection};

const SOURCE: &str = "\
struct Node { next: *mut Node, weights: [f32; 3], at: u32x2 }

static total: u64 = 7;

fn scale(node: Node, by: f32) -> f32 {
    let mut sum = 0.0f32;
    for i in 0u32..3 {
        let term = node.weights[i] * by;
        sum += term;
    }
    sum
}

kernel child(out: *mut f32, node: Node) {
    shared tile: [f32; 32];
    let lane = thread_idx.x;
    tile[lane] = scale(node, 2.0);
    sync_threads();
    let x = tile[lane];
    let x = x as f64;
    {
        let x = lane == 3;
        if x {
            atomic_add(&total, 1);
        }
    }
    out[lane] = x as f32;
}

kernel parent(out: *mut f32, node: Node) {
    launch child<<<1, 32>>>(out, node);
}
";

type Reader<'d> = EndianSlice<'d, LittleEndian>;
type Entry<'d> = DebuggingInformationEntry<Reader<'d>>;

/// A variable or parameter: its type in C's words, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    ty: String,
    is_parameter: bool,
    /// NVIDIA's number for its state space ("PTX Writer's Guide to Interoperability", "CUDA-Specific DWARF").
    space: Option<u64>,
    has_location: bool,
    /// The number of scopes between the function and it.
    depth: usize,
    line: u64,
}

/// Variables by function and name; of those of the same name, in order. Variables outside functions are of the function ``.
type Variables = BTreeMap<(String, String), Vec<Found>>;

struct Image<'d> {
    dwarf: Dwarf<Reader<'d>>,
}

impl<'d> Image<'d> {
    fn new(file: &'d object::File<'d>) -> Self {
        let section = |id: gimli::SectionId| {
            let data = file.section_by_name(id.name()).map_or(&[][..], |one| one.data().unwrap());
            Ok::<_, gimli::Error>(EndianSlice::new(data, LittleEndian))
        };
        Image { dwarf: Dwarf::load(section).unwrap() }
    }

    fn variables(&self) -> Variables {
        let mut found = Variables::new();
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next().unwrap() {
            let unit = self.dwarf.unit(header).unwrap();
            // The function at each depth that is open, and the depth.
            let mut function: Option<(isize, String)> = None;
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs().unwrap() {
                let depth = entry.depth();
                if function.as_ref().is_some_and(|(at, _)| depth <= *at) {
                    function = None;
                }
                match entry.tag() {
                    gimli::DW_TAG_subprogram => {
                        function = Some((depth, self.name(&unit, entry).unwrap_or_default()));
                    }
                    gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                        let Some(name) = self.name(&unit, entry) else { continue };
                        let (at, of) = function.clone().unwrap_or((depth - 1, String::new()));
                        let one = self.describe(&unit, entry, (depth - at - 1) as usize);
                        found.entry((of, name)).or_default().push(one);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn describe(&self, unit: &Unit<Reader<'d>>, entry: &Entry<'d>, depth: usize) -> Found {
        let number = |at| entry.attr_value(at).and_then(|value| value.udata_value());
        Found {
            ty: self.type_of(unit, entry),
            is_parameter: entry.tag() == gimli::DW_TAG_formal_parameter,
            space: match entry.attr_value(gimli::DW_AT_address_class) {
                Some(AttributeValue::AddressClass(class)) => Some(class.0),
                _ => None,
            },
            has_location: entry.attr_value(gimli::DW_AT_location).is_some(),
            depth,
            line: number(gimli::DW_AT_decl_line).unwrap_or(0),
        }
    }

    fn name(&self, unit: &Unit<Reader<'d>>, entry: &Entry<'d>) -> Option<String> {
        let value = entry.attr_value(gimli::DW_AT_name)?;
        Some(self.dwarf.attr_string(unit, value).unwrap().to_string_lossy().into_owned())
    }

    /// The type that an entry refers to.
    fn type_of(&self, unit: &Unit<Reader<'d>>, entry: &Entry<'d>) -> String {
        let Some(AttributeValue::UnitRef(at)) = entry.attr_value(gimli::DW_AT_type) else {
            return "void".into();
        };
        let ty = unit.entry(at).unwrap();
        match ty.tag() {
            gimli::DW_TAG_pointer_type => {
                // Pointers are generic; a number would be that of a state space.
                assert_eq!(ty.attr_value(gimli::DW_AT_address_class), None);
                format!("{}*", self.type_of(unit, &ty))
            }
            gimli::DW_TAG_array_type => {
                let mut children = unit.entries_at_offset(at).unwrap();
                children.next_dfs().unwrap();
                let range = children.next_dfs().unwrap().unwrap();
                let count = range.attr_value(gimli::DW_AT_count).and_then(|one| one.udata_value());
                format!("{}[{}]", self.type_of(unit, &ty), count.unwrap())
            }
            _ => self.name(unit, &ty).unwrap(),
        }
    }

    /// The fields of a struct: type, name, offset.
    fn fields(&self, wanted: &str) -> Vec<(String, String, u64)> {
        let mut fields = vec![];
        let header = self.dwarf.units().next().unwrap().unwrap();
        let unit = self.dwarf.unit(header).unwrap();
        let mut inside = None;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            let name = self.name(&unit, entry);
            if entry.tag() == gimli::DW_TAG_structure_type {
                inside = (name.as_deref() == Some(wanted)).then(|| entry.depth());
            } else if inside.is_some_and(|depth| entry.depth() <= depth) {
                inside = None;
            } else if inside.is_some() && entry.tag() == gimli::DW_TAG_member {
                let at = match entry.attr_value(gimli::DW_AT_data_member_location).unwrap() {
                    // DWARF 2: an expression that adds the offset.
                    AttributeValue::Exprloc(steps) => {
                        match steps.operations(unit.encoding()).next() {
                            Ok(Some(gimli::Operation::PlusConstant { value })) => value,
                            other => panic!("{other:?}"),
                        }
                    }
                    AttributeValue::Block(block) => {
                        let steps = gimli::Expression(block);
                        match steps.operations(unit.encoding()).next() {
                            Ok(Some(gimli::Operation::PlusConstant { value })) => value,
                            other => panic!("{other:?}"),
                        }
                    }
                    value => value.udata_value().unwrap(),
                };
                fields.push((self.type_of(&unit, entry), name.unwrap(), at));
            }
        }
        fields
    }
}

/// The number of functions whose frames are described. Each description must refer to the last common one, as ptxas writes them.
/// gimli does not read these sections: a kernel's return address has the register `0xffff_ffff`.
fn frames(file: &object::File<'_>) -> usize {
    let data = file.section_by_name(".debug_frame").unwrap().data().unwrap();
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
    let (mut at, mut common, mut count) = (0, None, 0);
    while at < data.len() {
        assert_eq!(data[at..at + 4], [0xff; 4], "an entry of 32-bit DWARF");
        match word(at + 12) {
            usize::MAX => common = Some(at),
            reference => {
                assert_eq!(Some(reference), common, "the description at {at}");
                count += 1;
            }
        }
        at += 12 + word(at + 4);
    }
    count
}

fn checked() -> Checked {
    compile::check(SourceMap::single("variables.grid", SOURCE)).unwrap()
}

fn one<'v>(variables: &'v Variables, function: &str, name: &str) -> &'v Found {
    let found = variables.get(&(function.to_owned(), name.to_owned()));
    found.and_then(|all| all.last()).unwrap_or_else(|| panic!("{function}/{name}: {variables:#?}"))
}

/// What both kinds of images must say.
fn check(image: &Image<'_>, tile: &str, what: &str) {
    let variables = image.variables();
    for (function, name, ty, is_parameter, line) in [
        ("scale", "node", "Node", true, 5),
        ("scale", "by", "f32", true, 5),
        ("scale", "sum", "f32", false, 6),
        ("scale", "i", "u32", false, 7),
        ("scale", "term", "f32", false, 8),
        ("child", "out", "f32*", true, 14),
        ("child", "node", "Node", true, 14),
        ("child", "tile", tile, false, 15),
        ("child", "lane", "u32", false, 16),
        ("child", "thread_idx", "dim3", false, 14),
        ("child", "block_dim", "dim3", false, 14),
        ("", "total", "u64", false, 3),
    ] {
        let found = one(&variables, function, name);
        let seen = (found.ty.as_str(), found.is_parameter, found.has_location, found.line);
        assert_eq!(seen, (ty, is_parameter, true, line), "{what}: {function}/{name}: {found:?}");
    }
    // Each `x` is in a scope of its own.
    let mut all = variables[&("child".to_owned(), "x".to_owned())].clone();
    all.sort_by_key(|one| one.line);
    let seen: Vec<_> = all.iter().map(|one| (one.ty.as_str(), one.line)).collect();
    assert_eq!(seen, [("f32", 19), ("f64", 20), ("bool", 22)], "{what}");
    assert!(all.windows(2).all(|pair| pair[0].depth < pair[1].depth), "{what}: {all:?}");
    let fields = image.fields("Node");
    let fields: Vec<_> = fields.iter().map(|(ty, name, at)| (&**ty, &**name, *at)).collect();
    let expected = [("Node*", "next", 0), ("f32[3]", "weights", 8), ("u32x2", "at", 24)];
    assert_eq!(fields, expected, "{what}");
    let fields = image.fields("u32x2");
    let expected = [("u32", "x", 0), ("u32", "y", 4)];
    assert_eq!(fields, expected.map(|(ty, name, at)| (ty.into(), name.into(), at)), "{what}");
}

/// NVIDIA's numbers for state spaces.
mod space {
    pub(super) const GLOBAL: u64 = 5;
    pub(super) const LOCAL: u64 = 6;
    pub(super) const SHARED: u64 = 8;
}

#[test]
fn cubins_describe_variables() {
    let test = "cubins_describe_variables";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    let program = checked();
    // The dialects of libNVVM, and a cubin of the linker and of the assembler.
    for (arch, backend, strategy) in [
        ("sm_90", Backend::LibNvvm, LaunchStrategy::Cdp),
        ("sm_100", Backend::LibNvvm, LaunchStrategy::Cdp),
        ("sm_90", Backend::LibNvvm, LaunchStrategy::Resident),
        ("sm_100", Backend::LibNvvm, LaunchStrategy::Resident),
        ("sm_90", Backend::Nvptx, LaunchStrategy::Cdp),
        ("sm_80", Backend::Nvptx, LaunchStrategy::Cdp),
        ("sm_120", Backend::Nvptx, LaunchStrategy::Resident),
    ] {
        let what = format!("{arch} by {backend:?}, {strategy}");
        let arch: CudaArch = arch.parse().unwrap();
        let options =
            BuildOptions::for_arch(arch).with_backend(backend).with_launch(strategy.into());
        let debug = options.with_optimize(false).with_debug_lines(true);
        let built = session.cubin(&program, &debug);
        let built = built.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(built.log, "", "{what}");
        let file = object::File::parse(&*built.cubin.0).unwrap();
        let image = Image::new(&file);
        // Resident kernels have their shared variables at addresses in dynamic shared memory.
        let is_moved = strategy == LaunchStrategy::Resident;
        check(&image, if is_moved { "f32[32]*" } else { "f32[32]" }, &what);
        let variables = image.variables();
        for (function, name, space) in [
            ("scale", "sum", space::LOCAL),
            ("scale", "node", space::LOCAL),
            ("child", "lane", space::LOCAL),
            ("child", "tile", space::SHARED),
            ("", "total", space::GLOBAL),
        ] {
            let space = if is_moved && space == space::SHARED { space::LOCAL } else { space };
            let found = one(&variables, function, name);
            assert_eq!(found.space, Some(space), "{what}: {function}/{name}");
        }
        // Variables on the stack are found by the descriptions of frames: of both kernels, their bodies and `scale`.
        assert!(frames(&file) >= 5, "{what}");
        // ptxas keeps the lines beside the variables.
        let text = nvdisasm(&toolchain, &["-g"], &built.cubin.0);
        for line in [9, 18, 31] {
            assert!(text.contains(&format!("variables.grid\", line {line}")), "{what}: {line}");
        }

        // Optimised code has lines only, as ptxas demands, and without `-g` there is nothing.
        for options in [options.with_debug_lines(true), options.with_optimize(false)] {
            let built = session.cubin(&program, &options).unwrap();
            let file = object::File::parse(&*built.cubin.0).unwrap();
            assert!(Image::new(&file).variables().is_empty(), "{what}: {options:?}");
        }
    }
}

#[test]
fn images_for_the_cpu_describe_variables() {
    let (session, program) = (Session::new(), checked());
    for optimize in [false, true] {
        for check_runs in [false, true] {
            let options = CpuOptions::default().with_debug_lines(true).with_optimize(optimize);
            let image = session.cpu_image(&program, &options.with_check(check_runs)).unwrap();
            let file = object::File::parse(&*image.0).unwrap();
            // LLVM describes in full what it does not optimise away.
            if !optimize {
                check(&Image::new(&file), "f32[32]", &format!("checked: {check_runs}"));
            }
            let variables = Image::new(&file).variables();
            for (function, name) in [("", "total"), ("child", "tile"), ("child", "out")] {
                one(&variables, function, name);
            }
        }
    }
    let image = session.cpu_image(&program, &CpuOptions::default()).unwrap();
    let file = object::File::parse(&*image.0).unwrap();
    assert!(Image::new(&file).variables().is_empty());
}

/// A module in the style of another compiler; `TYPE` is the type of its variable.
const OTHER: &str = "\
define ptx_kernel void @k(ptr %p, i32 %n) !dbg !10 {
  %n.addr = alloca i32, align 4
  store i32 %n, ptr %n.addr, align 4
    #dbg_declare(ptr %n.addr, !11, !DIExpression(), !21)
  %x = load volatile i32, ptr %n.addr, align 4, !dbg !20
  store i32 %x, ptr %p, align 4, !dbg !20
  ret void, !dbg !20
}
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!3}
!2 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !4, emissionKind: FullDebug)
!3 = !{i32 2, !\"Debug Info Version\", i32 3}
!4 = !DIFile(filename: \"a.toy\", directory: \".\")
!6 = !DISubroutineType(types: !7)
!7 = !{null}
!8 = TYPE
!10 = distinct !DISubprogram(name: \"k\", scope: !4, file: !4, line: 3, type: !6, scopeLine: 3, spFlags: DISPFlagDefinition, unit: !2)
!11 = !DILocalVariable(name: \"n\", arg: 2, scope: !12, file: !4, line: 3, type: !8)
!12 = !DILexicalBlock(scope: !10, file: !4, line: 3, column: 1)
!20 = !DILocation(line: 4, column: 3, scope: !12)
!21 = !DILocation(line: 3, column: 1, scope: !12)
";

#[test]
fn variables_of_other_compilers_reach_the_legacy_dialect() {
    let test = "variables_of_other_compilers_reach_the_legacy_dialect";
    if toolchain_or_skip(test, &[Component::LibNvvm, Component::Ptxas]).is_none() {
        return;
    }
    let session = Session::new();
    let options = BuildOptions::for_arch(CudaArch::DEFAULT).with_debug_lines(true);
    let known = "!DIBasicType(name: \"word\", size: 32, encoding: DW_ATE_unsigned)";
    let unknown =
        "!DIFixedPointType(name: \"word\", size: 32, encoding: DW_ATE_signed_fixed, kind: Binary)";
    for (ty, optimize, expected) in
        [(known, false, true), (unknown, false, false), (known, true, false)]
    {
        let context = Context::create();
        let text = OTHER.replace("TYPE", ty);
        let module = modules::read(&context, "a.ll", text.as_bytes()).unwrap();
        let options = options.with_optimize(optimize);
        let (ptx, _) = session.ptx_of(&module, &options).unwrap();
        assert!(ptx.0.contains(".loc\t1 4 3"), "{}", ptx.0);
        let (cubin, log) = session.device_link(&ptx, false, &options).unwrap();
        assert_eq!(log, "");
        let file = object::File::parse(&*cubin.0).unwrap();
        let variables = Image::new(&file).variables();
        assert_eq!(!variables.is_empty(), expected, "{ty} {optimize}");
        if expected {
            let found = one(&variables, "k", "n");
            let seen = (&*found.ty, found.is_parameter, found.has_location);
            assert_eq!(seen, ("word", true, true));
        }
    }
}
