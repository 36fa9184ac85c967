//! Checks that the corpus covers the language: each construct, each operator on each type, each
//! built-in on each type, each form of a launch. Only self-checking programs count.

use std::collections::BTreeSet;

use gridlet::builtins::{Builtin, MathOp, Order, Scope};
use gridlet::check::parse_and_check;
use gridlet::check::tree::{self, BinaryOp, UnaryOp};
use gridlet::check::visit::{Node, visit_block};
use gridlet::source::{FileId, SourceMap};
use gridlet::syntax::{self, ast};
use gridlet::types::{Scalar, Type};

use super::programs;

/// Defines a function that names a node's kind, and a list of all names. An unlisted kind does not
/// compile, which leads authors of new kinds to this file.
macro_rules! kinds {
    ($function:ident, $all:ident, $type:ident from $path:path, $($kind:ident)*) => {
        fn $function(node: &$type) -> &'static str {
            match node { $($type::$kind { .. } => concat!(stringify!($type), " ", stringify!($kind)),)* }
        }
        const $all: &[&str] = &[$(concat!(stringify!($type), " ", stringify!($kind))),*];
        use $path as $type;
    };
}

kinds!(item_kind, ITEMS, Item from ast::Item, Use Const Static Struct Function Opaque);
kinds!(type_kind, TYPES, TypeExpr from ast::TypeExprKind, Name Pointer Array Slice Error);
kinds!(
    statement_kind, STATEMENTS, Statement from ast::StatementKind,
    Let Shared DynamicShared Assign Expr Loop Jump Return
);
kinds!(head_kind, HEADS, LoopHead from ast::LoopHead, Loop While For);
kinds!(
    expr_kind, EXPRS, Expr from ast::ExprKind,
    Error Int Float Bool Str Name Unary Deref AddressOf Binary Logical Range Cast Call MethodCall Field Index Struct
    Array ArrayRepeat If Block Launch
);
kinds!(unary_kind, UNARY, Unary from UnaryOp, Neg Not);
kinds!(
    binary_kind, BINARY, Binary from BinaryOp,
    Add Sub Mul Div Rem And Or Xor Shl Shr Eq Ne Lt Le Gt Ge
);

/// Kinds for unreadable source, which a correct program cannot contain.
const IMPOSSIBLE: [&str; 3] = ["Item Opaque", "TypeExpr Error", "Expr Error"];

/// The features seen in the programs.
#[derive(Default)]
struct Seen(BTreeSet<String>);

/// Walks the syntax of one program.
struct Walk<'a> {
    sources: &'a SourceMap,
    seen: &'a mut Seen,
}

