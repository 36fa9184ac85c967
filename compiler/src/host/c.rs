//! A program for C and C++ hosts: an object file of the host with the bundle, and its header.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gridlet_artifact::manifest::{Kernel, Manifest, Struct, Type};
use gridlet_artifact::{Extent, extent};
use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};

use super::c_names::{identifier, member, one_line, quoted};
use super::names::Names;
use crate::error::{Error, Result};

/// The alignment of the bundle, in bytes.
const ALIGNMENT: u64 = 16;

/// An object file for this machine that holds `bundle` as `NAME_bundle`, and its size as `NAME_bundle_bytes`.
///
/// # Errors
/// [`Error::Invalid`] on a machine whose object files are not ELF for x86-64 or 64-bit Arm.
pub fn object(name: &str, bundle: &[u8]) -> Result<Vec<u8>> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        other => {
            return Err(Error::Invalid(format!(
                "object files for hosts on {other}: not supported"
            )));
        }
    };
    let mut file = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    let section = file.section_id(StandardSection::ReadOnlyData);
    let name = prefix(name);
    let size = (bundle.len() as u64).to_le_bytes();
    for (symbol, bytes) in [("bundle", bundle), ("bundle_bytes", &size[..])] {
        let value = file.append_section_data(section, bytes, ALIGNMENT);
        file.add_symbol(Symbol {
            name: format!("{name}_{symbol}").into_bytes(),
            value,
            size: bytes.len() as u64,
            kind: SymbolKind::Data,
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
    }
    // Without it, linkers give the program an executable stack.
    file.add_section(vec![], b".note.GNU-stack".to_vec(), object::SectionKind::Other);
    file.write().map_err(|error| Error::internal("host", error.to_string()))
}

/// The header of [`object()`], for C from C99 and for C++ from C++11, over `gridlet.h`: it declares the bundle, and has a function
/// that loads it, one for each kernel that opens it, one that launches it, and the structs that kernels take.
///
/// # Errors
/// [`Error::Internal`] if the manifest mentions an unknown type.
pub fn c_header(name: &str, manifest: &Manifest) -> Result<String> {
    let program = prefix(name);
    let mut header =
        Header { program: &program, manifest, structs: BTreeMap::new(), text: String::new() };
    header.write().map_err(|what| Error::internal("host", what))?;
    Ok(header.text)
}

/// The program's name as the start of C names.
fn prefix(name: &str) -> String {
    let name = identifier(name);
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

struct Header<'a> {
    program: &'a str,
    manifest: &'a Manifest,
    /// The C names of the structs, without that of the program.
    structs: BTreeMap<&'a str, String>,
    text: String,
}

/// A message if the manifest is wrong.
type Written = std::result::Result<(), String>;

impl Header<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn write(&mut self) -> Written {
        let program = self.program;
        let guard = format!("{}_GRIDLET_H", program.to_ascii_uppercase());
        self.line("// Written by `gridlet build --emit header`. Link the object of `--emit host-object`, and Gridlet's runtime.");
        self.line(&format!("#ifndef {guard}\n#define {guard}\n"));
        self.line("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n#include \"gridlet.h\"\n");
        self.line("#ifdef __cplusplus");
        self.line(
            "#define GRIDLET_ALIGNED(bytes) alignas(bytes)\n#define GRIDLET_ASSERT static_assert",
        );
        self.line("extern \"C\" {\n#else");
        self.line("#define GRIDLET_ALIGNED(bytes) __attribute__((aligned(bytes)))\n#define GRIDLET_ASSERT _Static_assert\n#endif\n");
        self.line("// The program: images and manifest, and their size.");
        self.line(&format!("extern const unsigned char {program}_bundle[];"));
        self.line(&format!("extern const uint64_t {program}_bundle_bytes;\n"));
        self.line("// Loads the program.");
        self.line(&format!(
            "static inline enum gridlet_status {program}_load(const struct gridlet_device *device, struct gridlet_program **program) {{\n    \
             return gridlet_program_load_bytes(device, {program}_bundle, (size_t){program}_bundle_bytes, program);\n}}"
        ));
        let taken = ["load", "bundle", "bundle_bytes"];
        let mut names = Names::taken(taken);
        let kernels = self.manifest.kernels.iter();
        let kernels: Vec<_> =
            kernels.map(|kernel| (kernel, names.claim(&kernel.name).replace("r#", ""))).collect();
        let of_kernels = kernels
            .iter()
            .flat_map(|(_, name)| ["open", "launch"].map(|of| format!("{of}_{name}")));
        let mut names = Names::taken(taken.map(String::from).into_iter().chain(of_kernels));
        for item in &self.manifest.structs {
            self.structs.insert(&item.name, names.claim_as(identifier(&item.name), str::to_owned));
        }
        let mut done = BTreeSet::new();
        for item in &self.manifest.structs {
            self.structure(item, &mut done)?;
        }
        for (kernel, name) in kernels {
            self.kernel(kernel, &name)?;
        }
        self.line("\n#ifdef __cplusplus\n}\n#endif\n\n#undef GRIDLET_ALIGNED\n#undef GRIDLET_ASSERT\n\n#endif");
        Ok(())
    }

    fn struct_name(&self, name: &str) -> String {
        let own = self.structs.get(name).cloned().unwrap_or_else(|| identifier(name));
        format!("{}_{own}", self.program)
    }

    /// A struct, after those that it contains.
    fn structure(&mut self, item: &Struct, done: &mut BTreeSet<String>) -> Written {
        let name = self.struct_name(&item.name);
        if item.size == 0 || !done.insert(item.name.clone()) {
            return Ok(());
        }
        for field in &item.fields {
            let inner = match innermost(&field.ty) {
                Type::Struct(inner) => self.manifest.structs.iter().find(|one| one.name == *inner),
                _ => None,
            };
            if let Some(inner) = inner {
                self.structure(inner, done)?;
            }
        }
        let (mut fields, mut members) = (vec![], Names::default());
        for field in &item.fields {
            let extent = extent(&field.ty, &self.manifest.structs)?;
            if extent.size > 0 {
                fields.push((field, members.claim_as(member(&field.name), str::to_owned), extent));
            }
        }
        self.line(&format!("\ntypedef struct {name} {{"));
        for (field, member, extent) in &fields {
            let declared = self.declaration(&field.ty, member)?;
            self.line(&format!("    {}{declared};", aligned(&field.ty, *extent)));
        }
        self.line(&format!("}} {name};"));
        self.line(&format!(
            "GRIDLET_ASSERT(sizeof({name}) == {}, {});",
            item.size,
            quoted(&format!("the size of `{}`", item.name))
        ));
        for (field, member, _) in &fields {
            self.line(&format!(
                "GRIDLET_ASSERT(offsetof({name}, {member}) == {}, {});",
                field.offset,
                quoted(&format!("the offset of `{}`", field.name))
            ));
        }
        Ok(())
    }

    fn kernel(&mut self, kernel: &Kernel, name: &str) -> Written {
        let program = self.program;
        let shown: Vec<String> = kernel
            .parameters
            .iter()
            .map(|parameter| format!("{}: {}", parameter.name, parameter.ty))
            .collect();
        let shown = format!("kernel {}({})", kernel.name, shown.join(", "));
        self.line(&format!("\n// {}", one_line(&shown)));
        self.line(&format!(
            "static inline enum gridlet_status {program}_open_{name}(const struct gridlet_program *program, struct gridlet_kernel **kernel) {{\n    \
             return gridlet_kernel_open(program, {}, kernel);\n}}",
            quoted(&kernel.name)
        ));
        let (mut parameters, mut arguments) = (String::new(), vec![]);
        for (at, parameter) in kernel.parameters.iter().enumerate() {
            // A letter before the name keeps it apart from keywords, macros and the other parameters.
            let own = format!("a{at}_{}", identifier(&parameter.name));
            let extent = extent(&parameter.ty, &self.manifest.structs)?;
            let (declared, argument) = match &parameter.ty {
                // The argument counts, but C has no such type.
                _ if extent.size == 0 => {
                    arguments.push("\"\"".to_owned());
                    continue;
                }
                Type::Array { .. } | Type::Vector { .. } => {
                    (format!("const {} *{own}", self.element(&parameter.ty)?), own)
                }
                ty => (self.declaration(ty, &own)?, format!("&{own}")),
            };
            let _ = write!(parameters, ", {declared}");
            arguments.push(argument);
        }
        let list = if arguments.is_empty() { "0".to_owned() } else { arguments.join(", ") };
        self.line(&format!(
            "static inline enum gridlet_status {program}_launch_{name}(const struct gridlet_stream *stream, \
             const struct gridlet_kernel *kernel, const struct gridlet_launch_config *config{parameters}) {{\n    \
             const void *const arguments[] = {{{list}}};\n    \
             return gridlet_launch(stream, kernel, config, arguments, {});\n}}",
            arguments.len()
        ));
        Ok(())
    }

    /// A variable or field of a type. Vectors are arrays; pointers and streams are device addresses and handles.
    fn declaration(&self, ty: &Type, name: &str) -> std::result::Result<String, String> {
        Ok(match ty {
            Type::Array { element, count } => {
                return self.declaration(element, &format!("{name}[{count}]"));
            }
            Type::Vector { element, count } => format!("{} {name}[{count}]", scalar(element)?),
            _ => format!("{} {name}", self.element(ty)?),
        })
    }

    /// The type of the elements of arrays and vectors of any depth.
    fn element(&self, ty: &Type) -> std::result::Result<String, String> {
        Ok(match ty {
            Type::Scalar(name) | Type::Vector { element: name, .. } => scalar(name)?.to_owned(),
            Type::Array { element, .. } => return self.element(element),
            Type::Struct(name) => self.struct_name(name),
            Type::Pointer { .. } | Type::Stream => "uint64_t".to_owned(),
        })
    }
}

/// C's type; `f16` and `bf16` are their bits.
fn scalar(name: &str) -> std::result::Result<&'static str, String> {
    Ok(match name {
        "bool" => "bool",
        "i8" => "int8_t",
        "i16" => "int16_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "u8" => "uint8_t",
        "u16" | "f16" | "bf16" => "uint16_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "f32" => "float",
        "f64" => "double",
        other => return Err(format!("the scalar type `{other}`")),
    })
}

/// The alignment of a field that C would align less: a vector, or an array of vectors.
fn aligned(ty: &Type, extent: Extent) -> String {
    match innermost(ty) {
        Type::Vector { count: 2 | 4, .. } => format!("GRIDLET_ALIGNED({}) ", extent.alignment),
        _ => String::new(),
    }
}

/// The type of the elements of nested arrays.
fn innermost(mut ty: &Type) -> &Type {
    while let Type::Array { element, .. } = ty {
        ty = element;
    }
    ty
}
