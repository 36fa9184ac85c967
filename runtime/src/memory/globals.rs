//! A program's `static` variables, as device memory.

use gridlet_artifact::manifest::Type;

use super::{Buffer, DeviceMemory};
use crate::arguments::DeviceCopy;
use crate::error::{Error, Result};
use crate::handles::{Program, c_string, foreign};

impl Program {
    /// The `static` variable with this name, as memory to read and write. The program owns it: dropping the value
    /// frees nothing. A running kernel may write it: wait for the program's streams first.
    ///
    /// # Errors
    /// [`Error::UnknownGlobal`]; [`Error::Artifact`] if the variable's size in the image differs from the
    /// manifest; [`Error::Cuda`], [`Error::Unusable`].
    pub fn global(&self, name: &str) -> Result<DeviceMemory> {
        let program = &self.inner;
        let statics = &program.artifact.manifest().statics;
        let Some(variable) = statics.iter().find(|variable| variable.name == name) else {
            let known = statics.iter().map(|variable| variable.name.clone()).collect();
            return Err(Error::UnknownGlobal { name: name.into(), known });
        };
        let symbol = variable.symbol.as_deref().unwrap_or(name);
        let symbol = c_string(&program.artifact, symbol)?;
        let entered = program.device.enter()?;
        let (address, bytes) =
            program.image.global(&symbol, &format!("the variable `{name}`"), &entered)?;
        if let Some(bytes) = bytes.filter(|bytes| *bytes != variable.size) {
            let problem = format!("the variable `{name}` has {bytes} bytes, not {}", variable.size);
            return Err(foreign(&program.artifact, problem));
        }
        Ok(DeviceMemory::of_program(self, address, variable.size))
    }

    /// The `static` variable with this name, as elements of a type: one element, or the elements of an array. Same
    /// as [`Program::global`] otherwise.
    ///
    /// # Errors
    /// [`Error::GlobalType`] if it holds other elements; the errors of [`Program::global`].
    pub fn global_as<T: DeviceCopy>(&self, name: &str) -> Result<Buffer<T>> {
        let memory = self.global(name)?;
        let statics = &self.inner.artifact.manifest().statics;
        let declared = statics.iter().find(|variable| variable.name == name);
        let fits = declared.is_some_and(|variable| {
            let mut ty = &variable.ty;
            while !T::ELEMENT.fits(ty)
                && let Type::Array { element, .. } = ty
            {
                ty = element;
            }
            T::ELEMENT.fits(ty) && variable.size.is_multiple_of((size_of::<T>() as u64).max(1))
        });
        if !fits {
            return Err(Error::GlobalType {
                name: name.into(),
                is: declared.map_or_else(String::new, |variable| variable.ty.to_string()),
                asked: T::ELEMENT.to_string(),
            });
        }
        Ok(Buffer::of_memory(memory))
    }
}
