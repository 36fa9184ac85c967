//! Writes the Rust module of a program, formatted like rustfmt's output.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gridlet_artifact::manifest::{Kernel, Manifest, Static, Struct, Type};

use super::names::Names;

/// rustfmt's `max_width`, minus the module's indentation.
const WIDTH: usize = 96;
/// rustfmt's `fn_call_width`: call arguments longer than this go on separate lines.
const CALL_WIDTH: usize = 60;
/// Precedes all items: the host's lints are for its own code, and it need not use every item.
const BEFORE: &str = "\
#[allow(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    dead_code,
    nonstandard_style,
    rustdoc::all,
    unreachable_pub,
    unsafe_code,
    unused_results,
    reason = \"generated\"
)]
";
const REEXPORT: &str = "#[allow(unreachable_pub, unused_imports, reason = \"generated\")]";

/// The module for a program: `docs` are lines of documentation by kernel, `bundle` is an expression
/// for the bundle's bytes.
pub fn generate(manifest: &Manifest, docs: &BTreeMap<String, Vec<String>>, bundle: &str) -> String {
    // rustc's messages show this name.
    let module_name = module_name(&manifest.program);
    let mut types = Names::taken(["Program", module_name.as_str()]);
    let structs: BTreeMap<&str, String> =
        manifest.structs.iter().map(|s| (s.name.as_str(), types.claim(&s.name))).collect();
    let mut module = Module { manifest, structs, text: String::new() };
    module.program(docs, bundle);
    for item in &manifest.structs {
        module.text.push('\n');
        module.item(item);
    }
    let mut text = format!("{BEFORE}mod {module_name} {{\n");
    for line in module.text.lines() {
        text.push_str(if line.is_empty() { "" } else { "    " });
        text.push_str(line);
        text.push('\n');
    }
    let _ = write!(text, "}}\n\n{REEXPORT}\npub use {module_name}::*;\n");
    text
}

/// A module name for a program name, which comes from a file name.
fn module_name(program: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let first = if program.starts_with(|first: char| first.is_ascii_digit()) { "_" } else { "" };
    format!("{first}{}_program", program.chars().map(letter).collect::<String>())
}

struct Module<'a> {
    manifest: &'a Manifest,
    /// Rust names, by the program's names.
    structs: BTreeMap<&'a str, String>,
    text: String,
}

