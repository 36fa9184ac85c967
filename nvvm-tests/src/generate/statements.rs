//! Statements.

use gridlet::types::{Scalar, Type};

use super::expressions::LEVELS;
use super::{Generator, Variable};

/// Blocks in blocks.
const MAX_DEPTH: u32 = 3;

impl Generator {
    pub(super) fn statements(&mut self, count: usize) {
        for _ in 0..count {
            if self.cost < self.budget {
                self.statement();
            }
        }
    }

    fn statement(&mut self) {
        if self.place.meets && self.random.percent(35) {
            return self.meeting();
        }
        match self.random.below(110) {
            0..=29 => self.declaration(),
            30..=49 => self.assignment(),
            50..=61 => self.compound(),
            62..=72 if self.place.depth < MAX_DEPTH => self.branch(),
            73..=84 if self.place.depth < MAX_DEPTH => self.repetition(),
            85..=89 => self.jump(),
            90..=93 => self.count(),
            94..=97 => self.walk(),
            98 => self.heap(),
            99..=102 => self.switch(),
            103 => self.chain(),
            104..=106 => self.part_by_part(),
            107..=109 => self.sized(),
            _ => self.declaration(),
        }
    }

    pub(super) fn declaration(&mut self) {
        let ty = self.some_type(1);
        let value = self.expression(&ty, LEVELS);
        let mutable = self.random.percent(70);
        self.declare(&ty, &value, mutable);
    }

    /// `let v: T = value;`
    pub(super) fn declare(&mut self, ty: &Type, value: &str, mutable: bool) {
        let name = self.fresh("v");
        let keyword = if mutable { "let mut" } else { "let" };
        if self.random.percent(10) {
            // On one line, because the reducer must not remove a piece of it.
            let (condition, other) = (self.expression(&Type::BOOL, 2), self.expression(ty, 2));
            let shown = self.show(ty);
            self.line(&format!(
                "{keyword} {name}: {shown}; if {condition} {{ {name} = {value}; }} else {{ {name} = {other}; }}"
            ));
        } else if self.random.percent(80) {
            let shown = self.show(ty);
            self.line(&format!("{keyword} {name}: {shown} = {value};"));
        } else {
            self.line(&format!("{keyword} {name} = {value};"));
        }
        let parts = self.parts(&name, ty, mutable);
        self.variables.extend(parts);
    }

    /// The type of a place that can be assigned.
    fn writable(&mut self) -> Option<Type> {
        let count = self.variables.iter().filter(|variable| variable.mutable).count();
        if count == 0 {
            return None;
        }
        let chosen = self.random.below(count);
        self.variables.iter().filter(|variable| variable.mutable).nth(chosen).map(|v| v.ty.clone())
    }

    pub(super) fn assignment(&mut self) {
        let Some(ty) = self.writable() else { return self.declaration() };
        let value = self.expression(&ty, LEVELS);
        let Some(place) = self.some_place(&ty, true) else { return };
        self.line(&format!("{place} = {value};"));
    }

    fn compound(&mut self) {
        let scalar = self.scalar();
        let ty = Type::Scalar(scalar);
        let Some(place) = self.some_place(&ty, true) else { return self.assignment() };
        let value = self.expression(&ty, LEVELS);
        let line = match self.random.below(4) {
            _ if scalar == Scalar::Bool => {
                format!("{place} {} {value};", self.random.pick(&["&=", "|=", "^="]))
            }
            _ if scalar.is_float() => match self.random.pick(&["+=", "-=", "/=", "%="]) {
                "/=" => format!("{place} = {};", self.scaled("/", scalar, &place, &value)),
                operator => format!("{place} {operator} {value};"),
            },
            0 => format!("{place} {} {value} | 1;", self.random.pick(&["/=", "%="])),
            1 => format!("{place} {} {value};", self.random.pick(&["<<=", ">>="])),
            _ => {
                let operator = self.random.pick(&["+=", "-=", "*=", "&=", "|=", "^="]);
                format!("{place} {operator} {value};")
            }
        };
        self.line(&line);
    }

    /// Statements in a block, which ends the scope of their variables.
    fn block(&mut self, times: u64, meets: bool, label: Option<String>) {
        let before = self.variables.len();
        let saved = (self.place.times, self.place.meets, self.place.loops.clone());
        self.place.times *= times;
        self.place.depth += 1;
        self.place.meets = meets;
        match label {
            Some(label) => self.place.loops.push(label),
            // No thread may jump out of code where all threads must arrive.
            None if meets => self.place.loops.clear(),
            None => {}
        }
        let count = 1 + self.random.below(3);
        self.statements(count);
        (self.place.times, self.place.meets, self.place.loops) = saved;
        self.place.depth -= 1;
        self.variables.truncate(before);
    }

    fn branch(&mut self) {
        let is_uniform = self.place.meets && self.random.percent(50);
        let condition = if is_uniform {
            let (left, right) = (self.uniform(), self.uniform());
            format!("{left} {} {right}", self.random.pick(&["<", "==", "!=", ">="]))
        } else {
            self.expression(&Type::BOOL, LEVELS - 1)
        };
        self.open(&format!("if {condition} {{"));
        self.block(1, is_uniform, None);
        for _ in 0..self.random.below(3) {
            let condition = self.expression(&Type::BOOL, 1);
            self.close(&format!("}} else if {condition} {{"));
            self.indent += 1;
            // Not all threads evaluate a second condition.
            self.block(1, false, None);
        }
        if self.random.percent(50) {
            self.close("} else {");
            self.indent += 1;
            self.block(1, false, None);
        }
        self.close("}");
    }

