//! Device functions and calls of them.

use gridlet::types::{Scalar, Type};

use super::expressions::LEVELS;
use super::instances::Constants;
use super::{Generator, Place, Variable};

/// The most steps that one call of a function may take.
const BUDGET: u64 = 1500;
/// The deepest recursion: a GPU's stack holds 1,024 bytes unless the host asks for more.
const RECURSION: usize = 4;

/// A function to call.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) constants: Constants,
    /// Its parameters after `z` and, if it is recursive, after the depth.
    pub(super) parameters: Vec<Type>,
    pub(super) result: Type,
    /// Steps of one call.
    pub(super) cost: u64,
    /// Whether all threads of a block must call it, in full warps.
    pub(super) meets: bool,
    /// Whether it calls itself, as often as its second argument says.
    pub(super) recursive: bool,
}

impl Generator {
    /// Adds a function of some kind.
    pub(super) fn function(&mut self) {
        match self.random.below(6) {
            0 => self.recursive_function(),
            1 => self.plain_function(true),
            _ => self.plain_function(false),
        }
    }

    fn plain_function(&mut self, meets: bool) {
        let mut parameters: Vec<Type> =
            (0..self.random.below(4)).map(|_| self.some_type(1)).collect();
        let result = self.some_type(1);
        let has_pointer = self.random.percent(30);
        let pointed = Type::Scalar(self.scalar());
        if has_pointer {
            parameters.push(Type::pointer_mut(pointed.clone()));
        }
        let name = self.item(if meets { "together" } else { "f" });
        self.constants = self.some_constants();
        let head = self.begin_function(&name, &[], &parameters, &result);
        self.place = Place {
            times: 1,
            depth: 0,
            meets,
            loops: vec![],
            result: (!meets).then(|| result.clone()),
            full_warps: meets,
        };
        self.start_body(&head);
        let count = 2 + self.random.below(5);
        self.statements(count);
        let value = self.expression(&result, LEVELS);
        self.line(&value);
        self.close("}");
        self.end_function(name, parameters, result, meets, false);
    }

    /// A call of the function itself, with the depth reduced by one.
    fn recursive_function(&mut self) {
        let parameters: Vec<Type> =
            (0..1 + self.random.below(2)).map(|_| Type::Scalar(self.scalar())).collect();
        let result = Type::Scalar(self.scalar());
        let name = self.item("again");
        self.constants = Constants::default();
        let head = self.begin_function(&name, &["depth: u32"], &parameters, &result);
        self.place.result = None;
        self.start_body(&head);
        let last = self.expression(&result, 1);
        self.line(&format!("if depth == 0 {{ return {last}; }}"));
        let arguments: Vec<String> =
            parameters.iter().map(|ty| format!(", {}", self.expression(ty, 2))).collect();
        self.line(&format!(
            "let below: {} = {name}(z, depth - 1{});",
            self.show(&result),
            arguments.concat()
        ));
        let variable = Variable { path: "below".into(), ty: result.clone(), mutable: false };
        self.variables.push(variable);
        let value = self.expression(&result, 2);
        self.line(&value);
        self.close("}");
        self.end_function(name, parameters, result, false, true);
    }

    /// Enters the parameters as variables and gives the line that opens the function.
    fn begin_function(
        &mut self,
        name: &str,
        more: &[&str],
        parameters: &[Type],
        result: &Type,
    ) -> String {
        self.variables.clear();
        self.variables.push(Variable { path: "z".into(), ty: Type::U64, mutable: false });
        self.variables.extend(self.constants.variables());
        self.place = Place {
            times: 1,
            depth: 0,
            meets: false,
            loops: vec![],
            result: None,
            full_warps: false,
        };
        (self.cost, self.budget) = (1, BUDGET);
        let mut list = vec!["z: u64".to_owned()];
        list.extend(more.iter().map(|&text| text.to_owned()));
        for (at, ty) in parameters.iter().enumerate() {
            let mutable = !ty.is_pointer() && self.random.percent(40);
            list.push(format!("{}p{at}: {}", if mutable { "mut " } else { "" }, self.show(ty)));
            let (path, ty, mutable) = match ty.pointee() {
                Some(pointee) => (format!("(*p{at})"), pointee, true),
                None => (format!("p{at}"), ty, mutable),
            };
            let parts = self.parts(&path, ty, mutable);
            self.variables.extend(parts);
        }
        let constants = self.constants.declared();
        format!("fn {name}{constants}({}) -> {} {{", list.join(", "), self.show(result))
    }

    fn end_function(
        &mut self,
        name: String,
        parameters: Vec<Type>,
        result: Type,
        meets: bool,
        recursive: bool,
    ) {
        let times = if recursive { RECURSION as u64 + 1 } else { 1 };
        let cost = self.cost * times;
        let constants = std::mem::take(&mut self.constants);
        self.functions.push(Function {
            name,
            constants,
            parameters,
            result,
            cost,
            meets,
            recursive,
        });
    }

    /// A call of a function that returns a `ty`, if one may be called here.
    pub(super) fn call(&mut self, ty: &Type, levels: u32) -> Option<String> {
        let (times, room) = (self.place.times, self.budget.saturating_sub(self.cost));
        let fits = |function: &&Function| {
            !function.meets && function.cost * times <= room && function.result == *ty
        };
        let recent = self.recent();
        let chosen: Vec<Function> = self.functions[recent..].iter().filter(fits).cloned().collect();
        if chosen.is_empty() {
            return None;
        }
        let function = chosen[self.random.below(chosen.len())].clone();
        self.call_of(&function, levels)
    }

    /// The first function that calls choose from.
    pub(super) fn recent(&self) -> usize {
        if self.recent_only { self.functions.len().saturating_sub(30) } else { 0 }
    }

    /// A call of that function; `None` if it needs a pointer and no variable fits.
    pub(super) fn call_of(&mut self, function: &Function, levels: u32) -> Option<String> {
        self.cost += function.cost * self.place.times;
        let mut arguments = vec!["z".to_owned()];
        if function.recursive {
            arguments.push(format!("{}u32", self.random.below(RECURSION + 1)));
        }
        for ty in &function.parameters {
            arguments.push(match ty.pointee() {
                Some(pointee) => format!("&{}", self.some_place(pointee, true)?),
                None => self.expression(ty, levels.saturating_sub(1).min(1)),
            });
        }
        let instance = self.instance(&function.constants);
        Some(format!("{}{instance}({})", function.name, arguments.join(", ")))
    }

    /// An integer that is the same for all threads of the block.
    pub(super) fn uniform(&mut self) -> String {
        match self.random.below(3) {
            0 => self.literal(Scalar::U32),
            1 => "block_idx.x".to_owned(),
            _ => "grid_dim.x".to_owned(),
        }
    }
}
