//! Keys of compilations: the SHA-256 of all that a result depends on.

use std::fmt::{self, Debug, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use gridlet_lang::program::Checked;
use inkwell::targets::TargetMachine;
use sha2::{Digest as _, Sha256};

use crate::cpu::CpuOptions;
use crate::inputs::LinkInput;
use crate::toolchain::{Component, LLVM_VERSION, Toolchain};

/// The key of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of an image for the CPU device; `None` if not all that it depends on is known.
    pub(crate) fn of_image(
        program: &Checked,
        options: &CpuOptions,
        inputs: &[LinkInput],
    ) -> Option<Key> {
        // Modules in C include files, and the C compiler and its libraries are part of the result.
        if inputs.iter().any(LinkInput::is_for_host_link) {
            return None;
        }
        let mut parts = Parts::new("image", program, inputs)?;
        parts.debug("options", options);
        parts.debug("target", &TargetMachine::get_default_triple());
        if options.native {
            parts.debug("processor", &TargetMachine::get_host_cpu_name());
            parts.debug("features", &TargetMachine::get_host_cpu_features());
        }
        Some(parts.finish())
    }

    /// The key of a cubin; `None` if not all that it depends on is known. `options`: all its build options.
    pub(crate) fn of_cubin(
        program: &Checked,
        options: &dyn Debug,
        inputs: &[LinkInput],
        toolchain: &Toolchain,
    ) -> Option<Key> {
        let mut parts = Parts::new("cubin", program, inputs)?;
        parts.debug("options", &options);
        for component in Component::ALL {
            // A missing one is a part of the result too.
            let stamp = toolchain.path(component).ok().map(Stamp::of);
            parts.debug(component.name(), &stamp);
        }
        Some(parts.finish())
    }

    /// The name of the entry's file.
    pub(crate) fn name(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this may be the name of an entry.
    pub(super) fn is_name(name: &str) -> bool {
        name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Key {
        Key(Sha256::digest(text).into())
    }
}

/// The parts of a key. Each is hashed with its name and its length, so that no two lists of parts read the same.
struct Parts(Sha256);

impl Parts {
    /// What every compilation depends on: this compiler, the program and the modules that are linked in.
    fn new(kind: &str, program: &Checked, inputs: &[LinkInput]) -> Option<Parts> {
        let mut parts = Parts(Sha256::new());
        parts.debug("kind", &kind);
        parts.debug("compiler", compiler()?);
        for file in program.sources.files() {
            parts.bytes("file", file.name.as_bytes());
            parts.bytes("text", file.text.as_bytes());
        }
        // Other front ends build programs without text, so the IR counts. `Structs` also holds layouts, which are computed
        // at their first use.
        let module = &program.module;
        module.structs.iter().for_each(|(_, item)| parts.debug("struct", item));
        module.globals.iter().for_each(|global| parts.debug("global", global));
        module.externs.iter().for_each(|item| parts.debug("extern", item));
        module.functions.iter().for_each(|function| parts.debug("function", function));
        module.kernels.iter().for_each(|kernel| parts.debug("kernel", kernel));
        for input in inputs {
            parts.debug("input", &(&input.name, input.kind));
            parts.bytes("contents", &input.bytes);
        }
        Some(parts)
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.0.update(name);
        self.0.update([0]);
        self.0.update(bytes);
        self.0.update((bytes.len() as u64).to_le_bytes());
    }

    /// A value by its `Debug` form, which derives keep complete.
    fn debug(&mut self, name: &str, value: &dyn Debug) {
        struct Writer<'a>(&'a mut Sha256, u64);

        impl fmt::Write for Writer<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.update(text);
                self.1 += text.len() as u64;
                Ok(())
            }
        }
        self.0.update(name);
        self.0.update([0]);
        let mut writer = Writer(&mut self.0, 0);
        // Hashing does not fail, and derived forms do not either.
        let _ = write!(writer, "{value:?}");
        let length = writer.1;
        self.0.update(length.to_le_bytes());
    }

    fn finish(self) -> Key {
        Key(self.0.finalize().into())
    }
}

