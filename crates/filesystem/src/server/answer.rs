//! Answers to requests.

use super::transfers::write_budget::WritePermit;
use wire::Reply;
use world::Loan;

/// An answer and, for a page, its bytes with the loan. The loan lives as long as the client holds
/// the bytes. The permit is for bytes that go with the answer, until it is sent.
pub(crate) struct Answer<P> {
    pub(crate) reply: Reply,
    pub(crate) data: Option<(P, Option<Loan>)>,
    pub(crate) permit: Option<WritePermit>,
}

impl<P> From<Reply> for Answer<P> {
    fn from(reply: Reply) -> Self {
        Self { reply, data: None, permit: None }
    }
}
