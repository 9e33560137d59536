// Submits jobs that bring files along: all of the files must be here before such a job is accepted.
#ifndef MUSTER_BROKER_APP_SUBMIT_FILES_H_
#define MUSTER_BROKER_APP_SUBMIT_FILES_H_

#include <cstddef>

#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/core/core.h"
#include "broker/engine/effects.h"

namespace muster::broker {

// Different trees in one submit: as many as one job may name. A look at a tree may take 0.2 s.
inline constexpr size_t kMaxTreesPerSubmit = 64;

// Submits as Engine::Submit does. Errors are also FAILED_PRECONDITION, FILES_MISSING, and
// INVALID_ARGUMENT for jobs with more than kMaxTreesPerSubmit trees. Jobs without uploads pass at
// once. For other jobs the file workers look first which files are here, and the core decides: a
// repeat of an accepted request needs no files, and nobody is told to upload files of a job that no
// cluster would take. Files that the principal may not know of are missing (file_viewer.h), except
// for a rerun, whose source the principal can read. Once the jobs of
// a submit are accepted, their files become those of their project, before the answer; if one has
// gone since, the answer is FILES_MISSING, and a repeat with the same request id is none too many.
// A submit that only validates needs no files: a client may ask before it sends
// them. A job whose pool takes no jobs at the moment, or whose clusters' agents are not connected,
// is accepted with a warning. Does not block.
void SubmitWithFiles(const Principal& principal, const Services& services, core::Submit submit,
                     SubmitDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SUBMIT_FILES_H_
