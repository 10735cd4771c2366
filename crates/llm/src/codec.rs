//! The codec of the protocol: that of prost, with small buffers.
//!
//! tonic allocates the buffers of a call when it begins and keeps them to its end. A worker waits for thousands of
//! answers at the same time, so 8 KiB for each, its default, would be an eighth of what a session may need.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// A buffer begins with this size, and grows by it.
const BUFFER_BYTES: usize = 1024;
/// Messages are collected up to this size before they are sent; as in tonic's default.
const YIELD_BYTES: usize = 32 * 1024;

/// Encodes `T` and decodes `U`.
#[derive(Debug)]
pub struct SmallBuffers<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(settings())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::new(settings())
    }
}

fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
}
