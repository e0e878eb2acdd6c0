//! Answers to requests.

use wire::Reply;
use world::Loan;

/// An answer and, for a page, its bytes with the loan. The loan lives as long as the client holds
/// the bytes.
pub(crate) struct Answer<P> {
    pub(crate) reply: Reply,
    pub(crate) data: Option<(P, Option<Loan>)>,
}

impl<P> From<Reply> for Answer<P> {
    fn from(reply: Reply) -> Self {
        Self { reply, data: None }
    }
}