/// A file as of now: another file, or other contents, have another stamp.
#[derive(Debug)]
#[expect(dead_code, reason = "its Debug form is hashed")]
struct Stamp {
    path: PathBuf,
    bytes: Option<u64>,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Stamp {
        let metadata = fs::metadata(path).ok();
        Stamp {
            path: path.into(),
            bytes: metadata.as_ref().map(fs::Metadata::len),
            modified: metadata.and_then(|metadata| metadata.modified().ok()),
        }
    }
}

/// This compiler: its version, LLVM's, and the file that holds its code, because builds of one version differ while it is
/// worked on. `None` where the system does not tell that file.
fn compiler() -> Option<&'static String> {
    static COMPILER: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let file = Stamp::of(mapped(&maps, compiler as *const () as usize)?);
        let versions = (env!("CARGO_PKG_VERSION"), LLVM_VERSION);
        file.modified.is_some().then(|| format!("{versions:?} {file:?}"))
    };
    COMPILER.get_or_init(find).as_ref()
}

/// The file whose mapping contains an address (proc_pid_maps(5)).
fn mapped(maps: &str, address: usize) -> Option<&Path> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (first, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let path = rest.find('/').map(|at| Path::new(&rest[at..]))?;
        (number(first)?..number(end)?).contains(&address).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use gridlet_lang::program::check;
    use gridlet_lang::source::SourceMap;

    use super::*;
    use crate::compile::BuildOptions;

    #[test]
    fn a_key_tells_apart_whatever_a_result_depends_on() {
        let program = |name: &str, text: &str| check(SourceMap::single(name, text)).unwrap();
        let first = program("a.grid", "kernel k() {}");
        let options = CpuOptions::default();
        let ir = |bytes: &[u8]| LinkInput::new("a.ll", bytes.to_vec()).unwrap();
        let key = |program: &Checked, options: &CpuOptions, inputs: &[LinkInput]| {
            Key::of_image(program, options, inputs).unwrap()
        };
        let base = key(&first, &options, &[]);
        assert_eq!(base, key(&program("a.grid", "kernel k() {}"), &options, &[]));
        // The cached layouts of structs do not count.
        let _ = gridlet_lang::layout::compute_layouts(&first.module);
        assert_eq!(base, key(&first, &options, &[]));
        let others = [
            key(&program("b.grid", "kernel k() {}"), &options, &[]),
            key(&program("a.grid", "kernel k() {} "), &options, &[]),
            key(&first, &CpuOptions { optimize: false, ..options }, &[]),
            key(&first, &CpuOptions { check: true, ..options }, &[]),
            key(&first, &CpuOptions { native: false, ..options }, &[]),
            key(&first, &CpuOptions { debug_lines: true, ..options }, &[]),
            key(&first, &options, &[ir(b"a")]),
            key(&first, &options, &[ir(b"b")]),
            Key::of_cubin(&first, &BuildOptions::default(), &[], &Toolchain::discover()).unwrap(),
            Key::of_cubin(
                &first,
                &BuildOptions { fast_math: true, ..BuildOptions::default() },
                &[],
                &Toolchain::discover(),
            )
            .unwrap(),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(base, *other, "{at}");
            assert!(!others[..at].contains(other), "{at}");
        }
        let c = LinkInput::new("a.c", Vec::new()).unwrap();
        assert_eq!(Key::of_image(&first, &options, &[c]), None);
    }

    #[test]
    fn instances_of_a_kernel_are_other_programs() {
        let sources =
            || SourceMap::single("a.grid", "kernel k<const N: u32>(p: *mut u32) { *p = N; }");
        let keys = ["k::<1>", "k::<2>"].map(|name| {
            let wanted = [name.parse().unwrap()];
            let program = gridlet_lang::program::check_for(sources(), &wanted).unwrap();
            Key::of_image(&program, &CpuOptions::default(), &[]).unwrap()
        });
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn the_file_of_an_address_is_found() {
        let maps = "1000-2000 r-xp 00000000 fe:00 1 /bin/a b\n3000-4000 rw-p 00000000 00:00 0\n";
        assert_eq!(mapped(maps, 0x1fff), Some(Path::new("/bin/a b")));
        assert_eq!(mapped(maps, 0x2000), None);
        assert_eq!(mapped(maps, 0x3000), None);
    }
}
