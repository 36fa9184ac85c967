//! The memory of the modelled GPU, behind 64-bit generic addresses.
//!
//! An address names its space, an allocation, block or thread of that space, and an offset in it, so that an access outside
//! its allocation is found without a search, and so is a pointer to another block's shared memory or another thread's
//! variables.
//! ```text
//! bits 63..48  47..44  43..28  27..0
//!           0   space   index  offset
//! ```

mod weak;

use crate::random::Random;
use weak::Weak;

/// Bits of an offset: allocations are at most 256 MiB, and aligned to that.
const OFFSET_BITS: u32 = 28;
const INDEX_BITS: u32 = 16;
/// The maximum size of an allocation, in bytes.
pub(crate) const MAX_BYTES: u64 = 1 << OFFSET_BITS;
/// The maximum number of allocations in a space.
pub(crate) const MAX_INDEX: usize = 1 << INDEX_BITS;

/// A space of memory, by its number in an address. 0 is no space, so null points nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Device memory; the index is that of an allocation.
    Device = 1,
    /// Shared memory; the index is that of the block.
    Shared = 2,
    /// The variables of a thread; the index is that of the thread.
    Local = 3,
    /// The entry of a kernel; the index is that of the kernel.
    Kernel = 4,
}

/// An address in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// The space; `None` for null and for numbers that are no addresses.
    pub(crate) space: Option<Space>,
    pub(crate) index: usize,
    pub(crate) offset: usize,
}

pub(crate) const fn address(space: Space, index: usize, offset: u64) -> u64 {
    ((space as u64) << (OFFSET_BITS + INDEX_BITS)) + ((index as u64) << OFFSET_BITS) + offset
}

pub(crate) fn parts(address: u64) -> Parts {
    Parts {
        space: match address >> (OFFSET_BITS + INDEX_BITS) {
            1 => Some(Space::Device),
            2 => Some(Space::Shared),
            3 => Some(Space::Local),
            4 => Some(Space::Kernel),
            _ => None,
        },
        index: (address >> OFFSET_BITS) as usize & (MAX_INDEX - 1),
        offset: address as usize & (MAX_BYTES as usize - 1),
    }
}

/// One allocation of device memory.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) bytes: Vec<u8>,
    pub(crate) writable: bool,
}

/// How a thread accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// An ordinary load or store, which may use the block's cache.
    Plain,
    /// An atomic operation, which all blocks see at once.
    Atomic,
}

/// Device memory and the shared memory of the running blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) device: Vec<Allocation>,
    /// The indices of allocations that were freed.
    free: Vec<usize>,
    /// By the number of the running block.
    pub(crate) shared: Vec<Vec<u8>>,
    /// The caches of the running blocks, unless memory is sequentially consistent.
    weak: Option<Weak>,
}

impl Memory {
    /// Allocates device memory; returns its address. `None` if it is too large, or if there are too many allocations.
    pub(crate) fn allocate(&mut self, bytes: Vec<u8>, writable: bool) -> Option<u64> {
        if bytes.len() as u64 >= MAX_BYTES {
            return None;
        }
        let allocation = Allocation { bytes, writable };
        let index = match self.free.pop() {
            Some(index) => {
                self.device[index] = allocation;
                index
            }
            None if self.device.len() == MAX_INDEX => return None,
            None => {
                self.device.push(allocation);
                self.device.len() - 1
            }
        };
        Some(address(Space::Device, index, 0))
    }

    /// Frees device memory. False if the address is not the start of an allocation that a kernel may write.
    pub(crate) fn free(&mut self, address: u64) -> bool {
        let Parts { space, index, offset } = parts(address);
        let Some(allocation) = self.device.get_mut(index) else { return false };
        if space != Some(Space::Device) || offset != 0 || !allocation.writable {
            return false;
        }
        *allocation = Allocation { bytes: vec![], writable: false };
        self.free.push(index);
        if let Some(weak) = &mut self.weak {
            weak.free(index);
        }
        true
    }

