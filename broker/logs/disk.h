// The archive's calls to the disk, under its own names. Private to the archive.
#ifndef MUSTER_BROKER_LOGS_DISK_H_
#define MUSTER_BROKER_LOGS_DISK_H_

#include <string_view>

#include "broker/disk/files.h"

namespace muster::logs {

using disk::FileDescriptor;
using disk::OpenFile;
using disk::ReadAt;
using disk::SyncData;
using disk::SyncDirectory;
using disk::SystemError;
using disk::WriteAt;

// The subject of errors.
inline constexpr std::string_view kArchive = "the log archive";

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_DISK_H_
