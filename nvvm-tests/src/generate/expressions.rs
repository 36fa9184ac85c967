//! Expressions. Each is one operand: a word, a call, or in parentheses.

use gridlet::types::{Scalar, Type};

use super::Generator;

/// The most levels of indices in indices: their number could grow without end.
const MAX_INDICES: u32 = 3;

/// The height of an expression that is generated for a statement.
pub(super) const LEVELS: u32 = 3;

impl Generator {
    /// An expression of a type, at most `levels` high beside the indices within its places.
    pub(super) fn expression(&mut self, ty: &Type, levels: u32) -> String {
        self.cost += self.place.times;
        if let Type::Scalar(scalar) = ty {
            return self.scalar_expression(*scalar, levels);
        }
        if self.random.percent(50)
            && let Some(place) = self.some_place(ty, false)
        {
            return place;
        }
        if levels > 0
            && self.random.percent(20)
            && let Some(call) = self.call(ty, levels)
        {
            return call;
        }
        if levels > 0 && self.random.percent(10) {
            return self.conditional(ty, levels);
        }
        let below = levels.saturating_sub(1);
        let composed = self.compose(ty, &mut |generator, scalar| {
            generator.scalar_expression(scalar, below.min(1))
        });
        if matches!(ty, Type::Struct(_)) { format!("({composed})") } else { composed }
    }

    pub(super) fn scalar_expression(&mut self, scalar: Scalar, levels: u32) -> String {
        self.cost += self.place.times;
        let ty = Type::Scalar(scalar);
        if levels == 0 || self.random.percent(15) {
            if self.random.percent(70)
                && let Some(place) =
                    self.some_place(&ty, false).or_else(|| self.converted_place(scalar))
            {
                return place;
            }
            return self.leaf(scalar);
        }
        match self.random.below(20) {
            0 | 1 => self.conditional(&ty, levels),
            2 => self.block_value(&ty, levels),
            3 | 4 => self.call(&ty, levels).unwrap_or_else(|| self.literal(scalar)),
            5..=7 if scalar != Scalar::Bool => self.cast(scalar, levels),
            _ if scalar == Scalar::Bool => self.condition(levels),
            _ if scalar.is_float() => self.float(scalar, levels),
            _ => self.integer(scalar, levels),
        }
    }

    /// A number that is known at compile time; of floats often one of [`Self::special`].
    fn leaf(&mut self, scalar: Scalar) -> String {
        if scalar.is_float() && self.random.percent(30) {
            return self.special(scalar);
        }
        self.literal(scalar)
    }

    /// A NaN, an infinity, a zero or a denormal number, which compilers do not know.
    fn special(&mut self, scalar: Scalar) -> String {
        let bits = scalar.bits();
        let digits = match scalar {
            Scalar::F16 => 10,
            Scalar::Bf16 => 7,
            Scalar::F32 => 23,
            _ => 52,
        };
        let sign = 1 << (bits - 1);
        let infinity = (sign - 1) ^ ((1 << digits) - 1);
        let magnitude = match self.random.below(7) {
            0 => 0,
            1 => infinity,
            // The first bit of a quiet NaN's digits is set, that of a signalling one is not.
            2 => infinity | 1 << (digits - 1),
            3 => infinity | 1,
            // Denormal: the least, the greatest, and any.
            4 => 1,
            5 => (1 << digits) - 1,
            _ => self.random.bits() & ((1 << digits) - 1),
        };
        let word: u64 = if self.random.percent(50) { magnitude | sign } else { magnitude };
        format!("make_{}({word:#x}u{bits}, z)", scalar.name())
    }

    /// Two operands, at least one of which compilers do not know, or a literal that is clearly not zero: libNVVM evaluates
    /// some operations on constants differently from a GPU, as the module's documentation says.
    fn not_all_known(&mut self, scalar: Scalar, left: String, right: String) -> [String; 2] {
        if !scalar.is_float() || [&left, &right].into_iter().any(|it| is_clearly_not_zero(it)) {
            return [left, right];
        }
        let hide = |value| format!("hide_{}({value}, z)", scalar.name());
        match self.random.percent(50) {
            true => [hide(left), right],
            false => [left, hide(right)],
        }
    }