impl Walk<'_> {
    fn note(&mut self, what: impl Into<String>) {
        self.seen.0.insert(what.into());
    }

    fn item(&mut self, item: &ast::Item) {
        self.note(item_kind(item));
        match item {
            ast::Item::Use(_) | ast::Item::Opaque(_) => {}
            ast::Item::Const(ast::Const { ty, value, .. })
            | ast::Item::Static(ast::Static { ty, value, .. }) => {
                self.ty(ty);
                self.expr(value);
            }
            ast::Item::Struct(item) => item.fields.iter().for_each(|field| self.ty(&field.ty)),
            ast::Item::Function(function) => self.function(function),
        }
    }

    fn function(&mut self, function: &ast::Function) {
        let what = if function.is_kernel { "kernel" } else { "fn" };
        self.note(what);
        if function.body.is_none() {
            self.note("extern fn");
        }
        for parameter in &function.const_parameters {
            self.note(format!("const parameter of a {what}"));
            self.ty(&parameter.ty);
        }
        for parameter in &function.parameters {
            self.ty(&parameter.ty);
            if parameter.mutable {
                self.note("mut parameter");
            }
        }
        if let Some(result) = &function.result {
            self.note("result");
            self.ty(result);
        }
        function.attributes.iter().for_each(|attribute| self.attribute(attribute));
        function.body.iter().for_each(|body| self.block(body));
    }

    fn attribute(&mut self, attribute: &ast::Attribute) {
        let name = attribute.name.text(self.sources);
        self.note(format!("#[{name}] with {}", attribute.arguments.len()));
        attribute.arguments.iter().for_each(|argument| self.expr(argument));
    }

    fn ty(&mut self, ty: &ast::TypeExpr) {
        self.note(type_kind(&ty.kind));
        match &ty.kind {
            ast::TypeExprKind::Name(name) => {
                self.note(format!("type {}", name.text(self.sources)));
            }
            ast::TypeExprKind::Pointer { mutable, pointee } => {
                self.note(if *mutable { "*mut" } else { "*const" });
                self.ty(pointee);
            }
            ast::TypeExprKind::Array(element, count) => {
                self.ty(element);
                self.expr(count);
            }
            ast::TypeExprKind::Slice(element) => self.ty(element),
            ast::TypeExprKind::Error => {}
        }
    }

    fn block(&mut self, block: &ast::Block) {
        for statement in &block.statements {
            self.note(statement_kind(&statement.kind));
            self.statement(&statement.kind);
        }
        if let Some(value) = &block.value {
            self.note("value of a block");
            self.expr(value);
        }
    }

    fn statement(&mut self, kind: &ast::StatementKind) {
        match kind {
            ast::StatementKind::Let { mutable, ty, value, .. } => {
                self.note(format!(
                    "let: mut {mutable}, type {}, value {}",
                    ty.is_some(),
                    value.is_some()
                ));
                ty.iter().for_each(|ty| self.ty(ty));
                value.iter().for_each(|value| self.expr(value));
            }
            ast::StatementKind::Shared { ty, .. }
            | ast::StatementKind::DynamicShared { ty, .. } => {
                self.ty(ty);
            }
            ast::StatementKind::Assign { place, op, value, .. } => {
                if let Some(op) = op {
                    self.note(format!("assignment by {}", binary_kind(op)));
                }
                self.expr(place);
                self.expr(value);
            }
            ast::StatementKind::Expr { value, .. } => self.expr(value),
            ast::StatementKind::Loop(item) => {
                self.note(head_kind(&item.head));
                if item.label.is_some() {
                    self.note("label");
                }
                item.unroll.iter().for_each(|attribute| self.attribute(attribute));
                match &item.head {
                    ast::LoopHead::Loop => {}
                    ast::LoopHead::While(head) | ast::LoopHead::For { range: head, .. } => {
                        self.expr(head);
                    }
                }
                self.block(&item.body);
            }
            ast::StatementKind::Jump { is_break, label } => {
                let word = if *is_break { "break" } else { "continue" };
                self.note(format!("{word}, label {}", label.is_some()));
            }
            ast::StatementKind::Return(value) => {
                self.note(format!("return, value {}", value.is_some()));
                value.iter().for_each(|value| self.expr(value));
            }
        }
    }

    fn exprs(&mut self, list: &[ast::Expr]) {
        list.iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &ast::Expr) {
        self.note(expr_kind(&expr.kind));
        match &expr.kind {
            ast::ExprKind::Int { .. } if self.sources.text(expr.span).starts_with("b'") => {
                self.note("byte");
            }
            ast::ExprKind::Int { suffix, .. } | ast::ExprKind::Float { suffix, .. } => {
                if let Some(suffix) = suffix {
                    self.note(format!("suffix {}", suffix.name()));
                }
            }
            ast::ExprKind::Error | ast::ExprKind::Bool(_) | ast::ExprKind::Str(_) => {}
            ast::ExprKind::Name(name) => self.note(format!("name {}", name.text(self.sources))),
            ast::ExprKind::Unary(op, value) => {
                self.note(unary_kind(op));
                self.expr(value);
            }
            ast::ExprKind::Deref(value)
            | ast::ExprKind::AddressOf(value)
            | ast::ExprKind::Field(value, _) => self.expr(value),
            ast::ExprKind::Binary { op, left, right, .. } => {
                self.note(binary_kind(op));
                self.expr(left);
                self.expr(right);
            }
            ast::ExprKind::Logical { is_and, left, right } => {
                self.note(if *is_and { "&&" } else { "||" });
                self.expr(left);
                self.expr(right);
            }
            ast::ExprKind::Range(left, right)
            | ast::ExprKind::Index(left, right)
            | ast::ExprKind::ArrayRepeat(left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ast::ExprKind::Cast(value, ty) => {
                self.expr(value);
                self.ty(ty);
            }
            ast::ExprKind::Call { callee, generics, arguments } => {
                let name = callee.text(self.sources);
                self.note(format!("call {name}"));
                if name == "atomic_load" || name == "atomic_store" {
                    let order = arguments.last().map_or("", |order| self.sources.text(order.span));
                    self.note(format!("{name} {order}"));
                }
                for argument in generics.iter().flat_map(|generics| &generics.arguments) {
                    match argument {
                        ast::GenericArgument::Name(_) => {}
                        ast::GenericArgument::Type(ty) => self.ty(ty),
                        ast::GenericArgument::Value(value) => self.expr(value),
                    }
                }
                self.exprs(arguments);
            }
            ast::ExprKind::MethodCall { base, arguments, .. } => {
                self.expr(base);
                self.exprs(arguments);
            }
            ast::ExprKind::Struct { fields, .. } => {
                fields.iter().for_each(|(_, value)| self.expr(value));
            }
            ast::ExprKind::Array(elements) => self.exprs(elements),
            ast::ExprKind::If { branches, otherwise } => {
                let more = if branches.len() > 1 { ", else if" } else { "" };
                self.note(format!("if{more}, else {}", otherwise.is_some()));
                for (condition, block) in branches {
                    self.expr(condition);
                    self.block(block);
                }
                otherwise.iter().for_each(|block| self.block(block));
            }
            ast::ExprKind::Block(block) => self.block(block),
            ast::ExprKind::Launch(launch) => self.launch(launch),
        }
    }

    fn launch(&mut self, launch: &ast::Launch) {
        self.note(if launch.is_try { "try launch" } else { "launch" });
        if launch.generics.is_some() {
            self.note("launch::<…>");
        }
        for option in &launch.config {
            if let Some(name) = option.name {
                let name = name.text(self.sources);
                self.note(format!("launch {name}"));
                let value = self.sources.text(option.value.span);
                if name == "stream" && ["default", "fire_and_forget", "tail"].contains(&value) {
                    self.note(format!("launch stream {value}"));
                } else if name == "stream" {
                    self.note("launch stream value");
                }
            }
            self.expr(&option.value);
        }
        self.exprs(&launch.arguments);
    }
}

