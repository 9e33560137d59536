#include "contract/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "contract/counted.h"
#include "contract/job_file_names.h"
#include "contract/reservations.h"
#include "contract/rfc3339.h"
#include "contract/states.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::contract {
namespace {

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  proto.set_seconds(absl::ToUnixSeconds(time));
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(proto.seconds()))));
  return proto;
}

std::string TimeOfDay(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%H:%M:%S UTC", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

// "Ask for less" as it stands within a sentence: "ask for less".
std::string Uncapital(std::string_view words) {
  std::string text(words);
  if (!text.empty()) text.front() = absl::ascii_tolower(static_cast<unsigned char>(text.front()));
  return text;
}

// Returns "Word: detail", or the one of the two that is not empty.
std::string Joined(const std::string& word, const std::string& detail) {
  if (word.empty() || detail.empty()) return word + detail;
  return fmt::format("{}: {}", word, detail);
}

// Returns the sentence of a code by itself; empty if the fields say it better.
std::string_view WordsOf(v1::StateReasonCode code) {
  switch (code) {
    case v1::STATE_REASON_CODE_NO_CLUSTERS:
      return "no cluster has connected to this broker yet";
    case v1::STATE_REASON_CODE_AGENT_DISCONNECTED:
      return "the job fits, but the cluster's agent is not connected";
    case v1::STATE_REASON_CODE_ABOUT_TO_BE_PLACED:
      return "the job fits and is about to be placed";
    case v1::STATE_REASON_CODE_CLUSTER_BUSY:
      return "the job fits, but other jobs have the room; it goes to the cluster that has room "
             "first";
    case v1::STATE_REASON_CODE_HELD:
      return "held: it starts once it is released";
    case v1::STATE_REASON_CODE_RELEASED:
      return "released; its cluster, as last seen, still holds it";
    case v1::STATE_REASON_CODE_WITHDRAWING:
      return "its run is being taken back from its cluster, so that the job can start elsewhere";
    case v1::STATE_REASON_CODE_LAUNCHING:
      return "it is being handed to its cluster";
    case v1::STATE_REASON_CODE_LAUNCH_DEFERRED:
      return "it has not been handed to its cluster yet; its agent tries again";
    case v1::STATE_REASON_CODE_LAUNCH_UNKNOWN:
      return "Muster is finding out whether its cluster has it";
    case v1::STATE_REASON_CODE_STARTING:
      return "its cluster is starting it";
    case v1::STATE_REASON_CODE_WAITS_IN_CLUSTER:
      return "waits for its turn to start";
    case v1::STATE_REASON_CODE_WAIT_UNEXPLAINED:
      return "it is queued on its cluster, which has given no reason yet";
    case v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES:
      return "waiting for free resources";
    case v1::STATE_REASON_CODE_WAITS_FOR_TURN:
      return "waiting behind earlier runs";
    case v1::STATE_REASON_CODE_LIMIT_REACHED:
      return "a limit of the cluster is reached";
    case v1::STATE_REASON_CODE_CANNOT_START:
      return "it cannot start as it is";
    case v1::STATE_REASON_CODE_DEPENDENCY:
      return "waiting for another job to end";
    case v1::STATE_REASON_CODE_BEGIN_TIME:
      return "its start time has not come";
    case v1::STATE_REASON_CODE_CANCELING:
      return "cancel requested";
    case v1::STATE_REASON_CODE_QUOTA_REACHED:
      return "a quota is reached";
    case v1::STATE_REASON_CODE_BRINGING_FILES:
      return "its files are being copied";
    case v1::STATE_REASON_CODE_PULLING_IMAGE:
      return "its image is being made ready";
    case v1::STATE_REASON_CODE_HOST_ANSWERS:
      return "its hosts answer again";
    case v1::STATE_REASON_CODE_CANCELED_BY_OTHERS:
      return "canceled on its cluster, not by Muster";
    case v1::STATE_REASON_CODE_HOLD_NOT_TOLD:
      return "the cluster could not be told to hold or to release the run";
    case v1::STATE_REASON_CODE_AGENT_RETRIES:
      return "its agent tries again";
    case v1::STATE_REASON_CODE_READING_END:
      return "it has ended; its outcome is being read";
    case v1::STATE_REASON_CODE_SCHEDULER_SILENT:
      return "its cluster does not answer its agent";
    case v1::STATE_REASON_CODE_CLUSTER_LOST:
      return "its cluster is lost, and another run follows";
    case v1::STATE_REASON_CODE_CANNOT_FENCE:
      return "the cluster cannot stop runs whose lease has ended";
    default:
      return "";
  }
}

std::string HostSilent(const v1::StateReason& reason) {
  const std::string since = reason.has_since() ? Rfc3339(reason.since()) : "the agent was started";
  return Joined(fmt::format("host {} has not answered since {}", reason.subject(), since),
                reason.detail());
}

std::string ClusterFull(const v1::StateReason& reason) {
  const std::string held =
      reason.held_runs() > 0 ? fmt::format(" ({} of them held)", reason.held_runs()) : "";
  return fmt::format("the job fits; the cluster has {} active runs of at most {}{}",
                     reason.active_runs(), reason.max_active_runs(), held);
}

std::string ClusterCordoned(const v1::StateReason& reason) {
  return Joined(fmt::format("the job fits; {} lets the cluster take no new runs", reason.subject()),
                reason.detail());
}

std::string QuotaReached(const v1::StateReason& reason) {
  return Joined(fmt::format("the quota of {} is reached", reason.subject()), reason.detail());
}

std::string PoolUnavailable(const v1::StateReason& reason) {
  const std::string& state = reason.scheduler_reason();
  return fmt::format("pool \"{}\" takes no jobs at the moment{}", reason.pool(),
                     state.empty() ? "" : ": it is " + state);
}

std::string CannotStart(const v1::StateReason& reason) {
  std::string words = Joined(reason.scheduler_reason(), reason.detail());
  if (words.empty()) words = WordsOf(reason.code());
  if (!reason.has_until()) return words;
  return fmt::format("{}; Muster gives the run up at {}", words, TimeOfDay(reason.until()));
}

std::string SentenceOf(const v1::StateReason& reason) {
  switch (reason.code()) {
    case v1::STATE_REASON_CODE_HOST_SILENT:
      return HostSilent(reason);
    case v1::STATE_REASON_CODE_CLUSTER_FULL:
      return ClusterFull(reason);
    case v1::STATE_REASON_CODE_CLUSTER_CORDONED:
      return ClusterCordoned(reason);
    case v1::STATE_REASON_CODE_QUOTA_REACHED:
      return QuotaReached(reason);
    case v1::STATE_REASON_CODE_POOL_UNAVAILABLE:
      return PoolUnavailable(reason);
    case v1::STATE_REASON_CODE_ROOM_RESERVED:
      return RoomReserved(reason);
    case v1::STATE_REASON_CODE_WITHDRAWING:
      if (!reason.subject().empty()) return Preempting(reason);
      break;
    case v1::STATE_REASON_CODE_CANNOT_START:
      return CannotStart(reason);
    case v1::STATE_REASON_CODE_JOB_DEPENDENCY:
      return Joined(fmt::format("waits for the end of job {}", reason.subject()), reason.detail());
    default:
      break;
  }
  std::string words = Joined(reason.scheduler_reason(), reason.detail());
  return words.empty() ? std::string(WordsOf(reason.code())) : words;
}

std::string RemedyOf(const v1::StateReason& reason) {
  switch (reason.code()) {
    case v1::STATE_REASON_CODE_NO_CLUSTERS:
      return "start an agent (muster-agent) for a cluster";
    case v1::STATE_REASON_CODE_AGENT_DISCONNECTED:
      return "start the cluster's agent (muster-agent), or tell its operator";
    case v1::STATE_REASON_CODE_POOL_UNAVAILABLE:
    case v1::STATE_REASON_CODE_SCHEDULER_SILENT:
      return fmt::format("muster clusters {} tells more", reason.cluster());
    case v1::STATE_REASON_CODE_HELD:
      return "muster release starts it";
    case v1::STATE_REASON_CODE_ROOM_RESERVED:
      return RoomReservedRemedy(reason);
    case v1::STATE_REASON_CODE_CLUSTER_CORDONED:
      return fmt::format("an operator ends it: muster clusters uncordon {}", reason.cluster());
    default:
      return "";
  }
}

// Says something else before the sentence.
v1::StateReason After(const std::string& words, v1::StateReason reason) {
  const std::string& message = reason.message();
  reason.set_message(message.empty() ? words : fmt::format("{}; {}", words, message));
  return reason;
}

// Describes, in general, the failure that a retry follows.
std::string_view Describe(v1::FailureClass failure_class) {
  switch (failure_class) {
    case v1::FAILURE_CLASS_INFRA:
      return "an infrastructure failure";
    case v1::FAILURE_CLASS_IMAGE:
      return "a failure of the image";
    case v1::FAILURE_CLASS_PREEMPTED:
      return "a preemption";
    case v1::FAILURE_CLASS_PROGRAM:
      return "a failure of the program";
    default:
      return "a failure that another run may not have";
  }
}

}  // namespace

