// Makes the backend of a cluster that is another broker: its runs are jobs there. README.md
// explains how the two stay consistent.
#ifndef MUSTER_AGENTS_MUSTER_REMOTE_H_
#define MUSTER_AGENTS_MUSTER_REMOTE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/core/run_files.h"

namespace muster::uploads {
class JobFiles;
}  // namespace muster::uploads

namespace muster::remote {

struct RemoteConfig {
  std::string cluster = {};     // the name that this broker has there: the agent's `cluster`
  std::string address = {};     // of the remote broker, see rpc::ParseAddress; required
  std::string token_file = {};  // empty: the Unix user of the agent speaks there
  std::string ca_file = {};     // of the CAs of a broker over TLS; empty: none
  std::string project = {};     // that pays there; empty: the job's own
  std::vector<std::string> clusters = {};  // the only ones that are used there; empty: all
  // Fetches the files that jobs bring along. Null: jobs bring none.
  uploads::JobFiles* files = nullptr;
  // A stream of changes lasts this long, and the next one goes on where it ended.
  absl::Duration feed_length = absl::Minutes(10);
};

// Does not ask the remote broker; Probe does. Returns INVALID_ARGUMENT if a setting is wrong, and
// NOT_FOUND or the like if a file cannot be read.
absl::StatusOr<std::unique_ptr<agents::Backend>> CreateRemoteBackend(const RemoteConfig& config);

// Passes on the files of a run as the remote broker sends them.
agents::RelayRunFiles RelayFilesOf(const RemoteConfig& config);

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_REMOTE_H_
