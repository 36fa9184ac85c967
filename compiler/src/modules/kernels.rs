//! Which functions of a module are kernels, and the parameters of each.

use std::collections::HashSet;

use gridlet_artifact::launch::MAX_KERNEL_PARAMETER_BYTES;
use gridlet_lang::ir::{LaunchBounds, symbol};
use gridlet_lang::types::{Scalar, Type};
use inkwell::llvm_sys::{LLVMCallConv, LLVMLinkage};

use super::layout::{Types, extent};
use super::pointees;
use crate::nvvm::legacy::llvm::{
    Attribute, Module, Place, Shape, Type as LlvmType, Value, attribute_kind,
};

/// The kernels that a module defines, in its order.
pub(super) fn kernels(module: Module<'_>) -> Vec<Value<'_>> {
    module.functions().into_iter().filter(|f| is_kernel(*f) && !f.is_declaration()).collect()
}

/// Whether a function is marked as a kernel. LLVM turns the mark in `!nvvm.annotations` into the calling convention when
/// it reads a module.
pub(super) fn is_kernel(function: Value<'_>) -> bool {
    function.calling_convention() == LLVMCallConv::LLVMPTXKernelCallConv as u32
}

/// The name of a function or variable.
pub(super) fn name(value: Value<'_>) -> String {
    value.text_name()
}

pub(super) const NO_NAME: &str = "a kernel has no name; give it one";

/// The most bytes in the name of a kernel. nvJitLink of CUDA 13.0 crashed on names of 100,000.
const MAX_NAME: usize = 10_000;

/// What is wrong with the name of a kernel.
pub(super) fn wrong_name(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
    if name.is_empty() {
        return Some(NO_NAME.into());
    }
    if name.len() > MAX_NAME {
        let start: String = name.chars().take(40).collect();
        return Some(format!(
            "the name of the kernel `{start}…` has {} bytes; NVIDIA's linker can crash on more than {MAX_NAME}: shorten it",
            name.len()
        ));
    }
    if symbol::is_predefined(name) {
        return Some(format!(
            "PTX has a meaning of its own for the name of the kernel `{name}`; rename it"
        ));
    }
    if name.bytes().all(is_plain) && !name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let copy = name.rsplit_once('.').filter(|(_, number)| number.parse::<u32>().is_ok());
    let why =
        copy.map_or_else(String::new, |(name, _)| format!("; LLVM names a second `{name}` so"));
    Some(format!("PTX cannot spell the name of the kernel `{name}`; rename it{why}"))
}

/// What is wrong with the size of a kernel's parameters.
pub(super) fn too_large(kernel: Value<'_>) -> Option<String> {
    let bytes = parameters(kernel).iter().try_fold(0_u64, |end, parameter| {
        let extent = parameter.extent()?;
        Some(end.next_multiple_of(extent.alignment.max(1)).saturating_add(extent.size))
    })?;
    (bytes > u64::from(MAX_KERNEL_PARAMETER_BYTES)).then(|| {
        format!(
            "the kernel `{}` takes {bytes} bytes of parameters, but no kernel can take more than {MAX_KERNEL_PARAMETER_BYTES}; pass \
             a pointer to the large data instead",
            name(kernel)
        )
    })
}

/// What is wrong with the linkage of a kernel: neither a host nor a launch finds one that the module keeps to itself.
pub(super) fn wrong_linkage(kernel: Value<'_>) -> Option<String> {
    let word = match kernel.linkage() {
        LLVMLinkage::LLVMInternalLinkage => "internal",
        LLVMLinkage::LLVMPrivateLinkage => "private",
        LLVMLinkage::LLVMAvailableExternallyLinkage => "available_externally",
        LLVMLinkage::LLVMLinkOnceAnyLinkage => "linkonce",
        LLVMLinkage::LLVMLinkOnceODRLinkage => "linkonce_odr",
        // External or weak: others are not of functions.
        _ => return None,
    };
    Some(format!(
        "the kernel `{}` is `{word}`, so the machine code need not have it, and nobody could launch it; remove `{word}`",
        name(kernel)
    ))
}

/// The attributes that bound a kernel's blocks, with the most that each of their numbers may be (CUDA Programming Guide, "Technical
/// Specifications per Compute Capability").
const BOUNDS: [(&str, &[u32]); 6] = [
    ("nvvm.maxntid", &[1024, 1024, 64]),
    ("nvvm.reqntid", &[1024, 1024, 64]),
    ("nvvm.minctasm", &[32]),
    ("nvvm.maxnreg", &[255]),
    ("nvvm.cluster_dim", &[16, 16, 16]),
    ("nvvm.maxclusterrank", &[16]),
];

/// What is wrong with the bounds of a kernel's blocks: NVIDIA's tools crash on some.
pub(super) fn wrong_bounds(kernel: Value<'_>) -> Vec<String> {
    let wrong = |attribute: &Attribute<'_>| {
        let Attribute::Text(key, value) = attribute else { return None };
        let (_, most) = BOUNDS.iter().find(|(known, _)| known == key)?;
        let numbers: Vec<Option<u32>> =
            value.split(',').map(|number| number.trim().parse().ok()).collect();
        let fits = numbers.len() <= most.len()
            && numbers
                .iter()
                .zip(*most)
                .all(|(number, most)| number.is_some_and(|number| (1..=*most).contains(&number)));
        let threads = numbers.iter().flatten().fold(1_u32, |all, one| all.saturating_mul(*one));
        if fits && threads <= most[0] {
            return None;
        }
        // LLVM writes numbers of `!nvvm.annotations` so.
        let shown = value.parse().map_or_else(|_| value.clone(), |n: u32| (n as i32).to_string());
        let whole = match most {
            [most, _, ..] => format!(", and their product at most {most}"),
            _ => String::new(),
        };
        let most: Vec<String> = most.iter().map(u32::to_string).collect();
        Some(format!(
            "the kernel `{}` has `{}` {shown}; it must be 1 to {}{whole}",
            name(kernel),
            key.trim_start_matches("nvvm."),
            most.join(", 1 to ")
        ))
    };
    let attributes = kernel.attributes(Place::Function);
    let has = |wanted: &str| {
        attributes.iter().any(|one| matches!(one, Attribute::Text(key, _) if key == wanted))
    };
    let mut all: Vec<String> = attributes.iter().filter_map(wrong).collect();
    if has("nvvm.cluster_dim") && has("nvvm.maxclusterrank") {
        all.push(format!(
            "the kernel `{}` has both `cluster_dim` and `maxclusterrank`; remove one",
            name(kernel)
        ));
    }
    all
}

