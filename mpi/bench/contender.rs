//! Contenders: ways to run a program, and how their times are compared.

use mpi::Family;

/// A way to run a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contender {
    pub(crate) family: Family,
    pub(crate) kind: Kind,
}

/// Files of a contender, and the library that works on them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// An ordinary file, by the MPI library.
    Plain,
    /// A file of an instance.
    Instance,
    /// An ordinary file, by servers.
    InPlace,
}

/// All contenders; those of each kind together, in this order.
const CONTENDERS: [Contender; 6] = [
    Contender { family: Family::Mpich, kind: Kind::Plain },
    Contender { family: Family::OpenMpi, kind: Kind::Plain },
    Contender { family: Family::Mpich, kind: Kind::Instance },
    Contender { family: Family::OpenMpi, kind: Kind::Instance },
    Contender { family: Family::Mpich, kind: Kind::InPlace },
    Contender { family: Family::OpenMpi, kind: Kind::InPlace },
];

/// Returns the contenders. Servers whose files are in memory do not work in place.
pub(crate) fn contenders(in_memory: bool) -> &'static [Contender] {
    if in_memory { &CONTENDERS[..4] } else { &CONTENDERS }
}

impl Contender {
    pub(crate) fn name(self) -> &'static str {
        match (self.kind, self.family) {
            (Kind::Plain, Family::Mpich) => "MPICH",
            (Kind::Plain, _) => "Open MPI",
            (Kind::Instance, Family::Mpich) => "Unisono, MPICH",
            (Kind::Instance, _) => "Unisono, Open MPI",
            (Kind::InPlace, Family::Mpich) => "in place, MPICH",
            (Kind::InPlace, _) => "in place, Open MPI",
        }
    }

    /// Returns the name as a value of a table in which commas separate values.
    pub(crate) fn plain_name(self) -> String {
        self.name().replace(',', "")
    }

    fn key(self) -> (Kind, bool) {
        (self.kind, self.family == Family::OpenMpi)
    }
}

impl Ord for Contender {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Contender {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Times of the kinds of contenders in one case.
pub(crate) struct Compared {
    /// Of the better plain library.
    pub(crate) peer: f64,
    /// Of Unisono under the slower library, on files of an instance.
    pub(crate) instance: f64,
    /// The same in place, if it was measured.
    pub(crate) in_place: Option<f64>,
}

impl Compared {
    /// Compares the times of all contenders, in their order.
    pub(crate) fn of(times: &[f64]) -> Self {
        let slower = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        Self {
            peer: times[..2].iter().copied().fold(f64::INFINITY, f64::min),
            instance: slower(&times[2..4]),
            in_place: (times.len() > 4).then(|| slower(&times[4..])),
        }
    }

    /// Rate of Unisono on files of an instance over that of the better plain library.
    pub(crate) fn instance(&self) -> f64 {
        self.peer / self.instance
    }

    /// Rate of Unisono in place over that of the better plain library.
    pub(crate) fn in_place(&self) -> Option<f64> {
        self.in_place.map(|in_place| self.peer / in_place)
    }

    /// Rate of Unisono in place over that on files of an instance.
    pub(crate) fn in_place_to_instance(&self) -> Option<f64> {
        self.in_place.map(|in_place| self.instance / in_place)
    }
}
