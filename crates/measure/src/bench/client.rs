//! One client process of a bench: takes orders on standard input, one a line, and answers each on
//! standard output.

use super::limits::peak_bytes;
use super::source::Source;
use super::spec::{CaseOrder, CaseResult, CaseSpec, ClientReady, ClientSpec, FileLife};
use client::{Instance, Member, connect_from};
use filesystem::collective::{Strategy, Transfer};
use filesystem::{Fault, Group, SharedMemory};
use interface::{ExitCode, UserError};
use policy::{Access, Direction, DiskOrder, Stripe};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, mpsc};
use units::{ClientId, Duration};
use wire::FileRecord;
use world::{Address, Network, Payloads};
use world_real::{RealWorld, run};

/// How long clients wait for one another at the start.
const PATIENCE: Duration = Duration::from_ms(30_000);

/// What a reader finds in its memory before a read, so that bytes that never came are noticed.
const UNREAD: u8 = 0xa5;

/// The most orders that wait to be carried out; a parent gives one at a time.
const ORDERS_MAX: usize = 16;

/// Runs one client of a bench until standard input ends. When that is in the middle of an order,
/// its parent was killed, and nobody waits for the result.
///
/// # Errors
/// When it cannot join the others, or its orders cannot be read.
pub fn bench_client() -> Result<(), UserError> {
    let (mut orders, parent_left) = listen();
    run(async move {
        let spec: ClientSpec = match orders.recv().await {
            Some(line) => parse(line)?,
            None => return Ok(()),
        };
        let world = match listen_for_members(&spec) {
            Ok(world) => world,
            // Whoever started it says so.
            Err(error) => return tell(&ClientReady::Failed(error.into())),
        };
        tell(&ClientReady::Listening(world.address().0))?;
        let members: Vec<String> = match orders.recv().await {
            Some(line) => parse(line)?,
            None => return Ok(()),
        };
        let joined = join(world, &spec, members).await;
        while let Some(line) = orders.recv().await {
            let order: CaseOrder = parse(line)?;
            let measured = match &joined {
                Ok(group) => tokio::select! {
                    measured = measure(group, &spec, &order) => measured,
                    () = parent_left.notified() => return Ok(()),
                },
                Err(error) => Err(error.clone()),
            };
            tell(&measured.unwrap_or_else(|error| CaseResult::Failed(error.into())))?;
        }
        if let Ok(group) = joined {
            group.leave().await;
        }
        Ok(())
    })
}

/// Reads standard input on a thread of its own: its lines, and word of its end.
fn listen() -> (mpsc::Receiver<std::io::Result<String>>, Arc<Notify>) {
    let (orders, received) = mpsc::channel(ORDERS_MAX);
    let parent_left = Arc::new(Notify::new());
    let ended = Arc::clone(&parent_left);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if orders.blocking_send(line).is_err() {
                return;
            }
        }
        ended.notify_one();
    });
    (received, parent_left)
}

fn parse<T: serde::de::DeserializeOwned>(line: std::io::Result<String>) -> Result<T, UserError> {
    let line = line.map_err(|error| lost_parent(&error.to_string()))?;
    serde_json::from_str(&line).map_err(|error| lost_parent(&error.to_string()))
}

fn tell(answer: &impl serde::Serialize) -> Result<(), UserError> {
    let mut output = std::io::stdout();
    let line = serde_json::to_string(answer).unwrap_or_default();
    let told = writeln!(output, "{line}").and_then(|()| output.flush());
    told.map_err(|error| lost_parent(&error.to_string()))
}

fn lost_parent(cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "a client of a bench cannot understand its orders",
        cause,
        "clients are started by: unisono bench",
    )
}

fn listen_for_members(spec: &ClientSpec) -> Result<RealWorld, UserError> {
    let instance = Instance::at(&spec.instance);
    let member = Member { group: spec.group, rank: spec.rank, host: spec.host.as_deref() };
    member.listen(&instance, &instance.read()?.servers)
}

