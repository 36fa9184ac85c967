//! The manifest: the JSON description of a compiled program.
//!
//! The compiler writes it and the runtime reads it; these types are its only definition. Offsets, sizes and
//! alignments are in bytes and come from the compiler's layout pass.

use serde::{Deserialize, Serialize};

use crate::strategy::LaunchStrategy;

/// The manifest's file name in a bundle or next to separate image files.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The version that this crate writes, and the newest that it reads.
pub const MANIFEST_VERSION: u32 = 1;

/// Description of a compiled program. Make one by [`Manifest::new`], and set its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// [`MANIFEST_VERSION`] of the writer.
    pub manifest_version: u32,
    /// The program's name: the stem of its first source file.
    pub program: String,
    /// Source file names; lost-launch records refer to them by index.
    pub sources: Vec<String>,
    /// SHA-256 of all sources, in lower-case hexadecimal.
    pub source_sha256: String,
    /// By source file, SHA-256 of its text, in lower-case hexadecimal; `None` if the compiler did not have the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_hashes: Vec<Option<String>>,
    /// The launch strategy of the images for GPUs.
    pub launch_strategy: LaunchStrategy,
    /// Why the images have that strategy, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_reason: Option<String>,
    /// Kernels, in source order; after them those of other modules, which the images define as well.
    pub kernels: Vec<Kernel>,
    /// `static` variables, in source order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statics: Vec<Static>,
    /// Structs used by kernel parameters and `static` variables.
    pub structs: Vec<Struct>,
    /// Device-runtime support; absent if the program neither launches kernels nor fills memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_runtime: Option<DeviceRuntime>,
    /// Where an instrumented program records launch statistics; absent without instrumentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
    /// The entry of resident launches in the images for GPUs; absent unless the launch strategy is
    /// [`LaunchStrategy::Resident`] and the program launches kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<Resident>,
    /// The compiled images.
    #[serde(default)]
    pub images: Vec<Image>,
    /// Names and versions of the tools that made the images, as `["libnvvm", "13.0"]` pairs, sorted.
    #[serde(default)]
    pub toolchain: Vec<(String, String)>,
}

impl Manifest {
    /// The manifest of a program without kernels, in this version.
    pub fn new(program: impl Into<String>) -> Self {
        let program = program.into();
        Manifest { manifest_version: MANIFEST_VERSION, program, ..Manifest::default() }
    }
}

/// A kernel. Make one by [`Kernel::new`], and set its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Kernel {
    /// Name: `k`, or `k::<8>` for a kernel with const parameters.
    pub name: String,
    /// Symbol of the entry point in GPU images, if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Size of the parameter buffer in bytes, up to the end of the last parameter.
    pub parameter_bytes: u32,
    /// `#[launch_bounds]`: maximum threads in a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threads_per_block: Option<u32>,
    /// `#[launch_bounds]`: minimum number of blocks resident on one SM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_blocks_per_sm: Option<u32>,
    /// Static shared memory of the kernel and the functions that it calls, in bytes.
    pub static_shared_bytes: u64,
    /// For a kernel that the resident kernel runs, the part of a block's shared memory that its `shared` variables need there,
    /// in bytes: each variable has one place for all kernels, so there may be gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_shared_bytes: Option<u32>,
    /// Whether the kernel uses dynamic shared memory.
    pub dynamic_shared: bool,
    /// Whether the kernel or a function that it calls uses block-wide barriers.
    #[serde(default)]
    pub barriers: bool,
    /// Whether the kernel or a function that it calls uses warp operations that wait: shuffles, votes, masked barriers.
    #[serde(default)]
    pub warp_operations: bool,
    /// Whether the kernel, or a function that it calls, reads memory in a loop. Unknown, and false, in modules of other compilers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reads_in_loops: bool,
    /// Kernels that this kernel may launch, each listed once, in source order.
    pub launches: Vec<String>,
    /// Whether GPUs run the kernel only through [`Manifest::resident`], by its index in [`Manifest::kernels`]: it
    /// launches kernels or is launched by one. Its own symbol in the image then traps.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resident: bool,
    /// Whether the kernel was only declared (`extern kernel`), and a module that was linked in defines it. Of its code, the
    /// manifest then knows the static shared memory alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub external: bool,
}

impl Kernel {
    /// A kernel without parameters.
    pub fn new(name: impl Into<String>) -> Self {
        Kernel { name: name.into(), ..Kernel::default() }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A `static` variable: device memory shared by all grids, which the host finds by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Static {
    /// Name in the source.
    pub name: String,
    /// Symbol in the images, if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
}

impl Static {
    /// A variable whose symbol is its name.
    pub fn new(name: impl Into<String>, ty: Type, size: u64, alignment: u64) -> Self {
        Static { name: name.into(), symbol: None, ty, size, alignment }
    }
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Offset in the parameter buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub alignment: u32,
}

impl Parameter {
    /// A parameter.
    pub fn new(name: impl Into<String>, ty: Type, offset: u32, size: u32, alignment: u32) -> Self {
        Parameter { name: name.into(), ty, offset, size, alignment }
    }
}

/// A type, in the form that tools need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// `bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64`.
    Scalar(String),
    /// A vector of 2 to 4 elements.
    Vector {
        /// The element's scalar type, as in `Scalar`.
        element: String,
        /// Number of elements.
        count: u32,
    },
    /// A contiguous array.
    Array {
        /// Element type.
        element: Box<Type>,
        /// Number of elements.
        count: u64,
    },
    /// A struct, by its name in [`Manifest::structs`].
    Struct(String),
    /// A pointer; 8 bytes.
    Pointer {
        /// Whether the kernel may write through it.
        mutable: bool,
        /// The pointee's type.
        to: Box<Type>,
    },
    /// A device stream handle; 8 bytes.
    Stream,
}

/// A struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Struct {
    /// Name.
    pub name: String,
    /// Size in bytes, including tail padding.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
    /// Fields, in order.
    pub fields: Vec<Field>,
}

