//! Groups: clients that make collective calls together.
//!
//! Each server waits for all members by itself and then directs the transfer of its blocks; no
//! member needs a connection to another. Figure 2c (TOCS 1997) has a barrier of the clients in
//! front of one request. Here a request says for which members it joins the call: a process for
//! itself, one process for those of its host, or client 0 for all, as in the figure.
//!
//! | where | what |
//! |---|---|
//! | `roster.rs` | the members of one group, and who joins calls for them |
//! | `group.rs` | one group and its calls; all groups of a server |
//! | `call.rs` | one collective call: which members have joined it, and its outcome |
//! | `all_gather.rs` | all-gathers, of groups and of processes that have no group yet |
//! | `late.rs` | which of the waiting members asks for those that are missing |
//! | `locks.rs` | range locks of one group |
//! | `requests.rs` | how a server answers the requests to register, join and gather |
//! | `services.rs` | how it answers those for counters and locks |

mod all_gather;
mod call;
mod group;
mod late;
mod locks;
mod refusal;
mod requests;
mod roster;
mod services;

pub(crate) use group::Groups;
pub(crate) use roster::Roster;
