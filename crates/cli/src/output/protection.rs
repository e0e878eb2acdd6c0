//! Shares of files that are protected now, as text and JSON.

use client::ProtectedBytes;
use serde_json::{Value, json};

/// Words about how much is protected.
pub(crate) fn protected_words(protected: ProtectedBytes) -> String {
    format!("protected {} %", protected.percent())
}

/// Two counts of bytes, or null if they are unknown.
pub(crate) fn protection_json(protected: Option<ProtectedBytes>) -> Value {
    protected.map_or(Value::Null, |ProtectedBytes { bytes, protected_bytes }| {
        json!({ "bytes": bytes, "protected_bytes": protected_bytes })
    })
}
