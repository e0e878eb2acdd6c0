//! Records: the units of protection on a TCP connection, below its frames.
//!
//! A record is the length of its data, little-endian, then the data, then a tag:
//!
//! ```text
//! 0            4                 4 + length      20 + length
//! |  length    |  data …         |  tag          |
//! ```
//!
//! The data of all records is the stream of frames. AES-256-GCM makes the tag: over length and
//! encrypted data for [`WireProtection::Private`], over the data as it is for
//! [`WireProtection::Integrity`] (GMAC, which counts the length itself). Each direction has a key
//! of its own, which comes from the handshake.
//!
//! Invariants:
//!
//! - The nonce of a record is its number since the connection began. It is not sent and never used
//!   twice, so a replayed, reordered or missing record fails as a changed one does.
//! - A key protects at most [`RECORDS_PER_KEY`] records. Then both sides derive the next one, from
//!   which the old one cannot be computed.
//! - A length is checked against [`RECORD_BYTES_MAX`] before anything is read for it.
//! - Data of a record that fails is not used: the connection ends.

use crate::wire_protection::WireProtection;
use graviola::aead::AesGcm;
use graviola::hashing::Sha256;
use graviola::hashing::hmac::Hmac;
use std::io;
use thiserror::Error;

/// Maximum data of a record, in bytes. It is small enough to stay in a processor's cache between
/// the system call that moves it and the cipher.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 10;

/// Size of the length before the data.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Size of the tag behind the data.
pub(crate) const TAG_BYTES: usize = 16;

/// Size of the largest record.
pub(crate) const SEALED_BYTES_MAX: usize = LENGTH_BYTES + RECORD_BYTES_MAX + TAG_BYTES;

/// Maximum number of records with one key: at most 4 GiB of data. Deriving the next key takes about
/// a microsecond.
pub(crate) const RECORDS_PER_KEY: u64 = 1 << 16;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// Reason for which a record cannot be accepted. It ends the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum RecordError {
    /// The tag does not fit.
    #[error(
        "record {0} is not what the peer sent at this place: it was changed, repeated, moved or \
         left out on the way"
    )]
    NotAuthentic(u64),
    /// The length is impossible.
    #[error("record {number} claims {bytes} bytes of data, where 1 to {RECORD_BYTES_MAX} can be")]
    BadLength {
        /// Number of the record.
        number: u64,
        /// Claimed length.
        bytes: usize,
    },
    /// The stream ended within a record.
    #[error("the connection was cut in the middle of record {0}")]
    Cut(u64),
}

