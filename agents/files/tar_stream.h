// A job's files as a tar archive: one stream, however many files there are.
//
// Writes GNU's form of tar, for its long names, which every tar reads that a Linux system or an
// image has. The same files give the same bytes, so that sending can go on where it has ended.
#ifndef MUSTER_AGENTS_FILES_TAR_STREAM_H_
#define MUSTER_AGENTS_FILES_TAR_STREAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "agents/files/job_files.h"

namespace muster::uploads {

// How long the archive is.
uint64_t TarBytes(const v1::FileTree& tree);

// Directories and files first, then links, so that nothing is unpacked through one. UNAVAILABLE: a
// cached file was damaged; what the sink has had is worth nothing.
absl::Status WriteTar(const LocalFiles& files, FileCache* cache, const ByteSink& sink);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_TAR_STREAM_H_
