//! The host side of Gridlet.

pub mod manifest;
