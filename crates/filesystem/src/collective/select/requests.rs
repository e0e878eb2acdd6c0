//! Requests for records that match.

use super::active::{ActiveSelection, ModulePermit};
use super::{deliver, job_fault, scan};
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use crate::server::transfers::active_transfers::TransferKey;
use futures_util::future::{Either, select};
use policy::{DiskOrder, Operator, Selection, SelectionError, Selector};
use std::pin::pin;
use std::rc::Rc;
use units::{FileId, PeerId, Run};
use wire::{COUNTED_BLOCKS_MAX, Fault, HEADS_BYTES_MAX, Reply, SelectReply, SelectRequest};
use world::{Memory, Payload, World};

/// Serves a request for records that match. Ends with the client's session.
pub(crate) async fn serve<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: SelectRequest,
    body: Option<W::Payload>,
) -> Result<Answer<W::Payload>, Fault> {
    let selections = server.selections();
    match request {
        SelectRequest::Begin { number, file, selection, order } => {
            let begun = begin(server, (from, number), file, *selection, order).await;
            if begun.is_err() {
                selections.end(from, number);
            }
            begun.map(answer)
        }
        SelectRequest::Heads { number, from } => heads(server, &*selections.get(number)?, from),
        SelectRequest::Complete { number, rests } => {
            let none = || Fault::BadRequest { cause: "rests of records without bytes".to_owned() };
            let body = body.ok_or_else(none)?;
            scan::complete(server, &*selections.get(number)?, &rests, &body).await?;
            Ok(Reply::Done.into())
        }
        SelectRequest::Number { number } => {
            let selection = selections.get(number)?;
            let reduced = selection.selector.borrow().reduced().cloned();
            let none = || Fault::BadRequest { cause: "the selection is of records".to_owned() };
            Ok(answer(SelectReply::Number(reduced.ok_or_else(none)?)))
        }
        SelectRequest::Counts { number, destination, from } => {
            Ok(answer(counts(&*selections.get(number)?, destination, from)))
        }
        SelectRequest::Take { number, destination, region, places } => {
            let (selection, client) = (selections.get(number)?, (from, region));
            let bytes = deliver::deliver(server, &selection, client, destination, &places).await?;
            server.counters().count_moved(bytes);
            Ok(Reply::Moved { bytes }.into())
        }
        SelectRequest::Keep { number } => {
            server.summaries().keep(&*selections.get(number)?)?;
            Ok(Reply::Done.into())
        }
        SelectRequest::End { number } => {
            server.active_transfers().abort(TransferKey::Part(from, number), Fault::Cancelled);
            selections.end(from, number);
            Ok(Reply::Done.into())
        }
    }
}

fn answer<P>(reply: SelectReply) -> Answer<P> {
    Reply::Select(Box::new(reply)).into()
}

/// Begins a selection, and looks at the records.
async fn begin<W: World>(
    server: &Rc<Server<W>>,
    (from, number): (PeerId, u64),
    file: FileId,
    selection: Selection,
    order: DiskOrder,
) -> Result<SelectReply, Fault> {
    server.selections().announce(from, number);
    server.recall_leases(file, Some(from)).await;
    let file = server.files().get(file)?;
    let selector = check(server, &file, selection).await?;
    // A cut of the file ends the scan.
    let guard = server.active_transfers().enter(TransferKey::Part(from, number), file.file)?;
    let selection = server.selections().begin((from, number), file, selector)?;
    let scanned = pin!(scan::scan(server, &selection, order));
    let aborted = pin!(server.active_transfers().until_aborted(|| guard.abort_reason()));
    match select(aborted, scanned).await {
        Either::Left((fault, _)) => Err(fault),
        Either::Right((scanned, _)) => scanned,
    }
}

/// Checks a selection of a file. A module is compiled where that delays nobody else.
async fn check<W: World>(
    server: &Server<W>,
    file: &OpenFile,
    selection: Selection,
) -> Result<(Selector, Option<ModulePermit>), Fault> {
    let sizes = (file.bytes(), file.stripe.block_bytes);
    let bad = |error: SelectionError| Fault::BadSelection { cause: error.to_string() };
    let extensions = &server.config().extensions;
    let Some(Operator::Module(module)) = &selection.condition.operator else {
        return Ok((selection.check(sizes, extensions).map_err(bad)?, None));
    };
    let permit = server.selections().admit_module()?;
    let cost = server.config().costs.module(module.len() as u64);
    let extensions = extensions.clone();
    let checked = server.world().compute_apart(cost, move || selection.check(sizes, &extensions));
    Ok((checked.await.map_err(job_fault)?.map_err(bad)?, Some(permit)))
}

/// Answers with the starts of some blocks.
fn heads<W: World>(
    server: &Server<W>,
    selection: &ActiveSelection<W::Payload>,
    from: u64,
) -> Result<Answer<W::Payload>, Fault> {
    let all = selection.heads.borrow();
    let (mut heads, mut bytes, mut more) = (Vec::new(), 0, false);
    for (block, head) in all.range(from..) {
        if bytes + head.length() > HEADS_BYTES_MAX || heads.len() == COUNTED_BLOCKS_MAX {
            more = true;
            break;
        }
        heads.push((*block, head.length() as u32));
        bytes += head.length();
    }
    let memory = server.world().memory(bytes);
    let mut at = 0;
    for (block, length) in &heads {
        memory.scatter(&[Run::contiguous(at, u64::from(*length))], &all[block]);
        at += u64::from(*length);
    }
    let reply = Reply::Select(Box::new(SelectReply::Heads { heads, more }));
    Ok(Answer { reply, data: Some((memory.freeze(), None)), permit: None })
}

/// Number of records of a destination in each block, from one on.
fn counts<P: Payload>(selection: &ActiveSelection<P>, destination: u32, from: u64) -> SelectReply {
    let blocks = selection.blocks.borrow();
    let counted = blocks.range(from..).map(|(block, found)| (*block, found.count_of(destination)));
    let mut counted = counted.filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counted.by_ref().take(COUNTED_BLOCKS_MAX).collect();
    let more = counts.len() == COUNTED_BLOCKS_MAX && counted.next().is_some();
    SelectReply::Counts { counts, more }
}
