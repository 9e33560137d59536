// A job's files in a directory of this machine: a copy of its own for each run, so that no run
// disturbs another.
#ifndef MUSTER_AGENTS_FILES_LAY_OUT_H_
#define MUSTER_AGENTS_FILES_LAY_OUT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "agents/files/job_files.h"

namespace muster::uploads {

// Makes the directory, which must not be there, with the files in it, on disk when it returns OK.
// Links come last, so that nothing is ever written through one. After an error nothing is left.
// UNAVAILABLE: a cached file was damaged; fetch again. RESOURCE_EXHAUSTED: its disk has no room for
// them. CANCELLED: it `is_unwanted`, which is asked again and again.
absl::Status LayOut(const LocalFiles& files, FileCache* cache, const std::string& directory,
                    const std::function<bool()>& is_unwanted);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_LAY_OUT_H_
