//! The launch stage.
