#include "clients/cli/slurm/job_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

struct State {
  std::string_view word;
  std::string_view code;
  bool is_active;
};
// The states that a job of Muster's can have.
constexpr std::array kStates = {
    State{"PENDING", "PD", true},    State{"CONFIGURING", "CF", true},
    State{"RUNNING", "R", true},     State{"SUSPENDED", "S", true},
    State{"COMPLETING", "CG", true}, State{"COMPLETED", "CD", false},
    State{"FAILED", "F", false},     State{"CANCELLED", "CA", false},
    State{"TIMEOUT", "TO", false},   State{"OUT_OF_MEMORY", "OOM", false},
    State{"NODE_FAIL", "NF", false}, State{"PREEMPTED", "PR", false}};

std::string_view FailedWord(v1::FailureClass failure_class) {
  switch (failure_class) {
    case v1::FAILURE_CLASS_TIMEOUT:
      return "TIMEOUT";
    case v1::FAILURE_CLASS_OOM:
      return "OUT_OF_MEMORY";
    case v1::FAILURE_CLASS_INFRA:
      return "NODE_FAIL";
    case v1::FAILURE_CLASS_PREEMPTED:
      return "PREEMPTED";
    default:
      return "FAILED";
  }
}

std::string_view EndReason(const JobRecord& record) {
  const std::string_view word = StateWord(record);
  if (word == "TIMEOUT") return "TimeLimit";
  if (word == "OUT_OF_MEMORY") return "OutOfMemory";
  if (word == "NODE_FAIL") return "NodeDown";
  if (word != "FAILED") return kNoReason;
  const bool has_no_program = record.job.failure().failure_class() == v1::FAILURE_CLASS_CONFIG &&
                              record.job.exit().code() == 0;
  return has_no_program ? "JobLaunchFailure" : "NonZeroExitCode";
}

// "16G", "512M"; "0".
std::string SizeText(uint64_t mebibytes) {
  if (mebibytes == 0) return "0";
  return mebibytes % 1024 == 0 ? fmt::format("{}G", mebibytes / 1024)
                               : fmt::format("{}M", mebibytes);
}

// The pool in which a job runs that names none.
const v1::Pool* FindPool(const v1::Cluster& cluster, std::string_view name) {
  const auto& pools = cluster.inventory().pools();
  const auto found = std::find_if(pools.begin(), pools.end(), [&](const v1::Pool& pool) {
    return name.empty() ? pool.is_default() : pool.name() == name;
  });
  return found == pools.end() ? nullptr : &*found;
}

}  // namespace

const v1::Run* JobRecord::run() const {
  return job.runs().empty() ? nullptr : &*job.runs().rbegin();
}

JobRecord MakeRecord(v1::Job job, const v1::Cluster* cluster) {
  JobRecord record;
  record.job = std::move(job);
  record.is_on_slurm = cluster != nullptr && cluster->kind() == v1::CLUSTER_KIND_SLURM;
  const v1::JobSpec& spec = record.job.spec();
  record.partition =
      spec.slurm().partition().empty() ? spec.placement().pool() : spec.slurm().partition();
  const v1::Pool* pool = cluster == nullptr ? nullptr : FindPool(*cluster, record.partition);
  if (record.partition.empty() && pool != nullptr) record.partition = pool->name();
  if (spec.has_time_limit()) {
    record.time_limit = absl::Seconds(spec.time_limit().seconds());
  } else if (pool != nullptr && pool->has_default_time_limit()) {
    record.time_limit = absl::Seconds(pool->default_time_limit().seconds());
  } else if (pool != nullptr && pool->has_max_time_limit()) {
    record.time_limit = absl::Seconds(pool->max_time_limit().seconds());
  }
  return record;
}

std::string SlurmNumber(const JobRecord& record) {
  const bool has = record.is_on_slurm && record.run() != nullptr;
  return has ? Harmless(record.run()->external_id()) : std::string();
}

std::string_view StateWord(const JobRecord& record) {
  const v1::RunState run =
      record.run() == nullptr ? v1::RUN_STATE_UNSPECIFIED : record.run()->state();
  switch (record.job.state()) {
    case v1::JOB_STATE_RUNNING:
      return run == v1::RUN_STATE_FINISHING ? "COMPLETING" : "RUNNING";
    case v1::JOB_STATE_SUSPENDED:
      return "SUSPENDED";
    case v1::JOB_STATE_SUCCEEDED:
      return "COMPLETED";
    case v1::JOB_STATE_CANCELED:
      return "CANCELLED";
    case v1::JOB_STATE_FAILED:
      return FailedWord(record.job.failure().failure_class());
    default:
      return run == v1::RUN_STATE_STARTING ? "CONFIGURING" : "PENDING";
  }
}

std::string_view StateCode(std::string_view word) {
  const auto* found = std::find_if(kStates.begin(), kStates.end(),
                                   [&](const State& state) { return state.word == word; });
  return found == kStates.end() ? word : found->code;
}