impl From<RecordError> for io::Error {
    fn from(error: RecordError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// Both directions of a protected connection.
pub(crate) struct Session {
    /// Protects what this node sends.
    pub(crate) sealer: Sealer,
    /// Checks what this node receives.
    pub(crate) opener: Opener,
}

impl Session {
    /// Returns a session. `sending` and `receiving` are the keys that the handshake made for the
    /// two directions.
    pub(crate) fn new(
        protection: WireProtection,
        sending: &[u8; KEY_BYTES],
        receiving: &[u8; KEY_BYTES],
    ) -> Self {
        let direction = |key| Direction::new(protection, key, RECORDS_PER_KEY);
        Self { sealer: Sealer(direction(sending)), opener: Opener(direction(receiving)) }
    }
}

/// One direction of a connection.
struct Direction {
    is_private: bool,
    /// Secret from which the present key was derived, and the next secret will be.
    secret: [u8; KEY_BYTES],
    cipher: AesGcm,
    /// Number of the next record.
    number: u64,
    /// Records that the present key may still protect.
    left: u64,
    records_per_key: u64,
}

impl Direction {
    fn new(protection: WireProtection, key: &[u8; KEY_BYTES], records_per_key: u64) -> Self {
        let is_private = protection == WireProtection::Private;
        // One key is never used in two ways.
        let secret = derive(key, &["unisono records ", protection.word()].concat());
        let cipher = AesGcm::new(&derive(&secret, "key"));
        Self { is_private, secret, cipher, number: 0, left: records_per_key, records_per_key }
    }

    /// Returns the nonce of the next record, which is then used up.
    fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        if self.left == 0 {
            self.secret = derive(&self.secret, "next");
            self.cipher = AesGcm::new(&derive(&self.secret, "key"));
            self.left = self.records_per_key;
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce[NONCE_BYTES - 8..].copy_from_slice(&self.number.to_be_bytes());
        self.number += 1;
        self.left -= 1;
        nonce
    }
}

/// Derives a secret for the purpose that `label` names: HKDF-Expand of RFC 5869 with SHA-256, whose
/// first block is all that is needed.
fn derive(secret: &[u8; KEY_BYTES], label: &str) -> [u8; KEY_BYTES] {
    let mut hmac = Hmac::<Sha256>::new(secret);
    hmac.update(label);
    hmac.update([1]);
    let mut derived = [0; KEY_BYTES];
    derived.copy_from_slice(hmac.finish().as_ref());
    derived
}

/// Bytes before and behind the data of a record.
pub(crate) struct Edges {
    /// Length of the data.
    pub(crate) length: [u8; LENGTH_BYTES],
    /// Tag.
    pub(crate) tag: [u8; TAG_BYTES],
}

/// Makes records of what is sent.
pub(crate) struct Sealer(Direction);

impl Sealer {
    /// True if the data must be encrypted; otherwise it is sent from where it lies.
    pub(crate) fn encrypts(&self) -> bool {
        self.0.is_private
    }

    /// Makes the edges of a record with `data`, which is not encrypted.
    pub(crate) fn authenticate(&mut self, data: &[u8]) -> Edges {
        assert!(!self.0.is_private, "private data must be encrypted");
        let nonce = self.0.nonce();
        let mut edges = Edges { length: length_of(data), tag: [0; TAG_BYTES] };
        self.0.cipher.encrypt(&nonce, data, &mut [], &mut edges.tag);
        edges
    }

    /// Appends records with `data` to `sealed`.
    pub(crate) fn append(&mut self, data: &[u8], sealed: &mut Vec<u8>) {
        for data in data.chunks(RECORD_BYTES_MAX) {
            let start = sealed.len();
            sealed.extend_from_slice(&length_of(data));
            sealed.extend_from_slice(data);
            let edges = if self.0.is_private {
                self.encrypt(&mut sealed[start + LENGTH_BYTES..])
            } else {
                self.authenticate(data)
            };
            sealed.extend_from_slice(&edges.tag);
        }
    }

    /// Encrypts `data` in place.
    fn encrypt(&mut self, data: &mut [u8]) -> Edges {
        let nonce = self.0.nonce();
        let mut edges = Edges { length: length_of(data), tag: [0; TAG_BYTES] };
        self.0.cipher.encrypt(&nonce, &edges.length, data, &mut edges.tag);
        edges
    }
}

fn length_of(data: &[u8]) -> [u8; LENGTH_BYTES] {
    assert!(data.len() <= RECORD_BYTES_MAX, "a record must not be larger than its limit");
    (data.len() as u32).to_le_bytes()
}

/// Checks received records.
pub(crate) struct Opener(Direction);

impl Opener {
    /// Number of the next record.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    /// Returns the length of the data of the record that begins with `bytes`, if they are enough.
    pub(crate) fn length(&self, bytes: &[u8]) -> Result<Option<usize>, RecordError> {
        let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        match u32::from_le_bytes(*length) as usize {
            length @ 1..=RECORD_BYTES_MAX => Ok(Some(length)),
            bytes => Err(RecordError::BadLength { number: self.0.number, bytes }),
        }
    }

    /// Checks the data of the next record, and decrypts it in place.
    pub(crate) fn open(&mut self, data: &mut [u8], tag: &[u8]) -> Result<(), RecordError> {
        let number = self.0.number;
        let nonce = self.0.nonce();
        let opened = if self.0.is_private {
            let length = length_of(data);
            self.0.cipher.decrypt(&nonce, &length, data, tag)
        } else {
            self.0.cipher.decrypt(&nonce, data, &mut [], tag)
        };
        opened.map_err(|_| RecordError::NotAuthentic(number))
    }

    /// Leaves out the next record, whose data nobody wants.
    pub(crate) fn pass_over(&mut self) {
        self.0.nonce();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: records come back as they were, also after changes of the key; every other bit,
    //! order or number of them is refused; what is private cannot be read.
    use super::*;

    const KEYS: [[u8; KEY_BYTES]; 2] = [[1; KEY_BYTES], [2; KEY_BYTES]];
    const PROTECTIONS: [WireProtection; 2] = [WireProtection::Integrity, WireProtection::Private];

    fn pair(protection: WireProtection, records_per_key: u64) -> (Sealer, Opener) {
        let direction = || Direction::new(protection, &KEYS[0], records_per_key);
        (Sealer(direction()), Opener(direction()))
    }

    fn open(opener: &mut Opener, sealed: &[u8]) -> Result<Vec<u8>, RecordError> {
        let length = opener.length(sealed)?.expect("a whole record");
        let mut data = sealed[LENGTH_BYTES..LENGTH_BYTES + length].to_vec();
        opener.open(&mut data, &sealed[LENGTH_BYTES + length..])?;
        Ok(data)
    }

    fn record(sealer: &mut Sealer, data: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        sealer.append(data, &mut sealed);
        sealed
    }

    #[test]
    fn records_come_back_and_keys_change() {
        for protection in PROTECTIONS {
            let (mut sealer, mut opener) = pair(protection, 3);
            let mut keys = vec![sealer.0.secret];
            for number in 0..20_u64 {
                let data = vec![number as u8; 1 + 3000 * number as usize];
                let sealed = record(&mut sealer, &data);
                assert_eq!(open(&mut opener, &sealed), Ok(data));
                if keys.last() != Some(&sealer.0.secret) {
                    keys.push(sealer.0.secret);
                    assert_eq!(number % 3, 0, "a key protects three records");
                }
            }
            assert_eq!(keys.len(), 7);
        }
    }

    #[test]
    fn a_key_that_changed_refuses_what_the_old_one_sealed() {
        let (mut sealer, mut opener) = pair(WireProtection::Private, 1);
        let (mut other, _) = pair(WireProtection::Private, 2);
        for sealer in [&mut sealer, &mut other] {
            record(sealer, b"first");
        }
        opener.pass_over();
        let (right, wrong) = (record(&mut sealer, b"second"), record(&mut other, b"second"));
        assert_eq!(open(&mut opener, &right), Ok(b"second".to_vec()));
        let (_, mut opener) = pair(WireProtection::Private, 1);
        opener.pass_over();
        assert_eq!(open(&mut opener, &wrong), Err(RecordError::NotAuthentic(1)));
    }

    #[test]
    fn every_changed_bit_is_found() {
        for protection in PROTECTIONS {
            let sealed = record(&mut pair(protection, 9).0, b"some words of a file");
            for bit in 0..8 * sealed.len() {
                let mut changed = sealed.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let (_, mut opener) = pair(protection, 9);
                match opener.length(&changed) {
                    Ok(Some(length)) if LENGTH_BYTES + length + TAG_BYTES <= sealed.len() => {
                        let record = &changed[..LENGTH_BYTES + length + TAG_BYTES];
                        let opened = open(&mut opener, record);
                        assert_eq!(opened, Err(RecordError::NotAuthentic(0)), "bit {bit}");
                    }
                    // More bytes would be waited for.
                    Ok(Some(_)) | Err(RecordError::BadLength { .. }) => assert!(bit < 32),
                    other => panic!("bit {bit}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn replays_other_orders_gaps_and_reflections_are_found() {
        for protection in PROTECTIONS {
            let (mut sealer, _) = pair(protection, 2);
            let sent: Vec<_> =
                [b"a", b"b", b"c", b"d"].map(|data| record(&mut sealer, data)).into();
            for order in [&[0, 0][..], &[1], &[0, 2], &[0, 1, 0], &[0, 1, 3]] {
                let (_, mut opener) = pair(protection, 2);
                let outcomes: Vec<_> =
                    order.iter().map(|index| open(&mut opener, &sent[*index]).is_ok()).collect();
                assert!(outcomes.iter().rev().skip(1).all(|is_ok| *is_ok), "{order:?}");
                assert_eq!(outcomes.last(), Some(&false), "{order:?}");
            }
            let mut node = Session::new(protection, &KEYS[0], &KEYS[1]);
            let reflected = record(&mut node.sealer, b"a");
            assert!(open(&mut node.opener, &reflected).is_err());
            let other =
                PROTECTIONS.into_iter().find(|it| *it != protection).expect("there are two");
            assert!(open(&mut pair(other, 2).1, &sent[0]).is_err(), "one key, two protections");
        }
    }

    #[test]
    fn only_private_data_is_hidden() {
        let data = b"some words of a file";
        let hidden = PROTECTIONS.map(|protection| {
            let sealed = record(&mut pair(protection, 9).0, data);
            !sealed.windows(data.len()).any(|window| window == data)
        });
        assert_eq!(hidden, [false, true]);
    }

    #[test]
    fn secrets_are_derived_as_rfc_5869_says() {
        // The first block of the expansion, computed with another implementation of HMAC.
        let derived = derive(&[0x0b; KEY_BYTES], "key");
        let hex: String = derived.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "2847f688268efdf269c75f2245433269f5befcc2a438155035eea45225f40111");
    }
}