v1::StateReason MakeReason(v1::StateReasonCode code, const ReasonParts& parts) {
  v1::StateReason reason;
  reason.set_code(code);
  reason.set_detail(parts.detail);
  reason.set_scheduler_reason(parts.scheduler_reason);
  reason.set_subject(parts.subject);
  reason.set_cluster(parts.cluster);
  reason.set_pool(parts.pool);
  reason.set_remedy(parts.remedy);
  if (parts.since) *reason.mutable_since() = ToProto(*parts.since);
  if (parts.until) *reason.mutable_until() = ToProto(*parts.until);
  PutSentence(&reason);
  return reason;
}

void PutSentence(v1::StateReason* reason) {
  reason->set_message(SentenceOf(*reason));
  if (reason->remedy().empty()) reason->set_remedy(RemedyOf(*reason));
}

void AddToSentence(const std::string& words, v1::StateReason* reason) {
  reason->set_message(fmt::format("{}; {}", reason->message(), words));
}

v1::StateReason WaitsForJob(const std::string& job, size_t others) {
  v1::StateReason reason = MakeReason(v1::STATE_REASON_CODE_JOB_DEPENDENCY, {.subject = job});
  if (others > 0)
    reason.set_message(fmt::format("{}, and of {}", reason.message(), Counted(others, "other")));
  return reason;
}

