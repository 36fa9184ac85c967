//! The document to print: tokens, possible line breaks, and groups of breaks that break together.

/// Index of a group.
pub(super) type GroupId = usize;

/// When a possible break in a group that does not fit on the line becomes a line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakKind {
    /// Always.
    Together,
    /// If the text up to the next possible break does not fit.
    Fill,
    /// If the group with this id was broken, independent of its own group.
    With(GroupId),
    /// Only after a comment that ends the line.
    Never,
}

/// A possible line break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Break {
    /// When it becomes a line break.
    pub(super) kind: BreakKind,
    /// Whether the new line is indented one level more than the line on which the group started.
    pub(super) deeper: bool,
    /// Whether it is printed as a space if it does not break.
    pub(super) space: bool,
    /// Whether a blank line in the source is kept.
    pub(super) blank: bool,
    /// Whether a closing delimiter follows; comments before it are indented one level more.
    pub(super) closing: bool,
}

/// A part of a document.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The token with this index, preceded by its comments.
    Token(usize),
    /// A possible line break.
    Break(Break),
    /// A comma, if the group is broken.
    Comma,
    /// The starts of groups, outermost first. Filled in when an operand turns out to have operators.
    Open(Vec<GroupId>),
    /// The end of the innermost group.
    Close,
    /// After `=`: breaks if the following group fits on a line of its own, but not on this one.
    Value(GroupId),
}

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Index of its `Open`.
    pub(super) start: usize,
    /// Index of its `Close`.
    pub(super) end: usize,
    /// Its first token.
    pub(super) first: usize,
    /// Its last token.
    pub(super) last: usize,
    /// Whether it breaks even if it fits on the line.
    pub(super) forced: bool,
}

/// A document.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Its parts.
    pub(super) parts: Vec<Part>,
    /// Its groups.
    pub(super) groups: Vec<Group>,
}

impl Break {
    /// A break that indents by one level, or a space.
    pub(super) const SPACE: Break = Break {
        kind: BreakKind::Together,
        deeper: true,
        space: true,
        blank: false,
        closing: false,
    };

    /// A break that indents by one level, or nothing.
    pub(super) const TIGHT: Break = Break { space: false, ..Break::SPACE };

    /// A space, or a line break after a comment that ends the line.
    pub(super) const STAY: Break = Break { kind: BreakKind::Never, ..Break::SPACE };
}
