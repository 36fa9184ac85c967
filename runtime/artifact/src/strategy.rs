//! How kernels launch kernels on a GPU: the compiler lowers launches accordingly, the manifest names the strategy, and
//! the runtime asks it how the program behaves.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How kernels launch kernels on a GPU. The CPU device launches in software, whatever the strategy.
///
/// Each property of a strategy is an exhaustive `match`, here or in the stage that needs it, so that a new variant does
/// not compile until every one of them is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LaunchStrategy {
    /// CUDA Dynamic Parallelism: through CUDA's device runtime, `libcudadevrt.a`, as in nvcc's code. Any kernel can
    /// launch any other, also across languages.
    #[default]
    Cdp,
    /// Resident launches: the host launches one kernel that stays on the SMs and runs the whole tree of grids, which it
    /// keeps in the stream's launch memory ([`crate::resident`]). No device runtime is involved.
    Resident,
}

impl LaunchStrategy {
    /// All of them.
    pub const ALL: [LaunchStrategy; 2] = [LaunchStrategy::Cdp, LaunchStrategy::Resident];

    /// The name on the command line and in manifests: `cdp` or `resident`.
    pub fn name(self) -> &'static str {
        match self {
            LaunchStrategy::Cdp => "cdp",
            LaunchStrategy::Resident => "resident",
        }
    }
}

impl Display for LaunchStrategy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no launch strategy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown launch strategy {name:?}; this version of Gridlet has {}", names())]
pub struct UnknownStrategy {
    /// The name, at most 40 characters of it.
    pub name: String,
}

/// `` `cdp` and `resident` ``
fn names() -> String {
    LaunchStrategy::ALL.map(|strategy| format!("`{strategy}`")).join(" and ")
}

impl FromStr for LaunchStrategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let known = LaunchStrategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        known.ok_or_else(|| UnknownStrategy { name: name.chars().take(40).collect() })
    }
}

impl TryFrom<String> for LaunchStrategy {
    type Error = UnknownStrategy;

    fn try_from(name: String) -> Result<Self, UnknownStrategy> {
        name.parse()
    }
}

impl From<LaunchStrategy> for String {
    fn from(strategy: LaunchStrategy) -> String {
        strategy.name().to_owned()
    }
}