v1::StateReason RetryDelay(const v1::Run& last, const google::protobuf::Timestamp& retry_time) {
  const v1::Failure& failure = last.failure();
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_RETRY_DELAY);
  reason.set_detail(failure.message());
  if (last.has_end_time()) *reason.mutable_since() = last.end_time();
  *reason.mutable_until() = retry_time;
  reason.set_message(fmt::format("waits until {} for run {} after {}: {}", TimeOfDay(retry_time),
                                 last.number() + 1, Describe(failure.failure_class()),
                                 failure.message()));
  return reason;
}

v1::StateReason Unexplained(const v1::Run& run) {
  switch (run.state()) {
    case v1::RUN_STATE_ASSIGNED:
    case v1::RUN_STATE_LAUNCHING:
      return MakeReason(v1::STATE_REASON_CODE_LAUNCHING, {.cluster = run.cluster()});
    case v1::RUN_STATE_LAUNCH_UNKNOWN:
      return MakeReason(v1::STATE_REASON_CODE_LAUNCH_UNKNOWN, {.cluster = run.cluster()});
    case v1::RUN_STATE_PENDING:
      return MakeReason(v1::STATE_REASON_CODE_WAIT_UNEXPLAINED, {.cluster = run.cluster()});
    case v1::RUN_STATE_STARTING:
      return MakeReason(v1::STATE_REASON_CODE_STARTING, {.cluster = run.cluster()});
    default:
      return {};
  }
}

std::string CordonText(const v1::ClusterCordon& cordon) {
  return Joined(
      fmt::format("cordoned by {} since {}", cordon.user(), Rfc3339(cordon.create_time())),
      cordon.reason());
}

v1::StateReason Cordoned(const v1::ClusterCordon& cordon, const std::string& cluster) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_CLUSTER_CORDONED);
  reason.set_detail(cordon.reason());
  reason.set_subject(cordon.user());
  reason.set_cluster(cluster);
  *reason.mutable_since() = cordon.create_time();
  PutSentence(&reason);
  return reason;
}

v1::StateReason HoldAsked(const v1::StateReason& waits) { return After("asked to hold", waits); }

v1::StateReason CancelAsked(const v1::StateReason& waits) {
  if (waits.code() == v1::STATE_REASON_CODE_UNSPECIFIED)
    return MakeReason(v1::STATE_REASON_CODE_CANCELING);
  return After(std::string(WordsOf(v1::STATE_REASON_CODE_CANCELING)), waits);
}

