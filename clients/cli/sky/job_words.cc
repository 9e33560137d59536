#include "clients/cli/sky/job_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/counted.h"
#include "contract/states.h"
#include "contract/units.h"

namespace muster::cli::sky {
namespace {

v1::RunState LatestRun(const v1::Job& job) {
  return job.runs().empty() ? v1::RUN_STATE_UNSPECIFIED : job.runs().rbegin()->state();
}

std::string_view FailureWord(const v1::Job& job) {
  const v1::FailurePhase phase = job.failure().phase();
  if (phase == v1::FAILURE_PHASE_SETUP_START || phase == v1::FAILURE_PHASE_SETUP)
    return "FAILED_SETUP";
  // The cluster's doing, for which SkyPilot has the one word.
  return cli::CodeFor(job) == kInfrastructure ? "FAILED_DRIVER" : "FAILED";
}

}  // namespace

int CodeOf(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_SUCCEEDED:
      return kOk;
    case v1::JOB_STATE_FAILED:
      return kFailed;
    case v1::JOB_STATE_CANCELED:
      return kCancelled;
    default:
      return kNotFinished;
  }
}

std::string_view StatusWord(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_PENDING:
      return LatestRun(job) == v1::RUN_STATE_STARTING ? "SETTING_UP" : "PENDING";
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_SUSPENDED:
      return "RUNNING";
    case v1::JOB_STATE_SUCCEEDED:
      return "SUCCEEDED";
    case v1::JOB_STATE_FAILED:
      return FailureWord(job);
    case v1::JOB_STATE_CANCELED:
      return "CANCELLED";
    default:
      return "PENDING";
  }
}

std::string MusterWords(const v1::Job& job) {
  if (StatusWord(job) == "SETTING_UP") return std::string(contract::Name(LatestRun(job)));
  const std::string state(contract::Name(job.state()));
  const bool has_class = job.state() == v1::JOB_STATE_FAILED &&
                         job.failure().failure_class() != v1::FAILURE_CLASS_UNSPECIFIED;
  if (!has_class && !job.held()) return state;
  // A cluster that was asked to hold it may yet start what it has.
  if (!has_class) return state + (IsKeptBack(job) ? " (held)" : " (asked to hold)");
  return fmt::format("{} ({})", state, contract::Name(job.failure().failure_class()));
}

std::string ResourcesText(const v1::JobSpec& spec) {
  const v1::Resources& resources = spec.resources();
  std::string what;
  for (const v1::GpuRequest& gpus : resources.gpus()) {
    const std::string type = gpus.type().empty() ? "GPU" : Harmless(gpus.type());
    what += fmt::format("{}{}:{}", what.empty() ? "" : ", ", type,
                        contract::FormatCpus(gpus.count_millis()));
  }
  if (what.empty()) {
    const uint64_t millis = resources.cpu_millis();
    what = "CPU:" + (millis == 0 ? std::string("1") : contract::FormatCpus(millis));
  }
  return fmt::format("{}x[{}]", std::max(1u, spec.nodes()), what);
}

std::string DurationText(absl::Duration duration) {
  if (duration < absl::Seconds(1)) return "< 1s";
  const int64_t all = absl::ToInt64Seconds(duration);
  const int64_t hours = all / 3600;
  const int64_t minutes = all / 60 % 60;
  const int64_t seconds = all % 60;
  if (hours > 0) return fmt::format("{}h {}m {}s", hours, minutes, seconds);
  if (minutes > 0) return fmt::format("{}m {}s", minutes, seconds);
  return fmt::format("{}s", seconds);
}

std::string RunText(const v1::Job& job, absl::Time now) {
  if (!job.has_start_time()) return "-";
  const absl::Time end = job.has_end_time() ? ToTime(job.end_time()) : now;
  return DurationText(end - ToTime(job.start_time()));
}

std::string AgoText(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "-";
  const int64_t seconds = absl::ToInt64Seconds(now - ToTime(time));
  if (seconds < 1) return "just now";
  if (seconds < 60) return contract::Counted(seconds, "sec") + " ago";
  if (seconds < 3600) return contract::Counted(seconds / 60, "min") + " ago";
  if (seconds < 86400) return contract::Counted(seconds / 3600, "hr") + " ago";
  return contract::Counted(seconds / 86400, "day") + " ago";
}

}  // namespace muster::cli::sky
