//! Functions: slots, blocks, instructions.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::{Parser, Result, positions, variable};
use crate::builtins::{Builtin, Order};
use crate::ir::print::{BINARY_OPS, binary_name};
use crate::ir::{
    Block, BlockId, Const, Function, FunctionId, Inst, InstId, InstKind, Kernel, KernelId, Launch,
    Operand, Role, Slot, SlotId, Stream, Terminator, UnaryOp, Unroll,
};
use crate::types::Type;

/// The state of reading a function.
#[derive(Default)]
struct Body<'t> {
    slots: BTreeMap<&'t str, SlotId>,
    parameters: BTreeMap<String, u32>,
    /// The values by number, each with the place of its first mention.
    values: BTreeMap<&'t str, (InstId, Option<Cursor<'t>>)>,
    /// By instruction; `None` for a value that is mentioned but not yet defined.
    instructions: Vec<Option<Inst>>,
    /// The blocks in the order of their first mention, each with the place of the mention, and its id once
    /// defined.
    mentioned: Vec<(&'t str, Cursor<'t>, Option<BlockId>)>,
    /// The fields given by name, to be resolved once the types of all values are known.
    fields: Vec<(InstId, &'t str, Cursor<'t>)>,
}

impl<'t> Body<'t> {
    /// The block with a name, as an index into `mentioned`.
    fn block(&mut self, name: &'t str, place: Cursor<'t>) -> BlockId {
        let known = self.mentioned.iter().position(|(known, ..)| *known == name);
        let at = known.unwrap_or_else(|| {
            self.mentioned.push((name, place, None));
            self.mentioned.len() - 1
        });
        BlockId(at as u32)
    }

    fn new_instruction(&mut self) -> InstId {
        self.instructions.push(None);
        InstId(self.instructions.len() as u32 - 1)
    }

    /// The value with a number.
    fn value(&mut self, number: &'t str, place: Cursor<'t>) -> InstId {
        match self.values.get(number) {
            Some((id, _)) => *id,
            None => {
                let id = self.new_instruction();
                self.values.insert(number, (id, Some(place)));
                id
            }
        }
    }
}

impl<'t> Parser<'t> {
    pub(super) fn function(&mut self) -> Result<()> {
        let keyword = self.cursor.peek_word();
        if !matches!(keyword, "fn" | "body" | "entry") {
            return Err(self.cursor.expected("`fn`, `body` or `entry`"));
        }
        self.cursor.eat_word(keyword);
        self.cursor.rest();
        let place = self.cursor.clone();
        let name = self.symbol()?;
        let id = FunctionId(self.module.functions.len() as u32);
        let kernel = |is: &dyn Fn(&Kernel) -> bool| {
            let at = self.module.kernels.iter().position(is);
            at.map(|at| KernelId(at as u32))
                .ok_or_else(|| place.error(format!("`{name}` is not the {keyword} of any kernel")))
        };
        let role = match keyword {
            "body" => Role::Body(kernel(&|kernel| kernel.bodies().any(|body| body == id))?),
            "entry" => Role::Entry(kernel(&|kernel| kernel.entry == id)?),
            _ => Role::Device,
        };
        self.cursor.expect("(")?;
        self.cursor.rest();
        let list = self.cursor.clone();
        let parameters = self.parameters("%", ")")?;
        let result = self.result()?;
        self.cursor.expect("{")?;
        self.cursor.end_of_line()?;

        let mut body = Body::default();
        for (at, parameter) in parameters.iter().enumerate() {
            if body.parameters.insert(parameter.name.clone(), at as u32).is_some() {
                let name = &parameter.name;
                return Err(list.error(format!("parameter `{name}` is declared twice")));
            }
        }
        let takes_geometry = parameters.first().is_some_and(|first| first.ty == Type::GEOMETRY);
        let slots = self.slots(&mut body)?;
        let mut blocks = vec![];
        loop {
            self.cursor.skip_blank_lines();
            if self.cursor.eat("}") {
                break;
            }
            let block = self.block(&mut body, blocks.len())?;
            blocks.push(block);
        }
        self.cursor.end_of_line()?;
        let mut function = Function {
            name: name.into(),
            role,
            takes_geometry,
            parameters,
            result,
            slots,
            instructions: vec![],
            blocks,
            addressed: vec![],
            span: self.here_of(&place),
        };
        self.resolve(body, &mut function)?;
        self.module.functions.push(function);
        Ok(())
    }

