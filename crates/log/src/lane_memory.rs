//! Memory of lanes: without a name, sealed, and mapped so that each side can write its own and nothing else.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

use crate::lanes::{BYTES, LanePair};
use crate::mapping::{Access, allocate};
use crate::region::Region;

impl LanePair {
    /// Creates both lanes, and the descriptors with which the other side joins: of its own memory, and of ours.
    pub fn create() -> io::Result<(Self, [OwnedFd; 2])> {
        let sealed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        let (peer, peer_fd) = memory("tickpath-requests", Access::Read, sealed)?;
        // Our own mapping can be written because it is older than this seal; no later mapping can be.
        let (own, own_fd) = memory("tickpath-reports", Access::Write, sealed | SealFlags::FUTURE_WRITE)?;
        Ok((Self::new(own, peer), [peer_fd, own_fd]))
    }

    /// Joins the lanes: builds the other side's end.
    pub fn join([own, peer]: [OwnedFd; 2]) -> io::Result<Self> {
        let map = |memory: OwnedFd, access| {
            if !fcntl_get_seals(memory.as_fd())?.contains(SealFlags::SHRINK | SealFlags::SEAL) {
                return Err(io::Error::other("the memory of a lane is not sealed"));
            }
            let region = Region::map(&File::from(memory), 0, BYTES, access)?;
            region.populate();
            Ok(region)
        };
        Ok(Self::new(map(own, Access::Write)?, map(peer, Access::Read)?))
    }
}

/// Creates the memory of a lane, sealed once it is mapped here.
fn memory(name: &str, access: Access, seals: SealFlags) -> io::Result<(Region, OwnedFd)> {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    allocate(&file, 0, BYTES as u64)?;
    let region = Region::map(&file, 0, BYTES, access)?;
    region.populate();
    fcntl_add_seals(&file, seals)?;
    Ok((region, file.into()))
}