async fn join(
    world: RealWorld,
    spec: &ClientSpec,
    members: Vec<String>,
) -> Result<Group<RealWorld>, UserError> {
    let file = Instance::at(&spec.instance).read()?;
    let addresses = members.into_iter().map(Address).collect();
    let joined = async {
        let client = connect_from(world, &file.servers).await?;
        Group::join(client, spec.group, ClientId(spec.rank), addresses, PATIENCE).await
    };
    joined.await.map_err(|fault| UserError::of_fault("a client could not join", &fault))
}

/// One case, as this client sees it.
struct Case<'a> {
    group: &'a Group<RealWorld>,
    case: &'a CaseSpec,
    source: Source,
    access: Access,
    direction: Direction,
    strategy: Strategy,
    file: FileRecord,
}

async fn measure(
    group: &Group<RealWorld>,
    spec: &ClientSpec,
    order: &CaseOrder,
) -> Result<CaseResult, UserError> {
    let (strategy, pattern) = order.case.parse()?;
    let access = order.case.access(spec.clients)?;
    let source = Source::open(&order.source).map_err(|error| {
        UserError::usage("cannot open the input", error.to_string(), "name a file to read")
    })?;
    let failed = |fault: Fault| {
        let CaseSpec { pattern, file_bytes, .. } = &order.case;
        let what = format!("{pattern} of {file_bytes} bytes by {strategy} failed");
        UserError::of_fault(&what, &fault)
    };
    let file = open(group, spec, order).await.map_err(failed)?;
    let direction = pattern.direction;
    let mut case = Case { group, case: &order.case, source, access, direction, strategy, file };
    if direction == Direction::Read && order.life != FileLife::Existing {
        case.write_for_reading(spec.clients).await?;
    }
    let measured = case.run(spec.clients, order).await;
    if order.life != FileLife::Kept {
        let removed = match group.rank() {
            ClientId(0) => group.client().remove(&order.file).await,
            _ => Ok(()),
        };
        group.agree(removed).await.map_err(failed)?;
    }
    measured
}

/// The file of the order, made by client 0 if it is to be new, and open at all clients.
async fn open(
    group: &Group<RealWorld>,
    spec: &ClientSpec,
    order: &CaseOrder,
) -> Result<FileRecord, Fault> {
    let client = group.client();
    let made = match group.rank() {
        ClientId(0) if order.life != FileLife::Existing => {
            let instance = Instance::at(&spec.instance).read();
            let disks_per_server = instance.map_or(1, |file| file.disks_per_server);
            let (block_bytes, servers) = (spec.block_bytes, client.servers());
            let stripe = Stripe::round_robin(block_bytes, servers, disks_per_server);
            client.create(&order.file, order.case.file_bytes, stripe).await.map(|_| ())
        }
        _ => Ok(()),
    };
    group.agree(made).await?;
    let record = client.open(&order.file).await;
    group.agree(record.as_ref().map(|_| ()).map_err(Clone::clone)).await?;
    record
}

