//! Types of functions in debug information. A subprogram may lack one, but LLVM's back end (22.1) ends over it where it describes
//! functions for debuggers.

use std::borrow::Cow;

use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

use super::nvptx::refused;
use crate::error::Result;

const SUBPROGRAM: &str = "!DISubprogram(";

/// Gives each subprogram without a type one that says nothing. LLVM's C API has no call for that, so the module is printed and read.
pub(super) fn complete(module: Module<'_>) -> Result<Module<'_>> {
    let text = module.print_to_string().to_string();
    let Some(text) = with_types(&text) else { return Ok(module) };
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "module");
    let read = module.get_context().create_module_from_ir(buffer);
    read.map_err(|message| refused("completing debug information", message.to_string()))
}

/// The text with the types that are missing; `None` if none is.
fn with_types(text: &str) -> Option<String> {
    let lacks = |line: &str| {
        let is_node = line.starts_with('!') && line.contains(SUBPROGRAM);
        is_node && !line.contains(", type: !") && !line.contains("(type: !")
    };
    if !text.lines().any(lacks) {
        return None;
    }
    let number = |line: &str| line.strip_prefix('!')?.split_once(" = ")?.0.parse::<u64>().ok();
    let free = text.lines().filter_map(number).max()?.checked_add(1)?;
    let lines = text.split_inclusive('\n').map(|line| match lacks(line) {
        true => line.replacen(SUBPROGRAM, &format!("{SUBPROGRAM}type: !{free}, "), 1).into(),
        false => Cow::from(line),
    });
    Some(format!("{}\n!{free} = !DISubroutineType(types: null)\n", lines.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::with_types;

    #[test]
    fn subprograms_get_the_types_that_they_lack() {
        let typed = "!0 = distinct !DISubprogram(name: \"a\", type: !1, unit: !2)\n!1 = !DISubroutineType(types: !3)\n";
        assert_eq!(with_types(typed), None);
        let both = format!("{typed}!7 = !DISubprogram(name: \"b\", spFlags: 0)\n");
        assert_eq!(
            with_types(&both).unwrap(),
            format!(
                "{typed}!7 = !DISubprogram(type: !8, name: \"b\", spFlags: 0)\n\n!8 = !DISubroutineType(types: null)\n"
            )
        );
    }
}
