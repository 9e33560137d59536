// Explains the two readings of a file of jobs that either dialect could have written. Private to
// the client library.
#ifndef MUSTER_CLIENTS_CPP_TWO_READINGS_H_
#define MUSTER_CLIENTS_CPP_TWO_READINGS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/job_file_result.h"

namespace muster::client {

// Both readings of the first job, and the number of jobs.
struct TwoReadings {
  const v1::JobSpec& muster;
  const v1::JobSpec& skypilot;
  size_t jobs = 1;
};

// Returns the differences that somebody would notice, "memory is 32GB here and 32Gi in a SkyPilot
// task", or nothing. The difference that sh runs the script of a job file and bash a task's is told
// for scripts that sh would not understand.
std::vector<std::string> Differences(const TwoReadings& readings);

// The remark on a file that was read in one dialect, and would be good in the other one with these
// differences.
std::string ReadingRemark(std::string_view file, Dialect read_as,
                          const std::vector<std::string>& differences);
// Returns the addition to the error of a file that is bad in one dialect and good in the other one.
std::string OtherReadingHint(std::string_view file, Dialect read_as);

// Returns whether the script has words that bash alone understands: [[, source, arrays, pipefail,
// <<< and the like.
bool NeedsBash(std::string_view script);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_TWO_READINGS_H_
