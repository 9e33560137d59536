#include "contract/dependencies.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/format.h"

namespace muster::contract {
namespace {

std::string FieldOf(int i) { return fmt::format("depends_on[{}]", i); }

}  // namespace

void CheckDependencies(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.depends_on_size() > static_cast<int>(kMaxDependencies)) {
    errors->Add("depends_on",
                fmt::format("{} jobs; use at most {}, or depend on one job that depends on them",
                            spec.depends_on_size(), kMaxDependencies));
    return;
  }
  std::set<std::pair<uint64_t, uint32_t>> seen;
  for (int i = 0; i < spec.depends_on_size(); ++i) {
    const v1::JobDependency& one = spec.depends_on(i);
    if ((one.job_id() == 0) == (one.request() == 0)) {
      errors->Add(FieldOf(i) + ".job_id",
                  fmt::format("{} together with request {}; name the job by one of them",
                              one.job_id(), one.request()));
    } else if (!seen.emplace(one.job_id(), one.request()).second) {
      const bool is_number = one.job_id() != 0;
      errors->Add(FieldOf(i) + (is_number ? ".job_id" : ".request"),
                  fmt::format("{} is there twice; name each job once, with the outcome \"ended\" "
                              "if any end will do",
                              is_number ? one.job_id() : one.request()));
    }
    if (!v1::JobOutcome_IsValid(one.outcome())) {
      errors->Add(FieldOf(i) + ".outcome",
                  fmt::format("{} is not an outcome; use JOB_OUTCOME_SUCCEEDED, JOB_OUTCOME_FAILED "
                              "or JOB_OUTCOME_ENDED",
                              static_cast<int>(one.outcome())));
    }
  }
}

void CheckRequestPlaces(const v1::JobSpec& spec, uint32_t place, FieldErrors* errors) {
  for (int i = 0; i < spec.depends_on_size(); ++i) {
    const uint32_t request = spec.depends_on(i).request();
    if (request == 0 || request < place) continue;
    errors->Add(FieldOf(i) + ".request",
                place == 0
                    ? fmt::format("{} names a job of the same SubmitJobs, and this job is "
                                  "submitted alone; name an earlier job by its number (job_id)",
                                  request)
                    : fmt::format("{} does not come before this request, which is number {}; a "
                                  "job can depend on earlier ones alone",
                                  request, place));
  }
}

bool Meets(v1::JobState end, v1::JobOutcome needed) {
  switch (needed) {
    case v1::JOB_OUTCOME_FAILED:
      return end == v1::JOB_STATE_FAILED || end == v1::JOB_STATE_CANCELED;
    case v1::JOB_OUTCOME_ENDED:
      return true;
    default:
      return end == v1::JOB_STATE_SUCCEEDED;
  }
}

std::string DependencyVariable(uint64_t job) { return fmt::format("MUSTER_DEPENDENCY_{}", job); }

}  // namespace muster::contract
