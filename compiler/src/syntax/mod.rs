//! The syntax stage.
