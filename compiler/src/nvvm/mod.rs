//! The nvvm stage.
