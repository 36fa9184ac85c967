//! Arguments of a launch: Python objects, checked against the manifest.

use std::fmt::Display;

use gridlet_runtime::arguments::Scalar;
use gridlet_runtime::manifest::{Kernel, Manifest, Type};
use gridlet_runtime::{Arg, ScalarType};
use half::{bf16, f16};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyTuple};

use crate::dtype::{DType, numpy_dtype};
use crate::handles::{Array, Place};

/// An argument, ready for the runtime.
pub(super) enum Value {
    Scalar(Scalar),
    Address(u64),
    Bytes(Vec<u8>),
    Fields(Vec<Value>),
}

impl Value {
    pub(super) fn arg(&self) -> Arg<'_> {
        match self {
            Value::Scalar(scalar) => Arg::Scalar(*scalar),
            Value::Address(address) => Arg::address(*address),
            Value::Bytes(bytes) => Arg::Bytes(bytes),
            Value::Fields(fields) => Arg::Fields(fields.iter().map(Value::arg).collect()),
        }
    }
}

/// Converts the arguments of one launch.
pub(super) struct Packer<'a> {
    pub(super) kernel: &'a Kernel,
    /// The type of each parameter; of a pointer, that of its elements.
    pub(super) wanted: &'a [Option<DType>],
    pub(super) manifest: &'a Manifest,
    pub(super) place: &'a Place,
    /// Arrays made for arguments of other libraries.
    pub(super) kept: Vec<Py<Array>>,
}

/// Where a value goes: a parameter, and the path inside it.
struct Target<'a> {
    index: usize,
    path: &'a str,
}

