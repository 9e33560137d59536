// Reads the files of runs on a host that is reached by commands alone, over SSH.
#ifndef MUSTER_AGENTS_CORE_HOST_RUN_FILES_H_
#define MUSTER_AGENTS_CORE_HOST_RUN_FILES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "agents/core/run_files.h"
#include "agents/hosts/host.h"

namespace muster::agents {

// One answer of the host takes at most this long, a connection to it included. Together with the
// time for the kill of a command that is over its time, it is less than the broker's wait for the
// next piece, so that people hear which host is silent.
inline constexpr absl::Duration kHostFilesPatience = absl::Seconds(30);

// Bytes that one command reads ahead. A command costs the host a dozen processes, so it is quicker
// with more at a time; but a slow line must bring it within the patience.
inline constexpr size_t kMinReadAheadBytes = 256 << 10;
inline constexpr size_t kFirstReadAheadBytes = 1 << 20;
inline constexpr size_t kMaxReadAheadBytes = 8 << 20;

// The place of one run's files.
struct RunPlace {
  std::string host_title;  // for messages: "host gpu1"
  std::string root;        // absolute, and trusted
  std::string directory;   // relative to it; what is there belongs to the run
  std::string gone = {};   // why, if it is not there; empty: it may not be there yet
};

// Reads them by short scripts with the host's coreutils, the same on each host. A script goes to a
// directory first and then asks the kernel where it is; from there it opens a name that is no link.
// So a run that exchanges a directory for a link meanwhile gains nothing, as on this machine, not
// even a run in a container that sees less of the host than its agent's user does.
//
// While one piece of a large file is being sent, the next one is read; the object's end waits for
// it.
//
// A host that cannot answer is UNAVAILABLE, with its name. ABORTED: a file was replaced by another
// one while it was read.
std::unique_ptr<RunFiles> MakeHostRunFiles(std::unique_ptr<hosts::Host> host, RunPlace place);

// Returns the files of a results directory, whose parent is trusted.
std::unique_ptr<RunFiles> MakeHostResults(std::unique_ptr<hosts::Host> host, std::string host_title,
                                          const std::string& directory);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_HOST_RUN_FILES_H_
