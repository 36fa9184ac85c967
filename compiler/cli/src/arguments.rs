//! `--arg`: parses a kernel argument according to its parameter's type.
//!
//! | type | text |
//! |---|---|
//! | scalar | `7`, `-2.5`, `0xff`, `true` |
//! | pointer | `[1024]` (zeros), `[1024]=iota`, `[1024]=fill:V`, `[1024]=random:SEED`, `@file.bin`, `null` |
//! | struct, vector, array | `{…}`: its parts in order, separated by commas |
//!
//! A pointer in a struct gets its own buffer, named `parameter.field`. `iota` and `random` number the scalars of a buffer
//! one after the other, also those in vectors, arrays and structs.

use std::fs;

use gridlet_runtime::manifest::{Manifest, Parameter, Type};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::value::{encode_float, encode_scalar};

/// Maximum size of the buffer of one `--arg`: 64 GiB. A larger one is almost certainly a typing
/// error.
const MAX_BUFFER_BYTES: u64 = 64 << 30;

/// A buffer that an argument needs.
#[derive(Debug, PartialEq)]
pub(crate) struct BufferPlan {
    /// `data`, or `segments.values` for a field.
    pub(crate) name: String,
    /// Type of the pointer to it.
    pub(crate) ty: Type,
    /// Type of an element.
    pub(crate) element: Type,
    /// Size of an element, in bytes.
    pub(crate) element_bytes: usize,
    /// Size of the buffer, in bytes.
    pub(crate) bytes: u64,
    /// Initial contents; zeros if `None`.
    pub(crate) contents: Option<Vec<u8>>,
    /// Offset of the buffer's address in the argument, in bytes.
    pub(crate) address_at: usize,
}

impl BufferPlan {
    /// Its name and type, for messages: `data: *mut f32`.
    pub(crate) fn shown(&self) -> String {
        format!("{}: {}", self.name, self.ty)
    }
}

/// An argument: its bytes, with gaps for the addresses of buffers.
#[derive(Debug, PartialEq)]
pub(crate) struct ArgumentPlan {
    /// As large as the parameter.
    pub(crate) bytes: Vec<u8>,
    /// The buffers, in the order of the text.
    pub(crate) buffers: Vec<BufferPlan>,
}

/// Why an argument cannot be passed.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    /// The text is wrong.
    Text(String),
    /// The host lacks memory for a buffer of this many bytes.
    Memory(usize),
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Refused::Text(message)
    }
}

impl From<&str> for Refused {
    fn from(message: &str) -> Self {
        Refused::Text(message.into())
    }
}

/// Zeros, unless the host lacks the memory: the user chooses the size.
pub(crate) fn zeros(bytes: usize) -> Result<Vec<u8>, Refused> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(bytes).map_err(|_| Refused::Memory(bytes))?;
    zeros.resize(bytes, 0);
    Ok(zeros)
}

/// Parses the text of one argument.
pub(crate) fn parse(
    text: &str,
    parameter: &Parameter,
    manifest: &Manifest,
) -> Result<ArgumentPlan, Refused> {
    let mut parser = Parser {
        rest: text.trim(),
        manifest,
        plan: ArgumentPlan { bytes: vec![0; parameter.size as usize], buffers: Vec::new() },
    };
    let parsed = parser.value(&parameter.ty, 0, &parameter.name).and_then(|()| {
        let rest = parser.rest;
        if rest.is_empty() { Ok(()) } else { Err(format!("unexpected `{rest}` at the end").into()) }
    });
    match parsed {
        Ok(()) => Ok(parser.plan),
        Err(Refused::Text(error)) => {
            let Parameter { name, ty, .. } = parameter;
            Err(format!("argument `{name}: {ty}` = `{text}`: {error}").into())
        }
        Err(memory) => Err(memory),
    }
}