/// What is wrong with the parameters of which a kernel gets a copy: behind one whose size is no multiple of its alignment, devices and
/// tools differ in the padding.
pub(super) fn wrong_copies(kernel: Value<'_>) -> Vec<String> {
    let wrong = |parameter: &Parameter<'_>| {
        let known = parameter.extent().filter(|_| parameter.is_copied)?;
        if known.size.is_multiple_of(known.alignment.max(1)) {
            return None;
        }
        let whole = known.size.next_multiple_of(known.alignment);
        Some(format!(
            "kernel `{}`: the parameter `{}` has the type `{}`; its size is no multiple of its alignment, as that of C's types is: pad \
             it to {whole} bytes",
            name(kernel),
            parameter.name,
            parameter.ty.print()
        ))
    };
    parameters(kernel).iter().filter_map(wrong).collect()
}

/// Ways to pass parameters that only other targets have.
const FOREIGN_PASSING: [&str; 5] = ["byref", "inalloca", "nest", "preallocated", "swifterror"];

/// What is wrong with the types of a kernel's parameters: LLVM gives them types that PTX does not have, or crashes.
pub(super) fn wrong_parameters(kernel: Value<'_>) -> Vec<String> {
    let symbol = name(kernel);
    let wrong = |parameter: &Parameter<'_>| {
        let (why, instead) = match parameter.ty.shape() {
            _ if parameter.is_copied => return None,
            Shape::Int(1 | 8 | 16 | 32 | 64 | 128) => return None,
            Shape::Int(width @ ..128) => {
                let wide = width.next_power_of_two().max(8);
                let instead = format!("declare it as `i{wide}`, and `trunc` it in the kernel");
                ("PTX has no parameters of that width", instead)
            }
            Shape::Vector(element, count) if matches!(element.shape(), Shape::Int(1)) => {
                let wide = count.next_power_of_two().max(8);
                let instead = format!("declare it as `i{wide}`, and test its bits in the kernel");
                ("libNVVM's dialects differ in its size", instead)
            }
            _ => return None,
        };
        let (parameter, ty) = (&parameter.name, parameter.ty.print());
        Some(format!(
            "kernel `{symbol}`: the parameter `{parameter}` has the type `{ty}`; {why}: {instead}"
        ))
    };
    let mut all = wrong_copies(kernel);
    for word in FOREIGN_PASSING {
        let kind = attribute_kind(word);
        let places = (0..).zip(kernel.parameters()).filter(|(at, _)| {
            let attributes = kernel.attributes(Place::Parameter(*at));
            attributes.iter().any(|one| kind.is_some() && one.kind() == kind)
        });
        all.extend(places.map(|(at, _)| {
            format!(
                "kernel `{symbol}`: parameter {} is `{word}`, and no launch passes a parameter so; remove the attribute",
                at + 1
            )
        }));
    }
    all.extend(parameters(kernel).iter().filter_map(wrong));
    all
}

