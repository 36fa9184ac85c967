//! The choice of a launch strategy for a program.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use gridlet_artifact::UnknownStrategy;

use super::LaunchStrategy;
use crate::ir::Module;

/// How to choose the launch strategy of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LaunchChoice {
    /// By the program: see [`LaunchChoice::resolve`].
    #[default]
    Auto,
    /// This strategy, whatever the program.
    Fixed(LaunchStrategy),
}

impl LaunchChoice {
    /// All choices.
    pub fn all() -> impl Iterator<Item = LaunchChoice> {
        [LaunchChoice::Auto].into_iter().chain(LaunchStrategy::ALL.map(LaunchChoice::Fixed))
    }

    /// The strategy for a module whose launches are symbolic, and the reason for it. It depends on the module alone,
    /// because all images of a bundle have the same strategy.
    ///
    /// [`LaunchChoice::Auto`] is always [`LaunchStrategy::Cdp`].
    pub fn resolve(self, _module: &Module) -> (LaunchStrategy, &'static str) {
        match self {
            LaunchChoice::Auto => (LaunchStrategy::Cdp, "the default"),
            LaunchChoice::Fixed(strategy) => (strategy, "requested"),
        }
    }

    /// The name on the command line: `auto`, or that of the strategy.
    pub fn name(self) -> &'static str {
        match self {
            LaunchChoice::Auto => "auto",
            LaunchChoice::Fixed(strategy) => strategy.name(),
        }
    }
}

impl From<LaunchStrategy> for LaunchChoice {
    fn from(strategy: LaunchStrategy) -> Self {
        LaunchChoice::Fixed(strategy)
    }
}

impl Display for LaunchChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LaunchChoice {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        match name {
            "auto" => Ok(LaunchChoice::Auto),
            name => name.parse().map(LaunchChoice::Fixed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_by_its_name() {
        let names: Vec<_> = LaunchChoice::all().map(LaunchChoice::name).collect();
        assert_eq!(names, ["auto", "cdp", "resident"]);
        for choice in LaunchChoice::all() {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        assert!("teleport".parse::<LaunchChoice>().is_err());
    }
}
