//! Element types: NumPy's and DLPack's, compared with the program's.

use std::fmt;

use gridlet_runtime::ScalarType;
use gridlet_runtime::manifest::{Manifest, Struct, Type};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// The type of an array's elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DType {
    /// A number or a Boolean.
    Scalar(ScalarType),
    /// A structured type.
    Struct {
        /// Size in bytes, with padding.
        size: u64,
        /// Fields in the order of their offsets.
        fields: Vec<DField>,
    },
    /// A fixed number of elements.
    Array(Box<DType>, u64),
}

/// A field of a structured type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DField {
    name: String,
    offset: u64,
    dtype: DType,
}

/// The module `numpy`, which only arrays need: importing it takes longer than importing this package.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?.bind(py))
}

/// `numpy.dtype(object)`.
pub(crate) fn numpy_dtype<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    numpy(object.py())?.getattr("dtype")?.call1((object,))
}

impl DType {
    /// Reads a `numpy.dtype`.
    pub(crate) fn of_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
        let refused =
            || PyTypeError::new_err(format!("kernels have no type like the dtype {dtype}"));
        if dtype.getattr("byteorder")?.extract::<String>()? == ">" {
            return Err(PyTypeError::new_err(format!(
                "the dtype {dtype} has another byte order than the devices; use `.newbyteorder('=')`"
            )));
        }
        let fields = dtype.getattr("fields")?;
        if !fields.is_none() {
            let mut all = Vec::new();
            for name in dtype.getattr("names")?.extract::<Vec<String>>()? {
                let field = fields.get_item(&name)?;
                all.push(DField {
                    name,
                    offset: field.get_item(1)?.extract()?,
                    dtype: DType::of_numpy(&field.get_item(0)?)?,
                });
            }
            all.sort_by_key(|field| field.offset);
            return Ok(DType::Struct { size: dtype.getattr("itemsize")?.extract()?, fields: all });
        }
        let sub = dtype.getattr("subdtype")?;
        if let Ok(sub) = sub.cast::<PyTuple>() {
            let mut element = DType::of_numpy(&sub.get_item(0)?)?;
            for count in sub.get_item(1)?.extract::<Vec<u64>>()?.into_iter().rev() {
                element = DType::Array(Box::new(element), count);
            }
            return Ok(element);
        }
        let kind: String = dtype.getattr("kind")?.extract()?;
        let size: u64 = dtype.getattr("itemsize")?.extract()?;
        let scalar = match (kind.as_str(), size) {
            ("b", 1) => ScalarType::Bool,
            ("i", 1) => ScalarType::I8,
            ("i", 2) => ScalarType::I16,
            ("i", 4) => ScalarType::I32,
            ("i", 8) => ScalarType::I64,
            ("u", 1) => ScalarType::U8,
            ("u", 2) => ScalarType::U16,
            ("u", 4) => ScalarType::U32,
            ("u", 8) => ScalarType::U64,
            ("f", 2) => ScalarType::F16,
            ("f", 4) => ScalarType::F32,
            ("f", 8) => ScalarType::F64,
            _ if dtype.getattr("name")?.extract::<String>()? == "bfloat16" => ScalarType::Bf16,
            _ => return Err(refused()),
        };
        Ok(DType::Scalar(scalar))
    }

    /// The `numpy.dtype`. bfloat16, which NumPy lacks, becomes the 16 bits of it, unless `ml_dtypes` is installed.
    pub(crate) fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            DType::Scalar(ScalarType::Bf16) => match py.import("ml_dtypes") {
                Ok(module) => numpy_dtype(&module.getattr("bfloat16")?),
                Err(_) => numpy_dtype(&"uint16".into_pyobject(py)?.into_any()),
            },
            DType::Scalar(scalar) => {
                numpy_dtype(&numpy_name(*scalar).into_pyobject(py)?.into_any())
            }
            DType::Array(element, count) => {
                let pair = (element.to_numpy(py)?, (*count,));
                numpy_dtype(&pair.into_pyobject(py)?.into_any())
            }
            DType::Struct { size, fields } => {
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let offsets: Vec<u64> = fields.iter().map(|field| field.offset).collect();
                let formats: Vec<_> =
                    fields.iter().map(|field| field.dtype.to_numpy(py)).collect::<PyResult<_>>()?;
                let described = PyDict::new(py);
                described.set_item("names", names)?;
                described.set_item("formats", formats)?;
                described.set_item("offsets", offsets)?;
                described.set_item("itemsize", size)?;
                numpy_dtype(described.as_any())
            }
        }
    }

    /// The type of a program, as the layout pass laid it out. Pointers and streams are 64-bit numbers.
    pub(crate) fn of_program(ty: &Type, manifest: &Manifest) -> Option<DType> {
        Some(match ty {
            Type::Scalar(name) => DType::Scalar(ScalarType::from_name(name)?),
            Type::Vector { element, count } => {
                let element = DType::Scalar(ScalarType::from_name(element)?);
                DType::Array(Box::new(element), u64::from(*count))
            }
            Type::Array { element, count } => {
                DType::Array(Box::new(DType::of_program(element, manifest)?), *count)
            }
            Type::Struct(name) => {
                let known = manifest.structs.iter().find(|known| known.name == *name)?;
                DType::of_struct(known, manifest)?
            }
            Type::Pointer { .. } | Type::Stream => DType::Scalar(ScalarType::U64),
        })
    }

    fn of_struct(known: &Struct, manifest: &Manifest) -> Option<DType> {
        let field = |field: &gridlet_runtime::manifest::Field| {
            let dtype = DType::of_program(&field.ty, manifest)?;
            Some(DField { name: field.name.clone(), offset: field.offset, dtype })
        };
        let fields = known.fields.iter().map(field).collect::<Option<_>>()?;
        Some(DType::Struct { size: known.size, fields })
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            DType::Scalar(scalar) => scalar.size(),
            DType::Struct { size, .. } => *size,
            DType::Array(element, count) => element.size().saturating_mul(*count),
        }
    }

    /// Whether memory of these elements, in an array of this shape, holds elements of a program's type. The last
    /// dimensions may be the type's own: an array of `float32` of shape `(n, 3)` holds `[f32; 3]`.
    pub(crate) fn holds(&self, shape: &[u64], wanted: &DType) -> bool {
        if self == wanted || matches!(self, DType::Scalar(ScalarType::U8)) {
            return true;
        }
        match (self, wanted) {
            (DType::Scalar(ScalarType::U16), DType::Scalar(ScalarType::F16 | ScalarType::Bf16)) => {
                true
            }
            (_, DType::Array(_, _)) => {
                let mut lengths = Vec::new();
                let mut innermost = wanted;
                while let DType::Array(element, count) = innermost {
                    lengths.push(*count);
                    innermost = element;
                }
                shape.ends_with(&lengths) && self.holds(&[], innermost)
            }
            _ => false,
        }
    }
}

/// NumPy's name of a type that it has.
fn numpy_name(scalar: ScalarType) -> &'static str {
    match scalar {
        ScalarType::Bool => "bool",
        ScalarType::I8 => "int8",
        ScalarType::I16 => "int16",
        ScalarType::I32 => "int32",
        ScalarType::I64 => "int64",
        ScalarType::U8 => "uint8",
        ScalarType::U16 => "uint16",
        ScalarType::U32 => "uint32",
        ScalarType::U64 => "uint64",
        ScalarType::F16 => "float16",
        ScalarType::Bf16 => "bfloat16",
        ScalarType::F32 => "float32",
        ScalarType::F64 => "float64",
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Scalar(scalar) => f.write_str(numpy_name(*scalar)),
            DType::Array(element, count) => write!(f, "{element}[{count}]"),
            DType::Struct { size, fields } => {
                f.write_str("{")?;
                for field in fields {
                    write!(f, "{}: {} at {}, ", field.name, field.dtype, field.offset)?;
                }
                write!(f, "{size} bytes}}")
            }
        }
    }
}
