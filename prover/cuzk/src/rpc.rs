//! The service's messages, client and server, generated from `proto/cuzk/v1/proving.proto`.

#![allow(missing_docs, reason = "the .proto documents its messages")]

tonic::include_proto!("cuzk.v1");

/// The `.proto` in compiled form, for reflection.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cuzk.v1.bin"));