impl Case<'_> {
    fn failed(&self, fault: &Fault) -> UserError {
        let what = format!("{} by {} failed", self.case.pattern, self.strategy);
        UserError::of_fault(&what, fault)
    }

    fn transfer(&self, access: Access, direction: Direction, strategy: Strategy) -> Transfer {
        Transfer {
            direction,
            file: self.file.clone(),
            access,
            strategy,
            order: DiskOrder::Sorted,
            outstanding_per_disk: self.case.outstanding_per_disk,
            sync: self.case.sync,
        }
    }

    /// A memory for what this client owns under `access`, shared with all.
    async fn share(&self, access: &Access) -> Result<SharedMemory<RealWorld>, UserError> {
        let bytes = access.memory_bytes(self.group.rank());
        let memory = self.group.client().world().memory(bytes);
        memory.with_bytes_mut(|all| all.fill(UNREAD));
        self.group.share(memory).await.map_err(|fault| self.failed(&fault))
    }

    fn fill(&self, access: &Access, shared: &SharedMemory<RealWorld>) -> Result<(), UserError> {
        let rank = self.group.rank();
        let filled = shared
            .memory()
            .with_bytes_mut(|all| self.source.fill(access, rank, self.case.file_bytes, all));
        filled.map_err(|error| input_failed(&error))
    }

    /// What is wrong with the memory after a read, if anything.
    fn compare(
        &self,
        access: &Access,
        shared: &SharedMemory<RealWorld>,
    ) -> Result<Option<String>, UserError> {
        let (rank, file_bytes) = (self.group.rank(), self.case.file_bytes);
        let bytes = shared.memory().bytes();
        let difference = self.source.first_difference(access, rank, file_bytes, &bytes);
        let difference = difference.map_err(|error| input_failed(&error))?;
        Ok(difference.map(|at| format!("byte {at} of the memory of {rank} is wrong")))
    }

    /// Writes the file by servers' direction in a contiguous distribution, untimed.
    async fn write_for_reading(&self, clients: u32) -> Result<(), UserError> {
        let access = contiguous(clients, self.case.file_bytes)?;
        let shared = self.share(&access).await?;
        self.fill(&access, &shared)?;
        let transfer = self.transfer(access, Direction::Write, Strategy::DiskDirected);
        let written = self.group.transfer(&transfer, &shared).await;
        written.map_err(|fault| self.failed(&fault))?;
        self.group.unshare(shared).await;
        Ok(())
    }

    /// Times the transfer as often as is asked. Each write has bytes of its own, and is read back.
    async fn run(&mut self, clients: u32, order: &CaseOrder) -> Result<CaseResult, UserError> {
        let shared = self.share(&self.access).await?;
        if self.strategy == Strategy::TwoPhase {
            // Memory is ready before the clock starts, whatever the strategy.
            let among = self.group.share_among_members(&shared).await;
            among.map_err(|fault| self.failed(&fault))?;
        }
        let transfer = self.transfer(self.access.clone(), self.direction, self.strategy);
        let mut seconds = Vec::new();
        let mut wrong = None;
        for repetition in 0..self.case.repeat {
            match self.direction {
                Direction::Write => {
                    self.source.vary(repetition);
                    self.fill(&self.access, &shared)?;
                }
                Direction::Read => shared.memory().with_bytes_mut(|all| all.fill(UNREAD)),
            }
            self.group.barrier().await.map_err(|fault| self.failed(&fault))?;
            let start = Instant::now();
            let moved = self.group.transfer(&transfer, &shared).await;
            seconds.push(start.elapsed().as_secs_f64());
            moved.map_err(|fault| self.failed(&fault))?;
            let found = match self.direction {
                Direction::Read => self.compare(&self.access, &shared)?,
                Direction::Write => self.read_back(clients).await?,
            };
            wrong = wrong.or(found);
        }
        if let (Some(path), Direction::Read) = (&order.dump, self.direction) {
            let dumped = std::fs::write(path, &*shared.memory().bytes());
            dumped.map_err(|error| input_failed(&error))?;
        }
        self.group.unshare(shared).await;
        let moved_bytes = self.access.memory_bytes(self.group.rank());
        Ok(CaseResult::Measured {
            seconds,
            moved_bytes,
            wrong,
            peak_bytes: peak_bytes(std::process::id()),
        })
    }

    /// Reads a written file in another distribution, untimed, and compares.
    async fn read_back(&self, clients: u32) -> Result<Option<String>, UserError> {
        let access = contiguous(clients, self.case.file_bytes)?;
        let shared = self.share(&access).await?;
        let transfer = self.transfer(access.clone(), Direction::Read, Strategy::DiskDirected);
        let read = self.group.transfer(&transfer, &shared).await;
        read.map_err(|fault| self.failed(&fault))?;
        let wrong = self.compare(&access, &shared)?;
        self.group.unshare(shared).await;
        Ok(wrong)
    }
}

/// Every client one contiguous part of the file.
fn contiguous(clients: u32, file_bytes: u64) -> Result<Access, UserError> {
    let pattern = crate::bench::parse_pattern("rb")?;
    interface::access_of(&pattern, clients, 1, file_bytes)
}

fn input_failed(error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "a client could not read its input or leave its result",
        error.to_string(),
        "check the input file and the space in the instance directory",
    )
}
