//! Requests that outlive a lost server.

use crate::{
    BlockRequest, CatalogueRequest, CollectiveRequest, FileRequest, GroupRequest, NodeRequest,
    Request, ServerRequest,
};

/// Treatment of a request whose server is lost, by a client that connects again to lost servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persistence {
    /// It fails at once: it is for this run of the server, or others must learn of the failure.
    Fails,
    /// It is sent when the server is there again. If it was sent before, it fails: the server may
    /// have carried it out, and twice is not the same as once.
    Waits,
    /// It is sent when the server is there again, also for a second time.
    Repeats,
}

impl Request {
    /// Treatment of the request when its server is lost.
    pub fn persistence(&self) -> Persistence {
        match self {
            Self::Read(_) | Self::Write(_) => Persistence::Repeats,
            Self::Cache(_) | Self::Object(_) => Persistence::Fails,
            Self::Block(request) => of_block(request),
            Self::Collective(request) => match request {
                CollectiveRequest::Part(_) | CollectiveRequest::Plan(_) => Persistence::Repeats,
                CollectiveRequest::Join(_)
                | CollectiveRequest::JoinWithData(_)
                | CollectiveRequest::JoinInOrder(_)
                | CollectiveRequest::Select(_)
                | CollectiveRequest::Cancel { .. } => Persistence::Fails,
            },
            Self::File(request) => of_file(request),
            Self::Catalogue(request) => of_catalogue(request),
            Self::Group(request) => match request {
                GroupRequest::Register(_) => Persistence::Repeats,
                GroupRequest::AllGather(_) => Persistence::Waits,
                GroupRequest::Leave(_)
                | GroupRequest::Counter(_)
                | GroupRequest::Lock(_)
                | GroupRequest::Unlock(_) => Persistence::Fails,
            },
            Self::Server(
                ServerRequest::Status
                | ServerRequest::Stop
                | ServerRequest::Probe { .. }
                | ServerRequest::CatalogueCopy { .. }
                | ServerRequest::Unprotected { .. },
            ) => Persistence::Fails,
            Self::Node(request) => match request {
                NodeRequest::Find(_)
                | NodeRequest::Look { .. }
                | NodeRequest::Change { .. }
                | NodeRequest::List { .. }
                | NodeRequest::Path { .. } => Persistence::Repeats,
                NodeRequest::Make(_) | NodeRequest::Remove { .. } | NodeRequest::Rename { .. } => {
                    Persistence::Waits
                }
            },
        }
    }
}

fn of_block(request: &BlockRequest) -> Persistence {
    match request {
        BlockRequest::Pull(_)
        | BlockRequest::Page { .. }
        | BlockRequest::Flush(_)
        | BlockRequest::Digests(_)
        | BlockRequest::PageToKeep { .. } => Persistence::Repeats,
        BlockRequest::DroppedPages { .. } => Persistence::Fails,
    }
}

fn of_file(request: &FileRequest) -> Persistence {
    match request {
        FileRequest::Open(_)
        | FileRequest::Close { .. }
        | FileRequest::Resize { .. }
        | FileRequest::KeepSize { .. }
        | FileRequest::SetModified { .. }
        | FileRequest::Measure(_)
        | FileRequest::OpenSizes { .. }
        | FileRequest::Buffers { .. }
        | FileRequest::Drop { .. }
        | FileRequest::Lease { .. }
        | FileRequest::Protect(_)
        | FileRequest::NumberInPlace { .. } => Persistence::Repeats,
        // Its lease is lost with the server.
        FileRequest::WriteGathered(_) | FileRequest::Scrub(_) | FileRequest::DropCopy { .. } => {
            Persistence::Fails
        }
    }
}

fn of_catalogue(request: &CatalogueRequest) -> Persistence {
    match request {
        CatalogueRequest::SetDefaults { .. }
        | CatalogueRequest::Stat { .. }
        | CatalogueRequest::List { .. }
        | CatalogueRequest::RecordSize { .. }
        | CatalogueRequest::RecordModified { .. }
        | CatalogueRequest::Nameless { .. }
        | CatalogueRequest::Forget { .. }
        | CatalogueRequest::Behind
        | CatalogueRequest::Files { .. }
        | CatalogueRequest::Protect { .. } => Persistence::Repeats,
        CatalogueRequest::Create { .. }
        | CatalogueRequest::MakeDirectory { .. }
        | CatalogueRequest::Rename { .. }
        | CatalogueRequest::Remove { .. } => Persistence::Waits,
        CatalogueRequest::Copy(_) | CatalogueRequest::SetBehind { .. } => Persistence::Fails,
    }
}
