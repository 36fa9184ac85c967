//! Const parameters: functions and kernels that have several instances.

use gridlet::types::{Scalar, Type};

use super::{Generator, Variable};

/// The largest value of a const parameter that is the length of arrays.
const MAX_ELEMENTS: usize = 6;

/// The const parameters of a function or kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants {
    parameters: Vec<(String, Scalar)>,
    /// The arguments that it is instantiated with, besides constants that callers pass on. They are few, because each
    /// instance is compiled.
    uses: Vec<Vec<String>>,
}

impl Constants {
    /// `<const N: u32>`, or nothing.
    pub(super) fn declared(&self) -> String {
        if self.parameters.is_empty() {
            return String::new();
        }
        let show = |(name, ty): &(String, Scalar)| format!("const {name}: {}", ty.name());
        format!("<{}>", self.parameters.iter().map(show).collect::<Vec<_>>().join(", "))
    }

    /// The constants that an expression of the body may use.
    pub(super) fn variables(&self) -> Vec<Variable> {
        let variable = |(name, ty): &(String, Scalar)| Variable {
            path: name.clone(),
            ty: Type::Scalar(*ty),
            mutable: false,
        };
        self.parameters.iter().map(variable).collect()
    }

    /// The parameter that is the length of arrays: the first.
    fn length(&self) -> Option<&str> {
        self.parameters.first().map(|(name, _)| name.as_str())
    }
}

impl Generator {
    /// Const parameters for some of the functions: a length from 1 on, and one of any type.
    pub(super) fn some_constants(&mut self) -> Constants {
        if self.random.percent(75) {
            return Constants::default();
        }
        let mut parameters = vec![(self.fresh("N"), Scalar::U32)];
        if self.random.percent(60) {
            let scalar = if self.random.percent(30) { Scalar::Bool } else { self.integer_type() };
            parameters.push((self.fresh("K"), scalar));
        }
        let mut uses = vec![];
        for _ in 0..1 + self.random.below(2) {
            let mut values = vec![(1 + self.random.below(MAX_ELEMENTS)).to_string()];
            if let Some((_, scalar)) = parameters.get(1) {
                // Anything but a single literal needs braces.
                values.push(format!("{{ {} }}", self.literal(*scalar)));
            }
            uses.push(values);
        }
        Constants { parameters, uses }
    }

    /// `::<3, true>`, or nothing; sometimes the caller's own constants.
    pub(super) fn instance(&mut self, of: &Constants) -> String {
        if of.parameters.is_empty() {
            return String::new();
        }
        let mut values = of.uses[self.random.below(of.uses.len())].clone();
        for (value, (_, scalar)) in values.iter_mut().zip(&of.parameters) {
            let own = self.constants.parameters.iter().find(|(_, own)| own == scalar).cloned();
            if let Some((own, _)) = own
                && self.random.percent(30)
            {
                *value = match scalar {
                    Scalar::U32 if self.random.percent(50) => format!("{{ {own} / 2 + 1 }}"),
                    _ => own,
                };
            }
        }
        format!("::<{}>", values.join(", "))
    }

    /// An array whose length is a const parameter.
    pub(super) fn sized(&mut self) {
        let Some(length) = self.constants.length().map(str::to_owned) else {
            return self.declaration();
        };
        let ty = Type::Scalar(self.scalar());
        let (first, next) = (self.expression(&ty, 1), self.expression(&ty, 1));
        let (condition, index) = (self.expression(&Type::BOOL, 1), self.expression(&Type::U32, 1));
        self.cost += self.place.times * MAX_ELEMENTS as u64 * 4;
        let unroll = self.random.pick(&["", "#[unroll] ", "#[unroll(2)] "]);
        let (array, at) = (self.fresh("a"), self.fresh("i"));
        let value = format!(
            "{{ let mut {array} = [{first}; {length}]; {unroll}for {at} in 0..{length} {{ {array}[{at}] = \
             if {condition} {{ {array}[({at} + 1) % {length}] }} else {{ {next} }}; }} \
             {array}[{index} % {length}] }}"
        );
        self.declare(&ty, &value, true);
    }
}