    /// The bytes at an address of device memory, for the host.
    pub(crate) fn host_bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let Parts { space, index, offset } = parts(address);
        let bytes = &self.device.get(index).filter(|_| space == Some(Space::Device))?.bytes;
        bytes.get(offset..offset.checked_add(length)?)
    }

    /// As [`Memory::host_bytes`], to write them.
    pub(crate) fn host_bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let Parts { space, index, offset } = parts(address);
        let bytes = &mut self.device.get_mut(index).filter(|_| space == Some(Space::Device))?.bytes;
        bytes.get_mut(offset..offset.checked_add(length)?)
    }

    /// Gives each of `blocks` blocks a cache of device memory, which only fences keep up to date.
    pub(crate) fn weaken(&mut self, blocks: usize, random: Random) {
        self.weak = Some(Weak::new(blocks, random));
    }

    /// Makes memory sequentially consistent again. All blocks must have released.
    pub(crate) fn strengthen(&mut self) {
        self.weak = None;
    }

    /// Lets a running block see what other blocks have released.
    pub(crate) fn acquire(&mut self, block: usize) {
        if let Some(weak) = &mut self.weak {
            weak.forget(block);
        }
    }

    /// Lets other blocks see what a running block has stored.
    pub(crate) fn release(&mut self, block: usize) {
        if let Some(weak) = &mut self.weak {
            weak.drain(&mut self.device, block);
        }
    }

    /// Loads as many bytes as `to` has. `None` outside the allocation.
    pub(crate) fn load(&mut self, block: usize, from: Parts, to: &mut [u8]) -> Option<()> {
        let end = from.offset + to.len();
        if from.space == Some(Space::Shared) {
            to.copy_from_slice(self.shared.get(from.index)?.get(from.offset..end)?);
            return Some(());
        }
        let allocation = self.device.get(from.index)?;
        to.copy_from_slice(allocation.bytes.get(from.offset..end)?);
        if let Some(weak) = self.weak.as_mut().filter(|_| allocation.writable) {
            weak.load(allocation, block, from, to);
        }
        Some(())
    }

    /// Stores bytes. `None` outside the allocation, and if it must not be written.
    pub(crate) fn store(&mut self, block: usize, to: Parts, value: &[u8]) -> Option<()> {
        let range = to.offset..to.offset + value.len();
        if to.space == Some(Space::Shared) {
            self.shared.get_mut(to.index)?.get_mut(range)?.copy_from_slice(value);
            return Some(());
        }
        let allocation = self.device.get_mut(to.index).filter(|allocation| allocation.writable)?;
        let bytes = allocation.bytes.get_mut(range)?;
        match &mut self.weak {
            Some(weak) => weak.store(&mut self.device, block, to, value),
            None => bytes.copy_from_slice(value),
        }
        Some(())
    }

    /// Loads up to 8 bytes.
    pub(crate) fn load_word(
        &mut self,
        block: usize,
        from: Parts,
        count: usize,
        access: Access,
    ) -> Option<u64> {
        if self.weak.is_some() && from.space == Some(Space::Device) {
            if access == Access::Atomic {
                self.settle(block, from, count);
            } else {
                let mut word = [0; 8];
                self.load(block, from, &mut word[..count])?;
                return Some(u64::from_le_bytes(word));
            }
        }
        let bytes = match from.space {
            Some(Space::Shared) => self.shared.get(from.index)?,
            _ => &self.device.get(from.index)?.bytes,
        };
        read(bytes, from.offset, count)
    }

    /// Stores up to 8 bytes.
    pub(crate) fn store_word(
        &mut self,
        block: usize,
        to: Parts,
        count: usize,
        value: u64,
        access: Access,
    ) -> Option<()> {
        if self.weak.is_some() && to.space == Some(Space::Device) {
            if access == Access::Atomic {
                self.settle(block, to, count);
            } else {
                return self.store(block, to, &value.to_le_bytes()[..count]);
            }
        }
        let bytes = match to.space {
            Some(Space::Shared) => self.shared.get_mut(to.index)?,
            _ => {
                let allocation = self.device.get_mut(to.index)?;
                &mut allocation.writable.then_some(allocation)?.bytes
            }
        };
        write(bytes, to.offset, count, value).then_some(())
    }

    /// Before an atomic operation: the block's own stores to the place come first, and its copy of the place is dropped.
    fn settle(&mut self, block: usize, at: Parts, count: usize) {
        if let Some(weak) = &mut self.weak {
            weak.settle(&mut self.device, block, at, count);
        }
    }

    /// The string at an address, up to its NUL.
    pub(crate) fn string(&self, address: u64) -> Option<String> {
        let Parts { space, index, offset } = parts(address);
        let bytes = &self.device.get(index).filter(|_| space == Some(Space::Device))?.bytes;
        let bytes = bytes.get(offset..)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// The number of up to 8 bytes at `at`, or `None` outside `bytes`.
pub(crate) fn read(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    let from = bytes.get(at..)?;
    Some(match count {
        8 => u64::from_le_bytes(*from.first_chunk()?),
        4 => u32::from_le_bytes(*from.first_chunk()?).into(),
        1 => (*from.first()?).into(),
        2 => u16::from_le_bytes(*from.first_chunk()?).into(),
        _ => {
            let mut word = [0; 8];
            word[..count].copy_from_slice(from.get(..count)?);
            u64::from_le_bytes(word)
        }
    })
}

/// Writes the low `count` bytes, at most 8, of `value` at `at`; false outside `bytes`.
pub(crate) fn write(bytes: &mut [u8], at: usize, count: usize, value: u64) -> bool {
    let Some(to) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..count)) else {
        return false;
    };
    let value = value.to_le_bytes();
    match count {
        8 => to.copy_from_slice(&value),
        4 => to.copy_from_slice(&value[..4]),
        _ => to.copy_from_slice(&value[..count]),
    }
    true
}
