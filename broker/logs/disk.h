// The archive's system calls on files, under names of its own. Private to the archive.
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

// The subject of error messages.
inline constexpr std::string_view kArchive = "the log archive";

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_DISK_H_
