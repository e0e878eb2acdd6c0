//! Requests of a client that waits for lost servers.

use crate::client::state::Client;
use units::{Duration, Instant, ServerId};
use wire::Fault;
use world::World;

/// Time before a request is sent again to a server that could not reach another one.
const PAUSE_OF_OTHERS: Duration = Duration::from_ms(100);

/// Maximum number of times that a request is sent. One that ends its server each time must fail.
const SENT_MAX: u32 = 4;

/// Attempts to have a request carried out by a server that may be lost.
pub(super) struct Attempts<'a, W: World> {
    client: &'a Client<W>,
    server: ServerId,
    sent: u32,
    /// Number of times that the server had been lost when the request was last sent.
    losses: u64,
    /// Instant from which no further attempt is made because of other servers.
    end: Option<Instant>,
}

impl<'a, W: World> Attempts<'a, W> {
    pub(super) fn of(client: &'a Client<W>, server: ServerId) -> Self {
        Self { client, server, sent: 0, losses: 0, end: None }
    }

    /// Begins one, when the server is there.
    ///
    /// # Errors
    /// The fault of a server that is not waited for, or not any longer.
    pub(super) async fn begin(&mut self) -> Result<(), Fault> {
        self.client.until_returned(self.server).await?;
        self.losses = self.client.losses(std::iter::once(self.server));
        self.sent += 1;
        Ok(())
    }

    /// Decides about a further attempt after one has failed. There may be one if the server was
    /// lost, or cannot reach another server that is lost, which is waited for.
    pub(super) async fn may_repeat(&mut self, fault: &Fault) -> bool {
        let Fault::ServerLeft { server: lost, .. } = fault else { return false };
        if *lost == self.server {
            self.client.note_lost(self.server, self.losses, fault);
            return self.sent < SENT_MAX;
        }
        let (now, patience) =
            (self.client.world().now(), self.client.0.servers().returns().patience.get());
        if now >= *self.end.get_or_insert(now + patience) {
            return false;
        }
        self.sent = 0;
        self.client.world().sleep(PAUSE_OF_OTHERS).await;
        self.client.until_returned(*lost).await.is_ok()
    }
}
