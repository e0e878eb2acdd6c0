//! Tables of values and their exact bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use wire::{decode_record, encode_record};

/// Makes a test of a table of rows `variant, example, bytes;`.
macro_rules! pinned {
    ($test:ident: $enum:ty { $($variant:pat, $example:expr, $bytes:literal;)+ }) => {
        #[test]
        fn $test() {
            /// Finds the row of a value. A variant without a row does not compile.
            fn row_of(value: &$enum) -> &'static str {
                match value { $($variant => stringify!($variant),)+ }
            }
            let rows: Vec<(&str, $enum, &str)> =
                vec![$((stringify!($variant), $example, $bytes)),+];
            for (variant, example, bytes) in rows {
                assert_eq!(row_of(&example), variant, "the example is of another variant");
                $crate::pins::check(variant, &example, bytes);
            }
        }
    };
}

/// Panics unless `value` is encoded as these bytes, and they are decoded as it.
pub(crate) fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    name: &str,
    value: &T,
    bytes: &str,
) {
    let encoded = encode_record(value);
    let mut shown: Vec<String> = encoded.iter().map(|byte| format!("{byte:02x}")).collect();
    shown.insert(1, "|".to_owned());
    assert_eq!(shown.join(" ").trim_end_matches([' ', '|']), bytes, "the bytes of {name} changed");
    assert_eq!(decode_record::<T>(&encoded).as_ref(), Ok(value), "{name} is decoded differently");
}
