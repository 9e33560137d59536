#include "broker/app/submit_warnings.h"

#include <optional>
#include <utility>

#include "broker/app/project_limits.h"
#include "broker/core/event_bounds.h"
#include "broker/core/fit.h"
#include "broker/engine/engine.h"
#include "contract/sentences.h"

namespace muster::broker {
namespace {

std::vector<v1::SubmitWarning> Find(const JobToJudge& job, const core::ClusterViews& clusters,
                                    const contract::PlaceLimits& limits) {
  std::vector<v1::SubmitWarning> found;
  for (const auto& cluster : clusters) {
    const v1::Inventory& inventory = cluster->saved->inventory;
    if (!inventory.has_admission() ||
        !core::CheckFit(job.requirements, *cluster->saved, limits).now())
      continue;
    for (v1::SubmitWarning& warning :
         contract::JudgeAdmission(job.needs, inventory.admission(), cluster->name()).warnings) {
      if (found.size() == kMaxWarnings) return found;
      contract::SetCluster(cluster->name(), &warning);
      BoundWarning(&warning);
      found.push_back(std::move(warning));
    }
  }
  return found;
}

}  // namespace

std::vector<JobToJudge> JobsToJudge(const core::Submit& submit) {
  std::vector<JobToJudge> jobs;
  for (size_t i = 0; i < submit.items.size(); ++i) {
    const core::SubmitItem& item = submit.items[i];
    std::optional<contract::AdmissionNeeds> needs = contract::AdmissionNeedsOf(*item.spec);
    if (!needs.has_value()) continue;
    jobs.push_back({static_cast<int>(i), *std::move(needs),
                    core::RequirementsOf(*item.spec, item.archive_bytes)});
  }
  return jobs;
}

void AddWarnings(const std::vector<JobToJudge>& jobs, const core::ClusterViews& clusters,
                 const contract::PlaceLimits& limits, v1::SubmitJobsResponse* response) {
  size_t bytes = 0;
  // The next job often is like the last one, and has the same warnings.
  std::string last;
  const core::Requirements* last_requirements = nullptr;
  std::vector<v1::SubmitWarning> warnings;
  for (const JobToJudge& job : jobs) {
    v1::SubmitJobResponse* reply = response->mutable_responses(job.index);
    if (reply->repeated_request()) continue;
    std::string alike = contract::BytesOf(job.needs);
    if (last_requirements == nullptr || alike != last ||
        !(job.requirements == *last_requirements)) {
      warnings = Find(job, clusters, limits);
      last = std::move(alike);
      last_requirements = &job.requirements;
    }
    for (const v1::SubmitWarning& warning : warnings) {
      bytes += warning.ByteSizeLong();
      if (bytes > kMaxWarningsBytes) return;
      *reply->add_warnings() = warning;
    }
  }
}

SubmitDone WarningOfFacts(const Services& services, const core::Submit& submit, SubmitDone done) {
  std::vector<JobToJudge> jobs = JobsToJudge(submit);
  if (jobs.empty()) return done;
  return [engine = services.engine, limits = ProjectsOf(services)->places(), jobs = std::move(jobs),
          done = std::move(done)](absl::StatusOr<v1::SubmitJobsResponse> result) {
    if (result.ok()) AddWarnings(jobs, *engine->clusters(), *limits, &*result);
    done(std::move(result));
  };
}

void BoundWarning(v1::SubmitWarning* warning) {
  for (std::string* text :
       {warning->mutable_message(), warning->mutable_remedy(), warning->mutable_subject()}) {
    core::Truncate(core::kMaxIssueBytes, text);
  }
}

}  // namespace muster::broker
