//! The launch of a kernel of the suite: geometry, arguments, results.

use anyhow::{bail, ensure};
use gridlet_runtime::{Arg, Buffer, Device, Dim3, LaunchConfig};

/// One launch.
pub struct Case {
    /// Its geometry.
    pub config: LaunchConfig,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// How far a floating-point result may be from the expected one, relative to the greater of the expected one and the
    /// root mean square of its array; 0 where no product and sum can fuse and no function of libdevice is called.
    pub tolerance: f64,
}

/// An argument.
pub enum Argument {
    /// A `u32`.
    U32(u32),
    /// An `i32`.
    I32(i32),
    /// A `u64`.
    U64(u64),
    /// An `f32`.
    F32(f32),
    /// A pointer to an array that the kernel only reads.
    Input(Array),
    /// A pointer to an array that the kernel writes.
    Output(Array),
    /// The same, but the contents depend on the order of the threads and are not compared.
    Scratch(Array),
}

macro_rules! arrays {
    ($($variant:ident $ty:ty),*) => {
        /// The elements of an array.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "the variants are named like their elements")]
        pub enum Array {
            $($variant(Vec<$ty>)),*
        }

        $(impl From<Vec<$ty>> for Array {
            fn from(values: Vec<$ty>) -> Array {
                Array::$variant(values)
            }
        })*

        /// An array in device memory.
        enum Memory {
            $($variant(Buffer<$ty>)),*
        }

        impl Memory {
            fn new(device: &Device, array: &Array) -> anyhow::Result<Memory> {
                Ok(match array {
                    $(Array::$variant(values) => {
                        Memory::$variant(Buffer::from_slice(device, values)?)
                    })*
                })
            }

            fn address(&self) -> u64 {
                match self {
                    $(Memory::$variant(buffer) => buffer.address()),*
                }
            }

            fn copy_from(&mut self, from: &Memory) -> anyhow::Result<()> {
                match (self, from) {
                    $((Memory::$variant(to), Memory::$variant(from)) => Ok(to.copy_from(from)?),)*
                    _ => bail!("the arrays have different elements"),
                }
            }

            fn read(&self) -> anyhow::Result<Array> {
                Ok(match self {
                    $(Memory::$variant(buffer) => Array::$variant(buffer.to_vec()?)),*
                })
            }
        }
    };
}

arrays!(U8 u8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64);

macro_rules! getters {
    ($($get:ident $variant:ident $ty:ty),*) => {
        impl Case {
            $(/// The elements of the argument at `at`; none if it is no such array.
            pub(super) fn $get(&self, at: usize) -> &[$ty] {
                match self.arguments.get(at) {
                    Some(
                        Argument::Input(Array::$variant(values))
                        | Argument::Output(Array::$variant(values))
                        | Argument::Scratch(Array::$variant(values)),
                    ) => values,
                    _ => &[],
                }
            })*
        }
    };
}

getters!(u8s U8 u8, u16s U16 u16, i16s I16 i16, u32s U32 u32, i32s I32 i32, u64s U64 u64, i64s I64 i64, f32s F32 f32, f64s F64 f64);

impl Case {
    pub(super) fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Case {
        let config = LaunchConfig::new(grid, block);
        Case { config, arguments: Vec::new(), tolerance: 0.0 }
    }

    /// Enough blocks of `block` threads for `n` threads.
    pub(super) fn threads(n: u32, block: u32) -> Case {
        Case::new(n.div_ceil(block), block)
    }

    fn with(mut self, argument: Argument) -> Case {
        self.arguments.push(argument);
        self
    }

    pub(super) fn u32(self, value: u32) -> Case {
        self.with(Argument::U32(value))
    }

    pub(super) fn i32(self, value: i32) -> Case {
        self.with(Argument::I32(value))
    }

    pub(super) fn u64(self, value: u64) -> Case {
        self.with(Argument::U64(value))
    }

    pub(super) fn f32(self, value: f32) -> Case {
        self.with(Argument::F32(value))
    }

    pub(super) fn input(self, array: impl Into<Array>) -> Case {
        self.with(Argument::Input(array.into()))
    }

    pub(super) fn output(self, array: impl Into<Array>) -> Case {
        self.with(Argument::Output(array.into()))
    }

    pub(super) fn scratch(self, array: impl Into<Array>) -> Case {
        self.with(Argument::Scratch(array.into()))
    }

    pub(super) fn within(self, tolerance: f64) -> Case {
        Case { tolerance, ..self }
    }

    /// The integer at `at`; 0 if it is none.
    pub(super) fn number(&self, at: usize) -> usize {
        match self.arguments.get(at) {
            Some(Argument::U32(value)) => *value as usize,
            Some(Argument::I32(value)) => *value as usize,
            Some(Argument::U64(value)) => *value as usize,
            _ => 0,
        }
    }

    /// The `f32` at `at`; 0 if it is none.
    pub(super) fn real(&self, at: usize) -> f32 {
        match self.arguments.get(at) {
            Some(Argument::F32(value)) => *value,
            _ => 0.0,
        }
    }

