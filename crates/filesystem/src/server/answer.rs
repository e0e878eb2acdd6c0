//! Answers to requests.

use wire::Reply;
use world::Loan;

/// An answer and, where a page was asked for, its bytes; while the client holds them the loan is
/// kept, if there is one.
pub(crate) struct Answer<P> {
    pub(crate) reply: Reply,
    pub(crate) data: Option<(P, Option<Loan>)>,
}

impl<P> From<Reply> for Answer<P> {
    fn from(reply: Reply) -> Self {
        Self { reply, data: None }
    }
}
