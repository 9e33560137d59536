// The reasons for which the broker's core refuses a request or closes the connection of an agent,
// as facts. The status that a client or an agent reads is made of them here alone: its code, its
// reason, its details and its sentence.
//
// Pure; any thread.
#ifndef MUSTER_PROTO_CONTRACT_REFUSALS_H_
#define MUSTER_PROTO_CONTRACT_REFUSALS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "contract/quota_reached.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// A refusal names at most this many jobs, and counts the others.
inline constexpr size_t kMaxRefusedJobs = 10;

namespace refused {

// The clusters of the broker, in the order of their names.
struct Clusters {
  std::vector<std::string> named;  // the first kMaxNamedClusters (contract/sentences.h)
  size_t count = 0;                // of all
};

// ---- cancel, hold, release, update

enum class Wish { kCancel, kHold, kRelease, kMove };
struct UnknownJob {
  uint64_t job = 0;
  Wish wish = Wish::kCancel;
};
// Jobs that are to be held, and do not wait.
struct NotWaiting {
  struct Job {
    uint64_t id = 0;
    std::optional<v1::JobState> state = {};  // nothing: it has ended
    bool is_canceling = false;
  };
  std::vector<Job> jobs;  // the first kMaxRefusedJobs
  size_t count = 0;       // of all
  size_t asked = 0;       // jobs of the request
};
struct JobChanged {
  uint64_t job = 0;
};

// ---- submit

struct RequestIdReused {
  std::string request_id;
  std::string project;
  uint64_t job = 0;  // 0: the earlier request is one of the same call
};
struct RerunIdReused {
  std::string request_id;
  uint64_t job = 0;  // the first of that rerun
};
struct UnknownCluster {
  std::string cluster;
  Clusters known;
};
struct NeverPlaced {
  v1::StateReason lacks;            // of the clusters that could be asked for; empty: there is none
  std::string why_slurm;            // see WhySlurmOnly
  bool has_named_clusters = false;  // by placement.clusters
};
// A job that a new one depends on has ended since its end was looked for.
struct DependencyEnded {
  uint64_t job = 0;
};
struct QueueFull {
  uint64_t queued = 0;
  uint64_t max = 0;
};
struct UserQueueFull {
  std::string user;
  uint64_t queued = 0;  // jobs of the user
  uint64_t asked = 0;   // jobs of the request
  uint64_t max = 0;
};
struct RequestMemoryFull {
  uint64_t remembered = 0;
  uint64_t max = 0;
};

// ---- clusters that are to be forgotten, cordoned or uncordoned

struct NoSuchCluster {
  std::string cluster;
  Clusters known;
  std::string wish = "forget";
};
struct ClusterConnected {
  std::string cluster;
};
struct ClusterHasRuns {
  std::string cluster;
  uint32_t active = 0;
};

// ---- agents

struct OtherProtocol {
  uint32_t of_agent = 0;
  uint32_t of_broker = 0;
};
// The agent has seen a later start of this broker.
struct LaterEpoch {
  uint64_t of_agent = 0;
  uint64_t of_broker = 0;
};
// The agent has a run of a job whose number the broker has not given out.
struct LaterRun {
  std::string run_key;
};
struct OtherInstance {
  std::string of_agent;
  std::string of_broker;
};
struct TooManyClusters {
  size_t known = 0;
  size_t leaving = 0;  // that are being forgotten
  size_t max = 0;
  size_t max_with_leaving = 0;
};
// The name belongs to another cluster.
struct OtherCluster {
  struct Identity {
    v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;
    std::string identity;
  };
  std::string cluster;
  Identity owner;
  Identity agent;
};
// A connected agent speaks for another cluster than at first.
struct ClusterExchanged {
  std::string cluster;
  std::string identity;
  std::string now;
};
// The cluster is another broker, which has this one behind it.
struct BrokerLoop {
  std::string cluster;
  std::string instance;             // of this broker
  std::vector<std::string> behind;  // the instances behind the cluster, the nearest first
};
struct NameConnected {
  std::string cluster;
};
struct AgentSilent {
  absl::Duration patience;
};
struct TooManyEvents {
  size_t events = 0;
  size_t max = 0;
};
struct EventGap {
  uint64_t event = 0;
  uint64_t after = 0;
};

}  // namespace refused

struct Refusal {
  // The status is an error of the input itself, or of the rules of a message.
  std::variant<absl::Status, refused::UnknownJob, refused::NotWaiting, refused::JobChanged,
               refused::RequestIdReused, refused::RerunIdReused, refused::UnknownCluster,
               refused::NeverPlaced, refused::DependencyEnded, refused::QueueFull,
               refused::UserQueueFull, QuotaReached, refused::RequestMemoryFull,
               refused::NoSuchCluster, refused::ClusterConnected, refused::ClusterHasRuns,
               refused::OtherProtocol, refused::LaterEpoch, refused::LaterRun,
               refused::OtherInstance, refused::TooManyClusters, refused::OtherCluster,
               refused::ClusterExchanged, refused::BrokerLoop, refused::NameConnected,
               refused::AgentSilent, refused::TooManyEvents, refused::EventGap>
      why;
  // The place of the refused request among several of one call, from 0 on.
  std::optional<size_t> request = {};
};

// OK if nothing was refused.
absl::Status ToStatus(const std::optional<Refusal>& refusal);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_REFUSALS_H_
