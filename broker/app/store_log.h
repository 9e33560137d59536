// Takes the log bytes that one stream of an agent brings, and puts them into the archive.
#ifndef MUSTER_BROKER_APP_STORE_LOG_H_
#define MUSTER_BROKER_APP_STORE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/services.h"
#include "contract/run_key.h"
#include "muster/agent/v1/log_link.pb.h"

namespace muster::broker {

// One for each stream. Use it on one thread at a time; calls wait for the disk at the end of a log.
class StoreLog {
 public:
  // The most bytes of one chunk, as the protocol states.
  static constexpr size_t kMaxChunkBytes = 64 << 10;
  // The most runs that one stream remembers; others are looked up again.
  static constexpr size_t kMaxKnownRuns = 10'000;

  explicit StoreLog(const Services& services) : services_(services) {}

  // Takes the next message, and returns the answer to a chunk. An error ends the stream: its first
  // message must be the hello of the cluster's connected agent, and each chunk must be valid.
  absl::StatusOr<std::optional<agent::v1::PushResponse>> Take(
      const agent::v1::PushRequest& request);

  // Empty before the hello.
  const std::string& cluster() const { return cluster_; }

 private:
  // The facts about a run of this cluster that its logs need.
  struct Known {
    bool accepted = false;
    uint32_t ranks = 0;
    contract::RunKey key;
  };

  absl::Status Greet(const agent::v1::LogHello& hello);
  absl::Status CheckAgent() const;
  absl::StatusOr<agent::v1::PushResponse> Append(const agent::v1::LogChunk& chunk);
  // Finds out whether the run is one of this cluster's.
  absl::StatusOr<Known> Find(const std::string& run_key);

  const Services services_;
  std::string cluster_;
  std::string journal_id_;
  absl::flat_hash_map<std::string, Known> known_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_STORE_LOG_H_
