// Handles the files of a run's directory for agent and supervisor alike. Errors are errno values
// (0: none). Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_RUN_FILES_H_
#define MUSTER_AGENTS_MACHINES_RUN_FILES_H_

#include <cstdint>
#include <string>

#include "agents/machines/run_records.h"

namespace muster::machines {

// The variables of the machine that a run has.
inline constexpr const char* kBaseVariables[] = {"HOME",  "LANG",   "LC_ALL", "LOGNAME", "PATH",
                                                 "SHELL", "TMPDIR", "TZ",     "USER"};

// The beginning of the names of the files that have secrets.
inline constexpr char kSecretFilePrefix[] = "secret.";
void RemoveSecretFiles(const std::string& directory);

// Returns whether anything has the name: a link counts, wherever it leads.
bool IsThere(const std::string& path);

// Takes the claim of a run that is not to start any more: it is canceled, since `now_us`. EEXIST:
// somebody has the claim.
int CloseWithoutStart(const std::string& directory, int64_t now_us);

// Removes the files that only Muster needs, except those about containers that may still be there
// (container_removal.h), with records that were never finished; and the copies of the job's files
// that no run has had: parts of one, and the work/ of a run that was closed without a start. Each
// other work/ is the user's.
void RemoveRunBookkeeping(const std::string& directory);
// The rest, except for what the user has in it, and the claim as long as there is any.
void RemoveRunLogs(const std::string& directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_FILES_H_
