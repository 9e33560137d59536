#include "agents/muster/translate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "agents/core/clean_text.h"
#include "agents/core/proto_time.h"
#include "contract/errors.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/validate.h"

namespace muster::remote {
namespace {

using agents::Observation;

constexpr size_t kMaxLabelBytes = 63;  // as JobSpec.labels says

absl::Time TimeOf(const google::protobuf::Timestamp& stamp) {
  return absl::FromUnixSeconds(stamp.seconds()) + absl::Nanoseconds(stamp.nanos());
}

// Adds the job's labels as far as there is room besides ours, which win.
void PutLabels(const std::vector<std::pair<std::string_view, std::string>>& ours,
               v1::JobSpec* spec) {
  auto& labels = *spec->mutable_labels();
  for (const auto& [key, value] : ours) labels.erase(std::string(key));
  while (labels.size() + ours.size() > contract::kMaxLabels) {
    // Maps have no order, and a repeat must be the same request.
    std::string last;
    for (const auto& [key, value] : labels) last = std::max(last, key);
    labels.erase(last);
  }
  for (const auto& [key, value] : ours) {
    if (!value.empty()) labels[std::string(key)] = value;
  }
}

// Removes control characters, and cuts at the end of a character.
std::string LabelText(const std::string& text) {
  std::string clean = text;
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return agents::CleanText(clean, kMaxLabelBytes);
}

// Returns the text as the value of a filter.
std::string FilterValue(std::string_view text) {
  std::string value = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') value += '\\';
    value += c;
  }
  return value + "\"";
}

// A run waits as the other broker says. Codes about the other broker's clusters and queue become
// codes of a cluster that has a queue.
v1::StateReasonCode CodeHere(v1::StateReasonCode code) {
  switch (code) {
    case v1::STATE_REASON_CODE_CLUSTER_FULL:
    case v1::STATE_REASON_CODE_CLUSTER_BUSY:
    case v1::STATE_REASON_CODE_CLUSTER_CORDONED:
    case v1::STATE_REASON_CODE_POOL_UNAVAILABLE:
    case v1::STATE_REASON_CODE_ROOM_RESERVED:
      return v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES;
    case v1::STATE_REASON_CODE_ABOUT_TO_BE_PLACED:
    case v1::STATE_REASON_CODE_WAITS_IN_CLUSTER:
    case v1::STATE_REASON_CODE_WAIT_UNEXPLAINED:
    case v1::STATE_REASON_CODE_LAUNCHING:
    case v1::STATE_REASON_CODE_LAUNCH_UNKNOWN:
    case v1::STATE_REASON_CODE_LAUNCH_DEFERRED:
    case v1::STATE_REASON_CODE_RETRY_DELAY:
    case v1::STATE_REASON_CODE_WITHDRAWING:
      return v1::STATE_REASON_CODE_WAITS_FOR_TURN;
    case v1::STATE_REASON_CODE_QUOTA_REACHED:
      return v1::STATE_REASON_CODE_LIMIT_REACHED;
    case v1::STATE_REASON_CODE_NO_CLUSTERS:
    case v1::STATE_REASON_CODE_DOES_NOT_FIT:
    case v1::STATE_REASON_CODE_CANNOT_FENCE:
      return v1::STATE_REASON_CODE_CANNOT_START;
    case v1::STATE_REASON_CODE_AGENT_DISCONNECTED:
    case v1::STATE_REASON_CODE_SCHEDULER_SILENT:
    case v1::STATE_REASON_CODE_CLUSTER_LOST:
    case v1::STATE_REASON_CODE_JOB_DEPENDENCY:
    case v1::STATE_REASON_CODE_HOST_SILENT:
    case v1::STATE_REASON_CODE_CANCELING:
      return v1::STATE_REASON_CODE_OTHER;
    default:
      return code;
  }
}

v1::StateReason ReasonHere(const v1::StateReason& there) {
  if (there.code() == v1::STATE_REASON_CODE_UNSPECIFIED) return {};
  if (there.code() == v1::STATE_REASON_CODE_HELD) return contract::MakeReason(there.code());
  contract::ReasonParts parts = {.detail = there.message(), .subject = there.subject()};
  // The remedies of that queue are for its own operators, and not for users of this broker.
  if (CodeHere(there.code()) == v1::STATE_REASON_CODE_CANNOT_START) parts.remedy = there.remedy();
  if (there.has_since()) parts.since = TimeOf(there.since());
  if (there.has_until()) parts.until = TimeOf(there.until());
  return contract::MakeReason(CodeHere(there.code()), parts);
}

v1::RunState StateHere(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_SUCCEEDED:
      return v1::RUN_STATE_SUCCEEDED;
    case v1::JOB_STATE_FAILED:
      return IsLost(job) ? v1::RUN_STATE_LOST : v1::RUN_STATE_FAILED;
    case v1::JOB_STATE_CANCELED:
      return v1::RUN_STATE_CANCELED;
    default:
      break;
  }
  if (job.runs().empty()) return v1::RUN_STATE_PENDING;
  switch (const v1::RunState state = job.runs().rbegin()->state()) {
    case v1::RUN_STATE_STARTING:
    case v1::RUN_STATE_RUNNING:
    case v1::RUN_STATE_SUSPENDED:
    case v1::RUN_STATE_FINISHING:
      return state;
    default:
      return v1::RUN_STATE_PENDING;
  }
}

