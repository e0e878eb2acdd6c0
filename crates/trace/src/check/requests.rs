//! Calls of one rank that belong together: begin and end, requests and their waits, files between
//! open and close.

use super::contradiction;
use crate::describe::call;
use crate::event::{Event, FileNumber, Message, Operation, RankTrace, RequestNumber};
use interface::UserError;
use std::collections::BTreeMap;

/// Checks each rank by itself.
pub(super) fn check(ranks: &[RankTrace]) -> Result<(), UserError> {
    (0_u32..).zip(ranks).try_for_each(|(rank, trace)| Rank::new(ranks, rank, trace).check())
}

/// One rank while its events are passed.
struct Rank<'a> {
    ranks: &'a [RankTrace],
    rank: u32,
    trace: &'a RankTrace,
    /// Events that began the requests in use.
    requests: BTreeMap<RequestNumber, usize>,
    /// Event that opened each file, and the one that closed it.
    files: Vec<(Option<usize>, Option<usize>)>,
}

impl<'a> Rank<'a> {
    fn new(ranks: &'a [RankTrace], rank: u32, trace: &'a RankTrace) -> Self {
        let files = vec![(None, None); trace.files.len()];
        Self { ranks, rank, trace, requests: BTreeMap::new(), files }
    }

    fn check(mut self) -> Result<(), UserError> {
        let events = &self.trace.events;
        let last = events.len().saturating_sub(1);
        for (index, event) in events.iter().enumerate() {
            let is_begin = event.operation == Operation::Begin;
            if is_begin != (index == 0) {
                let cause = format!("{} must be MPI_Init, and only it", self.call(0));
                return Err(self.two(cause, index));
            }
            if (event.operation == Operation::End) != (index == last) {
                let cause = "only the last call may be MPI_Finalize".to_owned();
                return Err(self.two(cause, index));
            }
            self.event(index, event)?;
        }
        // A send whose request was freed (MPI_Request_free) is never waited for.
        let left = self
            .requests
            .values()
            .find(|begun| !matches!(events[**begun].operation, Operation::Send { .. }));
        match left {
            Some(begun) => {
                let cause = "no call waits for its request".to_owned();
                Err(self.two(cause, *begun))
            }
            None => Ok(()),
        }
    }

    fn event(&mut self, index: usize, event: &Event) -> Result<(), UserError> {
        let communicator = match &event.operation {
            Operation::Send { message, .. } | Operation::Receive { message, .. } => {
                Some(message.communicator)
            }
            Operation::Collective { communicator, .. } | Operation::Open { communicator, .. } => {
                Some(*communicator)
            }
            _ => None,
        };
        let known = self.trace.communicators.len();
        if communicator.is_some_and(|communicator| communicator.0 as usize >= known) {
            return Err(self.two("its communicator is not known".to_owned(), index));
        }
        match &event.operation {
            Operation::Send { request, .. } | Operation::Collective { request, .. } => {
                self.begin(index, *request)
            }
            Operation::Receive { message, request } => {
                if message.peer == Message::UNKNOWN_PEER {
                    let cause = "nothing says which message it received".to_owned();
                    return Err(self.two(cause, index));
                }
                self.begin(index, *request)
            }
            Operation::Wait { requests } => {
                requests.iter().try_for_each(|request| self.end(index, *request))
            }
            Operation::Open { file, .. } => self.open(index, *file),
            Operation::Transfer { file, part, request, .. } => {
                self.opened(index, *file)?;
                if part.is_some_and(|part| part.0 as usize >= self.trace.parts.len()) {
                    return Err(self.two("its part is not known".to_owned(), index));
                }
                self.begin(index, *request)
            }
            Operation::Close { file } => {
                self.opened(index, *file)?;
                if let Some((_, closed)) = self.files.get_mut(file.0 as usize) {
                    *closed = Some(index);
                }
                Ok(())
            }
            Operation::Sync { file }
            | Operation::SetSize { file, .. }
            | Operation::GetSize { file } => self.opened(index, *file),
            Operation::Begin | Operation::End | Operation::Delete { .. } => Ok(()),
        }
    }

    fn begin(&mut self, index: usize, request: Option<RequestNumber>) -> Result<(), UserError> {
        let Some(request) = request else { return Ok(()) };
        match self.requests.insert(request, index) {
            Some(before) => {
                let cause =
                    format!("its request {} is still that of {}", request.0, self.call(before));
                Err(self.two(cause, index))
            }
            None => Ok(()),
        }
    }

    fn end(&mut self, index: usize, request: RequestNumber) -> Result<(), UserError> {
        match self.requests.remove(&request) {
            Some(_) => Ok(()),
            None => {
                let cause = format!("no call before it began the request {}", request.0);
                Err(self.two(cause, index))
            }
        }
    }

    fn open(&mut self, index: usize, file: FileNumber) -> Result<(), UserError> {
        let before = self.files.get_mut(file.0 as usize).map(|(opened, _)| opened.replace(index));
        match before {
            Some(None) => Ok(()),
            Some(Some(before)) => {
                let cause = format!("its number is that of {}", self.call(before));
                Err(self.two(cause, index))
            }
            None => Err(self.two("its file has no name".to_owned(), index)),
        }
    }

    fn opened(&self, index: usize, file: FileNumber) -> Result<(), UserError> {
        match self.files.get(file.0 as usize) {
            Some((Some(_), None)) => Ok(()),
            Some((Some(_), Some(closed))) => {
                let cause = format!("its file was closed by {}", self.call(*closed));
                Err(self.two(cause, index))
            }
            Some((None, _)) | None => {
                Err(self.two("no call before it opened its file".to_owned(), index))
            }
        }
    }

    fn call(&self, event: usize) -> String {
        call(self.ranks, self.rank, event)
    }

    /// Error about a call; `cause` says what contradicts it.
    fn two(&self, cause: String, event: usize) -> UserError {
        contradiction(format!("{}: {cause}", self.call(event)))
    }
}