/// The launch bounds of a kernel (LLVM's User Guide for NVPTX, "Function Attributes").
pub(super) fn launch_bounds(kernel: Value<'_>) -> Option<LaunchBounds> {
    let attributes = kernel.attributes(Place::Function);
    let product = |wanted: &str| {
        attributes.iter().find_map(|attribute| match attribute {
            Attribute::Text(key, value) if key == wanted => {
                value.split(',').try_fold(1_u32, |product, number| {
                    product.checked_mul(number.trim().parse().ok()?)
                })
            }
            _ => None,
        })
    };
    let max_threads = product("nvvm.reqntid").or_else(|| product("nvvm.maxntid"))?;
    Some(LaunchBounds { max_threads, min_blocks: product("nvvm.minctasm") })
}

/// A parameter of a kernel in memory.
pub(super) struct Parameter<'m> {
    pub(super) name: String,
    /// The type that is passed.
    pub(super) ty: LlvmType<'m>,
    /// Whether the function gets the address of a copy (`byval`).
    pub(super) is_copied: bool,
    /// Its alignment, if it differs from the type's.
    pub(super) alignment: Option<u64>,
    is_unsigned: bool,
    pub(super) value: Value<'m>,
}

/// The parameters of a function.
pub(super) fn parameters<'m>(function: Value<'m>) -> Vec<Parameter<'m>> {
    let [byval, align, zeroext] = ["byval", "align", "zeroext"].map(attribute_kind);
    let mut taken = HashSet::new();
    let parameter = |(at, value): (u32, Value<'m>)| {
        let attributes = function.attributes(Place::Parameter(at));
        let find = |kind: Option<u32>| attributes.iter().find(|known| known.kind() == kind);
        let copied = match find(byval) {
            Some(Attribute::Type(_, ty)) => Some(*ty),
            _ => None,
        };
        let alignment = match find(align) {
            Some(Attribute::Enum(_, alignment)) if copied.is_some() => Some(*alignment),
            _ => None,
        };
        let mut name = name(value);
        if name.is_empty() || !taken.insert(name.clone()) {
            name = format!("p{at}");
            taken.insert(name.clone());
        }
        Parameter {
            name,
            ty: copied.unwrap_or(value.ty()),
            is_copied: copied.is_some(),
            alignment,
            is_unsigned: find(zeroext).is_some(),
            value,
        }
    };
    (0..).zip(function.parameters()).map(parameter).collect()
}

impl<'m> Parameter<'m> {
    /// Its type in a launch: integers are signed unless the module says otherwise, and a pointer points to the type of the
    /// accesses through it.
    pub(super) fn launch_type(&self, types: &mut Types<'m>) -> Option<Type> {
        let ty = types.memory(self.ty, self.alignment)?;
        Some(match (&ty, self.ty.shape()) {
            (Type::Pointer { .. }, Shape::Pointer(_)) if !self.is_copied => {
                let pointee = pointees::find(self.value, types);
                Type::pointer_mut(pointee.unwrap_or(Type::Scalar(Scalar::U8)))
            }
            (Type::Scalar(scalar), _) if !self.is_unsigned => Type::Scalar(signed(*scalar)),
            _ => ty,
        })
    }

    /// Its size and alignment in the parameter buffer.
    pub(super) fn extent(&self) -> Option<super::layout::Extent> {
        let mut extent = extent(self.ty)?;
        extent.alignment = self.alignment.unwrap_or(extent.alignment);
        Some(extent)
    }
}

/// The signed type of the same size.
pub(super) fn signed(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::U8 => Scalar::I8,
        Scalar::U16 => Scalar::I16,
        Scalar::U32 => Scalar::I32,
        Scalar::U64 => Scalar::I64,
        other => other,
    }
}
