//! Two-phase I/O: read or write in a conforming distribution, and permute among the clients.
//!
//! ```text
//! read:   barrier                                write:  barrier
//!         read my segment of the file, as              get the pieces of my segment
//!           one large request of caching                 from their owners (memget)
//!         agree                                        agree
//!         put its pieces to their owners               write my segment, as one large
//!         agree                                          request of caching
//!                                                      agree
//! ```
//!
//! The servers' side is that of caching. Each client needs memory for a segment besides its own
//! (del Rosario, Bordawekar and Choudhary 1993, as in TOCS 1997, section 4).

pub(crate) mod client;
