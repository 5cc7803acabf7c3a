//! The record file of one repetition, which is a file on the disk or is in memory.

use std::io::{self, Read};

use bytes::Bytes;
use bytes::buf::Reader;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// A record file that can be read.
#[derive(Debug)]
pub enum PartFile<F> {
    /// A file on the disk.
    Open(F),
    /// All bytes of the file.
    Memory(Bytes),
}

/// Reads from a [`PartFile`].
#[derive(Debug)]
pub enum PartRead<R> {
    /// Reads from a file on the disk.
    Open(R),
    /// Reads from memory.
    Memory(Reader<Bytes>),
}

impl<F> From<Vec<u8>> for PartFile<F> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes.into())
    }
}

impl<F: Length> Length for PartFile<F> {
    fn len(&self) -> u64 {
        match self {
            Self::Open(file) => file.len(),
            Self::Memory(bytes) => Length::len(bytes),
        }
    }
}

impl<F: ChunkReader> ChunkReader for PartFile<F> {
    type T = PartRead<F::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(match self {
            Self::Open(file) => PartRead::Open(file.get_read(start)?),
            Self::Memory(bytes) => PartRead::Memory(bytes.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match self {
            Self::Open(file) => file.get_bytes(start, length),
            Self::Memory(bytes) => bytes.get_bytes(start, length),
        }
    }
}

impl<R: Read> Read for PartRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Open(file) => file.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}