    fn slots(&mut self, body: &mut Body<'t>) -> Result<Vec<Slot>> {
        let mut slots = vec![];
        loop {
            self.cursor.skip_blank_lines();
            // A block may also be named `slot`.
            let mut ahead = self.cursor.clone();
            if !ahead.eat_word("slot") || !ahead.eat("$") {
                return Ok(slots);
            }
            self.cursor = ahead;
            let place = self.cursor.clone();
            let name = self.cursor.name("the name of a slot")?;
            self.cursor.expect(":")?;
            let ty = self.ty()?;
            let unset = self.cursor.eat(",");
            if unset && !self.cursor.eat_word("unset") {
                return Err(self.cursor.error("expected `unset`".into()));
            }
            self.cursor.end_of_line()?;
            if body.slots.insert(name, SlotId(slots.len() as u32)).is_some() {
                return Err(place.error(format!("slot `{name}` is declared twice")));
            }
            let variable = self.keeps_own.then(|| variable(name, self.here_of(&place)));
            slots.push(Slot { name: name.into(), ty, unset, variable });
        }
    }

    fn block(&mut self, body: &mut Body<'t>, at: usize) -> Result<Block> {
        self.cursor.rest();
        let place = self.cursor.clone();
        let name = self.cursor.name("the name of a block, or `}`")?;
        self.cursor.expect(":")?;
        let unroll = if !self.cursor.eat_word("unroll") {
            None
        } else if self.cursor.eat("(") {
            let unroll = if self.cursor.eat_word("known") {
                Unroll::Known
            } else {
                Unroll::Count(self.cursor.number("a number of iterations")?)
            };
            self.cursor.expect(")")?;
            Some(unroll)
        } else {
            Some(Unroll::Full)
        };
        self.cursor.end_of_line()?;
        let mention = body.block(name, place.clone());
        let id = &mut body.mentioned[mention.index()].2;
        if id.replace(BlockId(at as u32)).is_some() {
            return Err(place.error(format!("block `{name}` is defined twice")));
        }
        let mut instructions = vec![];
        let terminator = loop {
            self.cursor.skip_blank_lines();
            if let Some(terminator) = self.terminator(body)? {
                break terminator;
            }
            instructions.push(self.instruction(body)?);
        };
        // Where the instruction before has a position, it is that of the end, too.
        let before = instructions.last().and_then(|id| body.instructions[id.index()].as_ref());
        let is_own = self.keeps_own && before.is_none_or(|before| positions::is_own(before.span));
        let mut end = is_own.then(|| self.here());
        if self.cursor.eat(";") {
            // Any other comment may stand here too.
            let comment = self.cursor.clone();
            end = self.position().ok().or(end);
            self.cursor = comment;
            self.cursor.line();
        }
        self.cursor.end_of_line()?;
        Ok(Block { name: name.into(), instructions, terminator, end, unroll })
    }

    fn terminator(&mut self, body: &mut Body<'t>) -> Result<Option<Terminator>> {
        let word = self.cursor.peek_word();
        if !matches!(word, "jump" | "branch" | "return" | "unreachable") {
            return Ok(None);
        }
        self.cursor.eat_word(word);
        Ok(Some(match word {
            "jump" => Terminator::Jump(self.block_name(body)?),
            "branch" => {
                let condition = self.operand(body)?;
                self.cursor.expect(",")?;
                let then = self.block_name(body)?;
                self.cursor.expect(",")?;
                Terminator::Branch { condition, then, otherwise: self.block_name(body)? }
            }
            "return" if self.cursor.is_at_end_of_line() => Terminator::Return(None),
            "return" => Terminator::Return(Some(self.operand(body)?)),
            _ => Terminator::Unreachable,
        }))
    }

