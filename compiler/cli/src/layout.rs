//! `gridlet layout`

use std::fmt::Write as _;
use std::path::PathBuf;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use gridlet::compile::{Checked, KernelName};
use gridlet::inkwell::context::Context;
use gridlet::layout::{MAX_PARAMETER_BYTES, ParamLayout, to_json};
use gridlet::types::Structs;

use crate::input::{self, FileKind};
use crate::output::{print, print_json};
use crate::report::{Failure, Outcome, Reporter};

/// Options of `gridlet layout`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program: a .grid file, or NVVM IR as .ll or .bc
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
    let context = Context::create();
    let own;
    let read;
    let program = match FileKind::of(&options.file) {
        FileKind::Nvvm => {
            own = input::module(&context, &options.file)?;
            own.program()
        }
        _ => {
            read = input::checked(&options.file, options.kernel.as_slice(), reporter)?;
            &read
        }
    };
    let chosen = choose(program, options.kernel.as_ref());
    if let (Some(name), []) = (&options.kernel, &chosen[..]) {
        let known: Vec<&str> =
            program.parameter_buffers().map(|layout| layout.kernel.as_str()).collect();
        return Err(Failure::call(format!(
            "no kernel `{name}`; the program has {}",
            known.join(", ")
        )));
    }
    let structs = &program.module.structs;
    if options.json {
        return print_json(&to_json(&chosen, structs));
    }
    let mut text = String::new();
    for (at, layout) in chosen.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&table(layout, structs));
    }
    print(&text)
}

/// The layouts of all kernels, or of the named one.
fn choose<'a>(program: &'a Checked, kernel: Option<&KernelName>) -> Vec<&'a ParamLayout> {
    let name = kernel.map(KernelName::to_string);
    let is_chosen = |layout: &&ParamLayout| name.as_ref().is_none_or(|name| layout.kernel == *name);
    program.parameter_buffers().filter(is_chosen).collect()
}

/// A layout as a table, with its padding.
pub(crate) fn table(layout: &ParamLayout, structs: &Structs) -> String {
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
            slot.ty.display(structs).to_string(),
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
