// Lays a job's files out in a directory of this machine. Each run has its own copy, so that no run
// disturbs another.
#ifndef MUSTER_AGENTS_FILES_LAY_OUT_H_
#define MUSTER_AGENTS_FILES_LAY_OUT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "agents/files/job_files.h"

namespace muster::uploads {

// Makes the directory, which must not exist, with the files in it; all of it is on disk when it
// returns OK. Makes links last, so that nothing is ever written through one. After an error nothing
// is left. UNAVAILABLE: a cached file was damaged; fetch again. RESOURCE_EXHAUSTED: the disk has no
// room for them. CANCELLED: `is_unwanted`, which it calls again and again, returned true.
absl::Status LayOut(const LocalFiles& files, FileCache* cache, const std::string& directory,
                    const std::function<bool()>& is_unwanted);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_LAY_OUT_H_
