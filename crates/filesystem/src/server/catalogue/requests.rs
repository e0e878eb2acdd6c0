//! Requests for the catalogue, as server 0 receives them.

use super::copy::CatalogueCopy;
use super::store::Catalogue;
use crate::scale::rare;
use crate::server::answer::Answer;
use crate::server::state::Server;
use crate::server::transfers::answer_pools::{LARGE_ANSWER_BYTES, Source};
use policy::Buffering;
use std::convert::Infallible;
use std::rc::Rc;
use units::PeerId;
use wire::{
    CatalogueChange, CatalogueRequest, Fault, FileRecord, NewKind, NodeRequest, Reply, RequestId,
};
use world::World;

/// Refuses an entry of the catalogue for an ordinary file, which has a path of its own.
fn check_not_in_place(record: &FileRecord) -> Result<(), Fault> {
    match record.stripe.inode() {
        None => Ok(()),
        Some(_) => {
            let cause = "a file in place has no entry in the catalogue".to_owned();
            Err(Fault::BadRequest { cause })
        }
    }
}

impl<W: World> Server<W> {
    /// Answers a request for the catalogue.
    pub(crate) async fn answer_catalogue(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: CatalogueRequest,
    ) -> Result<(), Infallible> {
        use CatalogueRequest::{Files, List, Nameless};
        let is_list = matches!(request, List { .. } | Nameless { .. } | Files { .. });
        let large = is_list.then_some((Source::Memory, LARGE_ANSWER_BYTES));
        if let CatalogueRequest::Copy(change) = request {
            self.clients().note_server(call.0);
            return self.answer(call, large, rare(self.change_copy(change))).await;
        }
        self.answer(call, large, rare(self.serve_catalogue(request))).await
    }

    /// Changes the copy of the catalogue here. That runs to its end even when the server with the
    /// catalogue leaves: otherwise the copy could have a change beyond the position that is told.
    async fn change_copy(
        self: &Rc<Self>,
        change: CatalogueChange,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_not_read_only()?;
        let server = Rc::clone(self);
        let changed = async move { server.own_catalogue_copy()?.change(change).await };
        let position = self.to_its_end(changed).await?;
        Ok(Reply::Copied { position }.into())
    }

    /// Reads some records of the copy of the catalogue here.
    pub(crate) async fn read_catalogue_copy(
        &self,
        after: Option<u64>,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.own_catalogue_copy()?.read(after).await.map(Answer::from)
    }

    fn own_catalogue_copy(&self) -> Result<&CatalogueCopy<W>, Fault> {
        let none = || Fault::BadRequest { cause: "this server keeps the catalogue".to_owned() };
        self.catalogue_copy().ok_or_else(none)
    }

    async fn serve_catalogue(
        self: &Rc<Self>,
        request: CatalogueRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        let reply = match self.answer_read_only(&request)? {
            Some(reply) => reply,
            None => {
                self.check_change(&request)?;
                self.change_catalogue(async move |catalogue| catalogue.serve(request).await).await?
            }
        };
        Ok(reply.into())
    }

    /// Answers a request for an entry by its number.
    pub(crate) async fn answer_node(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: NodeRequest,
    ) -> Result<(), Infallible> {
        let is_list = matches!(request, NodeRequest::List { .. });
        let large = is_list.then_some((Source::Memory, LARGE_ANSWER_BYTES));
        self.answer(call, large, rare(self.serve_node(request))).await
    }

    async fn serve_node(
        self: &Rc<Self>,
        request: NodeRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        use NodeRequest::{Find, List, Look, Path};
        if !matches!(request, Find(_) | Look { .. } | List { .. } | Path { .. }) {
            self.check_not_read_only()?;
        }
        if let NodeRequest::Make(new) = &request
            && let NewKind::File(record) = &new.kind
        {
            self.check_record(record)?;
            check_not_in_place(record)?;
            self.check_policy(&record.buffering)?;
        }
        let serve = async move |catalogue: &Catalogue<W>| catalogue.serve_node(request).await;
        Ok(self.change_catalogue(serve).await?.into())
    }

    /// Answers a request to change the catalogue while nothing may be changed.
    fn answer_read_only(&self, request: &CatalogueRequest) -> Result<Option<Reply>, Fault> {
        if !self.config().read_only {
            return Ok(None);
        }
        match request {
            // What clients report when they close a file is not kept.
            CatalogueRequest::RecordSize { size, .. } => Ok(Some(Reply::Size(*size))),
            CatalogueRequest::RecordModified { is_set: false, .. } => Ok(Some(Reply::Done)),
            CatalogueRequest::Stat { .. }
            | CatalogueRequest::List { .. }
            | CatalogueRequest::Nameless { .. }
            | CatalogueRequest::Files { .. }
            | CatalogueRequest::Behind => Ok(None),
            CatalogueRequest::Create { .. }
            | CatalogueRequest::MakeDirectory { .. }
            | CatalogueRequest::SetDefaults { .. }
            | CatalogueRequest::Rename { .. }
            | CatalogueRequest::Remove { .. }
            | CatalogueRequest::RecordModified { .. }
            | CatalogueRequest::Forget { .. }
            | CatalogueRequest::Protect { .. }
            | CatalogueRequest::SetBehind { .. }
            | CatalogueRequest::Copy(_) => Err(Fault::ReadOnly),
        }
    }

    /// Refuses a change that names what this server does not have.
    fn check_change(&self, change: &CatalogueRequest) -> Result<(), Fault> {
        match change {
            CatalogueRequest::Create { record, .. } => {
                self.check_record(record)?;
                check_not_in_place(record)?;
                self.check_policy(&record.buffering)
            }
            CatalogueRequest::SetDefaults { defaults, .. } => {
                self.check_policy(&defaults.buffering)
            }
            _ => Ok(()),
        }
    }

    /// Lets the catalogue serve a request. A change runs to its end even when the client leaves:
    /// otherwise records and memory could come to differ.
    async fn change_catalogue(
        self: &Rc<Self>,
        serve: impl AsyncFnOnce(&Catalogue<W>) -> Result<Reply, Fault> + 'static,
    ) -> Result<Reply, Fault> {
        let server = Rc::clone(self);
        let served = async move {
            let none = || Fault::BadRequest { cause: "server 0 keeps the catalogue".to_owned() };
            serve(server.catalogue().ok_or_else(none)?).await
        };
        self.to_its_end(served).await
    }

    /// Refuses a new file with a replacement policy that does not exist here. (An existing file can
    /// be used without its policy.)
    fn check_policy(&self, buffering: &Buffering) -> Result<(), Fault> {
        let (wanted, policies) = (buffering.replacement(), &self.config().extensions.policies);
        if policies.has(wanted) {
            return Ok(());
        }
        let added: Vec<String> = policies.added().map(|name| name.to_string()).collect();
        let added = if added.is_empty() { "none".to_owned() } else { added.join(", ") };
        let cause = format!(
            "server {} has no replacement policy {wanted}; its program adds {added}",
            self.config().id.0
        );
        Err(Fault::BadRequest { cause })
    }
}