v1::StateReason NoWord(const Silence& silence, const v1::Job& job) {
  v1::StateReason reason;
  reason.set_code(silence.is_agent_connected ? v1::STATE_REASON_CODE_SCHEDULER_SILENT
                                             : v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  reason.set_cluster(silence.cluster);
  if (silence.since) *reason.mutable_since() = ToProto(*silence.since);
  if (silence.is_agent_connected) reason.set_detail(silence.scheduler_error);
  const bool is_known = job.has_state_reason();
  if (is_known) *reason.mutable_last_known() = job.state_reason();
  reason.set_message(fmt::format(
      "no word from cluster \"{}\"{} ({}); last known: {}", silence.cluster,
      reason.has_since() ? " since " + Rfc3339(reason.since()) : "",
      silence.is_agent_connected ? Joined("it does not answer its agent", silence.scheduler_error)
                                 : "its agent is not connected",
      is_known ? job.state_reason().message() : std::string(Name(job.state()))));
  reason.set_remedy(RemedyOf(reason));
  return reason;
}

void SayAfterRuns(v1::Failure* failure) {
  if (failure->after_runs() == 0) return;
  failure->set_message(fmt::format("after {} runs: {}", failure->after_runs(), failure->message()));
}

void SayTimeLimit(const v1::JobSpec& spec, v1::Failure* failure) {
  if (failure->failure_class() != v1::FAILURE_CLASS_TIMEOUT || !spec.has_time_limit()) return;
  if (failure->message().empty()) return;
  failure->set_message(
      fmt::format("{} (the job's is {})", failure->message(),
                  contract::FormatDuration(absl::Seconds(spec.time_limit().seconds()))));
}

v1::StateReason NotPlaced(std::vector<v1::StateReason> clusters) {
  if (clusters.empty()) return {};
  v1::StateReason reason = clusters.front();
  reason.clear_start_estimate();  // each cluster has its own
  std::string text;
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (i < kMaxNamedClusters) {
      text += fmt::format("{}cluster \"{}\": {}", i > 0 ? "; " : "", clusters[i].cluster(),
                          clusters[i].message());
    }
    if (i < kMaxExplainedClusters) *reason.add_clusters() = std::move(clusters[i]);
  }
  if (clusters.size() > kMaxNamedClusters)
    text += fmt::format("; and {} more", clusters.size() - kMaxNamedClusters);
  if (clusters.size() > kMaxExplainedClusters)
    reason.set_unlisted_clusters(static_cast<uint32_t>(clusters.size() - kMaxExplainedClusters));
  reason.set_message(std::move(text));
  return reason;
}

std::string NotPlacedInFull(const v1::StateReason& not_placed) {
  std::string text;
  const size_t listed = static_cast<size_t>(not_placed.clusters_size());
  for (size_t i = 0; i < std::min(listed, kMaxNamedClusters); ++i) {
    const v1::StateReason& reason = not_placed.clusters(static_cast<int>(i));
    std::string_view advice = reason.remedy();
    if (advice.ends_with('.')) advice.remove_suffix(1);
    text += fmt::format("{}cluster \"{}\": {}{}{}", i > 0 ? "; " : "", reason.cluster(),
                        reason.message(), advice.empty() ? "" : "; ", Uncapital(advice));
  }
  const size_t others = listed + not_placed.unlisted_clusters();
  if (others > kMaxNamedClusters) text += fmt::format("; and {} more", others - kMaxNamedClusters);
  return text;
}

std::vector<std::string> BesidesTheFirst(const v1::StateReason& not_placed) {
  std::vector<std::string> lines;
  const size_t listed = static_cast<size_t>(not_placed.clusters_size());
  for (size_t i = 0; i < std::min(listed, kMaxExplainedClusters); ++i) {
    const v1::StateReason& reason = not_placed.clusters(static_cast<int>(i));
    const std::string remedy = reason.remedy() == not_placed.remedy() ? "" : reason.remedy();
    const std::string text = i < kMaxNamedClusters ? remedy : WithRemedy(reason.message(), remedy);
    if (!text.empty()) lines.push_back(fmt::format("cluster \"{}\": {}", reason.cluster(), text));
  }
  if (listed > kMaxNamedClusters && not_placed.unlisted_clusters() > 0)
    lines.push_back(fmt::format("and {} more", not_placed.unlisted_clusters()));
  return lines;
}

