// Writes a job's files as a tar archive: one stream, however many files there are.
//
// The form is GNU's, because it has long names and every tar of a Linux system or an image reads
// it. The same files give the same bytes, so that sending can go on where it has ended.
#ifndef MUSTER_AGENTS_FILES_TAR_STREAM_H_
#define MUSTER_AGENTS_FILES_TAR_STREAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "agents/files/job_files.h"

namespace muster::uploads {

// Returns the length of the archive.
uint64_t TarBytes(const v1::FileTree& tree);

// Writes directories and files first, then links, so that nothing is unpacked through one.
// UNAVAILABLE: a cached file was damaged; the sink must drop what it got.
absl::Status WriteTar(const LocalFiles& files, FileCache* cache, const ByteSink& sink);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_TAR_STREAM_H_
