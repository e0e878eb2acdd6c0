//! Encoding of a request in a part: as a variant of one enum of all requests.
//!
//! Serde derives how a part is encoded, with the position of the request in the part in front.
//! [`PartSerializer`] adds the first tag of the part to it, and [`decode_part`] is given the
//! position without it. All else passes through, so no request is listed here.

use serde::de::value::EnumAccessDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer, VariantAccess};
use serde::ser::{Error, Impossible};
use serde::{Deserialize, Serialize, Serializer};

/// Number of tags of a part: the largest number of its requests.
pub(crate) const PART_TAGS: u8 = 16;

/// Encoder of the enum of a part. It refuses all that is not an enum.
pub(crate) struct PartSerializer<S> {
    first_tag: u32,
    to: S,
}

impl<S: Serializer> PartSerializer<S> {
    /// Makes an encoder of the part of this number.
    pub(crate) fn new(part: u8, to: S) -> Self {
        Self { first_tag: u32::from(part) * u32::from(PART_TAGS), to }
    }

    fn tag(&self, position: u32) -> Result<u32, S::Error> {
        match position < u32::from(PART_TAGS) {
            true => Ok(self.first_tag + position),
            false => Err(S::Error::custom("a part has more requests than tags")),
        }
    }
}

/// Defines functions of a serializer that refuse what they are given.
macro_rules! refuse {
    ($($function:ident($($value:ty),*) -> $result:ty;)+) => {
        $(fn $function(self, $(_: $value),*) -> Result<$result, S::Error> {
            Err(S::Error::custom("a part is an enum of requests"))
        })+
    };
}

impl<S: Serializer> Serializer for PartSerializer<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Impossible<S::Ok, S::Error>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = S::SerializeTupleVariant;
    type SerializeMap = Impossible<S::Ok, S::Error>;
    type SerializeStruct = Impossible<S::Ok, S::Error>;
    type SerializeStructVariant = S::SerializeStructVariant;

    fn serialize_unit_variant(
        self,
        name: &'static str,
        position: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        let tag = self.tag(position)?;
        self.to.serialize_unit_variant(name, tag, variant)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        position: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let tag = self.tag(position)?;
        self.to.serialize_newtype_variant(name, tag, variant, value)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        position: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<S::SerializeTupleVariant, S::Error> {
        let tag = self.tag(position)?;
        self.to.serialize_tuple_variant(name, tag, variant, length)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        position: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<S::SerializeStructVariant, S::Error> {
        let tag = self.tag(position)?;
        self.to.serialize_struct_variant(name, tag, variant, length)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<S::Ok, S::Error> {
        self.serialize_none()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<S::Ok, S::Error> {
        self.serialize_none()
    }

    refuse! {
        serialize_bool(bool) -> S::Ok;
        serialize_i8(i8) -> S::Ok;
        serialize_i16(i16) -> S::Ok;
        serialize_i32(i32) -> S::Ok;
        serialize_i64(i64) -> S::Ok;
        serialize_u8(u8) -> S::Ok;
        serialize_u16(u16) -> S::Ok;
        serialize_u32(u32) -> S::Ok;
        serialize_u64(u64) -> S::Ok;
        serialize_f32(f32) -> S::Ok;
        serialize_f64(f64) -> S::Ok;
        serialize_char(char) -> S::Ok;
        serialize_str(&str) -> S::Ok;
        serialize_bytes(&[u8]) -> S::Ok;
        serialize_none() -> S::Ok;
        serialize_unit() -> S::Ok;
        serialize_unit_struct(&'static str) -> S::Ok;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
    }
}

/// Decodes the request at a position of a part from its fields. Fails if the part has no such
/// position.
pub(crate) fn decode_part<'de, T, A>(position: u8, fields: A) -> Result<T, A::Error>
where
    T: Deserialize<'de>,
    A: VariantAccess<'de>,
{
    T::deserialize(EnumAccessDeserializer::new(Variant { position, fields }))
}

/// Request of which the tag has been decoded.
struct Variant<A> {
    position: u8,
    fields: A,
}

impl<'de, A: VariantAccess<'de>> EnumAccess<'de> for Variant<A> {
    type Error = A::Error;
    type Variant = A;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, A), A::Error> {
        let position = u32::from(self.position).into_deserializer();
        seed.deserialize(position).map(|position| (position, self.fields))
    }
}

#[cfg(test)]
mod tests {
    //! Proves: only enums with at most as many variants as a part has tags are encoded.
    use super::*;

    struct InPart<T>(u8, T);

    impl<T: Serialize> Serialize for InPart<T> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            self.1.serialize(PartSerializer::new(self.0, to))
        }
    }

    /// Has each form of a variant, and one variant too many.
    #[derive(Serialize)]
    #[allow(dead_code, reason = "their places count")]
    #[rustfmt::skip]
    enum Large {
        Unit, Newtype(u16), Tuple(u8, u8), Struct { field: u8 },
        A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, Last, TooMany,
    }

    fn bytes(part: u8, value: impl Serialize) -> Option<Vec<u8>> {
        postcard::to_allocvec(&InPart(part, value)).ok()
    }

    #[test]
    fn the_tag_is_in_front_of_the_fields() {
        assert_eq!(bytes(0, Large::Unit), Some(vec![0]));
        assert_eq!(bytes(1, Large::Newtype(300)), Some(vec![17, 0xac, 2]));
        assert_eq!(bytes(2, Large::Tuple(7, 8)), Some(vec![34, 7, 8]));
        assert_eq!(bytes(3, Large::Struct { field: 9 }), Some(vec![51, 9]));
        assert_eq!(bytes(7, Large::Last), Some(vec![127]));
    }

    #[test]
    fn a_variant_without_a_tag_is_refused() {
        assert_eq!(bytes(1, Large::TooMany), None);
    }

    #[test]
    fn all_but_enums_is_refused() {
        assert_eq!(bytes(1, 7_u8), None);
        assert_eq!(bytes(1, "text"), None);
        assert_eq!(bytes(1, (1, 2)), None);
        assert_eq!(bytes(1, Some(Large::Unit)), None);
        assert_eq!(bytes(1, vec![Large::Unit]), None);
    }
}
