//! The variables listed by a checked image.

use std::ffi::CStr;
use std::sync::Arc;

use crate::abi::{
    VARIABLE_PARAMETER, VARIABLE_SHARED, VARIABLE_STATIC, VARIABLE_STRING, VariableDescriptor,
};
use crate::hooks::Variable;

#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Shared variables of a block, by offset.
    pub(super) shared: Arc<[Variable]>,
    /// Statics; their `offset` is the address.
    pub(super) statics: Vec<Variable>,
    /// Strings; their `offset` is the address.
    pub(super) strings: Vec<Variable>,
    /// Parameters by kernel, each list by offset.
    pub(super) parameters: Vec<Arc<[Variable]>>,
}

impl Variables {
    /// Sorts the variable table of an image by kind and kernel.
    pub(super) fn of(table: &[VariableDescriptor], kernels: usize) -> Variables {
        let (mut shared, mut statics, mut strings) = (Vec::new(), Vec::new(), Vec::new());
        let mut parameters = vec![Vec::new(); kernels];
        for item in table {
            // SAFETY: per the ABI, it is a string, a constant of the loaded image.
            let name = unsafe { CStr::from_ptr(item.name) }.to_string_lossy();
            let offset = match item.kind {
                VARIABLE_STATIC | VARIABLE_STRING => item.address as usize,
                _ => item.offset as usize,
            };
            let variable =
                Variable { name: name.as_ref().into(), offset, bytes: item.bytes as usize };
            match item.kind {
                VARIABLE_SHARED => shared.push(variable),
                VARIABLE_PARAMETER => {
                    if let Some(of_kernel) = parameters.get_mut(item.kernel as usize) {
                        of_kernel.push(variable);
                    }
                }
                VARIABLE_STATIC => statics.push(variable),
                VARIABLE_STRING => strings.push(variable),
                _ => {}
            }
        }
        Variables {
            shared: shared.into(),
            statics,
            strings,
            parameters: parameters.into_iter().map(Into::into).collect(),
        }
    }
}