impl Module<'_> {
    fn line(&mut self, depth: usize, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            let _ = write!(self.text, "{:1$}{line}", "", 4 * depth);
        }
        self.text.push('\n');
    }

    /// Writes a line, or one item per line if rustfmt would split the line.
    fn list(&mut self, depth: usize, before: &str, items: &[String], after: &str, most: usize) {
        let joined = items.join(", ");
        let line = format!("{before}{joined}{after}");
        if joined.len() <= most && 4 * depth + line.len() <= WIDTH {
            return self.line(depth, line);
        }
        self.line(depth, before);
        for item in items {
            self.line(depth + 1, format!("{item},"));
        }
        self.line(depth, after);
    }

    fn program(&mut self, docs: &BTreeMap<String, Vec<String>>, bundle: &str) {
        let manifest = self.manifest;
        let mut names = Names::taken(["BUNDLE", "load", "program"]);
        let mut methods: Vec<(&Kernel, String)> =
            manifest.kernels.iter().map(|kernel| (kernel, names.claim(&kernel.name))).collect();
        // Names derived from a kernel's come second.
        let handles: Vec<String> = methods
            .iter()
            .map(|(_, name)| names.claim(&format!("{}_kernel", name.trim_start_matches("r#"))))
            .collect();

        self.line(0, format!("/// The program `{}`, loaded on a device.", manifest.program));
        self.line(0, "#[derive(Clone, Debug)]");
        self.line(0, "pub struct Program {");
        self.line(1, "program: ::gridlet_runtime::Program,");
        for handle in &handles {
            self.line(1, format!("{handle}: ::gridlet_runtime::Kernel,"));
        }
        self.line(0, "}");
        self.line(0, "");
        self.line(0, "impl Program {");
        self.line(1, "/// The bundle, with an image for each device that it was built for.");
        self.line(1, format!("pub const BUNDLE: &[u8] = {bundle};"));
        self.line(0, "");
        self.line(1, "/// Loads the program on a device.");
        self.line(1, "///");
        self.line(1, "/// # Errors");
        self.line(1, "/// The errors of [`gridlet_runtime::Program::from_static_bundle`] and [`gridlet_runtime::Program::kernel`].");
        self.line(
            1,
            "pub fn load(device: &::gridlet_runtime::Device) -> ::gridlet_runtime::Result<Self> {",
        );
        self.line(
            2,
            "let program = ::gridlet_runtime::Program::from_static_bundle(device, Self::BUNDLE)?;",
        );
        if methods.is_empty() {
            self.line(2, "Ok(Program { program })");
        } else {
            self.line(2, "Ok(Program {");
            for ((kernel, _), handle) in methods.iter().zip(&handles) {
                self.line(3, format!("{handle}: program.kernel({:?})?,", kernel.name));
            }
            self.line(3, "program,");
            self.line(2, "})");
        }
        self.line(1, "}");
        self.line(0, "");
        self.line(1, "/// The program without its types.");
        self.line(1, "pub fn program(&self) -> &::gridlet_runtime::Program {");
        self.line(2, "&self.program");
        self.line(1, "}");
        for ((kernel, name), handle) in methods.drain(..).zip(&handles) {
            self.kernel(kernel, &name, handle, docs.get(&kernel.name));
        }
        for variable in &manifest.statics {
            let name = names.claim(&variable.name);
            self.variable(variable, &name);
        }
        self.line(0, "}");
    }

    fn kernel(&mut self, kernel: &Kernel, name: &str, handle: &str, docs: Option<&Vec<String>>) {
        self.line(0, "");
        match docs {
            Some(lines) => {
                let mut is_code = false;
                for line in lines {
                    let is_fence = line.starts_with("```");
                    // rustdoc would take the code for Rust, and run it.
                    let language = if is_fence && !is_code && line == "```" { "text" } else { "" };
                    is_code ^= is_fence;
                    self.line(1, format!("/// {line}{language}").trim_end());
                }
            }
            None => self.line(1, format!("/// Launches the kernel `{}`.", kernel.name)),
        }
        self.line(1, "///");
        self.line(1, "/// # Errors");
        self.line(1, "/// The errors of [`gridlet_runtime::Stream::launch`].");
        let mut locals = Names::taken(["stream", "config", "parameters"]);
        let parameters: Vec<String> =
            kernel.parameters.iter().map(|parameter| locals.claim(&parameter.name)).collect();
        let mut arguments = vec![
            "&self".to_owned(),
            "stream: &::gridlet_runtime::Stream".into(),
            "config: &::gridlet_runtime::LaunchConfig".into(),
        ];
        for (parameter, local) in kernel.parameters.iter().zip(&parameters) {
            arguments.push(format!("{local}: {}", self.argument(&parameter.ty)));
        }
        let before = format!("pub fn {name}(");
        self.list(1, &before, &arguments, ") -> ::gridlet_runtime::Result<()> {", usize::MAX);
        let bytes = kernel.parameter_bytes;
        let mutable = if parameters.is_empty() { "" } else { "mut " };
        self.line(
            2,
            format!(
                "let {mutable}parameters = ::gridlet_runtime::typed::Parameters::<{bytes}>::new();"
            ),
        );
        for (parameter, local) in kernel.parameters.iter().zip(&parameters) {
            let at = parameter.offset;
            match &parameter.ty {
                Type::Pointer { mutable, .. } => {
                    let place = if *mutable { "place_to_write" } else { "place" };
                    let items = [
                        "stream".to_owned(),
                        format!("{:?}", parameter.name),
                        format!("{local}.{place}()"),
                    ];
                    self.list(2, &format!("parameters.point::<{at}>("), &items, ")?;", CALL_WIDTH);
                }
                Type::Scalar(scalar) if scalar == "bool" => {
                    let item = format!("::gridlet_runtime::typed::Bool::from({local})");
                    self.list(2, &format!("parameters.put::<{at}, _>("), &[item], ");", CALL_WIDTH);
                }
                _ => {
                    let item = local.clone();
                    self.list(2, &format!("parameters.put::<{at}, _>("), &[item], ");", CALL_WIDTH);
                }
            }
        }
        self.line(2, "// SAFETY: the kernel's parameters, as the bundle's manifest lays them out.");
        self.list(
            2,
            "unsafe { parameters.launch(",
            &["stream".into(), format!("&self.{handle}"), "config".into()],
            ") }",
            CALL_WIDTH,
        );
        self.line(1, "}");
        self.line(0, "");
        self.line(1, format!("/// The kernel `{}`, to query its attributes.", kernel.name));
        self.line(1, format!("pub fn {handle}(&self) -> &::gridlet_runtime::Kernel {{"));
        self.line(2, format!("&self.{handle}"));
        self.line(1, "}");
    }

    fn variable(&mut self, variable: &Static, name: &str) {
        // An array is a buffer of its elements.
        let element = match &variable.ty {
            Type::Array { element, .. } => self.memory(element),
            other => self.memory(other),
        };
        self.line(0, "");
        self.line(1, format!("/// The variable `{}`: `{}`.", variable.name, variable.ty));
        self.line(1, "///");
        self.line(1, "/// # Errors");
        self.line(1, "/// The errors of [`gridlet_runtime::Program::global`].");
        let buffer = format!("::gridlet_runtime::Buffer<{element}>");
        let after = format!(") -> ::gridlet_runtime::Result<{buffer}> {{");
        self.list(1, &format!("pub fn {name}("), &["&self".into()], &after, usize::MAX);
        self.line(2, format!("self.program.global_as({:?})", variable.name));
        self.line(1, "}");
    }

    fn item(&mut self, item: &Struct) {
        let name = self.structs.get(item.name.as_str()).cloned().unwrap_or_default();
        let fields = self.fields(item);
        let is_padded = fields.iter().any(|field| field.padding.is_some());
        self.line(0, format!("/// The program's `{}`: {} bytes.", item.name, item.size));
        if is_padded {
            self.line(0, "#[derive(Clone, Copy)]");
        } else {
            self.line(0, "#[derive(Clone, Copy, Debug, PartialEq)]");
        }
        self.line(0, "#[repr(C)]");
        self.line(0, format!("pub struct {name} {{"));
        for field in &fields {
            match field.padding {
                Some(bytes) => self.line(1, format!("{}: [u8; {bytes}],", field.name)),
                None => {
                    let at = field.offset;
                    self.line(1, format!("/// `{}`, at byte {at}.", field.grid));
                    self.line(1, format!("pub {}: {},", field.name, field.rust));
                }
            }
        }
        self.line(0, "}");
        self.line(0, "");
        self.asserts(item, &name, &fields);
        self.constructor(&name, &fields);
        if is_padded {
            self.derived(&name, &fields);
        }
    }

    /// The fields, including padding fields.
    fn fields(&self, item: &Struct) -> Vec<Field> {
        let mut names = Names::default();
        let mut fields: Vec<Field> = vec![];
        let mut end = 0;
        let given: Vec<String> = item.fields.iter().map(|field| names.claim(&field.name)).collect();
        let mut pad = |fields: &mut Vec<Field>, from: u64, to: u64| {
            if to > from {
                let name = names.claim(&format!("_padding_{from}"));
                let (grid, rust) = (String::new(), String::new());
                fields.push(Field { name, offset: from, padding: Some(to - from), grid, rust });
            }
        };
        for (field, name) in item.fields.iter().zip(given) {
            pad(&mut fields, end, field.offset);
            end = field.offset + self.manifest.size_of(&field.ty).unwrap_or(0);
            let (grid, rust) = (field.ty.to_string(), self.memory(&field.ty));
            fields.push(Field { name, offset: field.offset, padding: None, grid, rust });
        }
        pad(&mut fields, end, item.size);
        fields
    }

    fn asserts(&mut self, item: &Struct, name: &str, fields: &[Field]) {
        self.line(0, "const _: () = {");
        self.line(1, format!("assert!(::core::mem::size_of::<{name}>() == {});", item.size));
        self.line(1, format!("assert!(::core::mem::align_of::<{name}>() == {});", item.alignment));
        for field in fields {
            let items = [name.to_owned(), field.name.clone()];
            let offset = format!(") == {});", field.offset);
            let joined = items.join(", ");
            self.line(1, format!("assert!(::core::mem::offset_of!({joined}{offset}"));
        }
        self.line(0, "};");
        self.line(0, "");
        self.line(0, "// SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.");
        self.line(0, format!("unsafe impl ::gridlet_runtime::DeviceCopy for {name} {{"));
        let element = format!("::gridlet_runtime::Element::Struct({:?});", item.name);
        let before = "const ELEMENT: ::gridlet_runtime::Element =";
        if 4 + before.len() + 1 + element.len() <= WIDTH {
            self.line(1, format!("{before} {element}"));
        } else {
            self.line(1, before);
            self.line(2, element);
        }
        self.line(0, "}");
        self.line(0, "");
    }

    fn constructor(&mut self, name: &str, fields: &[Field]) {
        let named: Vec<&Field> = fields.iter().filter(|field| field.padding.is_none()).collect();
        self.line(0, format!("impl {name} {{"));
        self.line(1, "/// A value with these fields.");
        self.line(1, "#[must_use]");
        let arguments: Vec<String> =
            named.iter().map(|field| format!("{}: {}", field.name, field.rust)).collect();
        self.list(1, "pub fn new(", &arguments, ") -> Self {", usize::MAX);
        let mutable = if named.is_empty() { "" } else { "mut " };
        let mut locals = Names::default();
        for field in &named {
            locals.claim(field.name.trim_start_matches("r#"));
        }
        let made = locals.claim("made");
        self.line(2, format!("let {mutable}{made}: Self = ::gridlet_runtime::typed::zeroed();"));
        for field in &named {
            self.line(2, format!("{made}.{0} = {0};", field.name));
        }
        self.line(2, made);
        self.line(1, "}");
        self.line(0, "}");
        self.line(0, "");
        self.line(0, format!("impl ::core::default::Default for {name} {{"));
        self.line(1, "/// A value whose bytes are all 0.");
        self.line(1, "fn default() -> Self {");
        self.line(2, "::gridlet_runtime::typed::zeroed()");
        self.line(1, "}");
        self.line(0, "}");
    }

    /// Implements the traits by hand: derives would include the padding, to which a kernel may have
    /// written anything.
    fn derived(&mut self, name: &str, fields: &[Field]) {
        let named: Vec<&Field> = fields.iter().filter(|field| field.padding.is_none()).collect();
        self.line(0, "");
        self.line(0, format!("impl ::core::cmp::PartialEq for {name} {{"));
        self.line(1, "fn eq(&self, other: &Self) -> bool {");
        self.line(2, "let mut equal = true;");
        for field in &named {
            self.line(2, format!("equal &= self.{0} == other.{0};", field.name));
        }
        self.line(2, "equal");
        self.line(1, "}");
        self.line(0, "}");
        self.line(0, "");
        self.line(0, format!("impl ::core::fmt::Debug for {name} {{"));
        self.line(1, "fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {");
        self.line(2, format!("let mut debug = f.debug_struct({name:?});"));
        for field in &named {
            let plain = field.name.trim_start_matches("r#");
            self.line(2, format!("debug.field({plain:?}, &self.{});", field.name));
        }
        self.line(2, "debug.finish()");
        self.line(1, "}");
        self.line(0, "}");
    }

    /// A parameter's type, as the host passes it.
    fn argument(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(name) if name == "bool" => "bool".into(),
            Type::Pointer { mutable, to } => {
                let role = if *mutable { "Writable" } else { "Readable" };
                format!("impl ::gridlet_runtime::typed::{role}<{}>", self.memory(to))
            }
            other => self.memory(other),
        }
    }

    /// A type as it is stored in memory.
    fn memory(&self, ty: &Type) -> String {
        const TYPED: &str = "::gridlet_runtime::typed";
        match ty {
            Type::Scalar(name) => match name.as_str() {
                "bool" => format!("{TYPED}::Bool"),
                "f16" | "bf16" => format!("{TYPED}::{name}"),
                name => name.to_owned(),
            },
            Type::Vector { element, count } => {
                let (first, rest) = element.split_at(1);
                format!("{TYPED}::{}{rest}x{count}", first.to_uppercase())
            }
            Type::Array { element, count } => format!("[{}; {count}]", self.memory(element)),
            Type::Struct(name) => {
                self.structs.get(name.as_str()).cloned().unwrap_or_else(|| name.clone())
            }
            Type::Pointer { to, .. } => format!("{TYPED}::DevicePointer<{}>", self.memory(to)),
            // A handle that only kernels create.
            Type::Stream => "u64".into(),
        }
    }
}

/// A field of a Rust struct.
struct Field {
    name: String,
    offset: u64,
    /// The number of bytes, if the field is padding.
    padding: Option<u64>,
    /// The type in the program's source.
    grid: String,
    rust: String,
}
