//! The manifest: what an artifact says of itself, as JSON.
//!
//! The compiler writes it and the runtime reads it; these types are its only definition. Offsets, sizes and
//! alignments are in bytes and are the compiler's layout pass's.

use serde::{Deserialize, Serialize};

/// The manifest's file name, in a bundle and beside images that are not in one.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The version this crate writes, and the newest it reads.
pub const MANIFEST_VERSION: u32 = 1;

/// All that an artifact says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`] of the writer.
    pub manifest_version: u32,
    /// The program's name: the stem of its first source file.
    pub program: String,
    /// Source file names, in the order that lost-launch records number them.
    pub sources: Vec<String>,
    /// SHA-256 over all sources, in lower-case hexadecimal.
    pub source_sha256: String,
    /// How launches are lowered: `cdp`.
    pub launch_strategy: String,
    /// Kernels, in the order of the source.
    pub kernels: Vec<Kernel>,
    /// `static` variables, in the order of the source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statics: Vec<Static>,
    /// The structs that kernels' parameters and `static` variables mention.
    pub structs: Vec<Struct>,
    /// What the program needs of the device runtime; absent if it neither launches nor fills memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_runtime: Option<DeviceRuntime>,
    /// Where kernels note statistics of their run; absent unless the program was built for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
    /// The compiled images.
    #[serde(default)]
    pub images: Vec<Image>,
    /// Names and versions of the tools that made the images, as `["libnvvm", "13.0"]` pairs, sorted.
    #[serde(default)]
    pub toolchain: Vec<(String, String)>,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name: `k`, or `k::<8>` for a kernel with const parameters.
    pub name: String,
    /// The symbol of its entry point in images for GPUs, if it is not the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Bytes of the parameter buffer, from 0 to the end of the last parameter.
    pub parameter_bytes: u32,
    /// `#[launch_bounds]`: most threads of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threads_per_block: Option<u32>,
    /// `#[launch_bounds]`: blocks that shall fit one SM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_blocks_per_sm: Option<u32>,
    /// Bytes of static shared memory that it and the functions it calls declare.
    pub static_shared_bytes: u64,
    /// Whether it reads dynamic shared memory.
    pub dynamic_shared: bool,
    /// Whether its threads, or those of functions it calls, wait for all of their block: barriers.
    #[serde(default)]
    pub barriers: bool,
    /// Whether they wait for threads of their warp: shuffles, votes, barriers over a mask of lanes.
    #[serde(default)]
    pub warp_operations: bool,
    /// The kernels it may launch, each once, in the order of the source.
    pub launches: Vec<String>,
}

/// A `static` variable: device memory that all grids share, and that the host finds by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Static {
    /// Its name, which is its symbol.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// First byte in the parameter buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub alignment: u32,
}

/// A type, as tools need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// `bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64`.
    Scalar(String),
    /// `element` as in `Scalar`, 2 to 4 of them.
    Vector {
        /// Name of the element's scalar type.
        element: String,
        /// How many.
        count: u32,
    },
    /// `count` elements, one after another.
    Array {
        /// Type of an element.
        element: Box<Type>,
        /// How many.
        count: u64,
    },
    /// The struct of that name in [`Manifest::structs`].
    Struct(String),
    /// A pointer; 8 bytes.
    Pointer {
        /// Whether the kernel may write through it.
        mutable: bool,
        /// What it points to.
        to: Box<Type>,
    },
    /// A device stream handle; 8 bytes.
    Stream,
}

/// A struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Size in bytes, tail padding included.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// First byte in the struct.
    pub offset: u64,
}

/// What a program with launches needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRuntime {
    /// Symbol of the lost-launch record in the image: see [`LostLaunchRecord`].
    pub lost_launch_record: String,
    /// Symbol of a 64-bit word in the image that counts successful launches, if the program was built to
    /// count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches_made: Option<String>,
}

/// Where an instrumented program notes how deep its launches nest and which SMs run its grids.
///
/// The array has [`statistics_words`] 32-bit words, little-endian, zero before the first kernel:
/// - the deepest nesting: 0 for grids of the host, 1 for those that such grids launched, and so on;
/// - the deepest of the grids whose depth is only a lower bound, because a kernel above them leaves no room for it in its
///   parameter buffer; 0 if there were none;
/// - a bit for each SM that ran a block of a grid of the host, from bit 0 of the first word on;
/// - the same for grids that kernels launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Its symbol in the image.
    pub symbol: String,
    /// How many SMs it has bits for, a multiple of 32. SMs beyond share the last bit.
    pub sms: u32,
}

impl Statistics {
    /// Bytes of the array.
    pub fn bytes(&self) -> usize {
        4 * statistics_words(self.sms) as usize
    }
}

/// Words before the SMs in the array that [`Statistics`] describes.
pub const DEPTH_WORDS: u32 = 2;

/// The SMs that the compiler makes room for: far more than any GPU has.
pub const STATISTICS_SMS: u32 = 2048;

/// Words of the array that [`Statistics`] describes.
pub const fn statistics_words(sms: u32) -> u32 {
    DEPTH_WORDS + 2 * (sms / 32)
}

/// The record in device memory that a failed plain launch writes: four 32-bit words, little-endian, in
/// this order, zero before the first loss.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostLaunchRecord {
    /// How many launches were lost.
    pub count: u32,
    /// `cudaError` of the first of them.
    pub error: i32,
    /// Its source file, an index into [`Manifest::sources`].
    pub file: u32,
    /// Its source line, from 1.
    pub line: u32,
}

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// Machine code for one compute capability.
    Cubin,
    /// PTX, which the driver compiles; not device-linked.
    Ptx,
    /// A shared object for the CPU device: see [`crate::cpu::abi`].
    SharedObject,
}

/// One compiled image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// What it is.
    pub kind: ImageKind,
    /// `sm_90`; for the CPU device [`crate::cpu_arch`].
    pub arch: String,
    /// Its file name, beside the manifest or in the bundle.
    pub file: String,
    /// CRC-32 of its bytes as in zip files, in lower-case hexadecimal: quick to compare whenever the image is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
}