// A job that no cluster there has may start on several of them: the soonest start counts.
std::optional<absl::Time> EstimatedStart(const v1::Job& job) {
  if (!job.runs().empty()) {
    const v1::Run& run = *job.runs().rbegin();
    if (run.has_start_time()) return std::nullopt;
    if (run.has_estimated_start_time()) return TimeOf(run.estimated_start_time());
    if (run.has_start_estimate()) return TimeOf(run.start_estimate().time());
  }
  std::optional<absl::Time> soonest;
  for (const v1::StateReason& reason : job.state_reason().clusters()) {
    if (!reason.has_start_estimate()) continue;
    const absl::Time time = TimeOf(reason.start_estimate().time());
    if (!soonest || time < *soonest) soonest = time;
  }
  return soonest;
}

v1::Failure FailureHere(const v1::Job& job) {
  const bool has_own = !job.runs().empty() && job.runs().rbegin()->has_failure();
  v1::Failure failure = has_own ? job.runs().rbegin()->failure() : job.failure();
  // It counts the job's runs there, but this broker makes the retries.
  failure.clear_after_runs();
  contract::PutSentence(&failure);
  return failure;
}

v1::Evidence EvidenceOf(const v1::Job& job) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_BROKER);
  evidence.set_detail(fmt::format("the remote broker says that its job {} is {}{}", job.id(),
                                  contract::Name(job.state()),
                                  job.cluster().empty() ? "" : " on cluster " + job.cluster()));
  return evidence;
}

// The parts that say where a run is, whether or not it has ended.
void PutPlace(const v1::Run& run, Observation* seen) {
  seen->nodes.assign(run.nodes().begin(), run.nodes().end());
  for (const v1::Replica& replica : run.replicas()) {
    if (seen->replicas.size() < agents::kMaxReplicas) seen->replicas.push_back(replica);
  }
  seen->restarts = run.restarts();
  seen->results_directory = run.results_directory();
  if (run.has_start_time()) seen->start_time = TimeOf(run.start_time());
  if (run.has_progress()) seen->progress = run.progress();
  if (run.has_slurm_allocation()) seen->slurm_allocation = run.slurm_allocation();
}

void PutEnd(const v1::Job& job, Observation* seen) {
  if (job.has_end_time()) seen->end_time = TimeOf(job.end_time());
  if (!job.runs().empty()) {
    const v1::Run& run = *job.runs().rbegin();
    if (run.has_end_time()) seen->end_time = TimeOf(run.end_time());
    if (run.has_exit()) seen->exit = run.exit();
    if (run.has_usage()) seen->usage = run.usage();
  }
  if (seen->state == v1::RUN_STATE_FAILED || seen->state == v1::RUN_STATE_LOST)
    seen->failure = FailureHere(job);
}

}  // namespace

absl::Status CheckSpec(const v1::JobSpec& spec) {
  contract::FieldErrors errors;
  if (!spec.secrets().empty())
    errors.Add("secrets", "are not given to another broker; choose a cluster of another kind");
  if (spec.retry().exclude_failed_nodes()) {
    errors.Add("retry.exclude_failed_nodes",
               "is true, and another broker cannot be told which nodes to leave out; leave it out, "
               "or choose a cluster of another kind (placement.clusters)");
  }
  return errors.ToStatus();
}