    fn block_name(&mut self, body: &mut Body<'t>) -> Result<BlockId> {
        self.cursor.rest();
        let place = self.cursor.clone();
        let name = self.cursor.name("the name of a block")?;
        Ok(body.block(name, place))
    }

    fn instruction(&mut self, body: &mut Body<'t>) -> Result<InstId> {
        let (id, ty) = if self.cursor.eat("%") {
            let place = self.cursor.clone();
            let number = self.value_number()?;
            let id = body.value(number, place.clone());
            if body.instructions[id.index()].is_some() {
                return Err(place.error(format!("value %{number} is defined twice")));
            }
            self.cursor.expect(":")?;
            let ty = self.ty()?;
            self.cursor.expect("=")?;
            (Some(id), ty)
        } else {
            (None, Type::Unit)
        };
        // A value got its id at its first mention; only instructions without a value need a new one.
        let id = id.unwrap_or_else(|| body.new_instruction());
        let kind = self.operation(body, id)?;
        let span = if self.cursor.eat(";") { self.position()? } else { self.here() };
        self.cursor.end_of_line()?;
        body.instructions[id.index()] = Some(Inst { kind, ty, span });
        Ok(id)
    }

    /// The digits after `%`.
    fn value_number(&mut self) -> Result<&'t str> {
        let word = self.cursor.peek_word();
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.cursor.expected("the number of a value"));
        }
        self.cursor.word("the number of a value")
    }

    fn operation(&mut self, body: &mut Body<'t>, id: InstId) -> Result<InstKind> {
        let mut place = self.cursor.clone();
        let word = self.cursor.word("an instruction")?;
        if let Some(op) = BINARY_OPS.into_iter().find(|op| binary_name(*op) == word) {
            let [left, right] = self.fixed(body)?;
            return Ok(InstKind::Binary(op, left, right));
        }
        Ok(match word {
            "load" => InstKind::Load(self.operand(body)?),
            "store" => {
                let [pointer, value] = self.fixed(body)?;
                InstKind::Store { pointer, value }
            }
            "neg" => InstKind::Unary(UnaryOp::Neg, self.operand(body)?),
            "not" => InstKind::Unary(UnaryOp::Not, self.operand(body)?),
            "cast" => InstKind::Cast(self.operand(body)?),
            "select" => {
                let [condition, yes, no] = self.fixed(body)?;
                InstKind::Select(condition, yes, no)
            }
            "field_address" => {
                let base = self.operand(body)?;
                InstKind::FieldAddress { base, index: self.part(body, id)? }
            }
            "extract" => {
                let base = self.operand(body)?;
                InstKind::Extract { base, index: self.part(body, id)? }
            }
            "element_address" => {
                let [base, index] = self.fixed(body)?;
                InstKind::ElementAddress { base, index }
            }
            "advance" => {
                let [counter, step] = self.fixed(body)?;
                InstKind::Advance(counter, step)
            }
            "pointer_difference" => {
                let [left, right] = self.fixed(body)?;
                InstKind::PointerDifference(left, right)
            }
            "byte_offset" => {
                let base = self.operand(body)?;
                self.cursor.expect(",")?;
                InstKind::ByteOffset { base, bytes: self.cursor.number("a number of bytes")? }
            }
            "aggregate" => {
                let mut parts = vec![];
                while !self.cursor.is_at_end_of_line() {
                    if !parts.is_empty() {
                        self.cursor.expect(",")?;
                    }
                    parts.push(self.operand(body)?);
                }
                InstKind::Aggregate(parts)
            }
            "call" if self.cursor.eat_word("extern") => {
                let externs = |parser: &Self, name: &str| parser.externs.get(name).copied();
                let function = self.known("an extern function", externs)?;
                InstKind::CallExtern { function, arguments: self.arguments(body)? }
            }
            "call" => {
                let function = self.function_name()?;
                InstKind::Call { function, arguments: self.arguments(body)? }
            }
            "hardware_geometry" => InstKind::HardwareGeometry,
            "launch" => self.launch(body, false)?,
            "try" => {
                self.cursor.expect_word("launch")?;
                self.launch(body, true)?
            }
            _ => match Builtin::from_name(word) {
                Some(builtin) => self.builtin(body, builtin)?,
                None => return Err(place.expected("an instruction")),
            },
        })
    }

    fn builtin(&mut self, body: &mut Body<'t>, mut builtin: Builtin) -> Result<InstKind> {
        self.cursor.expect("(")?;
        let mut format = None;
        if builtin == Builtin::Printf {
            let globals = |parser: &Self, name: &str| parser.globals.get(name).copied();
            format = Some(self.known("a global", globals)?);
        }
        let mut arguments = vec![];
        let mut order = None;
        while !self.cursor.eat(")") {
            if format.is_some() || !arguments.is_empty() {
                self.cursor.expect(",")?;
            }
            let word = self.cursor.peek_word();
            order = Order::ALL.into_iter().find(|(_, name)| *name == word).map(|(order, _)| order);
            match order.filter(|_| builtin.order().is_some()) {
                Some(order) => {
                    builtin = builtin.with_order(order);
                    self.cursor.eat_word(word);
                    self.cursor.expect(")")?;
                    break;
                }
                None => arguments.push(self.operand(body)?),
            }
        }
        if builtin.order().is_some() && order.is_none() {
            return Err(self.cursor.error("expected an order as the last argument".into()));
        }
        Ok(InstKind::Builtin { builtin, arguments, format })
    }

    fn launch(&mut self, body: &mut Body<'t>, is_try: bool) -> Result<InstKind> {
        let kernels = |parser: &Self, name: &str| parser.names.kernels.get(name).copied();
        let kernel = self.known("a kernel", kernels)?;
        self.cursor.expect("<<<")?;
        let [grid, block] = self.fixed(body)?;
        self.cursor.expect(",")?;
        self.cursor.expect_word("shared")?;
        self.cursor.expect("=")?;
        let shared = self.operand(body)?;
        self.cursor.expect(",")?;
        self.cursor.expect_word("stream")?;
        self.cursor.expect("=")?;
        let stream = if self.cursor.eat_word("default") {
            Stream::Default
        } else if self.cursor.eat_word("fire_and_forget") {
            Stream::FireAndForget
        } else if self.cursor.eat_word("tail") {
            Stream::Tail
        } else {
            Stream::Value(self.operand(body)?)
        };
        self.cursor.expect(">>>")?;
        let arguments = self.arguments(body)?;
        let launch = Launch { kernel, grid, block, shared, stream, arguments, is_try };
        Ok(InstKind::Launch(Box::new(launch)))
    }

    /// `(operand, …)`
    fn arguments(&mut self, body: &mut Body<'t>) -> Result<Vec<Operand>> {
        self.cursor.expect("(")?;
        let mut arguments = vec![];
        while !self.cursor.eat(")") {
            if !arguments.is_empty() {
                self.cursor.expect(",")?;
            }
            arguments.push(self.operand(body)?);
        }
        Ok(arguments)
    }

    /// A fixed number of operands, separated by commas.
    fn fixed<const N: usize>(&mut self, body: &mut Body<'t>) -> Result<[Operand; N]> {
        let mut operands = [const { Operand::Const(Const::Bool(false)) }; N];
        for (at, operand) in operands.iter_mut().enumerate() {
            if at > 0 {
                self.cursor.expect(",")?;
            }
            *operand = self.operand(body)?;
        }
        Ok(operands)
    }

    fn operand(&mut self, body: &mut Body<'t>) -> Result<Operand> {
        if self.cursor.eat("%") {
            let mut place = self.cursor.clone();
            if self.cursor.peek_word().starts_with(|first: char| first.is_ascii_digit()) {
                let number = self.value_number()?;
                return Ok(Operand::Inst(body.value(number, place)));
            }
            let name = self.cursor.name("the name of a parameter")?;
            let known = body.parameters.get(name).map(|at| Operand::Parameter(*at));
            return known.ok_or_else(|| place.expected("the name of a parameter"));
        }
        if self.cursor.eat("$") {
            let mut place = self.cursor.clone();
            let name = self.cursor.name("the name of a slot")?;
            let known = body.slots.get(name).map(|id| Operand::Slot(*id));
            return known.ok_or_else(|| place.expected("the name of a slot"));
        }
        if self.cursor.rest().starts_with('@') {
            return self.known("a global or a kernel", |parser, name| {
                let global = parser.globals.get(name).map(|id| Operand::Global(*id));
                global.or_else(|| parser.names.kernels.get(name).map(|id| Operand::Kernel(*id)))
            });
        }
        self.constant().map(Operand::Const)
    }

    /// `#3`, or `.field`, whose index [`Parser::resolve`] fills in.
    fn part(&mut self, body: &mut Body<'t>, id: InstId) -> Result<u32> {
        if self.cursor.eat("#") {
            return self.cursor.number("the number of an element");
        }
        if !self.cursor.rest().starts_with('.') {
            return Err(self.cursor.expected("`.` and a field, or `#` and a number"));
        }
        let place = self.cursor.clone();
        let name = self.cursor.word("the name of a field")?;
        body.fields.push((id, &name[1..], place));
        Ok(0)
    }

    /// Replaces the names of blocks and fields by ids and indices.
    fn resolve(&mut self, body: Body<'t>, function: &mut Function) -> Result<()> {
        for (number, (id, place)) in &body.values {
            if let (None, Some(place)) = (&body.instructions[id.index()], place) {
                return Err(place.error(format!("value %{number} is not defined")));
            }
        }
        function.instructions = body.instructions.into_iter().flatten().collect();
        let mut blocks = vec![];
        for (name, place, id) in body.mentioned {
            blocks.push(id.ok_or_else(|| place.error(format!("block `{name}` is not defined")))?);
        }
        let resolve = |id: &mut BlockId| *id = blocks[id.index()];
        for block in &mut function.blocks {
            match &mut block.terminator {
                Terminator::Jump(target) => resolve(target),
                Terminator::Branch { then, otherwise, .. } => {
                    resolve(then);
                    resolve(otherwise);
                }
                Terminator::Return(_) | Terminator::Unreachable => {}
            }
        }
        for (id, name, place) in body.fields {
            let ty = match &function.instructions[id.index()].kind {
                InstKind::FieldAddress { base, .. } => {
                    self.module.operand_type(function, base).pointee().cloned()
                }
                InstKind::Extract { base, .. } => Some(self.module.operand_type(function, base)),
                _ => None,
            };
            let found = match ty {
                Some(Type::Struct(of)) => {
                    let fields = &self.module.structs.get(of).fields;
                    fields.iter().position(|field| field.name == name)
                }
                Some(Type::Vector(..)) => ["x", "y", "z", "w"].iter().position(|at| *at == name),
                _ => None,
            };
            let found = found.ok_or_else(|| place.error(format!("no field `{name}` here")))?;
            if let InstKind::FieldAddress { index, .. } | InstKind::Extract { index, .. } =
                &mut function.instructions[id.index()].kind
            {
                *index = found as u32;
            }
        }
        Ok(())
    }
}
