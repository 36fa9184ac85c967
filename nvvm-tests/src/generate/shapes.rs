//! Shapes of code that compilers treat specially: comparisons with many constants become jump tables, lookup tables or
//! bit sets; chains of operators are trees as high as they are long.

use gridlet::types::{Scalar, Type};

use super::Generator;
use super::expressions::LEVELS;

/// The most cases of a switch.
const MAX_CASES: usize = 20;

impl Generator {
    /// Compares one value with many constants, as an expression or as a statement.
    pub(super) fn switch(&mut self) {
        let (scalar, value) = self.looked_at();
        let cases = self.cases(scalar);
        let name = self.fresh("w");
        let ty = self.some_type(0);
        let place = if self.random.percent(40) { self.some_place(&ty, true) } else { None };
        let arm = |result: &str| match &place {
            Some(place) => format!("{{ {place} = {result}; }}"),
            None => format!("{{ {result} }}"),
        };
        let mut text = format!("{{ let {name}: {} = {value}; ", scalar.name());
        for (at, case) in cases.iter().enumerate() {
            let result = match self.random.below(10) {
                0 | 1 => self.expression(&ty, 1),
                _ => self.constant(&ty),
            };
            // A struct literal must not look like the block.
            let result = if place.is_some() { result } else { format!("({result})") };
            let word = if at == 0 { "if" } else { "else if" };
            text.push_str(&format!("{word} {name} == {case} {} ", arm(&result)));
        }
        let last = self.expression(&ty, LEVELS - 1);
        text.push_str(&format!("else {} }}", arm(&last)));
        match place {
            Some(_) => self.line(&text),
            None => self.declare(&ty, &text, true),
        }
    }

    /// Whether a value is one of several constants.
    pub(super) fn one_of_several(&mut self, levels: u32) -> String {
        let (scalar, _) = self.looked_at();
        let value = self.scalar_expression(scalar, levels.min(1));
        let name = self.fresh("w");
        let cases = self.cases(scalar);
        let (operator, joint) = self.random.pick(&[("==", "||"), ("!=", "&&")]);
        let tests: Vec<String> =
            cases.iter().map(|case| format!("{name} {operator} {case}")).collect();
        format!("({{ let {name} = {value}; {} }})", tests.join(&format!(" {joint} ")))
    }

    /// The value that a switch compares: an integer, mostly of the smallest or largest width, that often equals a case.
    fn looked_at(&mut self) -> (Scalar, String) {
        let scalar = match self.random.below(6) {
            0 => Scalar::U8,
            1 => Scalar::I8,
            2 => Scalar::U64,
            3 => Scalar::I64,
            _ => self.integer_type(),
        };
        let value = self.scalar_expression(scalar, 2);
        let name = scalar.name();
        (scalar, format!("({value}) % {}{name}", 2 + self.random.below(MAX_CASES)))
    }

    /// Distinct constants: adjacent, with gaps, or anywhere.
    fn cases(&mut self, scalar: Scalar) -> Vec<String> {
        let count = 3 + self.random.below(MAX_CASES - 3) as u64;
        let step = self.random.pick(&[1, 1, 1, 2, 7]);
        let first = if scalar.is_signed() { self.random.below(6) as i64 - 3 } else { 0 };
        let shape = self.random.below(8);
        let mut cases: Vec<String> = vec![];
        for at in 0..count as i64 {
            let case = match shape {
                0 => self.literal(scalar),
                _ => {
                    let value = first + at * step;
                    let name = scalar.name();
                    if value < 0 { format!("({value}{name})") } else { format!("{value}{name}") }
                }
            };
            let too_large = shape != 0 && first + at * step > 120;
            if !too_large && !cases.contains(&case) {
                cases.push(case);
            }
        }
        cases
    }

    /// One expression of very many operands.
    pub(super) fn chain(&mut self) {
        let room = self.budget.saturating_sub(self.cost) / self.place.times / 4;
        let count = (20 + self.random.below(300)).min(room as usize);
        if count < 20 {
            return self.assignment();
        }
        let scalar = self.scalar();
        let operators: &[&str] = match scalar {
            Scalar::Bool => &["&&", "||", "&", "|", "^"],
            scalar if scalar.is_float() => &["+", "-"],
            _ => &["+", "-", "*", "&", "|", "^"],
        };
        // With one operator, or with several.
        let only = if self.random.percent(40) { Some(self.random.pick(operators)) } else { None };
        let mut text = self.scalar_expression(scalar, 0);
        for _ in 1..count {
            let operator = only.unwrap_or_else(|| self.random.pick(operators));
            text.push_str(&format!(" {operator} {}", self.scalar_expression(scalar, 0)));
        }
        self.declare(&Type::Scalar(scalar), &text, true);
    }

    /// A variable that is declared without a value and set part by part.
    pub(super) fn part_by_part(&mut self) {
        let ty = self.some_type(1);
        let name = self.fresh("v");
        let sets = match &ty {
            Type::Vector(scalar, count) => {
                let fields = ["x", "y", "z", "w"].into_iter().take(usize::from(*count));
                let parts: Vec<String> = fields
                    .map(|field| {
                        format!("{name}.{field} = {};", self.scalar_expression(*scalar, 2))
                    })
                    .collect();
                parts.join(" ")
            }
            Type::Struct(id) => {
                let fields = self.structs.get(*id).fields.clone();
                let parts: Vec<String> = fields
                    .iter()
                    .map(|field| {
                        format!("{name}.{} = {};", field.name, self.expression(&field.ty, 1))
                    })
                    .collect();
                parts.join(" ")
            }
            Type::Array(element, count) => {
                let (at, value) = (self.fresh("i"), self.expression(element, 1));
                self.cost += self.place.times * count;
                format!("for {at} in 0..{count} {{ {name}[{at}] = {value}; }}")
            }
            _ => return self.declaration(),
        };
        // On one line, because the reducer must not leave the value half set.
        let shown = self.show(&ty);
        self.line(&format!("let mut {name}: {shown}; {sets}"));
        let parts = self.parts(&name, &ty, true);
        self.variables.extend(parts);
    }
}
