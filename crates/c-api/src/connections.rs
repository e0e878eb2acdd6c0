//! Connecting to an instance.

use crate::arguments::{Options, Out, Text, extensible};
use crate::border::{Failure, exported};
use crate::handles::{ConnectionHandle, make};
use client::{Connection, ConnectionOptions, Instance, default_instance_directory};
use std::ffi::c_int;
use std::time::Duration;

extensible! {
    /// `unisono_options_t`.
    struct ConnectOptions {
        size: usize,
        pool_bytes: u64,
        timeout_ms: u64,
    }
}

/// Most bytes of a pool.
const POOL_BYTES_MAX: u64 = 1 << 40;

impl ConnectOptions {
    fn resolved(&self) -> Result<ConnectionOptions, Failure> {
        let mut options = match self.timeout_ms {
            0 => ConnectionOptions::from_environment()?,
            timeout_ms => ConnectionOptions {
                timeout: Duration::from_millis(timeout_ms),
                ..ConnectionOptions::default()
            },
        };
        if self.pool_bytes > POOL_BYTES_MAX {
            let cause = format!("has pool_bytes {}, more than 2^40", self.pool_bytes);
            return Err(Failure::argument("options", cause));
        }
        if self.pool_bytes > 0 {
            options.pool_bytes = self.pool_bytes;
        }
        Ok(options)
    }
}

exported! {
    /// Connects to all servers of an instance.
    fn unisono_connect(
        instance: Text,
        options: Options<ConnectOptions>,
        connection: Out<ConnectionHandle>,
    ) -> c_int {
        make(&connection, "connection", || {
            let directory = instance.optional("instance")?.map(Into::into);
            let options = options.read("options")?.resolved()?;
            let directory = directory.unwrap_or_else(default_instance_directory);
            Ok(Connection::open_with(&Instance::named(directory)?, options)?)
        })
    }

    /// Tells instances apart.
    fn unisono_instance_number(connection: ConnectionHandle) -> u64 {
        Ok(connection.get("connection")?.identity())
    }

    /// Frees a connection.
    fn unisono_disconnect(connection: ConnectionHandle) -> c_int {
        connection.take("connection").map(drop)
    }
}
