// Keeps the last known resources of a host over SSH in a file of its own (hosts/<name> in the
// agent's state directory), so that an agent which cannot reach the host after a restart knows what
// runs may have there when it is back.
//
// The class has no state: every call looks at the disk. Errors name the path.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_RECORD_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_RECORD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/machines/host_config.h"
#include "agents/machines/machine.h"

namespace muster::machines {

class HostRecord {
 public:
  // The record of the host of that name, in the directory of all hosts.
  HostRecord(const std::string& directory, std::string name)
      : path_(directory + "/" + name), name_(std::move(name)) {}

  // Returns the resources of the host: its operator's present values, else its own last ones.
  // Nothing if one of them is not known, as when the record is of another machine of that name. It
  // returns an error if the record cannot be read, and the operator's word alone is not enough.
  absl::StatusOr<std::optional<Machine>> Recall(const HostConfig& config) const;
  // Writes the record if it has changed; it is on disk before the call returns.
  absl::Status Write(const HostConfig& config, const Machine& machine) const;

 private:
  std::string path_;
  std::string name_;
};

// Removes the records of hosts that are not among these, and what is left of unfinished ones.
void RemoveOtherHostRecords(const std::string& directory, const std::vector<std::string>& names);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_RECORD_H_