struct Parser<'a> {
    rest: &'a str,
    manifest: &'a Manifest,
    plan: ArgumentPlan,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str, why: &str) -> Result<(), String> {
        if self.eat(token) {
            return Ok(());
        }
        let found =
            if self.rest.is_empty() { "the end".to_owned() } else { format!("`{}`", self.rest) };
        Err(format!("expected `{token}` {why}, found {found}"))
    }

    /// The text up to a comma, a closing bracket or the end.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.trim()
    }

    /// Size of a type in bytes. The manifest of a damaged artifact may lack it.
    fn size_of(&self, ty: &Type) -> Result<usize, String> {
        self.manifest
            .size_of(ty)
            .and_then(|size| usize::try_from(size).ok())
            .ok_or_else(|| format!("the manifest does not give the size of {ty}"))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), String> {
        let room = self
            .plan
            .bytes
            .get_mut(at..at + bytes.len())
            .ok_or("the manifest's offsets contradict its sizes")?;
        room.copy_from_slice(bytes);
        Ok(())
    }

    fn value(&mut self, ty: &Type, at: usize, name: &str) -> Result<(), Refused> {
        match ty {
            Type::Scalar(scalar) => {
                let bytes = encode_scalar(self.word(), scalar)?;
                Ok(self.put(at, &bytes)?)
            }
            Type::Vector { element, count } => {
                let part = Type::Scalar(element.clone());
                self.parts(
                    (0..u64::from(*count)).map(|index| (index.to_string(), part.clone(), None)),
                    at,
                    name,
                    ty,
                )
            }
            Type::Array { element, count } => self.parts(
                (0..*count).map(|index| (index.to_string(), (**element).clone(), None)),
                at,
                name,
                ty,
            ),
            Type::Struct(struct_name) => {
                let manifest = self.manifest;
                let item =
                    manifest.structs.iter().find(|item| item.name == *struct_name).ok_or_else(
                        || format!("the manifest does not describe struct `{struct_name}`"),
                    )?;
                let fields = item
                    .fields
                    .iter()
                    .map(|field| (field.name.clone(), field.ty.clone(), Some(field.offset)));
                self.parts(fields, at, name, ty)
            }
            Type::Pointer { to, .. } => self.pointer(ty, to, at, name),
            Type::Stream => {
                Err("a stream exists only on the device; the host cannot pass one".into())
            }
        }
    }

    /// `{a, b, …}`, or the syntax that `--print` writes: `[a, b]` for arrays and vectors,
    /// `{"x": a}` or `{x: a}` for structs. A part without an offset directly follows the one before
    /// it.
    fn parts(
        &mut self,
        parts: impl Iterator<Item = (String, Type, Option<u64>)>,
        at: usize,
        name: &str,
        ty: &Type,
    ) -> Result<(), Refused> {
        let is_struct = matches!(ty, Type::Struct(_));
        let end = if !is_struct && self.eat("[") { "]" } else { "}" };
        if end == "}" {
            self.expect("{", &format!("to begin {ty}"))?;
        }
        let mut next = at;
        for (index, (part, part_type, offset)) in parts.enumerate() {
            if index > 0 {
                self.expect(",", &format!("before `{part}` of {ty}"))?;
            }
            if is_struct {
                self.field_name(&part, ty)?;
            }
            let here = offset.map_or(next, |offset| at + offset as usize);
            self.value(&part_type, here, &format!("{name}.{part}"))?;
            next = here + self.size_of(&part_type)?;
        }
        self.eat(",");
        Ok(self.expect(end, &format!("to end {ty}"))?)
    }

    /// The optional name before a field's value.
    fn field_name(&mut self, field: &str, ty: &Type) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '"' | ' ');
        let end = self.rest.find(|c: char| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let Some(rest) = rest.strip_prefix(':') else { return Ok(()) };
        let name = name.trim();
        let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        if bare != field {
            return Err(format!(
                "expected `{field}` of {ty}, found `{bare}`: fields keep their order"
            ));
        }
        self.rest = rest.trim_start();
        Ok(())
    }

    fn pointer(&mut self, ty: &Type, element: &Type, at: usize, name: &str) -> Result<(), Refused> {
        if self.eat("null") {
            return Ok(());
        }
        let element_bytes = self.size_of(element)?.max(1);
        let (bytes, contents) = if self.eat("@") {
            let path = self.word();
            let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
            if bytes.len() % element_bytes != 0 {
                return Err(format!(
                    "{path} has {} bytes, not a multiple of {element_bytes}, the size of {element}",
                    bytes.len()
                )
                .into());
            }
            (bytes.len() as u64, Some(bytes))
        } else {
            self.expect("[", "and a number of elements, `@file` or `null`, for a pointer")?;
            let count = self.word();
            let count: u64 = count
                .replace('_', "")
                .parse()
                .map_err(|_| format!("`{count}` is not a number of elements"))?;
            self.expect("]", "after the number of elements")?;
            let bytes = count
                .checked_mul(element_bytes as u64)
                .filter(|bytes| *bytes <= MAX_BUFFER_BYTES)
                .ok_or_else(|| {
                    format!("{count} elements of {element_bytes} bytes exceed 64 GiB")
                })?;
            let contents = if self.eat("=") {
                let mut contents = zeros(bytes as usize)?;
                self.fill(&mut contents, element, element_bytes)?;
                Some(contents)
            } else {
                None
            };
            (bytes, contents)
        };
        self.plan.buffers.push(BufferPlan {
            name: name.to_owned(),
            ty: ty.clone(),
            element: element.clone(),
            element_bytes,
            bytes,
            contents,
            address_at: at,
        });
        Ok(())
    }

    fn fill(
        &mut self,
        contents: &mut [u8],
        element: &Type,
        element_bytes: usize,
    ) -> Result<(), Refused> {
        if self.eat("fill:") {
            let mut one = Parser {
                rest: self.rest,
                manifest: self.manifest,
                plan: ArgumentPlan { bytes: zeros(element_bytes)?, buffers: Vec::new() },
            };
            one.value(element, 0, "element")?;
            if !one.plan.buffers.is_empty() {
                return Err(
                    "elements that point to buffers cannot be filled in; use `@file` or `null`"
                        .into(),
                );
            }
            self.rest = one.rest;
            contents
                .chunks_exact_mut(element_bytes)
                .for_each(|chunk| chunk.copy_from_slice(&one.plan.bytes));
            return Ok(());
        }
        let word = self.word();
        let mut numbers = match word.strip_prefix("random:") {
            _ if word == "iota" => Numbers::Counting(0),
            Some(seed) => {
                let seed = seed
                    .parse()
                    .map_err(|_| format!("`{seed}` is not a seed: a number from 0 to 2^64 - 1"))?;
                Numbers::Random(Box::new(ChaCha8Rng::seed_from_u64(seed)))
            }
            None => {
                return Err(format!("`{word}` is not `iota`, `fill:V` or `random:SEED`").into());
            }
        };
        for chunk in contents.chunks_exact_mut(element_bytes) {
            self.number(chunk, element, &mut numbers)?;
        }
        Ok(())
    }

    /// Fills the scalars of a value, in order. Bytes between them stay 0.
    fn number(&self, bytes: &mut [u8], ty: &Type, numbers: &mut Numbers) -> Result<(), Refused> {
        const WRONG: &str = "the manifest's offsets contradict its sizes";
        let mut parts = |count: u64, part: &Type| {
            let size = self.size_of(part)?;
            for index in 0..count as usize {
                let part_bytes = bytes.get_mut(index * size..(index + 1) * size).ok_or(WRONG)?;
                self.number(part_bytes, part, numbers)?;
            }
            Ok(())
        };
        match ty {
            Type::Scalar(scalar) => {
                numbers.write(scalar, bytes);
                Ok(())
            }
            Type::Vector { element, count } => {
                parts(u64::from(*count), &Type::Scalar(element.clone()))
            }
            Type::Array { element, count } => parts(*count, element),
            Type::Struct(name) => {
                let described = self.manifest.structs.iter().find(|item| item.name == *name);
                for field in described.iter().flat_map(|item| &item.fields) {
                    let (start, size) = (field.offset as usize, self.size_of(&field.ty)?);
                    let part = bytes.get_mut(start..start + size).ok_or(WRONG)?;
                    self.number(part, &field.ty, numbers)?;
                }
                Ok(())
            }
            Type::Pointer { .. } | Type::Stream => Err(format!(
                "elements with {ty} are filled by `fill:V` or `@file`, not by `iota` or `random:SEED`"
            )
            .into()),
        }
    }
}

