//! Reads cubins: the parameters and resources of their kernels.
//!
//! A cubin is an ELF file. The section `.nv.info.<kernel>` holds attributes of one kernel,
//! `.nv.info` those of all functions by symbol number. An attribute is four bytes (format, number,
//! and a 16-bit value or a size) and, in the sized format, that many more bytes. NVIDIA documents
//! the names, which `cuobjdump -elf` prints, but not the bits. We derived the encoding from kernels
//! with known parameters of 1, 2, 4, 12, 16, 4,000 and 20,000 bytes, compiled for compute
//! capability 7.5 to 12.0 with CUDA 13.0. nvvm-tests repeats the comparison for every architecture.

use std::collections::BTreeMap;

use object::elf::{STT_FUNC, SectionHeader64};
use object::read::elf::{ElfFile64, ElfSymbol64, SectionHeader};
use object::{LittleEndian, Object, ObjectSymbol};

use super::Cubin;
use crate::{Error, Result};

/// `EIATTR_PARAM_CBANK`: symbol, then offset (16 bits) and size (16 bits) of the parameters in constant
/// memory.
const PARAM_CBANK: u8 = 0x0a;
/// `EIATTR_FRAME_SIZE`: symbol, bytes of the function's own stack frame.
const FRAME_SIZE: u8 = 0x11;
/// `EIATTR_KPARAM_INFO`: index, ordinal (16 bits), offset (16 bits), then a word with the size in
/// its upper 14 bits.
const KPARAM_INFO: u8 = 0x17;
/// `EIATTR_CBANK_PARAM_SIZE`: total bytes of the parameters.
const CBANK_PARAM_SIZE: u8 = 0x19;
/// `EIATTR_REGCOUNT`: symbol, registers per thread.
const REGCOUNT: u8 = 0x2f;
/// `EIATTR_KPARAM_INFO_V2`: as `KPARAM_INFO`, but the word has the size in its lower 16 bits. Tools
/// use it for every parameter of a kernel if one is too large for 14 bits.
const KPARAM_INFO_V2: u8 = 0x45;

/// The bit of a symbol's `st_other` that marks a kernel (`STO_CUDA_ENTRY`).
const STO_CUDA_ENTRY: u8 = 0x10;
/// From compute capability 9.0, a kernel's shared section begins with the bytes that the system
/// reserves in every block (CUDA Programming Guide, "Compute Capability 8.x" and later: 1 KB).
const RESERVED_SHARED_BYTES: u64 = 1024;

/// A parameter's position, as recorded in the machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterRecord {
    /// Its number, from 0.
    pub ordinal: u16,
    /// First byte in the parameter buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// The parameters of one kernel, as recorded in the machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecords {
    /// The kernel's name.
    pub kernel: String,
    /// The parameters in the order of their ordinals, without duplicates.
    pub parameters: Vec<ParameterRecord>,
    /// Bytes from 0 to the end of the last parameter.
    pub parameter_bytes: u32,
}

/// The resources that one kernel needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelResources {
    /// The kernel's name.
    pub kernel: String,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block in bytes, without the bytes that the system reserves.
    pub static_shared_bytes: u64,
    /// Local memory per thread in bytes: the kernel's own frame, without those of functions it
    /// calls.
    pub local_bytes: u32,
    /// Machine code in bytes.
    pub code_bytes: u64,
}

/// Reads the parameter records of all kernels, sorted by name.
///
/// # Errors
/// `Invalid` if the file is not a cubin or is damaged.
pub fn parameter_records(cubin: &Cubin) -> Result<Vec<KernelRecords>> {
    let file = Reader::open(cubin)?;
    let mut all = Vec::new();
    for kernel in file.kernels()? {
        let mut records =
            KernelRecords { kernel: kernel.name, parameters: vec![], parameter_bytes: 0 };
        // Two attributes give the total size; a kernel without parameters has neither.
        let mut sizes = [None; 2];
        let section = format!(".nv.info.{}", records.kernel);
        // A kernel without attributes has no section.
        for attribute in attributes(file.section(&section)?, &section)? {
            match attribute.number {
                KPARAM_INFO => records.parameters.push(ParameterRecord {
                    ordinal: attribute.half(4)?,
                    offset: attribute.half(6)?.into(),
                    size: attribute.word(8)? >> 18,
                }),
                KPARAM_INFO_V2 => records.parameters.push(ParameterRecord {
                    ordinal: attribute.half(4)?,
                    offset: attribute.half(6)?.into(),
                    size: attribute.half(8)?.into(),
                }),
                CBANK_PARAM_SIZE => sizes[0] = Some(attribute.half(0)?),
                PARAM_CBANK => sizes[1] = Some(attribute.half(6)?),
                _ => {}
            }
        }
        if let [Some(one), Some(other)] = sizes
            && one != other
        {
            return Err(damaged(format!(
                "{section} gives two parameter sizes: {one} and {other} bytes"
            )));
        }
        records.parameter_bytes = sizes[0].or(sizes[1]).unwrap_or(0).into();
        records.parameters.sort();
        if let Some(pair) =
            records.parameters.windows(2).find(|pair| pair[0].ordinal == pair[1].ordinal)
        {
            return Err(damaged(format!("{section} has parameter {} twice", pair[0].ordinal)));
        }
        all.push(records);
    }
    all.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    Ok(all)
}

