// Makes the messages that carry assignments to agents: with the specs, which the core does not
// keep, and none larger than an agent may receive. Owner: the effects thread, except for the static
// methods.
#ifndef MUSTER_BROKER_ENGINE_ASSIGNMENT_MESSAGES_H_
#define MUSTER_BROKER_ENGINE_ASSIGNMENT_MESSAGES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "broker/core/core.h"
#include "broker/engine/spec_cache.h"
#include "broker/store/store.h"

namespace muster::broker {

class AssignmentMessages {
 public:
  // Bounds of one message to an agent. gRPC's default limit for a received message is 4 MiB; a
  // single spec has up to 1 MiB.
  static constexpr int kMaxRunsPerMessage = 1000;
  static constexpr size_t kMaxBytesPerMessage = 3 << 20;

  AssignmentMessages();

  // Keeps the specs of jobs that have just been committed, most of which are assigned soon.
  void Remember(const core::Changes& committed);
  // Fills in the specs and users that are in memory. False: some are not in memory.
  bool FillFromMemory(std::vector<agent::v1::Assignment>& assignments);

  // Any thread may use it. Fills in what is still missing: spec, user and nodes to avoid. The
  // environment tells how the jobs ended that depends_on names. An error means that the store
  // cannot be read.
  static absl::Status FillFromStore(const store::Store& store,
                                    std::vector<agent::v1::Assignment>& assignments);
  // Any thread may use it. All assignments must be filled in.
  static std::vector<agent::v1::ConnectResponse> Pack(
      std::vector<agent::v1::Assignment> assignments);

 private:
  SpecCache specs_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_ASSIGNMENT_MESSAGES_H_
