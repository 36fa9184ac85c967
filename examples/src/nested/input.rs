//! Inputs, in memory and in the files that the programs in CUDA C++ read.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context as _, ensure};

/// The most numbers, arrays, or words of an array.
const MOST: u64 = 1 << 32;

/// Numbers and arrays of words; each program says what they mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// The numbers.
    pub numbers: Vec<u64>,
    /// The arrays.
    pub arrays: Vec<Vec<u32>>,
}

impl Input {
    /// A number that fits 32 bits.
    ///
    /// # Errors
    /// There is none, or it is too large.
    pub fn number(&self, at: usize) -> anyhow::Result<u32> {
        Ok(u32::try_from(*self.numbers.get(at).context("the input has too few numbers")?)?)
    }

    /// An array.
    ///
    /// # Errors
    /// There is none.
    pub fn array(&self, at: usize) -> anyhow::Result<&[u32]> {
        Ok(self.arrays.get(at).context("the input has too few arrays")?)
    }

    /// Writes the file that `serve.h` reads: the count of numbers, the numbers, the count of arrays, and each array after its
    /// length. Counts and numbers have 8 bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let mut number = |n: u64| file.write_all(&n.to_le_bytes());
        number(self.numbers.len() as u64)?;
        self.numbers.iter().try_for_each(|n| number(*n))?;
        number(self.arrays.len() as u64)?;
        for array in &self.arrays {
            file.write_all(&(array.len() as u64).to_le_bytes())?;
            for chunk in array.chunks(1 << 16) {
                let bytes: Vec<u8> = chunk.iter().flat_map(|word| word.to_le_bytes()).collect();
                file.write_all(&bytes)?;
            }
        }
        Ok(file.flush()?)
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// The file cannot be read, or is none of these.
    pub fn read(path: &Path) -> anyhow::Result<Input> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut number = || -> anyhow::Result<u64> {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let mut input = Input::default();
        let count = number()?;
        ensure!(count < MOST, "{} is no input", path.display());
        for _ in 0..count {
            input.numbers.push(number()?);
        }
        let count = number()?;
        ensure!(count < MOST, "{} is no input", path.display());
        for _ in 0..count {
            let mut length = [0; 8];
            file.read_exact(&mut length)?;
            let length = u64::from_le_bytes(length);
            ensure!(length < MOST, "{} is no input", path.display());
            let mut bytes = Vec::new();
            file.by_ref().take(length * 4).read_to_end(&mut bytes)?;
            ensure!(bytes.len() as u64 == length * 4, "{} is too short", path.display());
            input.arrays.push(words(&bytes));
        }
        Ok(input)
    }
}

/// Words of little-endian bytes.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_survives_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("input");
        let input = Input {
            numbers: vec![1, u64::MAX, 3],
            arrays: vec![vec![], vec![7], (0..200_000).collect()],
        };
        input.write(&path).expect("written");
        assert_eq!(Input::read(&path).expect("read"), input);
        std::fs::write(&path, [3; 20]).expect("written");
        assert!(Input::read(&path).is_err());
    }
}
