// Turns runs into jobs of the remote broker, and those jobs into observations of runs. Pure; any
// thread.
#ifndef MUSTER_AGENTS_MUSTER_TRANSLATE_H_
#define MUSTER_AGENTS_MUSTER_TRANSLATE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agents/core/backend.h"
#include "agents/muster/remote.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::remote {

// These labels show at the remote broker to which run a job belongs. The first one finds it again.
inline constexpr std::string_view kRunLabel = "muster.run";          // the run key
inline constexpr std::string_view kClusterLabel = "muster.cluster";  // RemoteConfig::cluster
inline constexpr std::string_view kUserLabel = "muster.user";        // who submitted the job here

// A filter names at most this many jobs: their numbers stay far below the 4096 bytes that a filter
// may have.
inline constexpr size_t kMaxFilterJobs = 100;

// ---- there

// Returns an error that names the part of the spec that a remote broker cannot take, or OK.
absl::Status CheckSpec(const v1::JobSpec& spec);
// Returns the spec of the job there. `user` submitted it here; empty if not known.
v1::JobSpec SpecThere(const RemoteConfig& config, const v1::JobSpec& spec, const std::string& user);
// Returns the request that launches a run. A repeat is the same request, and so gets the same job.
v1::SubmitJobRequest RequestFor(const RemoteConfig& config, const agent::v1::Assignment& run);

// Returns a filter for the job of a run. `user` is the one that the remote broker knows this agent
// by: anybody there can give a job of their own the same labels.
std::string FilterOfRun(const std::string& cluster, const std::string& user,
                        const std::string& run_key);
// Returns a filter for the jobs of these numbers that are runs of the cluster. `ids` has at most
// kMaxFilterJobs.
std::string FilterOfJobs(const std::string& cluster, const std::vector<uint64_t>& ids);
// Returns a filter for all runs of the cluster.
std::string FilterOfCluster(const std::string& cluster);

// Returns "gpu/long" for pool "long" of the remote broker's cluster "gpu".
std::string PoolName(const std::string& cluster, const std::string& pool);
// Returns {"gpu", "long"}; the cluster is empty if the name has none.
std::pair<std::string, std::string> SplitPool(const std::string& name);

// ---- back

// Returns the number of the job by which the run is known there; 0 if there is none.
uint64_t JobIdOf(const std::string& external_id);
// Returns whether its command has ever begun, as far as the remote broker knows.
bool HasBegun(const v1::Job& job);
// Returns whether the job has ended, and its logs are whole there.
bool IsComplete(const v1::Job& job);
// Returns whether nobody there knows how its run ended.
bool IsLost(const v1::Job& job);

// Returns the observation of the run that its job, with the latest run there, gives.
agents::Observation ObservationOf(const agents::RunHandle& run, const v1::Job& job);
// Returns the same for a job that has ended and whose logs are not complete yet.
agents::Observation HeldBack(const agents::RunHandle& run, const v1::Job& job);

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_TRANSLATE_H_
