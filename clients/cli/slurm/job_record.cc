#include "clients/cli/slurm/job_record.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/characters.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

struct State {
  std::string_view word;
  std::string_view code;
  bool is_active;
};
constexpr std::array kStates = {
    State{"PENDING", "PD", true}, State{"CONFIGURING", "CF", true}, State{"RUNNING", "R", true},
    State{"SUSPENDED", "S", true}, State{"COMPLETING", "CG", true}, State{"COMPLETED", "CD", false},
    State{"FAILED", "F", false}, State{"CANCELLED", "CA", false}, State{"TIMEOUT", "TO", false},
    State{"OUT_OF_MEMORY", "OOM", false}, State{"NODE_FAIL", "NF", false},
    State{"PREEMPTED", "PR", false}, State{"DEADLINE", "DL", false},
    // These are states that no job of Muster's is ever in.
    State{"BOOT_FAIL", "BF", false}, State{"REQUEUED", "RQ", true},
    State{"REQUEUE_FED", "RF", true}, State{"REQUEUE_HOLD", "RH", true},
    State{"RESIZING", "RS", true}, State{"RESV_DEL_HOLD", "RD", true},
    State{"REVOKED", "RV", false}, State{"SIGNALING", "SI", true},
    State{"SPECIAL_EXIT", "SE", true}, State{"STAGE_OUT", "SO", true},
    State{"STOPPED", "ST", true}};