/// Reads the resources that every kernel needs, sorted by name.
///
/// # Errors
/// `Invalid` if the file is not a cubin or is damaged.
pub fn kernel_resources(cubin: &Cubin) -> Result<Vec<KernelResources>> {
    let file = Reader::open(cubin)?;
    let section = ".nv.info";
    let functions = attributes(file.section(section)?, section)?;
    let of_symbol = |number: u8, symbol: u32| -> Result<Option<u32>> {
        for attribute in functions.iter().filter(|attribute| attribute.number == number) {
            if attribute.word(0)? == symbol {
                return attribute.word(4).map(Some);
            }
        }
        Ok(None)
    };
    let reserved = if file.compute_capability() >= 90 { RESERVED_SHARED_BYTES } else { 0 };
    let mut all = Vec::new();
    for kernel in file.kernels()? {
        let registers = of_symbol(REGCOUNT, kernel.symbol)?.ok_or_else(|| {
            damaged(format!("{section} has no register count for `{}`", kernel.name))
        })?;
        let local_bytes = of_symbol(FRAME_SIZE, kernel.symbol)?.unwrap_or(0);
        let shared = file.section_size(&format!(".nv.shared.{}", kernel.name));
        let static_shared_bytes = shared.saturating_sub(reserved);
        let code_bytes = file.section_size(&format!(".text.{}", kernel.name));
        all.push(KernelResources {
            kernel: kernel.name,
            registers,
            static_shared_bytes,
            local_bytes,
            code_bytes,
        });
    }
    all.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    Ok(all)
}

/// The machine code of every kernel, by its name.
///
/// # Errors
/// `Invalid` if the file is not a cubin or is damaged.
#[cfg(feature = "llvm")]
pub(super) fn kernel_codes(cubin: &Cubin) -> Result<BTreeMap<String, &[u8]>> {
    let file = Reader::open(cubin)?;
    let code = |kernel: Kernel| {
        let code = file.section(&format!(".text.{}", kernel.name))?;
        Ok((kernel.name, code))
    };
    file.kernels()?.into_iter().map(code).collect()
}

/// Whether a cubin defines a symbol of that name.
///
/// # Errors
/// `Invalid` if the file is not a cubin or is damaged.
#[cfg(feature = "llvm")]
pub(crate) fn defines(cubin: &Cubin, symbol: &str) -> Result<bool> {
    let file = Reader::open(cubin)?.file;
    Ok(file.symbols().any(|found| !found.is_undefined() && found.name() == Ok(symbol)))
}

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("the cubin is damaged: {why}"))
}

struct Kernel {
    name: String,
    symbol: u32,
}

struct Reader<'a> {
    file: ElfFile64<'a, LittleEndian>,
    /// The section of each name; the first one, if a damaged file has several.
    sections: BTreeMap<&'a [u8], &'a SectionHeader64<LittleEndian>>,
}

impl<'a> Reader<'a> {
    fn open(cubin: &'a Cubin) -> Result<Self> {
        let file = ElfFile64::<LittleEndian>::parse(cubin.0.as_slice()).map_err(damaged)?;
        if file.elf_header().e_machine.get(LittleEndian) != object::elf::EM_CUDA {
            return Err(Error::Invalid(
                "this ELF file is not a cubin: it is for another machine".into(),
            ));
        }
        let table = file.elf_section_table();
        let mut sections = BTreeMap::new();
        for header in table.iter() {
            let name = table.section_name(LittleEndian, header).map_err(damaged)?;
            sections.entry(name).or_insert(header);
        }
        Ok(Reader { file, sections })
    }