    fn repetition(&mut self) {
        let turns = 1 + self.random.below(5) as u64;
        let room = self.budget.saturating_sub(self.cost) / self.place.times;
        if room / turns < 20 {
            return self.assignment();
        }
        let meets = self.place.meets && self.random.percent(60);
        let label = (!meets).then(|| {
            if self.random.percent(40) { format!("'{}", self.fresh("l")) } else { String::new() }
        });
        let prefix = match &label {
            Some(label) if !label.is_empty() => format!("{label}: "),
            _ => String::new(),
        };
        let before = self.variables.len();
        match self.random.below(4) {
            0 | 1 => self.for_head(&prefix, turns, meets),
            2 => {
                let (name, ty) = self.counter();
                self.open(&format!("{prefix}while {name} < {turns}{ty} {{ {name} += 1;"));
            }
            _ => {
                let (name, ty) = self.counter();
                self.open(&format!(
                    "{prefix}loop {{ {name} += 1; if {name} > {turns}{ty} {{ break; }}"
                ));
            }
        }
        self.block(turns, meets, label);
        self.close("}");
        self.variables.truncate(before);
    }

    /// Declares the loop counter, which nothing else writes.
    fn counter(&mut self) -> (String, &'static str) {
        let ty = self.integer_type();
        let name = self.fresh("n");
        self.line(&format!("let mut {name}: {} = 0;", ty.name()));
        self.variables.push(Variable { path: name.clone(), ty: Type::Scalar(ty), mutable: false });
        (name, ty.name())
    }

    /// Where threads meet in the loop, the checker must see that all run as often.
    fn for_head(&mut self, prefix: &str, turns: u64, meets: bool) {
        let name = self.fresh("i");
        if !meets && self.random.percent(10) {
            let last = format!("block_dim.x * {turns}");
            self.open(&format!(
                "{prefix}for {name} in (thread_idx.x..{last}).step(block_dim.x) {{"
            ));
            let ty = Type::Scalar(Scalar::U32);
            return self.variables.push(Variable { path: name, ty, mutable: false });
        }
        let ty = self.integer_type();
        let first = if ty.is_signed() { self.random.below(9) as i64 - 4 } else { 3 };
        let suffix = ty.name();
        let unroll = match self.random.below(8) {
            0 => "#[unroll] ",
            1 => "#[unroll(2)] ",
            _ => "",
        };
        if self.random.percent(30) {
            let step = 1 + self.random.below(6) as i64;
            let last = first + turns as i64 * step - self.random.below(step as usize) as i64;
            self.open(&format!(
                "{unroll}{prefix}for {name} in ({first}{suffix}..{last}{suffix}).step({step}{suffix}) {{"
            ));
        } else {
            let last = first + turns as i64;
            self.open(&format!("{unroll}{prefix}for {name} in {first}{suffix}..{last}{suffix} {{"));
        }
        let ty = Type::Scalar(ty);
        self.variables.push(Variable { path: name, ty, mutable: false });
    }

    /// `break`, `continue` or `return`, if something says so.
    fn jump(&mut self) {
        let condition = self.expression(&Type::BOOL, LEVELS - 1);
        let count = self.place.loops.len();
        if count > 0 && self.random.percent(75) {
            let word = self.random.pick(&["break", "continue"]);
            let at = self.random.below(count);
            let label = self.place.loops[at].clone();
            // A loop without a label can only be left from directly inside.
            let target = if label.is_empty() { String::new() } else { format!(" {label}") };
            return self.line(&format!("if {condition} {{ {word}{target}; }}"));
        }
        let Some(result) = self.place.result.clone() else { return self.assignment() };
        let value = self.expression(&result, LEVELS - 1);
        self.line(&format!("if {condition} {{ return {value}; }}"));
    }

    /// An atomic operation on a variable of the program.
    fn count(&mut self) {
        let at = self.random.below(self.counters.len());
        let (name, scalar, operations) = self.counters[at].clone();
        let operation = self.random.pick(operations);
        let scope = self.random.pick(&["", "", "_system"]);
        let value = self.expression(&Type::Scalar(scalar), LEVELS - 1);
        self.line(&format!("atomic_{operation}{scope}(&{name}, {value});"));
    }

    /// Through a pointer into an array.
    fn walk(&mut self) {
        let is_array = |variable: &&Variable| {
            variable.mutable
                && matches!(&variable.ty, Type::Array(element, _) if matches!(**element, Type::Scalar(_)))
        };
        let arrays: Vec<Variable> = self.variables.iter().filter(is_array).cloned().collect();
        if arrays.is_empty() {
            return self.assignment();
        }
        let array = arrays[self.random.below(arrays.len())].clone();
        let Type::Array(element, count) = array.ty else { return };
        let path = self.indexed(&array.path);
        let value = self.expression(&element, LEVELS - 1);
        let index = self.expression(&Type::U32, LEVELS - 1);
        let (read, last) = (self.random.below(count as usize), count - 1);
        let name = self.fresh("q");
        self.line(&format!(
            "{{ let {name} = &{path}[0]; *({name} + {index} % {count}) = {value}; \
             ({name} + {last})[(({name} + {read}) - ({name} + {last}))] = *({name} + {last}); }}"
        ));
    }

    /// Memory from the heap, used and freed.
    fn heap(&mut self) {
        let (a, b) = (self.expression(&Type::U64, 2), self.expression(&Type::U64, 2));
        let value = format!(
            "{{ let p = malloc(16) as *mut u64; p[0] = {a}; p[1] = {b}; \
             let got = p[0] ^ (p[1] >> 7); free(p as *mut u8); got }}"
        );
        self.declare(&Type::U64, &value, true);
    }
}