std::string_view FailedWord(const v1::Failure& failure) {
  if (failure.code() == v1::FAILURE_CODE_DEADLINE) return "DEADLINE";
  switch (failure.failure_class()) {
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
  if (word == "DEADLINE") return "DeadLine";
  if (word == "OUT_OF_MEMORY") return "OutOfMemory";
  if (word == "NODE_FAIL") return "NodeDown";
  if (word != "FAILED") return kNoReason;
  const bool has_no_program = record.job().failure().failure_class() == v1::FAILURE_CLASS_CONFIG &&
                              record.job().exit().code() == 0;
  return has_no_program ? "JobLaunchFailure" : "NonZeroExitCode";
}

// The form of a time that is so many days away from today.
std::string_view RelativeForm(int64_t days) {
  constexpr int64_t kYear = 365;
  if (days == -1) return "Ystday %H:%M";
  if (days == 0) return "%H:%M:%S";
  if (days == 1) return "Tomorr %H:%M";
  if (days < -kYear || days > kYear) return "%-d %b %Y";
  return days < 0 || days > 6 ? "%-d %b %H:%M" : "%a %H:%M";
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
  return job().runs().empty() ? nullptr : &*job().runs().rbegin();
}

namespace {

// The choices of Slurm for the run that the job has now; a job that waits for its next run may get
// something else.
const v1::SlurmAllocation& ChosenFor(const JobRecord& record) {
  const v1::Run* run = record.run();
  const bool is_current = run != nullptr && record.job().state() != v1::JOB_STATE_QUEUED;
  return is_current ? run->slurm_allocation() : v1::SlurmAllocation::default_instance();
}

const std::string& FirstOf(const std::string& chosen, const std::string& named) {
  return chosen.empty() ? named : chosen;
}

// Tells whether more is known than the progress of the launch.
bool IsExplained(const v1::StateReason& reason) {
  switch (reason.code()) {
    case v1::STATE_REASON_CODE_LAUNCHING:
    case v1::STATE_REASON_CODE_STARTING:
      return !reason.detail().empty();
    case v1::STATE_REASON_CODE_WAIT_UNEXPLAINED:
      return false;
    default:
      return !reason.message().empty();
  }
}

}  // namespace

JobRecord MakeRecord(std::shared_ptr<const v1::Job> job, const v1::Cluster* cluster) {
  JobRecord record;
  record.kept = std::move(job);
  record.is_on_slurm = cluster != nullptr && cluster->kind() == v1::CLUSTER_KIND_SLURM;
  const v1::JobSpec& spec = record.job().spec();
  record.task = contract::FindArrayTask(spec);
  const v1::SlurmAllocation& chosen = ChosenFor(record);
  record.partition =
      FirstOf(chosen.partition(), FirstOf(spec.slurm().partition(), spec.placement().pool()));
  record.account = FirstOf(chosen.account(), spec.slurm().account());
  record.qos = FirstOf(chosen.qos(), spec.slurm().qos());
  const v1::Pool* pool = cluster == nullptr ? nullptr : FindPool(*cluster, record.partition);
  if (record.partition.empty() && pool != nullptr) record.partition = pool->name();
  if (spec.has_time_limit()) {
    record.time_limit = absl::Seconds(spec.time_limit().seconds());
  } else if (pool != nullptr && pool->has_default_time_limit()) {
    record.time_limit = absl::Seconds(pool->default_time_limit().seconds());
  } else if (pool != nullptr && pool->has_max_time_limit()) {
    record.time_limit = absl::Seconds(pool->max_time_limit().seconds());
  }
  // Slurm keeps limits in minutes.
  if (record.is_on_slurm && record.time_limit.has_value())
    record.time_limit = absl::Ceil(*record.time_limit, absl::Minutes(1));
  return record;
}

std::string NameOf(const JobRecord& record) {
  const uint64_t id = record.job().id();
  return record.task.has_value()
             ? fmt::format(FMT_COMPILE("{}_{}"), contract::ArrayNumber(id, *record.task),
                           record.task->id)
             : fmt::format(FMT_COMPILE("{}"), id);
}

std::string SlurmNumber(const JobRecord& record) {
  const bool has = record.is_on_slurm && record.run() != nullptr;
  return has ? Harmless(record.run()->external_id()) : std::string();
}

std::string_view StateWord(const JobRecord& record) {
  const v1::RunState run =
      record.run() == nullptr ? v1::RUN_STATE_UNSPECIFIED : record.run()->state();
  switch (record.job().state()) {
    case v1::JOB_STATE_RUNNING:
      return run == v1::RUN_STATE_FINISHING ? "COMPLETING" : "RUNNING";
    case v1::JOB_STATE_SUSPENDED:
      return "SUSPENDED";
    case v1::JOB_STATE_SUCCEEDED:
      return "COMPLETED";
    case v1::JOB_STATE_CANCELED:
      return "CANCELLED";
    case v1::JOB_STATE_FAILED:
      return FailedWord(record.job().failure());
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

std::string StateWords() {
  std::string words;
  for (const State& state : kStates) {
    if (!words.empty()) words += ", ";
    words += state.word;
  }
  return words;
}

std::string ReasonWord(const JobRecord& record) {
  const v1::Job& job = record.job();
  if (contract::IsTerminal(job.state())) return std::string(EndReason(record));
  if (job.state() != v1::JOB_STATE_QUEUED && job.state() != v1::JOB_STATE_PENDING)
    return std::string(kNoReason);
  if (IsKeptBack(job)) return "JobHeldUser";
  if (job.state() == v1::JOB_STATE_QUEUED) {
    if (job.has_retry_time()) return "BeginTime";
    if (job.state_reason().code() == v1::STATE_REASON_CODE_JOB_DEPENDENCY) return "Dependency";
    // Slurm's word for it.
    const bool is_pools = job.state_reason().code() == v1::STATE_REASON_CODE_POOL_UNAVAILABLE;
    return is_pools ? "PartitionDown" : "MusterQueue";
  }
  const std::string& word = KnownWait(job).scheduler_reason();
  // A column has room for a word.
  if (!word.empty() && word.find(' ') == word.npos) return Harmless(word);
  // Slurm's own word for what its scheduler has not looked at yet.
  return IsExplained(WhyItWaits(job)) ? "SeeMusterWhy" : std::string(kNoReason);
}

google::protobuf::Timestamp StartedAt(const JobRecord& record) {
  const v1::Job& job = record.job();
  if (job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_PENDING) return {};
  // The job's own time is that of its first run.
  const bool is_later = record.run() != nullptr && record.run()->number() > 1;
  return is_later ? record.run()->start_time() : job.start_time();
}

bool HasStarted(const JobRecord& record) { return StartedAt(record).seconds() != 0; }

absl::Duration Elapsed(const JobRecord& record, absl::Time now) {
  if (!HasStarted(record)) return absl::ZeroDuration();
  const absl::Time end = record.job().has_end_time() ? ToTime(record.job().end_time()) : now;
  return std::max(absl::ZeroDuration(), end - ToTime(StartedAt(record)));
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

std::string CpuTimeText(absl::Duration time) {
  const int64_t millis = absl::ToInt64Milliseconds(time) % 1000;
  if (millis == 0 || time >= absl::Hours(1)) return SacctTime(time);
  const int64_t seconds = absl::ToInt64Seconds(time);
  return fmt::format("{:02}:{:02}.{:03}", seconds / 60, seconds % 60, millis);
}

std::string SacctBytes(uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGTPE";
  if (bytes == 0) return "";
  // sacct takes halves for exact, too, and looks at whole units alone.
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (unit < kUnits.size() && size >= 1024 && static_cast<uint64_t>(size) % 512 == 0) {
    size /= 1024;
    ++unit;
  }
  const bool is_whole = size == static_cast<double>(static_cast<uint64_t>(size));
  return fmt::format("{:.{}f}{}", size, is_whole ? 0 : 2,
                     unit == 0 ? "" : kUnits.substr(unit - 1, 1));
}

std::string TimeText(absl::Time time, std::string_view format, absl::Time now) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  std::string form(format);
  if (form.empty() || form == "standard") form = "%Y-%m-%dT%H:%M:%S";
  if (form == "relative")
    form = RelativeForm(absl::ToCivilDay(time, zone) - absl::ToCivilDay(now, zone));
  // Room for what Slurm itself has room for.
  char text[256];
  const tm broken_down = absl::ToTM(time, zone);
  const size_t size = strftime(text, sizeof(text), form.c_str(), &broken_down);
  return Harmless(std::string_view(text, size));
}

std::string LocalTime(const google::protobuf::Timestamp& timestamp, std::string_view absent) {
  if (timestamp.seconds() == 0) return std::string(absent);
  const char* format = std::getenv("SLURM_TIME_FORMAT");
  return TimeText(absl::FromUnixSeconds(timestamp.seconds()), format == nullptr ? "" : format,
                  absl::Now());
}

// sacct writes 0:0 for jobs whose program never began, which scripts take for a success; this does
// not. It also writes 0:0 for jobs that were ended from outside.
std::string ExitCodeText(const JobRecord& record) {
  const std::string_view word = StateWord(record);
  if (word == "TIMEOUT" || word == "CANCELLED") return "0:0";
  if (record.job().state() == v1::JOB_STATE_FAILED && !record.job().has_exit()) return "1:0";
  return fmt::format("{}:{}", record.job().exit().code(), record.job().exit().signal());
}

}  // namespace muster::cli