impl Struct {
    /// A struct.
    pub fn new(name: impl Into<String>, size: u64, alignment: u64, fields: Vec<Field>) -> Self {
        Struct { name: name.into(), size, alignment, fields }
    }
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Offset in the struct.
    pub offset: u64,
}

impl Field {
    /// A field.
    pub fn new(name: impl Into<String>, ty: Type, offset: u64) -> Self {
        Field { name: name.into(), ty, offset }
    }
}

/// Device-runtime support of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceRuntime {
    /// Symbol of the lost-launch record in the image; see [`LostLaunchRecord`].
    pub lost_launch_record: String,
    /// Symbol of a 64-bit variable in GPU images that takes the address of a 32-bit word in host memory: the first launch that is
    /// recorded sets the word to 1. Without it, only the record tells of lost launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_launch_notice: Option<String>,
    /// Symbol of a 64-bit counter of successful launches in the image, if the program was built with launch counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches_made: Option<String>,
}

impl DeviceRuntime {
    /// Support without a notice and launch counting.
    pub fn new(lost_launch_record: impl Into<String>) -> Self {
        let lost_launch_record = lost_launch_record.into();
        DeviceRuntime { lost_launch_record, lost_launch_notice: None, launches_made: None }
    }
}

/// The kernel of a GPU image that runs the grids of all kernels that launch or are launched. The host passes it the
/// parameters that [`crate::resident`] describes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resident {
    /// Symbol of the entry point in GPU images.
    pub symbol: String,
    /// Size of one record of the launch memory in bytes, a multiple of 128.
    pub record_bytes: u32,
    /// Number of 64-bit words that hold the parameter buffer of the grid that the host launches: enough for every kernel
    /// with [`Kernel::resident`].
    pub parameter_words: u32,
    /// The maximum number of threads in a block of a grid that a kernel launches.
    pub max_block_threads: u32,
    /// The maximum number of bytes of shared memory, static and dynamic, of a block of a grid that a kernel launches.
    pub shared_bytes: u32,
}

impl Resident {
    /// An entry without launch memory and parameters: set its fields.
    pub fn new(symbol: impl Into<String>) -> Self {
        Resident { symbol: symbol.into(), ..Resident::default() }
    }
}

/// Where an instrumented program records its launch depth and the SMs that ran its grids.
///
/// The array has [`statistics_words`] 32-bit words, little-endian, zero before the first kernel:
/// - the maximum launch depth: 0 for grids launched by the host, 1 for grids that these launch, and so on;
/// - the maximum depth among grids whose depth is only a lower bound, because an ancestor's parameter buffer has no
///   room for it; 0 if there are none;
/// - one bit for each SM that ran a block of a grid launched by the host, starting at bit 0 of the first word;
/// - the same for grids launched by kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Symbol in the image.
    pub symbol: String,
    /// Number of SMs with their own bit, a multiple of 32. Further SMs share the last bit.
    pub sms: u32,
}

impl Statistics {
    /// An array of that many SMs.
    pub fn new(symbol: impl Into<String>, sms: u32) -> Self {
        Statistics { symbol: symbol.into(), sms }
    }

    /// Size of the array in bytes.
    pub fn bytes(&self) -> usize {
        4 * statistics_words(self.sms) as usize
    }
}

/// Words before the SM bits in the array that [`Statistics`] describes.
pub const DEPTH_WORDS: u32 = 2;

/// Number of SMs that the compiler reserves bits for: far more than any GPU has.
pub const STATISTICS_SMS: u32 = 2048;

/// Number of words in the array that [`Statistics`] describes.
pub const fn statistics_words(sms: u32) -> u32 {
    DEPTH_WORDS + 2 * (sms / 32)
}

/// The bit in [`LostLaunchRecord::file`] for files of a program that was linked in as an object, which has no manifest.
pub const LINKED_SOURCE: u32 = 1 << 31;

/// The record in device memory that a failed plain launch writes: four 32-bit words, little-endian, in this order,
/// zero before the first lost launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostLaunchRecord {
    /// Number of lost launches.
    pub count: u32,
    /// `cudaError` of the first lost launch.
    pub error: i32,
    /// Source file of the first lost launch, an index into [`Manifest::sources`]; with [`LINKED_SOURCE`], into those of a
    /// program that was linked in as an object.
    pub file: u32,
    /// Source line of the first lost launch, from 1.
    pub line: u32,
}

/// The format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// Machine code for one compute capability.
    Cubin,
    /// PTX, which the driver compiles; not device-linked.
    Ptx,
    /// A shared object for the CPU device; see [`crate::cpu::abi`].
    SharedObject,
}

/// One compiled image, as [`describe_image`](crate::describe_image) describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Image {
    /// Format.
    pub kind: ImageKind,
    /// Architecture: `sm_90`, or [`crate::cpu_arch`] for the CPU device.
    pub arch: String,
    /// File name, next to the manifest or in the bundle.
    pub file: String,
    /// CRC-32 of the bytes, as in zip files, in lower-case hexadecimal: a fast check at every load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
    /// SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
}
