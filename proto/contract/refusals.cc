#include "contract/refusals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string_view>
#include <utility>

#include "contract/characters.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/lacks.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::contract {
namespace refused {
namespace {

// A full queue drains as fast as jobs end, not as fast as requests come.
constexpr absl::Duration kRetryWhenFull = absl::Seconds(10);
constexpr absl::Duration kRetryChangedJob = absl::Milliseconds(100);

std::string_view Done(Wish wish) {
  switch (wish) {
    case Wish::kCancel:
      return "canceled";
    case Wish::kHold:
      return "held";
    case Wish::kMove:
      return "moved";
    case Wish::kRelease:
      break;
  }
  return "released";
}

std::string Known(const Clusters& clusters) {
  if (clusters.count == 0) return "no cluster has connected to this broker yet";
  std::vector<std::string> named;
  for (const std::string& name : clusters.named) named.push_back(fmt::format("\"{}\"", name));
  return "the known ones are " + Listed(named, clusters.count);
}

absl::Status Of(const absl::Status& status) { return status; }

// ---- cancel, hold, release, update

absl::Status Of(const UnknownJob& fact) {
  return Error(absl::StatusCode::kNotFound, "UNKNOWN_JOB",
               fmt::format("there is no job {}; nothing was {}", fact.job, Done(fact.wish)),
               {{"job_id", fmt::format("{}", fact.job)}});
}

std::string_view WhyNotHeld(const NotWaiting::Job& job) {
  if (!job.state) return "has ended";
  if (job.is_canceling) return "is being canceled";
  if (*job.state != v1::JOB_STATE_PENDING) return Name(*job.state);
  return "a node has it, or it is ending; to keep it back, cancel it and submit it again as a job "
         "that is held";
}

absl::Status Of(const NotWaiting& fact) {
  std::vector<std::string> jobs;  // with why
  std::string numbers;
  for (const NotWaiting::Job& job : fact.jobs) {
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", job.id);
    jobs.push_back(fmt::format("{} ({})", job.id, WhyNotHeld(job)));
  }
  return Error(
      absl::StatusCode::kFailedPrecondition, "NOT_WAITING",
      fmt::format("only jobs that wait can be held, and these do not: {}; nothing was held{}",
                  Listed(jobs, fact.count),
                  fact.count < fact.asked ? ", hold the others without them" : ""),
      {{"jobs", numbers}, {"count", fmt::format("{}", fact.count)}});
}

absl::Status Of(const JobChanged& fact) {
  return RetryableError(
      absl::StatusCode::kAborted, "JOB_CHANGED",
      fmt::format("job {} changed while it was to be updated, and was left as it is; try again",
                  fact.job),
      kRetryChangedJob);
}

// ---- submit

absl::Status Of(const RequestIdReused& fact) {
  return Error(
      absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
      fmt::format("request_id \"{}\" of project \"{}\" was used with another spec{}; a repeat must "
                  "carry the same spec, another job another request_id",
                  fact.request_id, fact.project,
                  fact.job != 0 ? fmt::format(" for job {}", fact.job) : ""),
      {{"request_id", fact.request_id}});
}

absl::Status Of(const RerunIdReused& fact) {
  return Error(
      absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
      fmt::format("request_id {} was used to run other jobs again, from job {} on; a repeat must "
                  "name the same jobs or filter, another rerun another request_id",
                  Quoted(fact.request_id), fact.job),
      {{"request_id", fact.request_id}});
}

absl::Status Of(const UnknownCluster& fact) {
  return Error(absl::StatusCode::kNotFound, "UNKNOWN_CLUSTER",
               fmt::format("the job names cluster \"{}\", and no cluster of that name has ever "
                           "connected; {}",
                           fact.cluster, Known(fact.known)),
               {{"cluster", fact.cluster}, {"field", "spec.placement.clusters"}});
}

absl::Status Of(const NeverPlaced& fact) {
  absl::Status status =
      Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED",
            CannotBePlaced(NotPlacedInFull(fact.lacks), fact.why_slurm, fact.has_named_clusters));
  if (fact.lacks.clusters_size() > 0) AttachReason(fact.lacks, &status);
  return status;
}

absl::Status Of(const DependencyEnded& fact) {
  absl::Status status = RetryableError(
      absl::StatusCode::kAborted, "DEPENDENCY_ENDED",
      fmt::format(
          "job {}, which depends_on names, ended while the job was to be submitted; nothing "
          "was submitted, try again",
          fact.job),
      kRetryChangedJob);
  SetMetadata({{"job_id", fmt::format("{}", fact.job)}}, &status);
  return status;
}

absl::Status Of(const QueueFull& fact) {
  return RetryableError(absl::StatusCode::kResourceExhausted, "TOO_MANY_QUEUED_JOBS",
                        fmt::format("{} jobs are queued, and the broker keeps at most {} "
                                    "(max_queued_jobs); try again later",
                                    fact.queued, fact.max),
                        kRetryWhenFull);
}

absl::Status Of(const UserQueueFull& fact) {
  return WithQuota(
      fact.user,
      RetryableError(absl::StatusCode::kResourceExhausted, "TOO_MANY_QUEUED_JOBS_OF_USER",
                     fmt::format("you have {} queued jobs and submit {} more, and the broker keeps "
                                 "at most {} of one user (max_queued_jobs_per_user); submit more "
                                 "when some have started",
                                 fact.queued, fact.asked, fact.max),
                     kRetryWhenFull));
}

absl::Status Of(const QuotaReached& fact) { return QuotaStatus(fact); }

absl::Status Of(const RequestMemoryFull& fact) {
  return RetryableError(absl::StatusCode::kResourceExhausted, "TOO_MANY_REQUEST_IDS",
                        fmt::format("{} request ids are remembered, and the broker keeps at most "
                                    "{} (max_remembered_requests); try again later",
                                    fact.remembered, fact.max),
                        kRetryWhenFull);
}

// ---- clusters that are to be forgotten

absl::Status Of(const NoSuchCluster& fact) {
  return Error(absl::StatusCode::kNotFound, "NO_SUCH_CLUSTER",
               fmt::format("there is no cluster \"{}\" to {}; {}", fact.cluster, fact.wish,
                           Known(fact.known)),
               {{"cluster", fact.cluster}});
}

absl::Status Of(const ClusterConnected& fact) {
  return Error(absl::StatusCode::kFailedPrecondition, "CLUSTER_CONNECTED",
               fmt::format("the agent of cluster \"{}\" is connected; stop it first, for it would "
                           "bring the cluster back",
                           fact.cluster),
               {{"cluster", fact.cluster}});
}

absl::Status Of(const ClusterHasRuns& fact) {
  return Error(
      absl::StatusCode::kFailedPrecondition, "CLUSTER_HAS_RUNS",
      fmt::format("cluster \"{}\" has {} that {} not ended; start its agent again, and "
                  "let the jobs end or cancel them",
                  fact.cluster, Counted(fact.active, "run"), WordFor(fact.active, "has", "have")),
      {{"cluster", fact.cluster}, {"active_runs", fmt::format("{}", fact.active)}});
}

// ---- agents

absl::Status Of(const OtherProtocol& fact) {
  return Error(absl::StatusCode::kFailedPrecondition, "PROTOCOL_VERSION",
               fmt::format("the agent speaks version {} of the agent protocol, this broker version "
                           "{}; install the same release of both",
                           fact.of_agent, fact.of_broker));
}

absl::Status Of(const LaterEpoch& fact) {
  return Error(
      absl::StatusCode::kFailedPrecondition, "BROKER_EPOCH",
      fmt::format("the agent has seen epoch {} of this broker, whose epoch is now {}: the broker's "
                  "database is an old copy, or another broker runs on it",
                  fact.of_agent, fact.of_broker));
}

absl::Status Of(const LaterRun& fact) {
  return Error(absl::StatusCode::kFailedPrecondition, "BROKER_EPOCH",
               fmt::format("the agent has run {}, and this broker has given no job that number "
                           "yet: the broker's database is an old copy",
                           fact.run_key));
}

absl::Status Of(const OtherInstance& fact) {
  return Error(absl::StatusCode::kFailedPrecondition, "WRONG_INSTANCE",
               fmt::format("the agent's journal belongs to broker \"{}\", this is \"{}\"; connect "
                           "it to its own broker, or give it a new state directory",
                           fact.of_agent, fact.of_broker));
}

absl::Status Of(const TooManyClusters& fact) {
  return Error(absl::StatusCode::kResourceExhausted, "TOO_MANY_CLUSTERS",
               fmt::format("this broker has {} clusters and is forgetting {}; it takes {}, {} with "
                           "those that it is forgetting",
                           fact.known, fact.leaving, fact.max, fact.max_with_leaving));
}

absl::Status Of(const OtherCluster& fact) {
  return Error(absl::StatusCode::kFailedPrecondition, "WRONG_CLUSTER",
               fmt::format("the name \"{}\" belongs to the {} cluster \"{}\", the agent speaks for "
                           "the {} cluster \"{}\"; give one of them another name",
                           fact.cluster, v1::ClusterKind_Name(fact.owner.kind), fact.owner.identity,
                           v1::ClusterKind_Name(fact.agent.kind), fact.agent.identity));
}

absl::Status Of(const ClusterExchanged& fact) {
  return Error(absl::StatusCode::kFailedPrecondition, "WRONG_CLUSTER",
               fmt::format("the agent now speaks for \"{}\", the name \"{}\" belongs to \"{}\"",
                           fact.now, fact.cluster, fact.identity));
}

absl::Status Of(const BrokerLoop& fact) {
  return Error(
      absl::StatusCode::kFailedPrecondition, "BROKER_LOOP",
      fmt::format(
          "cluster \"{}\" would send jobs round in a circle: this broker, {}, is among the "
          "brokers behind it ({}); let only one of two brokers be a cluster of the other: "
          "stop this agent, or the other one and `muster clusters forget` its cluster there",
          fact.cluster, fact.instance, fmt::join(fact.behind, ", ")));
}

absl::Status Of(const NameConnected& fact) {
  return Error(
      absl::StatusCode::kAlreadyExists, "NAME_CONNECTED",
      fmt::format("another agent is connected as \"{}\"; stop it, or give this one another name",
                  fact.cluster));
}

absl::Status Of(const AgentSilent& fact) {
  return Error(
      absl::StatusCode::kDeadlineExceeded, "SILENT",
      fmt::format("nothing was heard from the agent for {}", absl::FormatDuration(fact.patience)));
}

absl::Status Of(const TooManyEvents& fact) {
  return BadField("events",
                  fmt::format("has {} events, at most {} are taken", fact.events, fact.max));
}

absl::Status Of(const EventGap& fact) {
  return Error(absl::StatusCode::kAborted, "EVENT_GAP",
               fmt::format("event {} came after event {}; connect again", fact.event, fact.after));
}

}  // namespace
}  // namespace refused

absl::Status ToStatus(const std::optional<Refusal>& refusal) {
  if (!refusal) return absl::OkStatus();
  absl::Status status = std::visit([](const auto& why) { return refused::Of(why); }, refusal->why);
  if (!refusal->request) return status;
  // The details say which request it is; the message is the same as for that request alone.
  const auto info = GetErrorInfo(status);
  if (!info) return status;
  std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
  metadata["request"] = fmt::format("{}", *refusal->request);
  SetMetadata(std::move(metadata), &status);
  return status;
}

}  // namespace muster::contract
