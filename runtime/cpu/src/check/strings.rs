//! Checks the strings that `printf` reads for `%s`.

use super::Verdict;
use super::block::BlockCheck;
use super::explain::Subject;
use super::waits::read;
use crate::abi::{ACCESS_BYTES, ACCESS_READ, Location};

impl BlockCheck {
    /// A thread is about to print the string at an address, at most `limit` bytes of it.
    pub fn string(
        &mut self,
        thread: u32,
        address: usize,
        limit: Option<usize>,
        location: Location,
    ) -> Verdict {
        if limit == Some(0) {
            return Verdict::Continue;
        }
        // Its first byte must be in live memory, which the string may not leave.
        let kind = ACCESS_READ | ACCESS_BYTES;
        if self.access(thread, address, 1, kind, location) == Verdict::Stop {
            return Verdict::Stop;
        }
        let Some((end, unset)) = self.extent(thread, address) else { return Verdict::Continue };
        let most = limit.map_or(end, |limit| address.saturating_add(limit).min(end));
        let is_set = |at: &usize| unset.is_none_or(|unset| *at < unset);
        let mut set = (address..most).take_while(is_set);
        let zero = set.find(|at| read(*at, 1) == 0);
        let subject = Subject { thread, location, address, bytes: 1, kind: ACCESS_READ };
        match (zero, unset.filter(|unset| *unset < most)) {
            (None, Some(unset)) => {
                self.report_unset_string(&subject, unset);
                Verdict::Stop
            }
            (None, None) if limit.is_none_or(|limit| most - address < limit) => {
                self.report_endless_string(&subject);
                Verdict::Stop
            }
            (zero, _) => {
                let bytes = zero.map_or(most, |zero| zero + 1) - address;
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                self.access(thread, address, bytes, kind, location)
            }
        }
    }
}
