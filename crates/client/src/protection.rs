//! Shares of files that are protected now.

use crate::parallel::for_each_at_once;
use crate::session::{ServerState, Session, ask_one};
use filesystem::Client;
use interface::UserError;
use policy::ProtectedBytes;
use units::ServerId;
use wire::{Entry, Fault};
use world::World;

impl Session {
    /// Entry of a name, with the current size if it is a file. With the bytes that are protected
    /// now, as [`Client::protected_bytes`] tells them.
    pub fn look_at_protected(
        &self,
        name: &str,
    ) -> Result<(Entry, Option<ProtectedBytes>), UserError> {
        let what = format!("cannot read the metadata of {name:?}");
        self.with_onlooker(&what, async |client| look_at_protected(client, name).await)
    }

    /// Sum of all protected files, after the servers have told these states: how many bytes they
    /// have, and how many of them are protected now. What a server has that does not answer does
    /// not count. `None` when the server of the catalogue does not answer, and while a server does
    /// not know what is lost.
    ///
    /// # Errors
    /// Fails when there is no instance.
    pub fn protection(&self, states: &[ServerState]) -> Result<Option<ProtectedBytes>, UserError> {
        let catalogue = states.first().and_then(|first| first.status.as_ref().ok());
        let Some(catalogue) = catalogue else { return Ok(None) };
        let node = self.instance().client_node(&self.instance().read()?)?;
        let asked = for_each_at_once(states, |state| {
            state.status.as_ref().ok()?;
            // That client numbers the server 0.
            let ask = async |client: &Client<_>| client.unprotected_at(ServerId(0)).await;
            ask_one(&state.entry, node.clone(), ask).ok()
        });
        if asked.contains(&Some(None)) {
            return Ok(None);
        }
        let servers = states.iter().map(|state| ServerId(state.entry.id));
        let known = servers.zip(asked.into_iter().map(Option::flatten));
        Ok(Some(ProtectedBytes::of_servers(&catalogue.protected_parts, known)))
    }
}

/// As [`Client::look_at`], with the bytes that are protected now.
pub(crate) async fn look_at_protected<W: World>(
    client: &Client<W>,
    name: &str,
) -> Result<(Entry, Option<ProtectedBytes>), Fault> {
    let entry = client.look_at(name).await?;
    let protected = match entry.file() {
        Some(record) => client.protected_bytes(record).await?,
        None => None,
    };
    Ok((entry, protected))
}