    /// Compares results element by element.
    ///
    /// # Errors
    /// The first element that differs by more than the tolerance.
    pub fn compare(&self, found: &[Array], expected: &[Array]) -> anyhow::Result<()> {
        ensure!(found.len() == expected.len(), "{} results", found.len());
        for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
            let difference = match (found, expected) {
                (Array::F32(found), Array::F32(expected)) => {
                    self.difference(found, expected, |x| f64::from(*x))
                }
                (Array::F64(found), Array::F64(expected)) => {
                    self.difference(found, expected, |x| *x)
                }
                _ => equal(found, expected),
            };
            if let Some(difference) = difference {
                bail!("result {number}: {difference}");
            }
        }
        Ok(())
    }

    fn difference<T>(
        &self,
        found: &[T],
        expected: &[T],
        value: impl Fn(&T) -> f64,
    ) -> Option<String> {
        if found.len() != expected.len() {
            return Some(format!("{} elements instead of {}", found.len(), expected.len()));
        }
        let squares: f64 = expected.iter().map(|x| value(x).powi(2)).filter(|x| !x.is_nan()).sum();
        let size = (squares / expected.len() as f64).sqrt();
        let pairs =
            found.iter().zip(expected).map(|(found, expected)| (value(found), value(expected)));
        pairs.enumerate().find_map(|(at, (found, expected))| {
            let limit = self.tolerance * expected.abs().max(size);
            // Written so that NaN differs from everything but NaN.
            let is_near = (found - expected).abs() <= limit
                || found == expected
                || found.is_nan() && expected.is_nan();
            (!is_near).then(|| format!("element {at} is {found}, expected {expected}"))
        })
    }
}

fn equal(found: &Array, expected: &Array) -> Option<String> {
    macro_rules! first_difference {
        ($($variant:ident),*) => {
            match (found, expected) {
                $((Array::$variant(found), Array::$variant(expected)) => {
                    if found.len() != expected.len() {
                        return Some(format!("{} elements instead of {}", found.len(), expected.len()));
                    }
                    let at = (0..found.len()).find(|&at| found[at] != expected[at])?;
                    Some(format!("element {at} is {}, expected {}", found[at], expected[at]))
                })*
                _ => Some("the elements have different types".into()),
            }
        };
    }
    first_difference!(U8, U16, I16, U32, I32, U64, I64)
}

/// A case in device memory.
pub struct Loaded<'a> {
    case: &'a Case,
    /// By argument, an array's memory, and a copy of its first contents if the kernel writes it.
    memory: Vec<Option<(Memory, Option<Memory>)>>,
}

impl<'a> Loaded<'a> {
    /// Allocates and fills the arrays.
    ///
    /// # Errors
    /// The errors of the runtime.
    pub fn new(device: &Device, case: &'a Case) -> anyhow::Result<Loaded<'a>> {
        let load = |argument: &Argument| {
            Ok(match argument {
                Argument::Input(array) => Some((Memory::new(device, array)?, None)),
                Argument::Output(array) | Argument::Scratch(array) => {
                    Some((Memory::new(device, array)?, Some(Memory::new(device, array)?)))
                }
                _ => None,
            })
        };
        let memory = case.arguments.iter().map(load).collect::<anyhow::Result<_>>()?;
        Ok(Loaded { case, memory })
    }

    /// The arguments of a launch.
    pub fn arguments(&self) -> Vec<Arg<'static>> {
        let arguments = self.case.arguments.iter().zip(&self.memory);
        arguments
            .map(|(argument, memory)| match (argument, memory) {
                (Argument::U32(value), _) => Arg::from(*value),
                (Argument::I32(value), _) => Arg::from(*value),
                (Argument::U64(value), _) => Arg::from(*value),
                (Argument::F32(value), _) => Arg::from(*value),
                (_, Some((memory, _))) => Arg::address(memory.address()),
                (_, None) => Arg::null(),
            })
            .collect()
    }

    /// Gives the arrays that the kernel writes their first contents again.
    ///
    /// # Errors
    /// The errors of the runtime.
    pub fn reset(&mut self) -> anyhow::Result<()> {
        for (memory, first) in self.memory.iter_mut().flatten() {
            if let Some(first) = first {
                memory.copy_from(first)?;
            }
        }
        Ok(())
    }

    /// The arrays that the kernel writes.
    ///
    /// # Errors
    /// The errors of the runtime.
    pub fn results(&self) -> anyhow::Result<Vec<Array>> {
        let arguments = self.case.arguments.iter().zip(&self.memory);
        let written = arguments.filter(|(argument, _)| matches!(argument, Argument::Output(_)));
        written.filter_map(|(_, memory)| memory.as_ref()).map(|(memory, _)| memory.read()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_beyond_the_tolerance_is_found() {
        let case = Case::new(1, 1).within(1e-3);
        let compare = |found: Vec<f32>, expected: Vec<f32>| {
            case.compare(&[found.into()], &[expected.into()]).map_err(|error| error.to_string())
        };
        assert_eq!(compare(vec![0.5, 2000.0, f32::NAN], vec![0.0, 2001.0, f32::NAN]), Ok(()));
        let error = "result 0: element 1 is 2, expected 2.5";
        assert_eq!(compare(vec![1.0, 2.0], vec![1.0, 2.5]), Err(error.into()));
        assert!(compare(vec![0.002, 0.0], vec![0.001, 0.0]).is_err());
        assert!(compare(vec![f32::NAN], vec![1.0]).is_err());
        assert!(compare(vec![1.0], vec![f32::NAN]).is_err());
        assert!(compare(vec![1.0], vec![1.0, 1.0]).is_err());
        let error = case.compare(&[vec![1u32, 2].into()], &[vec![1u32, 3].into()]);
        assert_eq!(
            error.map_err(|error| error.to_string()),
            Err("result 0: element 1 is 2, expected 3".into())
        );
    }
}
