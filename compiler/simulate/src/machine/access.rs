//! Loads and stores of a running thread.

use super::race::{Kind, Site};
use super::run::Runner;
use crate::code::{Function, Place};
use crate::memory::{self, Access, Space, parts};

impl Runner<'_> {
    /// Checks the alignment of an access, and that a thread may make it.
    fn check(&self, pointer: u64, bytes: u32, alignment: u32) -> Result<memory::Parts, String> {
        let parts = parts(pointer);
        let owner = match parts.space {
            Some(Space::Device) => parts.index,
            Some(Space::Shared) => self.thread.block,
            Some(Space::Local) => self.number,
            Some(Space::Kernel) | None => usize::MAX,
        };
        if owner != parts.index {
            return Err(match parts.space {
                Some(Space::Shared) => "an access to another block's shared memory".into(),
                Some(Space::Local) => "an access to another thread's variables".into(),
                _ => format!("an access of {bytes} bytes to {pointer:#x}, which is no memory"),
            });
        }
        if !pointer.is_multiple_of(alignment.max(1).into()) {
            return Err(format!(
                "an access to {pointer:#x}, which is not a multiple of {alignment}"
            ));
        }
        Ok(parts)
    }

    /// Notes an access to memory that others see.
    fn note(&mut self, pointer: u64, bytes: u32, kind: Kind) {
        let thread = self.number;
        let site = Site::of(&self.thread.now, self.thread.callers.last());
        if let Some(races) = self.races.as_deref_mut()
            && parts(pointer).space != Some(Space::Local)
        {
            races.access(thread, pointer, bytes, kind, site);
        }
    }

    /// Loads a value into the stack.
    pub(super) fn load(
        &mut self,
        pointer: u64,
        bytes: u32,
        alignment: u32,
        to: usize,
    ) -> Result<(), String> {
        let parts = self.check(pointer, bytes, alignment)?;
        if bytes == 0 {
            return Ok(());
        }
        if bytes <= 8 {
            let value = self.read_word(pointer, bytes, Access::Plain)?;
            memory::write(&mut self.thread.stack, to, 8, value);
            return Ok(());
        }
        let (from, count) = (parts.offset, bytes as usize);
        if parts.space == Some(Space::Local) {
            if from + count > self.thread.stack.len() {
                return Err(outside(pointer, bytes));
            }
            self.thread.stack.copy_within(from..from + count, to);
            return Ok(());
        }
        self.note(pointer, bytes, Kind::Load);
        let stack = &mut self.thread.stack[to..to + count];
        let loaded = self.memory.load(self.thread.block, parts, stack);
        loaded.ok_or_else(|| outside(pointer, bytes))
    }

    /// Stores a value.
    pub(super) fn store(
        &mut self,
        function: &Function,
        pointer: u64,
        from: Place,
        bytes: u32,
        alignment: u32,
    ) -> Result<(), String> {
        let parts = self.check(pointer, bytes, alignment)?;
        if bytes == 0 {
            return Ok(());
        }
        if bytes <= 8 {
            let value = self.word(function, from);
            return self.write_word(pointer, bytes, value, Access::Plain);
        }
        let count = bytes as usize;
        let base = self.thread.now.base;
        if parts.space == Some(Space::Local) {
            let stack = &mut self.thread.stack;
            if parts.offset + count > stack.len() {
                return Err(outside(pointer, bytes));
            }
            match from.split() {
                (true, at) => stack[parts.offset..parts.offset + count]
                    .copy_from_slice(&function.constants[at..at + count]),
                (false, at) => stack.copy_within(base + at..base + at + count, parts.offset),
            }
            return Ok(());
        }
        self.note(pointer, bytes, Kind::Store);
        let value = match from.split() {
            (true, at) => &function.constants[at..at + count],
            (false, at) => &self.thread.stack[base + at..base + at + count],
        };
        let stored = self.memory.store(self.thread.block, parts, value);
        stored.ok_or_else(|| outside(pointer, bytes))
    }

    /// Reads up to 8 bytes.
    pub(super) fn read_word(
        &mut self,
        pointer: u64,
        bytes: u32,
        access: Access,
    ) -> Result<u64, String> {
        let alignment = if access == Access::Atomic { bytes } else { 1 };
        let parts = self.check(pointer, bytes, alignment)?;
        let count = bytes as usize;
        let kind = if access == Access::Atomic { Kind::AtomicLoad } else { Kind::Load };
        self.note(pointer, bytes, kind);
        let value = match parts.space {
            Some(Space::Local) => memory::read(&self.thread.stack, parts.offset, count),
            _ => self.memory.load_word(self.thread.block, parts, count, access),
        };
        value.ok_or_else(|| outside(pointer, bytes))
    }

    /// Writes up to 8 bytes.
    pub(super) fn write_word(
        &mut self,
        pointer: u64,
        bytes: u32,
        value: u64,
        access: Access,
    ) -> Result<(), String> {
        let alignment = if access == Access::Atomic { bytes } else { 1 };
        let parts = self.check(pointer, bytes, alignment)?;
        let count = bytes as usize;
        if self.races.is_some() {
            let block = self.thread.block;
            let is_local = parts.space == Some(Space::Local);
            let old =
                if is_local { None } else { self.memory.load_word(block, parts, count, access) };
            match access {
                Access::Atomic => self.note(pointer, bytes, Kind::AtomicStore),
                Access::Plain if old == Some(value) => {}
                Access::Plain => self.note(pointer, bytes, Kind::Store),
            }
        }
        let done = match parts.space {
            Some(Space::Local) => {
                memory::write(&mut self.thread.stack, parts.offset, count, value).then_some(())
            }
            _ => self.memory.store_word(self.thread.block, parts, count, value, access),
        };
        done.ok_or_else(|| outside(pointer, bytes))
    }
}

fn outside(pointer: u64, bytes: u32) -> String {
    format!(
        "an access of {bytes} bytes to {pointer:#x}, which is outside its allocation or may not be written"
    )
}