impl Packer<'_> {
    /// Checks and converts the arguments. Also returns arrays that the launch must keep alive.
    pub(super) fn pack(
        mut self,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<(Vec<Value>, Vec<Py<Array>>)> {
        let parameters = &self.kernel.parameters;
        if arguments.len() != parameters.len() {
            let names: Vec<_> = parameters.iter().map(|it| it.name.as_str()).collect();
            return Err(PyTypeError::new_err(format!(
                "kernel `{}` takes {} argument{} ({}), {} given",
                self.kernel.name,
                names.len(),
                if names.len() == 1 { "" } else { "s" },
                names.join(", "),
                arguments.len()
            )));
        }
        let mut values = Vec::with_capacity(parameters.len());
        for (index, argument) in arguments.iter_borrowed().enumerate() {
            let parameter = &parameters[index];
            let target = Target { index, path: &parameter.name };
            values.push(self.value(
                &argument,
                &parameter.ty,
                self.wanted[index].as_ref(),
                &target,
            )?);
        }
        Ok((values, self.kept))
    }

    fn value(
        &mut self,
        object: &Bound<'_, PyAny>,
        ty: &Type,
        wanted: Option<&DType>,
        target: &Target<'_>,
    ) -> PyResult<Value> {
        match ty {
            Type::Scalar(name) => match ScalarType::from_name(name) {
                Some(scalar) => self.scalar(object, scalar, target),
                None => Err(self.mismatch(target, ty, &describe(object))),
            },
            Type::Pointer { mutable, .. } => self.pointer(object, ty, *mutable, wanted, target),
            Type::Stream => Ok(Value::Scalar(Scalar::U64(object.extract()?))),
            Type::Vector { .. } | Type::Array { .. } | Type::Struct(_) => {
                self.aggregate(object, ty, wanted, target)
            }
        }
    }

    fn scalar(
        &self,
        object: &Bound<'_, PyAny>,
        scalar: ScalarType,
        target: &Target<'_>,
    ) -> PyResult<Value> {
        let refuse = || {
            let expected = format!("a value of type `{scalar}`");
            self.refused(target, &expected, &describe(object))
        };
        let is_bool = object.is_instance_of::<PyBool>();
        if scalar == ScalarType::Bool {
            let value = object.extract().map_err(|_| refuse())?;
            return Ok(Value::Scalar(Scalar::Bool(value)));
        }
        if is_bool {
            return Err(refuse());
        }
        let float = || object.extract::<f64>().map_err(|_| refuse());
        /// An integer of type `$ty`, or the error of one out of its range.
        macro_rules! integer {
            ($variant:ident, $ty:ty) => {
                match object.extract::<$ty>() {
                    Ok(value) => Scalar::$variant(value),
                    Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                        let given = format!("{object}, from {} to {}", <$ty>::MIN, <$ty>::MAX);
                        let text = self.refused(target, &format!("a `{scalar}`"), &given);
                        return Err(PyOverflowError::new_err(text.value(object.py()).to_string()));
                    }
                    Err(_) => return Err(refuse()),
                }
            };
        }
        Ok(Value::Scalar(match scalar {
            ScalarType::Bool => return Err(refuse()),
            ScalarType::I8 => integer!(I8, i8),
            ScalarType::I16 => integer!(I16, i16),
            ScalarType::I32 => integer!(I32, i32),
            ScalarType::I64 => integer!(I64, i64),
            ScalarType::U8 => integer!(U8, u8),
            ScalarType::U16 => integer!(U16, u16),
            ScalarType::U32 => integer!(U32, u32),
            ScalarType::U64 => integer!(U64, u64),
            ScalarType::F16 => Scalar::F16(f16::from_f64(float()?).to_bits()),
            ScalarType::Bf16 => Scalar::Bf16(bf16::from_f64(float()?).to_bits()),
            ScalarType::F32 => Scalar::F32(float()? as f32),
            ScalarType::F64 => Scalar::F64(float()?),
        }))
    }

    fn pointer(
        &mut self,
        object: &Bound<'_, PyAny>,
        ty: &Type,
        mutable: bool,
        wanted: Option<&DType>,
        target: &Target<'_>,
    ) -> PyResult<Value> {
        if let Ok(array) = object.cast::<Array>() {
            return self.array(array.get(), ty, mutable, wanted, target);
        }
        if object.is_none() {
            return Ok(Value::Address(0));
        }
        if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyList>() {
            return Err(self.mismatch(target, ty, &describe(object)));
        }
        let py = object.py();
        // A checking device must not be lent the same memory twice.
        let known = match self.place.opened.check {
            true => {
                let made = self.kept.iter().find(|array| array.get().is_of(object));
                made.map(|array| array.clone_ref(py)).or_else(|| self.place.work.known(py, object))
            }
            false => None,
        };
        let array = match known {
            Some(array) => array,
            None => {
                let made = self.place.share(object).map_err(|error| {
                    if !error.is_instance_of::<PyTypeError>(py) {
                        return error;
                    }
                    self.mismatch(target, ty, &error.value(py).to_string())
                })?;
                let made = Py::new(py, made)?;
                self.kept.push(made.clone_ref(py));
                made
            }
        };
        self.array(array.get(), ty, mutable, wanted, target)
    }

    fn array(
        &self,
        array: &Array,
        ty: &Type,
        mutable: bool,
        wanted: Option<&DType>,
        target: &Target<'_>,
    ) -> PyResult<Value> {
        if !std::sync::Arc::ptr_eq(&array.opened, &self.place.opened) {
            let given = format!("{} on {}", array.describe(), array.opened.device);
            let expected = format!("memory of {}", self.place.opened.device);
            return Err(self.refused(target, &expected, &given));
        }
        if !wanted.is_some_and(|wanted| array.dtype.holds(&array.shape, wanted)) {
            return Err(self.mismatch(target, ty, &array.describe()));
        }
        if mutable && array.read_only {
            return Err(self.mismatch(target, ty, "a read-only array"));
        }
        Ok(Value::Address(array.address))
    }

    /// A struct, vector or array by value: a NumPy value of the same layout, a tuple or list of its parts, or a dictionary.
    fn aggregate(
        &mut self,
        object: &Bound<'_, PyAny>,
        ty: &Type,
        wanted: Option<&DType>,
        target: &Target<'_>,
    ) -> PyResult<Value> {
        if let Ok(dtype) = object.getattr("dtype") {
            let dtype = DType::of_numpy(&numpy_dtype(&dtype)?)?;
            let shape: Vec<u64> = object.getattr("shape")?.extract()?;
            let fits = wanted.is_some_and(|wanted| match wanted {
                DType::Array(..) => {
                    dtype.size() * shape.iter().product::<u64>() == wanted.size()
                        && dtype.holds(&shape, wanted)
                }
                _ => dtype == *wanted && shape.is_empty(),
            });
            if !fits {
                let wanted = wanted.map(|wanted| format!(", laid out as {wanted}"));
                let expected = format!("a value of type `{ty}`{}", wanted.unwrap_or_default());
                let given = format!("a value of {dtype} of shape {shape:?}");
                return Err(self.refused(target, &expected, &given));
            }
            return Ok(Value::Bytes(object.call_method0("tobytes")?.extract()?));
        }
        let parts = self.parts(ty);
        let mut values = Vec::with_capacity(parts.len());
        if let Ok(named) = object.cast::<PyDict>() {
            if named.len() != parts.len() {
                let given = format!("a dictionary of {}", named.len());
                return Err(self.mismatch(target, ty, &given));
            }
            for (name, part) in &parts {
                let path = format!("{}{name}", target.path);
                let key = name.trim_start_matches('.');
                let Some(value) = named.get_item(key)? else {
                    let given = format!("a dictionary without `{key}`");
                    return Err(self.mismatch(target, ty, &given));
                };
                values.push(self.part(&value, part, &path, target.index)?);
            }
            return Ok(Value::Fields(values));
        }
        let is_sequence = object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>();
        if !is_sequence || object.len()? != parts.len() {
            return Err(self.mismatch(target, ty, &describe(object)));
        }
        for (value, (name, part)) in object.try_iter()?.zip(&parts) {
            let path = format!("{}{name}", target.path);
            values.push(self.part(&value?, part, &path, target.index)?);
        }
        Ok(Value::Fields(values))
    }

    fn part(
        &mut self,
        value: &Bound<'_, PyAny>,
        ty: &Type,
        path: &str,
        index: usize,
    ) -> PyResult<Value> {
        let wanted = match ty {
            Type::Pointer { to, .. } => DType::of_program(to, self.manifest),
            other => DType::of_program(other, self.manifest),
        };
        self.value(value, ty, wanted.as_ref(), &Target { index, path })
    }

    /// The parts of a struct, vector or array, each with its place as messages show it.
    fn parts(&self, ty: &Type) -> Vec<(String, Type)> {
        match ty {
            Type::Struct(name) => {
                let known = self.manifest.structs.iter().find(|known| known.name == *name);
                let fields = known.map(|known| known.fields.as_slice()).unwrap_or_default();
                fields.iter().map(|it| (format!(".{}", it.name), it.ty.clone())).collect()
            }
            Type::Vector { element, count } => {
                let lanes = ["x", "y", "z", "w"].into_iter().take(*count as usize);
                lanes.map(|lane| (format!(".{lane}"), Type::Scalar(element.clone()))).collect()
            }
            Type::Array { element, count } => {
                (0..*count).map(|at| (format!("[{at}]"), (**element).clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn mismatch(&self, target: &Target<'_>, ty: &Type, given: &str) -> PyErr {
        let expected = match ty {
            Type::Pointer { mutable: true, to } => format!("a mutable buffer of `{to}`"),
            Type::Pointer { mutable: false, to } => format!("a buffer of `{to}`"),
            _ => format!("a value of type `{ty}`"),
        };
        self.refused(target, &expected, given)
    }

    fn refused(&self, target: &Target<'_>, expected: &dyn Display, given: &str) -> PyErr {
        PyTypeError::new_err(format!(
            "kernel `{}`, argument {} (`{}`): expected {expected}, given {given}",
            self.kernel.name, target.index, target.path
        ))
    }
}

/// A Python object, as messages name it.
fn describe(object: &Bound<'_, PyAny>) -> String {
    let kind = object.get_type();
    let name = kind.name().map(|name| name.to_string()).unwrap_or_default();
    let is_short = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyBool>()
        || object.is_instance_of::<pyo3::types::PyFloat>();
    match object.repr() {
        Ok(shown) if is_short => format!("{shown} (`{name}`)"),
        _ => format!("a `{name}`"),
    }
}
