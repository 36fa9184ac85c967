//! What is printed: tokens, places where a line may break, and groups of those that break together.

/// Index of a group.
pub(super) type GroupId = usize;

/// How a place breaks when its group does not fit on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakKind {
    /// Always.
    Together,
    /// If what follows, up to the next place, does not fit.
    Fill,
    /// If the group with this id was broken, whatever its own group does.
    With(GroupId),
    /// Only where a comment ends the line.
    Never,
}

/// A place where a line may break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Break {
    /// When it does.
    pub(super) kind: BreakKind,
    /// Whether the new line is a level deeper than the line on which the group started.
    pub(super) deeper: bool,
    /// Whether a space stands here if it does not.
    pub(super) space: bool,
    /// Whether a blank line of the source is kept.
    pub(super) blank: bool,
    /// Whether a closing delimiter follows, before which comments are a level deeper.
    pub(super) closing: bool,
}

/// A part of a document.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The token of this index, with the comments before it.
    Token(usize),
    /// A space, or a line break.
    Break(Break),
    /// A comma if the group is broken.
    Comma,
    /// The starts of groups, the outermost first. Filled in where an operand turns out to have operators.
    Open(Vec<GroupId>),
    /// The end of the innermost group.
    Close,
    /// After `=`: a line break if the group that follows fits on a line of its own, but not here.
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
    /// Whether it breaks even if it would fit.
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
    /// A break of a group's kind: a level deeper, with a space if it stays on the line.
    pub(super) const SPACE: Break = Break {
        kind: BreakKind::Together,
        deeper: true,
        space: true,
        blank: false,
        closing: false,
    };

    /// The same without a space.
    pub(super) const TIGHT: Break = Break { space: false, ..Break::SPACE };

    /// A space, unless a comment ends the line.
    pub(super) const STAY: Break = Break { kind: BreakKind::Never, ..Break::SPACE };
}
