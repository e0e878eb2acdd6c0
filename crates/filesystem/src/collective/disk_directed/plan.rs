//! Server side of a plan: the blocks that a collective would transfer, in their order, without a
//! transfer.
//!
//! Invariant: blocks and shares come from the functions that the transfer itself uses.

use super::server::{blocks_in_order, shares_of};
use crate::server::Server;
use crate::server::answer::Answer;
use std::rc::Rc;
use wire::{Fault, PlanRequest, PlannedBlock, Reply};
use world::{Disk, World};

/// Maximum number of blocks looked at for one reply. Another request may be served between two.
const BLOCKS_PER_REPLY_MAX: usize = 1024;

/// Number of shares after which a reply takes no further block.
const SHARES_PER_REPLY_MAX: usize = 8192;

/// Answers what a collective would do on a disk.
pub(crate) async fn serve<W: World>(
    server: &Rc<Server<W>>,
    request: PlanRequest,
) -> Result<Answer<W::Payload>, Fault> {
    let PlanRequest { direction, file, access, order, disk, skipped } = request;
    let file = server.files().get(file)?;
    file.check_access(direction, &access)?;
    let place = (server.place_in(&file)?, file.stripe.servers);
    if disk.0 >= file.stripe.disks_per_server {
        let cause = format!("disk {} is none of the file's", disk.0);
        return Err(Fault::BadRequest { cause });
    }
    let Some(ordered) = blocks_in_order(server, &file, &access, order, disk).await else {
        return Ok(Reply::Plan { blocks: Vec::new(), looked_at: 0, more: false }.into());
    };
    let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
    let mut ordered = ordered.skip(skipped).peekable();
    let on = &server.world().disks()[disk.0 as usize];
    let (mut blocks, mut shares_total, mut looked_at) = (Vec::new(), 0, 0);
    while looked_at < BLOCKS_PER_REPLY_MAX && shares_total < SHARES_PER_REPLY_MAX {
        let Some(block) = ordered.next() else { break };
        looked_at += 1;
        let shares = shares_of(&access, file.block_range(block), place);
        if shares.is_empty() {
            continue;
        }
        shares_total += shares.len();
        let address = on.address(file.file, file.disk_offset(block));
        let shares = shares.iter().map(|share| (share.client, share.bytes())).collect();
        blocks.push(PlannedBlock { block, address, shares });
    }
    let more = ordered.peek().is_some();
    Ok(Reply::Plan { blocks, looked_at: looked_at as u64, more }.into())
}