    /// A product or quotient that no compiler fuses with a sum: the module's documentation explains it.
    pub(super) fn scaled(&self, operator: &str, scalar: Scalar, left: &str, right: &str) -> String {
        let name = if operator == "*" { "mul" } else { "div" };
        match scalar {
            Scalar::F32 | Scalar::F64 => format!("{name}{}({left}, {right}, z)", scalar.bits()),
            // The language rounds each operation separately.
            _ => format!("({left} {operator} {right})"),
        }
    }

    /// A part of a variable, a constant or a table.
    pub(super) fn some_place(&mut self, ty: &Type, mutable: bool) -> Option<String> {
        let fits =
            |variable: &&super::Variable| variable.ty == *ty && (variable.mutable || !mutable);
        let count = self.variables.iter().chain(&self.globals).filter(fits).count();
        if count == 0 {
            return None;
        }
        let chosen = self.random.below(count);
        let mut all = self.variables.iter().chain(&self.globals).filter(fits);
        let path = all.nth(chosen)?.path.clone();
        Some(self.indexed(&path))
    }

    /// A scalar of another type, converted: something that is not known at compile time.
    fn converted_place(&mut self, to: Scalar) -> Option<String> {
        let from = self.random.pick(&[Scalar::U64, Scalar::U32, Scalar::I32, Scalar::F32]);
        let place = self.some_place(&Type::Scalar(from), false)?;
        Some(match to {
            Scalar::Bool if from.is_float() => format!("({place} < 1.5)"),
            Scalar::Bool => format!("({place} % 3 == 1)"),
            _ => format!("({place} as {})", to.name()),
        })
    }

