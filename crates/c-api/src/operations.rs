//! Calls that were begun and are waited for later.

use crate::arguments::{Array, Bytes, Out};
use crate::border::{Failure, exported};
use crate::handles::{FileHandle, OpHandle, PartHandle, make};
use crate::parts::{Part, copy};
use client::{Direction, Operation};
use interface::UserError;
use std::ffi::c_int;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Most operations that are waited for at once.
const OPERATIONS_MAX: usize = 1 << 20;

/// A call under way; its result is a number of bytes.
pub(crate) struct Op(Mutex<State>);

/// Progress of a call.
enum State {
    UnderWay(Pin<Box<dyn Future<Output = Result<u64, UserError>> + Send>>),
    Ended(Result<u64, UserError>),
}

impl Op {
    /// An operation whose result is turned into a number of bytes.
    pub(crate) fn new<T: Send + 'static>(
        operation: Operation<T>,
        bytes: impl FnOnce(T) -> u64 + Send + 'static,
    ) -> Self {
        // A future that is dropped before its end drops the operation, which waits if it must.
        Self(Mutex::new(State::UnderWay(Box::pin(async move { operation.await.map(bytes) }))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result; the thread sleeps until it is there.
    fn wait(self) -> Result<u64, UserError> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            State::UnderWay(work) => pollster::block_on(work),
            State::Ended(result) => result,
        }
    }
}

impl State {
    /// True when the call has ended; otherwise its end wakes the task of the context.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        if let Self::UnderWay(work) = self
            && let Poll::Ready(result) = work.as_mut().poll(context)
        {
            *self = Self::Ended(result);
        }
        matches!(self, Self::Ended(_))
    }
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future for a limited time; returns `None` when it is not ready then.
fn block_for<T>(future: impl Future<Output = T>, timeout: Duration) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let begun_at = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = timeout.checked_sub(begun_at.elapsed()).filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}

exported! {
    /// Begins to read at an offset.
    fn unisono_start_pread(
        file: FileHandle,
        memory: Bytes,
        bytes: u64,
        offset: u64,
        op: Out<OpHandle>,
    ) -> c_int {
        make(&op, "op", || {
            let file = file.get("file")?;
            let memory = memory.memory(bytes, "memory")?;
            Ok(Op::new(file.start_read_memory(memory, offset), |read| read as u64))
        })
    }

    /// Begins to write at an offset.
    fn unisono_start_pwrite(
        file: FileHandle,
        memory: Bytes,
        bytes: u64,
        offset: u64,
        op: Out<OpHandle>,
    ) -> c_int {
        make(&op, "op", || {
            let file = file.get("file")?;
            let memory = memory.memory(bytes, "memory")?;
            Ok(Op::new(file.start_write_memory(memory, offset), move |()| bytes))
        })
    }

    /// Begins to close a file.
    fn unisono_start_close(file: FileHandle, op: Out<OpHandle>) -> c_int {
        make(&op, "op", || {
            let file = file.take("file")?.ok_or_else(|| Failure::argument("file", "is null"))?;
            Ok(Op::new(file.start_close(), |()| 0))
        })
    }

    /// Begins to read a part.
    fn unisono_start_read_part(
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        op: Out<OpHandle>,
    ) -> c_int {
        make(&op, "op", || {
            let (file, Part { own, bytes }) = (file.get("file")?, copy(&part)?);
            let memory = memory.memory(memory_bytes, "memory")?;
            let begun = file.start_part(Direction::Read, own, memory, false);
            Ok(Op::new(begun, move |()| bytes))
        })
    }

    /// Begins to write a part.
    fn unisono_start_write_part(
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        sync: c_int,
        op: Out<OpHandle>,
    ) -> c_int {
        make(&op, "op", || {
            let (file, Part { own, bytes }) = (file.get("file")?, copy(&part)?);
            let memory = memory.memory(memory_bytes, "memory")?;
            let begun = file.start_part(Direction::Write, own, memory, sync != 0);
            Ok(Op::new(begun, move |()| bytes))
        })
    }

    /// Tells if a call has ended.
    fn unisono_op_test(op: OpHandle, ended: Out<c_int>) -> c_int {
        let slot = ended.slot("ended")?;
        let mut state = op.get("op")?.lock();
        slot.set(c_int::from(state.has_ended(&mut Context::from_waker(Waker::noop()))));
        Ok(())
    }

    /// Waits for a call for a limited time.
    fn unisono_op_wait_for(op: OpHandle, timeout_us: u64, ended: Out<c_int>) -> c_int {
        let slot = ended.slot("ended")?;
        let op = op.get("op")?;
        let end = poll_fn(|context| match op.lock().has_ended(context) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        slot.set(c_int::from(block_for(end, Duration::from_micros(timeout_us)).is_some()));
        Ok(())
    }

    /// Waits for a call, and frees it.
    fn unisono_op_wait(op: OpHandle) -> i64 {
        match op.take("op")? {
            Some(op) => Ok(op.wait()?),
            None => Ok(0),
        }
    }

    /// Waits for one of several calls.
    fn unisono_op_wait_any(ops: Array<OpHandle>, count: usize, index: Out<usize>) -> c_int {
        let slot = index.slot("index")?;
        let handles = ops.values(count, OPERATIONS_MAX, "ops")?;
        let given = handles.iter().enumerate().filter(|(_, handle)| !handle.is_none());
        let given: Result<Vec<_>, Failure> =
            given.map(|(number, handle)| Ok((number, handle.get("ops")?))).collect();
        let given = given?;
        if given.is_empty() {
            slot.set(count);
            return Ok(());
        }
        let first = poll_fn(|context| {
            // Each is polled, so that the end of each wakes this thread.
            let ended = given.iter().filter(|(_, op)| op.lock().has_ended(context));
            let ended: Vec<usize> = ended.map(|(number, _)| *number).collect();
            ended.first().copied().map_or(Poll::Pending, Poll::Ready)
        });
        slot.set(pollster::block_on(first));
        Ok(())
    }
}