/// The numbers of `iota` and `random:SEED`.
enum Numbers {
    /// The next number.
    Counting(u64),
    Random(Box<ChaCha8Rng>),
}

impl Numbers {
    /// Writes the next number as a scalar, which fills `to`.
    fn write(&mut self, scalar: &str, to: &mut [u8]) {
        let (word, float) = match self {
            // Integers wrap, as a counter of that type would.
            Numbers::Counting(next) => {
                let number = *next;
                *next += 1;
                (if scalar == "bool" { number % 2 } else { number }, number as f64)
            }
            Numbers::Random(random) => {
                let word = random.next_u64();
                // From 0 to 1, with as many bits as the significand has, so that 1.0 is never reached.
                let bits = match scalar {
                    "f64" => 53,
                    "f32" => 24,
                    "f16" => 11,
                    _ => 8,
                };
                let unit = (word >> (64 - bits)) as f64 / (1u64 << bits) as f64;
                let used = if scalar == "bool" { 1 } else { 8 * to.len() as u32 };
                (word >> (64 - used), unit)
            }
        };
        match encode_float(float, scalar) {
            Some(bytes) => to.copy_from_slice(&bytes),
            None => to.copy_from_slice(&word.to_le_bytes()[..to.len()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use gridlet_runtime::manifest::{Field, Struct};

    use super::*;

    fn scalar(name: &str) -> Type {
        Type::Scalar(name.into())
    }

    fn pointer(to: Type) -> Type {
        Type::Pointer { mutable: true, to: Box::new(to) }
    }

    fn manifest() -> Manifest {
        let field = |name: &str, ty, offset| Field::new(name, ty, offset);
        let mut manifest = Manifest::new("p");
        manifest.structs = vec![
            Struct::new(
                "Segments",
                16,
                8,
                vec![field("values", pointer(scalar("f32")), 0), field("count", scalar("u32"), 8)],
            ),
            Struct::new(
                "Pair",
                8,
                4,
                vec![field("key", scalar("u8"), 0), field("value", scalar("f32"), 4)],
            ),
        ];
        manifest
    }

    fn plan(text: &str, ty: Type) -> Result<ArgumentPlan, Refused> {
        let manifest = manifest();
        let size = manifest.size_of(&ty).unwrap() as u32;
        parse(text, &Parameter::new("a", ty, 0, size, 1), &manifest)
    }

    #[test]
    fn buffers_are_filled_as_requested() {
        let contents = |text: &str, ty: &str| {
            plan(text, pointer(scalar(ty))).unwrap().buffers.remove(0).contents.unwrap()
        };
        let zeros = plan("[3]", pointer(scalar("u16"))).unwrap().buffers.remove(0);
        assert_eq!((zeros.bytes, zeros.contents), (6, None));
        assert_eq!(contents("[3]=iota", "u16"), [0, 0, 1, 0, 2, 0]);
        assert_eq!(contents("[2]=fill:-1", "i8"), [255, 255]);
        assert_eq!(contents("[1]=iota", "f32"), 0f32.to_le_bytes());
        let random = contents("[4096]=random:7", "f32");
        assert_eq!(random, contents("[4096]=random:7", "f32"));
        assert_ne!(random, contents("[4096]=random:8", "f32"));
        let values: Vec<f32> =
            random.chunks(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        assert!((0.45..0.55).contains(&mean), "mean {mean}");
    }

    #[test]
    fn the_parts_of_elements_are_filled_in_order() {
        let vector = Type::Vector { element: "u16".into(), count: 3 };
        let array = Type::Array { element: Box::new(vector.clone()), count: 2 };
        let contents =
            |text: &str, ty| plan(text, pointer(ty)).unwrap().buffers.remove(0).contents.unwrap();
        assert_eq!(contents("[2]=iota", vector.clone()), contents("[6]=iota", scalar("u16")));
        assert_eq!(contents("[2]=iota", array.clone()), contents("[12]=iota", scalar("u16")));
        assert_eq!(contents("[2]=random:5", array), contents("[12]=random:5", scalar("u16")));
        let pairs = contents("[2]=iota", Type::Struct("Pair".into()));
        assert_eq!(pairs, [[0, 0, 0, 0], [0, 0, 128, 63], [2, 0, 0, 0], [0, 0, 64, 64]].concat());
        let random = contents("[100]=random:1", Type::Struct("Pair".into()));
        let unit = |pair: &[u8]| f32::from_le_bytes(pair[4..8].try_into().unwrap());
        assert!(
            random.chunks(8).all(|pair| pair[1..4] == [0; 3] && (0.0..1.0).contains(&unit(pair)))
        );
        assert!(random.chunks(8).any(|pair| pair[0] != random[0]));
    }

    #[test]
    fn a_struct_takes_its_fields_in_order_and_buffers_for_its_pointers() {
        let plan = plan("{[2]=fill:1.5, 7}", Type::Struct("Segments".into())).unwrap();
        assert_eq!(plan.bytes[8..12], 7u32.to_le_bytes());
        assert_eq!(plan.buffers[0].name, "a.values");
        assert_eq!((plan.buffers[0].address_at, plan.buffers[0].bytes), (0, 8));
    }

    #[test]
    fn invalid_arguments_are_explained() {
        let error = |text: &str, ty| match plan(text, ty) {
            Err(Refused::Text(error)) => error,
            other => panic!("{text}: {other:?}"),
        };
        let errors = [
            error("7 8", scalar("u32")),
            error("", scalar("u32")),
            error("7", pointer(scalar("u32"))),
            error("[x]", pointer(scalar("u32"))),
            error("[2", pointer(scalar("u32"))),
            error("[2]=sorted", pointer(scalar("u32"))),
            error("[2]=random:x", pointer(scalar("u32"))),
            error("[99999999999999]", pointer(scalar("u64"))),
            error("@/no/such/file", pointer(scalar("u32"))),
            error("{[2]}", Type::Struct("Segments".into())),
            error("{[2],1,2}", Type::Struct("Segments".into())),
            error("[2]=iota", pointer(Type::Struct("Segments".into()))),
            error("[2]=random:1", pointer(pointer(scalar("f32")))),
            error("[1]=fill:{[2],1}", pointer(Type::Struct("Segments".into()))),
            error("{1}", Type::Vector { element: "f32".into(), count: 2 }),
            error("1", Type::Stream),
        ];
        insta::assert_snapshot!(errors.join("\n"));
    }
}