v1::Evidence RequestEvidence(const UserRequest& request) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_USER);
  evidence.set_requested_by(request.user);
  evidence.set_request_reason(request.reason);
  evidence.set_detail(fmt::format("{} by {}{}{}{}", request.verb, request.user, request.more,
                                  request.reason.empty() ? "" : ": ", request.reason));
  return evidence;
}

std::string WithSpecOf(uint64_t job) { return fmt::format(", with the spec of job {}", job); }

std::string AssignedTo(std::string_view cluster) {
  return fmt::format("assigned to cluster {}", cluster);
}

std::string HeldTooLate(const v1::Run& begun) {
  return fmt::format("the hold came too late: run {} had begun on cluster \"{}\"", begun.number(),
                     begun.cluster());
}

std::string WithdrawnTooLate(const v1::Run& begun) {
  return fmt::format("it is not moved: run {} had begun on cluster \"{}\"", begun.number(),
                     begun.cluster());
}

std::string Drained(const v1::ClusterCordon& cordon, std::string_view cluster) {
  return fmt::format("cluster \"{}\" is drained by {}{}{}", cluster, cordon.user(),
                     cordon.reason().empty() ? "" : ": ", cordon.reason());
}

std::string SoonerElsewhere(std::string_view cluster, absl::Duration since) {
  return fmt::format("cluster \"{}\" has had room for it for {} s", cluster,
                     absl::ToInt64Seconds(since));
}

std::string RunFollows(uint32_t number, uint32_t max_runs, absl::Time not_before,
                       const v1::Run& failed) {
  return fmt::format(
      "run {} of at most {} follows, not before {}, because run {} failed on cluster {} ({}): {}",
      number, max_runs, Rfc3339(ToProto(not_before)), failed.number(), failed.cluster(),
      Name(failed.failure().failure_class()), failed.failure().message());
}

std::string DependencyEnded(uint64_t job, v1::JobState end, v1::JobOutcome needed) {
  return fmt::format("not started: job {} is {}, and this one depends on its {}", job, Name(end),
                     needed == v1::JOB_OUTCOME_FAILED ? "failure" : "success");
}

v1::SubmitWarning MakeWarning(v1::SubmitWarningCode code, const v1::ClusterCheck& check) {
  v1::SubmitWarning warning;
  warning.set_code(code);
  warning.set_message(fmt::format("{} {}", JobFileName(check.subject()), check.seen()));
  warning.set_remedy(check.remedy());
  warning.set_subject(check.subject());
  return warning;
}

void SetCluster(const std::string& cluster, v1::SubmitWarning* warning) {
  warning->set_cluster(cluster);
  warning->set_message(fmt::format("on cluster {}: {}", cluster, warning->message()));
}

v1::SubmitWarning WaitsForPlace(uint64_t job, const v1::StateReason& reason) {
  v1::SubmitWarning warning;
  warning.set_code(v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
  warning.set_message(fmt::format("job {} waits: {}", job, reason.message()));
  warning.set_remedy(reason.remedy());
  warning.set_cluster(reason.cluster());
  warning.set_subject(reason.pool());
  if (reason.has_since()) *warning.mutable_since() = reason.since();
  return warning;
}

v1::SubmitWarning RunKeepsPriority(const v1::Job& job) {
  v1::SubmitWarning warning;
  warning.set_code(v1::SUBMIT_WARNING_CODE_RUN_KEEPS_PRIORITY);
  warning.set_message(
      fmt::format("the new priority of job {} does not move its present run: cluster \"{}\" has "
                  "that, with the priority that it was launched with",
                  job.id(), job.cluster()));
  if (job.state() == v1::JOB_STATE_PENDING) {
    warning.set_remedy(
        job.cluster_kind() == v1::CLUSTER_KIND_SLURM
            ? "Slurm's administrators can change the order of its queue"
            : "To move it, cancel the job and submit it again with the new priority");
  }
  warning.set_cluster(job.cluster());
  warning.set_subject("priority");
  return warning;
}

std::string WithRemedy(const std::string& message, const std::string& remedy) {
  if (message.empty() || remedy.empty()) return message + remedy;
  return fmt::format("{}{} {}", message, message.ends_with('.') ? "" : ".", remedy);
}

}  // namespace muster::contract