    fn kernels(&self) -> Result<Vec<Kernel>> {
        let is_kernel = |symbol: &ElfSymbol64<'_, '_, LittleEndian>| {
            let raw = symbol.elf_symbol();
            raw.st_type() == STT_FUNC
                && raw.st_other.0 & STO_CUDA_ENTRY != 0
                && !symbol.is_undefined()
        };
        let name = |symbol: ElfSymbol64<'_, '_, LittleEndian>| {
            let name = symbol.name().map_err(damaged)?.to_owned();
            Ok(Kernel { name, symbol: symbol.index().0 as u32 })
        };
        self.file.symbols().filter(is_kernel).map(name).collect()
    }

    fn section(&self, name: &str) -> Result<&'a [u8]> {
        self.sections.get(name.as_bytes()).map_or(Ok(&[]), |section| {
            section.data(LittleEndian, self.file.data()).map_err(damaged)
        })
    }

    /// 90 for 9.0. Version 8 of the format (CUDA 13) moved it to another byte of the flags.
    fn compute_capability(&self) -> u32 {
        let header = self.file.elf_header();
        let flags = header.e_flags.get(LittleEndian).0;
        let shift = if header.e_ident.abi_version >= 8 { 8 } else { 0 };
        flags >> shift & 0xff
    }

    fn section_size(&self, name: &str) -> u64 {
        self.sections.get(name.as_bytes()).map_or(0, |section| section.sh_size.get(LittleEndian))
    }
}

/// One attribute of an `.nv.info` section.
struct Attribute<'a> {
    number: u8,
    payload: &'a [u8],
}

impl Attribute<'_> {
    fn half(&self, at: usize) -> Result<u16> {
        self.payload
            .get(at..)
            .and_then(<[u8]>::first_chunk)
            .map(|bytes| u16::from_le_bytes(*bytes))
            .ok_or_else(|| {
                damaged(format!(
                    "attribute {:#04x} has only {} bytes",
                    self.number,
                    self.payload.len()
                ))
            })
    }

    fn word(&self, at: usize) -> Result<u32> {
        Ok(u32::from(self.half(at)?) | u32::from(self.half(at + 2)?) << 16)
    }
}

fn attributes<'a>(mut bytes: &'a [u8], section: &str) -> Result<Vec<Attribute<'a>>> {
    let cut_off = || damaged(format!("{section} is truncated"));
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let &[format, number, low, high] = bytes.first_chunk().ok_or_else(cut_off)?;
        let size = match format {
            // `EIFMT_NVAL`, `EIFMT_BVAL`, `EIFMT_HVAL`: a value of zero, one or two bytes, in
            // place.
            1..=3 => 0,
            // `EIFMT_SVAL`: a size, followed by the value.
            4 => usize::from(u16::from_le_bytes([low, high])),
            _ => {
                return Err(damaged(format!(
                    "{section} has an attribute of unknown format {format}"
                )));
            }
        };
        let payload = if format == 4 { bytes.get(4..4 + size) } else { bytes.get(2..4) };
        all.push(Attribute { number, payload: payload.ok_or_else(cut_off)? });
        bytes = &bytes[4 + size..];
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_all_formats_are_split() {
        let bytes = [
            0x01, 0x10, 0, 0, 0x02, 0x4a, 7, 0, 0x03, 0x19, 0x50, 0, 0x04, 0x1c, 4, 0, 1, 2, 3, 4,
            0x03, 0x1b, 0xff, 0,
        ];
        let all = attributes(&bytes, "s").unwrap();
        let numbers: Vec<u8> = all.iter().map(|attribute| attribute.number).collect();
        assert_eq!(numbers, [0x10, 0x4a, 0x19, 0x1c, 0x1b]);
        assert_eq!(all[2].half(0).unwrap(), 0x50);
        assert_eq!(all[3].word(0).unwrap(), 0x0403_0201);
        assert!(all[3].word(2).is_err());
    }

    #[test]
    fn sections_that_end_too_early_or_make_no_sense_are_refused() {
        for bytes in [&[4_u8][..], &[3, 0x19, 1], &[4, 0x17, 12, 0, 0, 0], &[9, 0, 0, 0]] {
            assert!(matches!(attributes(bytes, "s"), Err(Error::Invalid(_))), "{bytes:?}");
        }
    }

    #[test]
    fn files_other_than_cubins_are_refused() {
        let host = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for bytes in [b"".to_vec(), b"\x7fELF".to_vec(), b"// PTX".to_vec(), host] {
            assert!(matches!(parameter_records(&Cubin(bytes.clone())), Err(Error::Invalid(_))));
            assert!(matches!(kernel_resources(&Cubin(bytes)), Err(Error::Invalid(_))));
        }
    }
}
