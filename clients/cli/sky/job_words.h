// A job in SkyPilot's words. Pure.
#ifndef MUSTER_CLIENTS_CLI_SKY_JOB_WORDS_H_
#define MUSTER_CLIENTS_CLI_SKY_JOB_WORDS_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::cli::sky {

// The exit codes of exec and logs, for scripts; 0 if the job succeeded.
enum JobCode : int {
  kFailed = 100,
  kNotFinished = 101,
  kNotFound = 102,
  kCancelled = 103,
};
int CodeOf(const v1::Job& job);

// "PENDING", "SETTING_UP", "RUNNING", "SUCCEEDED", "FAILED", "FAILED_SETUP", "FAILED_DRIVER",
// "CANCELLED". Only a job's latest run tells that it is being set up; without runs the job is
// PENDING.
std::string_view StatusWord(const v1::Job& job);
// Muster's own words beside it: "QUEUED", "STARTING", "FAILED (CONFIG)".
std::string MusterWords(const v1::Job& job);

// "2x[H100:8]", "1x[CPU:4]"; the job has its spec.
std::string ResourcesText(const v1::JobSpec& spec);
// "1h 2m 3s", "2m 3s", "< 1s".
std::string DurationText(absl::Duration duration);
// Returns the time that it has run; "-" if it has not started.
std::string RunText(const v1::Job& job, absl::Time now);
// Returns "5 mins ago" or "2 hrs ago"; "-" if there is no such time.
std::string AgoText(const google::protobuf::Timestamp& time, absl::Time now);

}  // namespace muster::cli::sky

#endif  // MUSTER_CLIENTS_CLI_SKY_JOB_WORDS_H_