    /// The path with an index at each `#`.
    pub(super) fn indexed(&mut self, path: &str) -> String {
        let mut parts = path.split('#');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.find(']').unwrap_or(part.len());
            let (length, rest) = part.split_at(digits);
            let length: u64 = length.parse().unwrap_or(1);
            let index = if self.random.percent(50) || self.indices == MAX_INDICES {
                self.random.below(length as usize).to_string()
            } else {
                let word = if self.random.percent(70) { Scalar::U32 } else { Scalar::U64 };
                self.indices += 1;
                let index = format!("{} % {length}", self.scalar_expression(word, 1));
                self.indices -= 1;
                index
            };
            text.push_str(&index);
            text.push_str(rest);
        }
        text
    }

    fn conditional(&mut self, ty: &Type, levels: u32) -> String {
        let condition = self.scalar_expression(Scalar::Bool, levels - 1);
        let (then, otherwise) = (self.expression(ty, levels - 1), self.expression(ty, levels - 1));
        if self.random.percent(20) {
            let second = self.scalar_expression(Scalar::Bool, levels - 1);
            let third = self.expression(ty, levels - 1);
            return format!(
                "(if {condition} {{ {then} }} else if {second} {{ {third} }} else {{ {otherwise} }})"
            );
        }
        format!("(if {condition} {{ {then} }} else {{ {otherwise} }})")
    }

    /// `{ let a = …; … a … }`
    fn block_value(&mut self, ty: &Type, levels: u32) -> String {
        let inner = self.some_type(0);
        let value = self.expression(&inner, levels - 1);
        let name = self.fresh("b");
        let before = self.variables.len();
        let parts = self.parts(&name, &inner, false);
        self.variables.extend(parts);
        let result = self.expression(ty, levels - 1);
        self.variables.truncate(before);
        format!("({{ let {name}: {} = {value}; {result} }})", self.show(&inner))
    }

    fn cast(&mut self, to: Scalar, levels: u32) -> String {
        let mut from = self.scalar();
        if from == Scalar::Bool && to.is_float() {
            from = Scalar::U8;
        }
        let value = self.scalar_expression(from, levels - 1);
        format!("({value} as {})", to.name())
    }

    fn condition(&mut self, levels: u32) -> String {
        let below = levels - 1;
        match self.random.below(10) {
            0 => format!("(!{})", self.scalar_expression(Scalar::Bool, below)),
            1..=3 => {
                let operator = self.random.pick(&["&&", "||", "&", "|", "^", "==", "!="]);
                let left = self.scalar_expression(Scalar::Bool, below);
                let right = self.scalar_expression(Scalar::Bool, below);
                format!("({left} {operator} {right})")
            }
            4 => self.one_of_several(below),
            _ => {
                let scalar = match self.scalar() {
                    Scalar::Bool => Scalar::I32,
                    scalar => scalar,
                };
                let operator = self.random.pick(&["==", "!=", "<", "<=", ">", ">="]);
                let mut left = self.scalar_expression(scalar, below);
                let mut right = self.scalar_expression(scalar, below);
                // Equal NaNs are taken for equal numbers.
                if operator.contains('=') {
                    [left, right] = self.not_all_known(scalar, left, right);
                }
                format!("({left} {operator} {right})")
            }
        }
    }

    fn integer(&mut self, scalar: Scalar, levels: u32) -> String {
        let below = levels - 1;
        let left = self.scalar_expression(scalar, below);
        let wide = scalar.size() >= 4;
        match self.random.below(20) {
            0 if scalar.is_signed() => format!("(-{left})"),
            0 | 1 => format!("(!{left})"),
            2 | 3 => {
                // Never zero, often -1.
                let right = self.scalar_expression(scalar, below);
                let operator = self.random.pick(&["/", "%"]);
                format!("({left} {operator} ({right} | 1))")
            }
            4 | 5 => {
                let count = self.integer_type();
                let right = self.scalar_expression(count, below);
                let operator = self.random.pick(&["<<", ">>"]);
                format!("({left} {operator} {right})")
            }
            6 => {
                let name = self.random.pick(&["min", "max"]);
                format!("{name}({left}, {})", self.scalar_expression(scalar, below))
            }
            7 => {
                let (a, b) = (self.literal(scalar), self.literal(scalar));
                format!("clamp({left}, min({a}, {b}), max({a}, {b}))")
            }
            8 => format!("abs({left})"),
            9 if wide => format!("mul_hi({left}, {})", self.scalar_expression(scalar, below)),
            10 if wide => format!("brev({left})"),
            11 if scalar == Scalar::U32 => {
                let of = self.random.pick(&[Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64]);
                let name = self.random.pick(&["popc", "clz", "ctz"]);
                format!("{name}({})", self.scalar_expression(of, below))
            }
            12 if matches!(scalar, Scalar::U16 | Scalar::U32 | Scalar::U64) => {
                let float = match scalar {
                    Scalar::U16 => self.random.pick(&[Scalar::F16, Scalar::Bf16]),
                    Scalar::U32 => Scalar::F32,
                    _ => Scalar::F64,
                };
                format!("bits_{}({})", float.name(), self.scalar_expression(float, below))
            }
            13 => self.repacked(scalar, below),
            _ => {
                let operator = self.random.pick(&["+", "-", "*", "&", "|", "^"]);
                format!("({left} {operator} {})", self.scalar_expression(scalar, below))
            }
        }
    }

    /// Through the bits of another type of the same size.
    fn repacked(&mut self, scalar: Scalar, levels: u32) -> String {
        let target = scalar.name();
        let (through, of) = match scalar.size() {
            1 => {
                return format!(
                    "bitcast::<{target}>({})",
                    self.scalar_expression(Scalar::U8, levels)
                );
            }
            2 => ("u8x2", Scalar::U8),
            4 if self.random.percent(50) => ("i16x2", Scalar::I16),
            4 => ("u8x4", Scalar::U8),
            _ if self.random.percent(50) => ("u32x2", Scalar::U32),
            _ => ("u16x4", Scalar::U16),
        };
        let count = if through.ends_with('2') { 2 } else { 4 };
        let parts: Vec<String> =
            (0..count).map(|_| self.scalar_expression(of, levels.min(1))).collect();
        format!("bitcast::<{target}>({through}({}))", parts.join(", "))
    }

    fn float(&mut self, scalar: Scalar, levels: u32) -> String {
        let below = levels - 1;
        let left = self.scalar_expression(scalar, below);
        match self.random.below(18) {
            0 => format!("(-{left})"),
            1..=3 => {
                let right = self.scalar_expression(scalar, below);
                let operator = self.random.pick(&["*", "*", "/"]);
                self.scaled(operator, scalar, &left, &right)
            }
            4 => format!("({left} % {})", self.scalar_expression(scalar, below)),
            5 => {
                let name = self
                    .random
                    .pick(&["sqrt", "floor", "ceil", "trunc", "round", "abs", "saturate"]);
                match name {
                    "saturate" => format!("saturate(hide_{}({left}, z))", scalar.name()),
                    _ => format!("{name}({left})"),
                }
            }
            6..=8 => {
                // A literal is never NaN, and so neither is the result.
                let name = self.random.pick(&["min", "max"]);
                let right = match self.random.percent(40) {
                    true => self.literal(scalar),
                    false => self.scalar_expression(scalar, below),
                };
                let [left, right] = self.not_all_known(scalar, left, right);
                match self.random.percent(50) {
                    true => format!("{name}({left}, {right})"),
                    false => format!("{name}({right}, {left})"),
                }
            }
            9 => {
                let (low, high) =
                    (self.scalar_expression(scalar, below), self.scalar_expression(scalar, below));
                let (name, is_first) = (scalar.name(), self.random.percent(50));
                match is_first {
                    true => format!("clamp(hide_{name}({left}, z), {low}, {high})"),
                    false => format!("clamp({left}, hide_{name}({low}, z), {high})"),
                }
            }
            10 => {
                let (factor, term) =
                    (self.scalar_expression(scalar, below), self.scalar_expression(scalar, below));
                let mut operands = [left, factor, term];
                let hidden = &mut operands[self.random.below(3)];
                *hidden = format!("hide_{}({hidden}, z)", scalar.name());
                format!("fma({})", operands.join(", "))
            }
            11 => {
                // Half of the time, the bits of a whole number stay far from NaN and infinity.
                let (word, mask) = match scalar {
                    Scalar::F16 | Scalar::Bf16 => (Scalar::U16, "0x3fffu16"),
                    Scalar::F32 => (Scalar::U32, "0x3fff_ffffu32"),
                    _ => (Scalar::U64, "0x3fff_ffff_ffff_ffffu64"),
                };
                let mut bits = self.scalar_expression(word, below);
                if self.random.percent(50) {
                    bits = format!("{bits} & {mask}");
                }
                format!("make_{}({bits}, z)", scalar.name())
            }
            12 => {
                // A value compared with itself: only NaN differs.
                let (name, inner) = (self.fresh("b"), scalar.name());
                let (then, otherwise) =
                    (self.scalar_expression(scalar, below), self.scalar_expression(scalar, below));
                let least = self.not_all_known(scalar, name.clone(), otherwise).join(", ");
                format!(
                    "({{ let {name}: {inner} = {left}; \
                     if {name} != {name} {{ {then} }} else {{ min({least}) }} }})"
                )
            }
            _ => {
                let operator = self.random.pick(&["+", "-"]);
                format!("({left} {operator} {})", self.scalar_expression(scalar, below))
            }
        }
    }

    /// A checksum of a value, as `u64`.
    pub(super) fn checksum(&mut self, path: &str, ty: &Type) -> String {
        match ty {
            Type::Scalar(float) if float.is_float() => {
                format!("bits_{}({path}) as u64", float.name())
            }
            Type::Scalar(Scalar::U64) => path.to_owned(),
            _ => format!("{path} as u64"),
        }
    }
}

/// Whether an expression is a literal that has not been rounded to zero in any type.
fn is_clearly_not_zero(expression: &str) -> bool {
    let literal = expression.trim_start_matches("(-").trim_end_matches(')');
    let number = ["bf16", "f16", "f32", "f64"].iter().find_map(|ty| literal.strip_suffix(ty));
    number.and_then(|number| number.parse::<f64>().ok()).is_some_and(|number| number > 0.001)
}