v1::JobSpec SpecThere(const RemoteConfig& config, const v1::JobSpec& spec,
                      const std::string& user) {
  v1::JobSpec there = spec;
  if (!config.project.empty()) there.set_project(config.project);
  PutLabels({{kClusterLabel, config.cluster}, {kUserLabel, LabelText(user)}, {kRunLabel, ""}},
            &there);
  // This broker decides these: it starts other runs, waits for other jobs, and gives up what is
  // lost. Preemption there would start a second run under the same key.
  there.clear_depends_on();
  there.clear_on_cluster_loss();
  there.clear_preemptible();
  there.mutable_retry()->Clear();
  there.mutable_retry()->set_max_runs(1);
  const auto [cluster, pool] = SplitPool(spec.placement().pool());
  there.clear_placement();
  if (!cluster.empty()) {
    there.mutable_placement()->add_clusters(cluster);
    there.mutable_placement()->set_pool(pool);
  } else {
    for (const std::string& name : config.clusters) there.mutable_placement()->add_clusters(name);
  }
  return there;
}

v1::SubmitJobRequest RequestFor(const RemoteConfig& config, const agent::v1::Assignment& run) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = SpecThere(config, run.spec(), run.user());
  (*request.mutable_spec()->mutable_labels())[std::string(kRunLabel)] = run.run_key();
  request.set_request_id(fmt::format("run {}", run.run_key()));
  request.set_held(run.held());
  return request;
}

std::string FilterOfRun(const std::string& cluster, const std::string& user,
                        const std::string& run_key) {
  return fmt::format("user = {} AND label.{} = \"{}\" AND {}", FilterValue(user), kRunLabel,
                     run_key, FilterOfCluster(cluster));
}

std::string FilterOfJobs(const std::string& cluster, const std::vector<uint64_t>& ids) {
  std::vector<std::string> each;
  each.reserve(ids.size());
  for (const uint64_t id : ids) each.push_back(fmt::format("id = {}", id));
  const auto [low, high] = std::minmax_element(ids.begin(), ids.end());
  // The range keeps the remote broker from reading all jobs that the cluster ever had.
  return fmt::format("id >= {} AND id <= {} AND ({}) AND {}", *low, *high, fmt::join(each, " OR "),
                     FilterOfCluster(cluster));
}

std::string FilterOfCluster(const std::string& cluster) {
  return fmt::format("label.{} = \"{}\"", kClusterLabel, cluster);
}

std::string PoolName(const std::string& cluster, const std::string& pool) {
  return fmt::format("{}/{}", cluster, pool);
}

std::pair<std::string, std::string> SplitPool(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

uint64_t JobIdOf(const std::string& external_id) {
  uint64_t id = 0;
  const char* const end = external_id.data() + external_id.size();
  const auto [at, error] = std::from_chars(external_id.data(), end, id);
  return error == std::errc() && at == end ? id : 0;
}

bool HasBegun(const v1::Job& job) {
  if (job.has_start_time() || job.has_exit()) return true;
  return std::any_of(job.runs().begin(), job.runs().end(), [](const v1::Run& run) {
    return run.has_start_time() || run.has_exit() || run.state() == v1::RUN_STATE_STARTING ||
           run.state() == v1::RUN_STATE_RUNNING;
  });
}

bool IsComplete(const v1::Job& job) {
  return contract::IsTerminal(job.state()) &&
         (job.runs().empty() || job.runs().rbegin()->logs_complete());
}

bool IsLost(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_FAILED && !job.runs().empty() &&
         job.runs().rbegin()->state() == v1::RUN_STATE_LOST;
}

Observation ObservationOf(const agents::RunHandle& run, const v1::Job& job) {
  Observation seen;
  seen.run_key = run.run_key;
  seen.state = StateHere(job);
  seen.evidence = EvidenceOf(job);
  seen.external_id = fmt::format("{}", job.id());
  if (!job.runs().empty()) PutPlace(*job.runs().rbegin(), &seen);
  if (contract::IsTerminal(seen.state)) {
    PutEnd(job, &seen);
    if (seen.state == v1::RUN_STATE_CANCELED && !run.cancel_requested)
      seen.reason = contract::MakeReason(v1::STATE_REASON_CODE_CANCELED_BY_OTHERS);
    return seen;
  }
  seen.estimated_start = EstimatedStart(job);
  seen.reason = ReasonHere(job.state_reason());
  return seen;
}

Observation HeldBack(const agents::RunHandle& run, const v1::Job& job) {
  Observation seen = ObservationOf(run, job);
  seen.state = HasBegun(job) ? v1::RUN_STATE_FINISHING : v1::RUN_STATE_PENDING;
  seen.reason = contract::MakeReason(v1::STATE_REASON_CODE_READING_END,
                                     {.detail = "it has ended, and its output is on its way"});
  seen.end_time.reset();
  seen.exit.reset();
  seen.failure.reset();
  seen.usage.reset();
  return seen;
}

}  // namespace muster::remote
