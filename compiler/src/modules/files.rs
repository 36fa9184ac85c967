//! The files of positions in the record of lost launches. The record has their numbers; file 0 is the module itself.

use inkwell::module::Module;
use inkwell::values::BasicMetadataValueEnum;

use crate::error::{Error, Result};
use crate::nvvm::SOURCES;

/// The number of a file, which is added to the module if it has none. Without a name it is the module.
pub(super) fn number(module: &Module<'_>, file: &str) -> Result<u32> {
    if file.is_empty() {
        return Ok(0);
    }
    let known = all(module);
    if let Some(at) = known.iter().position(|known| known == file) {
        return Ok(at as u32 + 1);
    }
    let context = module.get_context();
    module
        .add_global_metadata(
            SOURCES,
            &context.metadata_node(&[context.metadata_string(file).into()]),
        )
        .map_err(|error| Error::internal("modules", error.to_string()))?;
    Ok(known.len() as u32 + 1)
}

/// The files, from number 1 on.
pub(super) fn all(module: &Module<'_>) -> Vec<String> {
    let nodes = module.get_global_metadata(SOURCES).into_iter();
    let parts = nodes.flat_map(|node| node.get_node_values().unwrap_or_default());
    let name = |part| match part {
        BasicMetadataValueEnum::MetadataValue(name) => {
            Some(String::from_utf8_lossy(name.get_string_value().unwrap_or_default()).into_owned())
        }
        _ => None,
    };
    parts.filter_map(name).collect()
}
