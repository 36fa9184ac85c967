//! Counts the instructions of machine code.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use gridlet::toolchain::{Component, Toolchain};

/// Instructions of a file of machine code, without those that fill it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instructions {
    /// All of them.
    pub(super) all: usize,
    /// Those in loops.
    pub(super) in_loops: usize,
}

impl Instructions {
    /// Counts those of a cubin; `None` without nvdisasm.
    pub(super) fn count(tools: &Toolchain, cubin: &Path) -> anyhow::Result<Option<Instructions>> {
        let Ok(nvdisasm) = tools.path(Component::Nvdisasm) else { return Ok(None) };
        let output = Command::new(nvdisasm).arg("-c").arg(cubin).output();
        let output = output.with_context(|| format!("cannot start {}", nvdisasm.display()))?;
        let log = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "nvdisasm rejects {}: {log}", cubin.display());
        Ok(Some(Instructions::of(&String::from_utf8_lossy(&output.stdout))))
    }

    /// Counts those of nvdisasm's text. A loop reaches from the target of a branch to that branch.
    fn of(text: &str) -> Instructions {
        let mut labels = BTreeMap::new();
        let mut instructions = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label, instructions.len());
            } else if line.starts_with("/*") {
                let (_, instruction) = line.split_once("*/").unwrap_or_default();
                instructions.push(instruction.trim());
            }
        }
        let mut is_in_loop = vec![false; instructions.len()];
        let mut is_filler = vec![false; instructions.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            let target = instruction.split_once("`(").and_then(|(_, rest)| rest.split_once(')'));
            let target = target.and_then(|(label, _)| labels.get(label));
            is_filler[at] = instruction.starts_with("NOP") || target == Some(&at);
            if let Some(&target) = target.filter(|_| instruction.contains("BRA")) {
                is_in_loop.iter_mut().take(at + 1).skip(target).for_each(|is| *is = true);
            }
        }
        let counted = || (0..instructions.len()).filter(|&at| !is_filler[at]);
        Instructions {
            all: counted().count(),
            in_loops: counted().filter(|&at| is_in_loop[at]).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_found_and_fillers_are_not_counted() {
        let text = "
k:
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0020*/               @P1 BRA `(.L_x_1) ;
        /*0030*/               @P0 BRA `(.L_x_0) ;
.L_x_1:
        /*0040*/                   EXIT ;
.L_x_2:
        /*0050*/                   BRA `(.L_x_2);
        /*0060*/                   NOP;
";
        assert_eq!(Instructions::of(text), Instructions { all: 5, in_loops: 3 });
    }
}
