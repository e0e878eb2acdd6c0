//! The two forms of a torus: names, help texts, checks and constructors.

use super::exact::{self, ExactTorus};
use super::grid::{BUFFER_FLITS, TorusSize};
use super::modelled::Torus;
use crate::models::ModelInfo;
use crate::models::network::{EventDriven, LinkSpec, UnfitNetwork};

/// Name and help text of the modelled torus.
pub(in crate::models::network) const MODELLED_INFO: ModelInfo = ModelInfo {
    name: "torus",
    help: "A torus of two dimensions, nearly square, with wormhole routing.",
};

/// Name and help text of the exact torus.
pub(in crate::models::network) const EXACT_INFO: ModelInfo =
    ModelInfo { name: "exact-torus", help: "A torus of two dimensions, simulated flit by flit." };

/// Detail in which the packets of a torus are simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TorusForm {
    /// Moves heads only, where packets contend.
    Modelled,
    /// Moves every flit.
    Exact {
        /// Flits that a router buffers for each link and virtual channel that ends there.
        buffer_flits: u32,
    },
}

impl TorusForm {
    /// The exact form with buffers of the usual depth.
    pub const EXACT: Self = Self::Exact { buffer_flits: BUFFER_FLITS };

    /// Name and help text of this form.
    pub(in crate::models::network) fn info(self) -> ModelInfo {
        match self {
            Self::Modelled => MODELLED_INFO,
            Self::Exact { .. } => EXACT_INFO,
        }
    }

    /// Checks that a torus of this form can be built; without a size, of the size that is needed.
    pub(in crate::models::network) fn check(
        self,
        size: Option<TorusSize>,
        link: LinkSpec,
        nodes: u32,
    ) -> Result<(), UnfitNetwork> {
        size.unwrap_or_else(|| TorusSize::for_nodes(nodes)).check(nodes)?;
        match self {
            Self::Modelled => Ok(()),
            Self::Exact { buffer_flits } => exact::check(link, buffer_flits).map(|_| ()),
        }
    }

    /// Builds a quiet torus of this form; without a size, of the size that is needed.
    pub(in crate::models::network) fn build(
        self,
        size: Option<TorusSize>,
        link: LinkSpec,
        nodes: u32,
    ) -> Result<EventDriven, UnfitNetwork> {
        let size = size.unwrap_or_else(|| TorusSize::for_nodes(nodes));
        Ok(match self {
            Self::Modelled => EventDriven::ModelledTorus(Torus::new(size, link)),
            Self::Exact { buffer_flits } => {
                EventDriven::ExactTorus(ExactTorus::new(size, link, buffer_flits)?)
            }
        })
    }
}
