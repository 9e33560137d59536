// The messages that carry assignments to agents: with the specs, which the core does not keep, and
// none larger than an agent may receive. Owner: the effects thread.
#ifndef MUSTER_BROKER_ENGINE_ASSIGNMENT_MESSAGES_H_
#define MUSTER_BROKER_ENGINE_ASSIGNMENT_MESSAGES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "broker/engine/spec_cache.h"
#include "broker/store/store.h"

namespace muster::broker {

class AssignmentMessages {
 public:
  // What one message to an agent may hold. gRPC's default limit for a received message is 4 MiB; a
  // single spec has up to 1 MiB.
  static constexpr int kMaxRunsPerMessage = 1000;
  static constexpr size_t kMaxBytesPerMessage = 3 << 20;

  explicit AssignmentMessages(store::Store* store);

  // Takes the specs of jobs that have just been committed, most of which are assigned soon.
  void Remember(core::Changes& committed);
  // Fills in spec, user and nodes to keep away from. An error: the store cannot be read.
  absl::StatusOr<std::vector<agent::v1::ConnectResponse>> Make(
      std::vector<agent::v1::Assignment> assignments);

 private:
  absl::Status AddSpecs(std::vector<agent::v1::Assignment>& assignments);

  store::Store* const store_;
  SpecCache specs_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_ASSIGNMENT_MESSAGES_H_
