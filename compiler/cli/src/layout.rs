//! `gridlet layout`

use std::fmt::Write as _;
use std::path::PathBuf;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use gridlet::compile::{Checked, KernelName};
use gridlet::inkwell::context::Context;
use gridlet::layout::{DescribedLayout, DescribedSlot, MAX_PARAMETER_BYTES, to_json};
use gridlet_runtime::Artifact;
use gridlet_runtime::manifest::Kernel;

use crate::input::{self, FileKind};
use crate::output::{print, print_json};
use crate::report::{Failure, Outcome, Reporter};

/// Options of `gridlet layout`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program: a .grid file, Gridlet's IR as .gir, NVVM IR as .ll or .bc, or a bundle written by `gridlet build`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only this kernel
    #[arg(long, value_name = "K")]
    kernel: Option<KernelName>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Shows the layouts.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    let of_program = |program: &Checked| {
        let structs = &program.module.structs;
        program.parameter_buffers().map(|layout| layout.described(structs)).collect()
    };
    let mut layouts: Vec<DescribedLayout> = match FileKind::of(&options.file) {
        FileKind::Nvvm => {
            let context = Context::create();
            of_program(input::module(&context, &options.file)?.program())
        }
        FileKind::Artifact => {
            Artifact::open(&options.file)?.manifest().kernels.iter().map(of_bundle).collect()
        }
        FileKind::Source => {
            of_program(&input::checked(&options.file, options.kernel.as_slice(), reporter)?)
        }
    };
    if let Some(name) = options.kernel.as_ref().map(KernelName::to_string) {
        let known: Vec<&str> = layouts.iter().map(|layout| layout.kernel.as_str()).collect();
        let message = format!("no kernel `{name}`; the program has {}", known.join(", "));
        layouts.retain(|layout| layout.kernel == name);
        if layouts.is_empty() {
            return Err(Failure::call(message));
        }
    }
    if options.json {
        return print_json(&to_json(&layouts));
    }
    let mut text = String::new();
    for (at, layout) in layouts.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&table(layout));
    }
    print(&text)
}

/// The layout of a kernel in a bundle.
fn of_bundle(kernel: &Kernel) -> DescribedLayout {
    let slots = kernel.parameters.iter().map(|parameter| DescribedSlot {
        name: parameter.name.clone(),
        ty: parameter.ty.to_string(),
        offset: parameter.offset,
        size: parameter.size,
        alignment: parameter.alignment,
    });
    let (kernel, size) = (kernel.name.clone(), kernel.parameter_bytes);
    DescribedLayout { kernel, slots: slots.collect(), size }
}

/// A layout as a table, with its padding.
fn table(layout: &DescribedLayout) -> String {
    let mut text =
        format!("kernel {}: {} of {MAX_PARAMETER_BYTES} bytes\n", layout.kernel, layout.size);
    if layout.slots.is_empty() {
        text.push_str("no parameters\n");
        return text;
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["parameter", "type", "offset", "size", "align", "padding before"]);
    let mut end = 0;
    for slot in &layout.slots {
        table.add_row([
            slot.name.clone(),
            slot.ty.clone(),
            slot.offset.to_string(),
            slot.size.to_string(),
            slot.alignment.to_string(),
            (slot.offset - end).to_string(),
        ]);
        end = slot.offset + slot.size;
    }
    for at in 2..6 {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(text, "{table}");
    text
}