std::string_view FindState(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) {
    if (contract::IsLowerLetter(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  const auto* found = std::find_if(kStates.begin(), kStates.end(), [&](const State& state) {
    return state.word == upper || state.code == upper;
  });
  return found == kStates.end() ? std::string_view() : found->word;
}

bool IsActiveState(std::string_view word) {
  return std::any_of(kStates.begin(), kStates.end(),
                     [&](const State& state) { return state.word == word && state.is_active; });
}

std::string ReasonWord(const JobRecord& record) {
  const v1::Job& job = record.job;
  if (contract::IsTerminal(job.state())) return std::string(EndReason(record));
  if (job.state() != v1::JOB_STATE_QUEUED && job.state() != v1::JOB_STATE_PENDING)
    return std::string(kNoReason);
  if (IsKeptBack(job)) return "JobHeldUser";
  if (job.state() == v1::JOB_STATE_QUEUED) {
    if (job.has_retry_time()) return "BeginTime";
    // Slurm's word for it.
    const bool is_pools = job.state_reason().code() == v1::STATE_REASON_CODE_POOL_UNAVAILABLE;
    return is_pools ? "PartitionDown" : "MusterQueue";
  }
  const std::string& word = KnownWait(job).scheduler_reason();
  // A column has room for a word.
  if (!word.empty() && word.find(' ') == word.npos) return Harmless(word);
  // Slurm's own word for what its scheduler has not looked at yet.
  return WhyItWaits(job).message().empty() ? std::string(kNoReason) : "SeeMusterWhy";
}

absl::Duration Elapsed(const JobRecord& record, absl::Time now) {
  if (!record.job.has_start_time()) return absl::ZeroDuration();
  const absl::Time end = record.job.has_end_time() ? ToTime(record.job.end_time()) : now;
  return std::max(absl::ZeroDuration(), end - ToTime(record.job.start_time()));
}

std::string SqueueTime(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  const int64_t days = seconds / 86400;
  const int64_t hours = seconds / 3600 % 24;
  const int64_t minutes = seconds / 60 % 60;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:{:02}", days, hours, minutes, seconds % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

std::string SacctTime(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  const int64_t days = seconds / 86400;
  return fmt::format("{}{:02}:{:02}:{:02}", days > 0 ? fmt::format("{}-", days) : "",
                     seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

std::string LocalTime(const google::protobuf::Timestamp& timestamp, std::string_view absent) {
  if (timestamp.seconds() == 0) return std::string(absent);
  return absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(timestamp.seconds()),
                          absl::LocalTimeZone());
}

// Writes 0:0 for jobs whose program never began, as sacct does; scripts take it for a success.
std::string ExitCodeText(const JobRecord& record) {
  if (record.job.state() == v1::JOB_STATE_FAILED && !record.job.has_exit()) return "1:0";
  return fmt::format("{}:{}", record.job.exit().code(), record.job.exit().signal());
}

uint64_t TotalCpus(const v1::JobSpec& spec) {
  const uint64_t each = (spec.resources().cpu_millis() + 999) / 1000;
  if (spec.slurm().tasks_per_node() > 1) return each * std::max<uint32_t>(1, spec.nodes());
  // Where Slurm spreads the tasks, the cores are those of one.
  constexpr std::string_view kTasks = "--ntasks=";
  for (const std::string& option : spec.slurm().extra_options()) {
    if (!option.starts_with(kTasks)) continue;
    const auto tasks =
        contract::ParseNumber<uint32_t>(std::string_view(option).substr(kTasks.size()));
    if (tasks.has_value()) return std::max<uint64_t>(1, each) * *tasks;
  }
  return std::max<uint64_t>(1, each) * std::max<uint32_t>(1, spec.nodes());
}

std::string GresText(const v1::JobSpec& spec) {
  std::string text;
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) {
    if (gpus.count_millis() == 0) continue;
    text = fmt::format("gres:gpu{}{}:{}", gpus.type().empty() ? "" : ":", Harmless(gpus.type()),
                       gpus.count_millis() / 1000);
  }
  if (!spec.slurm().gres().empty()) {
    text += (text.empty() ? "gres:" : ",gres:") + Harmless(spec.slurm().gres());
  }
  return text.empty() ? "N/A" : text;
}

std::string MemoryText(const v1::JobSpec& spec) {
  return SizeText(spec.resources().memory_bytes() >> 20);
}

std::string TresText(const v1::JobSpec& spec, TresOrder order) {
  const uint64_t nodes = std::max<uint32_t>(1, spec.nodes());
  uint64_t gpus = 0;
  for (const v1::GpuRequest& some : spec.resources().gpus()) gpus += some.count_millis() / 1000;
  const uint64_t mebibytes = nodes * (spec.resources().memory_bytes() >> 20);
  const std::string gpu_text = gpus == 0 ? "" : fmt::format(",gres/gpu={}", gpus * nodes);
  const bool is_sacct = order == TresOrder::kSacct;
  return fmt::format("cpu={}{}{},node={}{}", TotalCpus(spec), is_sacct ? gpu_text : "",
                     mebibytes == 0 ? "" : ",mem=" + SizeText(mebibytes), nodes,
                     is_sacct ? "" : gpu_text);
}

}  // namespace muster::cli
