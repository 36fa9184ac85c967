//! Resolves constants and structs in order of dependency: an array length in a struct is a constant, and a
//! constant may be the size of a struct.

use super::mismatch::Why;
use super::tree::StaticId;
use super::{Context, StaticItem, ValueName};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast::{self, Expr, ExprKind, GenericArgument, TypeExpr, TypeExprKind};
use crate::types::{StructId, Type};

/// The progress of the walk over a constant or struct.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Unseen,
    Open,
    Done,
}

/// A node of the dependency graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    /// Index in [`Context::consts`].
    Const(usize),
    Struct(StructId),
}

/// A dependency of a node, and where it occurs.
#[derive(Clone, Copy)]
struct Use {
    node: Node,
    span: Span,
    /// Whether one struct contains another by value. Field resolution reports structs that contain
    /// themselves.
    is_part: bool,
}

/// The progress of the walk for each node.
struct States {
    consts: Vec<State>,
    structs: Vec<State>,
}

impl States {
    fn of(&mut self, node: Node) -> &mut State {
        match node {
            Node::Const(at) => &mut self.consts[at],
            Node::Struct(id) => &mut self.structs[id.0 as usize],
        }
    }
}

impl<'a> Context<'a> {
    /// Evaluates every constant and resolves every struct, each after its dependencies. An explicit stack
    /// replaces recursion, so that dependency chains may be of any length.
    pub(super) fn evaluate_consts_and_structs(&mut self, items: &[(StructId, &'a ast::Struct)]) {
        let mut sources: Vec<Option<&'a ast::Struct>> = vec![None; self.struct_items.len()];
        for (id, item) in items {
            sources[id.0 as usize] = Some(item);
        }
        let mut states = States {
            consts: vec![State::Unseen; self.consts.len()],
            // The built-in structs are resolved already.
            structs: sources
                .iter()
                .map(|source| if source.is_some() { State::Unseen } else { State::Done })
                .collect(),
        };
        let consts = (0..self.consts.len()).map(Node::Const);
        let structs = items.iter().map(|(id, _)| Node::Struct(*id));
        let roots: Vec<Node> = consts.chain(structs).collect();
        for root in roots {
            let mut open = vec![];
            self.open(root, &sources, &mut states, &mut open);
            while let Some((node, uses)) = open.last_mut() {
                let node = *node;
                let Some(used) = uses.pop() else {
                    match node {
                        Node::Const(at) => self.evaluate_const(at),
                        Node::Struct(id) => {
                            if let Some(source) = sources[id.0 as usize] {
                                self.resolve_struct(id, source, &states.structs);
                            }
                        }
                    }
                    *states.of(node) = State::Done;
                    open.pop();
                    continue;
                };
                match *states.of(used.node) {
                    State::Done => {}
                    State::Open => self.report_cycle(used),
                    State::Unseen => self.open(used.node, &sources, &mut states, &mut open),
                }
            }
        }
    }

    fn open(
        &self,
        node: Node,
        sources: &[Option<&'a ast::Struct>],
        states: &mut States,
        open: &mut Vec<(Node, Vec<Use>)>,
    ) {
        if *states.of(node) != State::Unseen {
            return;
        }
        *states.of(node) = State::Open;
        let mut uses = vec![];
        match node {
            Node::Const(at) => {
                self.uses_in_type(&self.consts[at].item.ty, false, &mut uses);
                self.uses_in(&self.consts[at].item.value, &mut uses);
            }
            Node::Struct(id) => {
                for field in sources[id.0 as usize].iter().flat_map(|source| &source.fields) {
                    self.uses_in_type(&field.ty, true, &mut uses);
                }
            }
        }
        uses.reverse();
        open.push((node, uses));
    }

    /// The dependencies of an expression, left to right; only of the kinds of expressions allowed in
    /// constants.
    fn uses_in(&self, value: &Expr, uses: &mut Vec<Use>) {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match &value.kind {
                ExprKind::Name(name) => {
                    let meaning = self.value(self.text(*name), name.span.file);
                    if let Some((ValueName::Const(used), _)) = meaning {
                        let node = Node::Const(used);
                        uses.push(Use { node, span: name.span, is_part: false });
                    }
                }
                ExprKind::Unary(_, value) => open.push(value),
                ExprKind::Cast(value, ty) => {
                    self.uses_in_type(ty, false, uses);
                    open.push(value);
                }
                ExprKind::Binary { left, right, .. } | ExprKind::Logical { left, right, .. } => {
                    open.push(right);
                    open.push(left);
                }
                ExprKind::Call { generics, arguments, .. } => {
                    let generics = generics.iter().flat_map(|generics| &generics.arguments);
                    for argument in generics {
                        match argument {
                            GenericArgument::Name(name) => self.use_of_struct(*name, false, uses),
                            GenericArgument::Type(ty) => self.uses_in_type(ty, false, uses),
                            GenericArgument::Value(_) => {}
                        }
                    }
                    open.extend(arguments.iter().rev());
                }
                _ => {}
            }
        }
    }

    /// The dependencies of a type and its size. `is_part` if a struct contains it by value.
    fn uses_in_type(&self, ty: &TypeExpr, is_part: bool, uses: &mut Vec<Use>) {
        let mut ty = ty;
        let mut by_value = true;
        loop {
            match &ty.kind {
                TypeExprKind::Name(name) => {
                    if by_value {
                        self.use_of_struct(*name, is_part, uses);
                    }
                    return;
                }
                TypeExprKind::Pointer { pointee, .. } => {
                    by_value = false;
                    ty = pointee;
                }
                TypeExprKind::Array(element, length) => {
                    self.uses_in(length, uses);
                    ty = element;
                }
                TypeExprKind::Slice(element) => ty = element,
                TypeExprKind::Error => return,
            }
        }
    }

    fn use_of_struct(&self, name: ast::Name, is_part: bool, uses: &mut Vec<Use>) {
        if let Some(Some(id)) = self.struct_named(self.text(name), name.span.file) {
            uses.push(Use { node: Node::Struct(id), span: name.span, is_part });
        }
    }

    fn evaluate_const(&mut self, at: usize) {
        let item = self.consts[at].item;
        let Some(ty) = self.resolve_type(&item.ty) else { return };
        if matches!(ty, Type::Array(..) | Type::Vector(..) | Type::Struct(_)) {
            self.consts[at].variable = Some(StaticId(self.statics.len() as u32));
            self.statics.push(StaticItem {
                name: item.name,
                declared: &item.ty,
                value: &item.value,
                is_constant: true,
                ty: None,
            });
            return;
        }
        if !Self::is_const_type(&ty) {
            let message = format!("a constant cannot be {}", self.show(&ty));
            let error = Diagnostic::error(ids::INVALID_TYPE, item.ty.span, message);
            let note = "constants are numbers, `bool`, and vectors, structs and arrays";
            self.report(error.note(note));
            return;
        }
        let value = self.const_value(&item.value, &ty, Why::Type(item.ty.span));
        let entry = &mut self.consts[at];
        entry.ty = Some(ty);
        entry.value = value.map(|value| value.kind);
    }

    fn report_cycle(&mut self, used: Use) {
        let error = match used.node {
            Node::Const(at) => {
                let name = self.consts[at].item.name;
                let message =
                    format!("the constant `{}` depends on its own value", self.text(name));
                let error = Diagnostic::error(ids::RECURSIVE_CONST, used.span, message);
                error.label(name.span, "declared here")
            }
            Node::Struct(_) if used.is_part => return,
            Node::Struct(id) => {
                let item = self.structs.get(id);
                let message = format!("the struct `{}` depends on its own size", item.name);
                let error = Diagnostic::error(ids::RECURSIVE_STRUCT, used.span, message);
                match item.span {
                    Some(span) => error.label(span, "declared here"),
                    None => error,
                }
            }
        };
        self.report(error);
    }
}
