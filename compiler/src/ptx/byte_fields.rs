//! Bytes and halves of words without a way through 16 bits.
//!
//! Where libNVVM reads several bytes as words, it takes a word apart into halves, and these into bytes. ptxas makes four instructions of
//! that, and one of a field of the word:
//!
//! | PTX | becomes |
//! |---|---|
//! | `mov.b32 {%rs1, %rs2}, %r1; shr.u16 %rs3, %rs2, 8; cvt.u32.u16 %r2, %rs3;` | the first two, `bfe.u32 %r2, %r1, 24, 8;` |
//!
//! ptxas removes the first two if nothing else reads their results.

use std::collections::BTreeMap;

use super::negations::operands;
use super::workarounds::{instruction, written};

/// Takes fields from words.
pub(super) fn direct(ptx: String) -> String {
    if !ptx.contains("mov.b32 \t{%rs") {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    // What the instructions before in the same block took from words, by their results.
    let mut known: BTreeMap<&str, Field<'_>> = BTreeMap::new();
    for line in ptx.split_inclusive('\n') {
        // Another way leads to a label, and each function numbers its registers anew.
        if line.starts_with(['$', '{']) {
            known.clear();
        }
        let fields = Field::all(line, &known);
        match fields.as_slice() {
            [(result, field)] if is_wide(line) => {
                let [indent, _, _, end] = instruction(line).unwrap_or_default();
                let Field { word, at, bits, is_signed } = field;
                let sign = if *is_signed { 's' } else { 'u' };
                text += &format!("{indent}bfe.{sign}32 \t{result}, {word}, {at}, {bits};{end}");
            }
            _ => text += line,
        }
        for register in written(line) {
            known.retain(|result, field| *result != register && field.word != register);
        }
        // What a signed field is widened to has more bits than that.
        let unsigned = fields.into_iter().filter(|(_, field)| !field.is_signed);
        known.extend(unsigned.filter(|(result, field)| *result != field.word));
    }
    text
}

/// Bits of a word, as a number.
#[derive(Clone, Copy)]
struct Field<'p> {
    word: &'p str,
    at: u32,
    bits: u32,
    is_signed: bool,
}

impl<'p> Field<'p> {
    /// The fields that an instruction takes, with its results.
    fn all(line: &'p str, known: &BTreeMap<&'p str, Field<'p>>) -> Vec<(&'p str, Field<'p>)> {
        let field = |word, at, bits| Field { word, at, bits, is_signed: false };
        if let Some([low, high, word]) = operands(line, &["mov.b32"]) {
            let halves = low.strip_prefix('{').zip(high.strip_suffix('}'));
            return halves.map_or(vec![], |(low, high)| {
                vec![(low.trim(), field(word, 0, 16)), (high.trim(), field(word, 16, 16))]
            });
        }
        Field::one(line, known).into_iter().collect()
    }

    fn one(line: &'p str, known: &BTreeMap<&'p str, Field<'p>>) -> Option<(&'p str, Field<'p>)> {
        if let Some([result, source]) = operands(line, &["cvt.u32.u16"]) {
            return Some((result, *known.get(source)?));
        }
        if let Some([result, source]) = operands(line, &["cvt.s32.s8", "cvt.s32.s16"]) {
            let bits = if line.contains("cvt.s32.s8") { 8 } else { 16 };
            let field = known.get(source).filter(|field| field.bits >= bits)?;
            return Some((result, Field { bits, is_signed: true, ..*field }));
        }
        if let Some([result, source, count]) = operands(line, &["shr.u16"]) {
            let (field, count) = (*known.get(source)?, count.parse::<u32>().ok()?);
            let bits = field.bits.checked_sub(count).filter(|bits| *bits > 0)?;
            return Some((result, Field { at: field.at + count, bits, ..field }));
        }
        let [result, source, mask] = operands(line, &["and.b16", "and.b32"])?;
        let (field, mask) = (*known.get(source)?, mask.parse::<u32>().ok()?);
        let is_field = mask > 0 && mask & mask.wrapping_add(1) == 0;
        is_field.then_some((result, Field { bits: field.bits.min(mask.count_ones()), ..field }))
    }
}

/// Whether an instruction gives a field as a number of 32 bits.
fn is_wide(line: &str) -> bool {
    let word = instruction(line).map(|[_, word, ..]| word);
    word.is_some_and(|word| {
        word == "and.b32" || word.starts_with("cvt.u32.") || word.starts_with("cvt.s32.")
    })
}

#[cfg(test)]
mod tests {
    use super::direct;

    #[test]
    fn bytes_are_fields_of_words() {
        let ptx = "\
{
\tmov.b32 \t{%rs1, %rs2}, %r1;
\tcvt.u32.u16 \t%r2, %rs1; // low half
\tand.b32 \t%r3, %r2, 255;
\tshr.u16 \t%rs3, %rs2, 8;
\tcvt.u32.u16 \t%r4, %rs3;
\tand.b16 \t%rs4, %rs2, 255;
\tcvt.s32.s8 \t%r5, %rs2;
\tcvt.s32.s16 \t%r6, %rs4;
\tand.b32 \t%r7, %r2, 254;
\tadd.s16 \t%rs3, %rs3, 1;
\tcvt.u32.u16 \t%r8, %rs3;
\tadd.s32 \t%r1, %r1, 1;
\tcvt.u32.u16 \t%r9, %rs2;
\tmov.b32 \t{%rs5, %rs6}, %r2;
$L__BB0_1:
\tcvt.u32.u16 \t%r10, %rs5;
}
";
        insta::assert_snapshot!(direct(ptx.to_owned()));
    }
}
