//! The link stage.