/// Records the types on which operators and built-ins of one program work.
struct Types<'a>(&'a mut Seen);

impl Types<'_> {
    fn statement(&mut self, statement: &tree::Statement) {
        match &statement.kind {
            tree::StatementKind::Assign { place, op: Some(op), .. } => {
                if let Type::Scalar(scalar) = &place.ty {
                    self.0.0.insert(format!("{}= on {}", binary_kind(op), scalar.name()));
                }
            }
            tree::StatementKind::For { start, .. } => self.note_type("for over", &start.ty),
            _ => {}
        }
    }

    fn note_type(&mut self, what: &str, ty: &Type) {
        let text = match ty {
            Type::Scalar(scalar) => scalar.name(),
            Type::Pointer { .. } => "pointers",
            _ => return,
        };
        self.0.0.insert(format!("{what} on {text}"));
    }

    fn expr(&mut self, expr: &tree::Expr) {
        match &expr.kind {
            tree::ExprKind::Text(_) => _ = self.0.0.insert("string as an argument".into()),
            tree::ExprKind::Unary(op, value) => self.note_type(unary_kind(op), &value.ty),
            tree::ExprKind::Binary(op, left, _) => self.note_type(binary_kind(op), &left.ty),
            tree::ExprKind::Index { index, .. } => self.note_type("index", &index.ty),
            tree::ExprKind::Cast(value) => {
                if let (Type::Scalar(from), Type::Scalar(to)) = (&value.ty, &expr.ty) {
                    let class = |scalar: &Scalar| match scalar {
                        scalar if scalar.is_float() => scalar.name(),
                        Scalar::Bool => "bool",
                        scalar if scalar.is_signed() => "signed",
                        _ => "unsigned",
                    };
                    self.0.0.insert(format!("{} as {}", class(from), class(to)));
                }
            }
            tree::ExprKind::Builtin { builtin, arguments, .. } => {
                let decides = builtin.properties().generic_argument();
                let decides = decides.and_then(|at| arguments.get(at)).map(|argument| &argument.ty);
                match decides {
                    Some(Type::Pointer { pointee, .. }) => self.note_type(builtin.name(), pointee),
                    Some(ty) => self.note_type(builtin.name(), ty),
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// The 16-bit floats, which support only arithmetic and some built-ins.
const HALVES: [Scalar; 2] = [Scalar::F16, Scalar::Bf16];

/// The language's number types, except [`HALVES`].
fn numbers() -> impl Iterator<Item = Scalar> {
    let is_other = |scalar: &Scalar| *scalar == Scalar::Bool || HALVES.contains(scalar);
    Scalar::ALL.into_iter().filter(move |scalar| !is_other(scalar))
}

/// The features that the programs must cover.
fn wanted() -> BTreeSet<String> {
    let mut wanted = BTreeSet::new();
    let kinds = [ITEMS, TYPES, STATEMENTS, HEADS, EXPRS, UNARY, BINARY].concat();
    wanted.extend(kinds.iter().filter(|kind| !IMPOSSIBLE.contains(kind)).map(ToString::to_string));
    let constructs = [
        "kernel",
        "fn",
        "const parameter of a kernel",
        "const parameter of a fn",
        "launch::<…>",
        "byte",
        "string as an argument",
        "mut parameter",
        "result",
        "value of a block",
        "label",
        "&&",
        "||",
        "*mut",
        "*const",
        "#[launch_bounds] with 1",
        "#[launch_bounds] with 2",
        "#[noalias] with 0",
        "#[fast_math] with 0",
        "#[unroll] with 0",
        "#[unroll] with 1",
        "let: mut false, type false, value true",
        "let: mut false, type true, value true",
        "let: mut false, type true, value false",
        "let: mut true, type false, value true",
        "let: mut true, type true, value true",
        "let: mut true, type true, value false",
        "break, label false",
        "break, label true",
        "continue, label false",
        "continue, label true",
        "return, value false",
        "return, value true",
        "if, else false",
        "if, else true",
        "if, else if, else false",
        "if, else if, else true",
        "launch",
        "try launch",
        "launch shared",
        "launch stream",
        "launch stream default",
        "launch stream fire_and_forget",
        "launch stream tail",
        "launch stream value",
        "type dim3",
        "type stream",
        "name warp_size",
        "name thread_idx",
        "name block_idx",
        "name block_dim",
        "name grid_dim",
        "atomic_load relaxed",
        "atomic_load acquire",
        "atomic_store relaxed",
        "atomic_store release",
        "bool as unsigned",
        "bool as signed",
        "Binary Add on pointers",
        "Binary Sub on pointers",
    ];
    wanted.extend(constructs.map(ToString::to_string));
    wanted.extend(Order::ALL.map(|(_, name)| format!("name {name}")));
    wanted.extend(Builtin::ALL.iter().map(|builtin| format!("call {}", builtin.name())));
    wanted.extend(Scalar::ALL.map(|scalar| format!("type {}", scalar.name())));
    for scalar in numbers().chain(HALVES) {
        let name = scalar.name();
        wanted.insert(format!("suffix {name}"));
        wanted.extend((2..=4).map(|count| format!("call {name}x{count}")));
    }
    wanted.extend(operators_on_types());
    wanted.extend(builtins_on_types());
    wanted
}

/// The operators on each type, according to the language reference.
fn operators_on_types() -> Vec<String> {
    let mut all = vec![];
    let comparisons = ["Eq", "Ne", "Lt", "Le", "Gt", "Ge"];
    let mut on = |ops: &[&str], scalar: Scalar| {
        all.extend(ops.iter().map(|op| format!("Binary {op} on {}", scalar.name())));
        let assigned = ops.iter().filter(|op| !comparisons.contains(op));
        all.extend(assigned.map(|op| format!("Binary {op}= on {}", scalar.name())));
    };
    for scalar in numbers().chain(HALVES) {
        on(&comparisons, scalar);
        on(&["Add", "Sub", "Mul", "Div", "Rem"], scalar);
        if scalar.is_integer() {
            on(&["And", "Or", "Xor", "Shl", "Shr"], scalar);
        }
    }
    on(&["Eq", "Ne", "And", "Or", "Xor"], Scalar::Bool);
    all.extend(comparisons.map(|op| format!("Binary {op} on pointers")));
    for scalar in numbers().chain(HALVES) {
        if !scalar.is_unsigned() {
            all.push(format!("Unary Neg on {}", scalar.name()));
        }
        if scalar.is_integer() {
            all.push(format!("Unary Not on {}", scalar.name()));
            all.push(format!("index on {}", scalar.name()));
            all.push(format!("for over on {}", scalar.name()));
        }
    }
    all.push("Unary Not on bool".into());
    let classes = ["signed", "unsigned", "f16", "bf16", "f32", "f64"];
    for from in classes {
        let to = classes.into_iter();
        // The tree has no cast from a type to itself.
        all.extend(
            to.filter(|to| from.ends_with("signed") || to != &from)
                .map(|to| format!("{from} as {to}")),
        );
    }
    all
}

/// The built-ins on each type.
fn builtins_on_types() -> Vec<String> {
    let mut all = vec![];
    for builtin in Builtin::ALL {
        let name = builtin.name();
        let types = builtin.properties().types;
        let works = |scalar: Scalar| match builtin {
            // The scoped variants share their lowering, so a few types suffice.
            Builtin::Atomic(_, scope)
            | Builtin::AtomicCas(scope)
            | Builtin::AtomicLoad(_, scope)
            | Builtin::AtomicStore(_, scope)
                if *scope != Scope::Device =>
            {
                false
            }
            Builtin::Math(MathOp::Abs) => !scalar.is_unsigned(),
            _ => types.has(scalar),
        };
        let types = numbers().chain(HALVES).filter(|scalar| works(*scalar));
        all.extend(types.map(|scalar| format!("{name} on {}", scalar.name())));
    }
    assert!(all.contains(&"reduce_xor on u64".into()));
    all
}

#[test]
fn the_programs_have_all_of_the_language() {
    let mut seen = Seen::default();
    for (_, sources) in programs() {
        let Some(program) = parse_and_check(&sources).0 else { continue };
        let is_test = |f: &tree::Function| f.kernel.is_some() && f.name == "test";
        if !program.functions.iter().any(is_test) {
            continue;
        }
        for file in (0..sources.files().len() as u32).map(FileId) {
            let file = syntax::parse(&sources, file).0;
            let mut walk = Walk { sources: &sources, seen: &mut seen };
            file.items.iter().for_each(|item| walk.item(item));
        }
        for function in &program.functions {
            visit_block(&function.body, &mut |node| match node {
                Node::Statement(statement) => Types(&mut seen).statement(statement),
                Node::Expr(expr) => Types(&mut seen).expr(expr),
            });
        }
    }
    let wanted = wanted();
    let missing: Vec<_> = wanted.iter().filter(|what| !seen.0.contains(*what)).collect();
    assert!(
        missing.is_empty(),
        "no program of `tests/in/ok` that checks itself has {missing:#?}; add one"
    );
}
