//! Messages by which the members of a file open, change and sync it together.

use crate::collective::steps_of;
use crate::rank::{Manner, OpenedFile, Rank, Stream};
use trace::Collective;

/// First tag of such messages; no program and no collective operation has one so low.
const FIRST_TAG: i64 = i64::MIN;

/// Carries out a collective operation among the members of a file, with their first one as the
/// root. Each contributes `bytes` bytes.
///
/// # Errors
/// The first failure of a message.
pub async fn meet<R: Rank>(
    rank: &R,
    file: &OpenedFile,
    kind: Collective,
    bytes: u64,
) -> Result<(), R::Error> {
    let size = file.members.len() as u32;
    // Its number has the communicator in the upper half, and the open call there in the lower.
    let communicator = (file.number >> 32) as u32;
    let tag = FIRST_TAG + i64::from(file.number as u32);
    let stream = Stream { communicator, tag, manner: Manner::Data };
    for step in steps_of(kind, (file.place, size), 0, (bytes, bytes)) {
        let member = |place: u32| file.members[place as usize];
        if let Some((to, bytes)) = step.send {
            rank.send(member(to), stream, bytes).await?;
        }
        if let Some(from) = step.receive {
            rank.receive(member(from), stream).await?;
        }
    }
    Ok(())
}
