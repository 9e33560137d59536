#include "broker/app/show_jobs.h"

#include <utility>

#include "broker/app/silence.h"
#include "broker/engine/engine.h"
#include "broker/store/list_limits.h"

namespace muster::broker {

std::vector<v1::Job> ForAnswer(const Services& services, std::vector<v1::Job> jobs) {
  std::vector<v1::Job*> shown;
  shown.reserve(jobs.size());
  for (v1::Job& job : jobs) shown.push_back(&job);
  AnswerRoom room;  // the answer as a whole is bounded below
  AddSilence(*services.engine->clusters(), shown, room);
  size_t bytes = 0;
  for (v1::Job& job : jobs) {
    bytes += job.ByteSizeLong();
    if (bytes <= store::kMaxPageBytes) continue;
    v1::Job less;
    less.set_id(job.id());
    less.set_state(job.state());
    job = std::move(less);
  }
  return jobs;
}

std::vector<v1::Job> ShowJobs(const Services& services, const store::Scope& scope,
                              absl::Span<const uint64_t> ids, bool may_read) {
  if (may_read) {
    auto jobs = services.store->GetJobs(scope, ids);
    if (jobs.ok()) return ForAnswer(services, *std::move(jobs));
  }
  std::vector<v1::Job> numbers;
  for (const uint64_t id : ids) numbers.emplace_back().set_id(id);
  return numbers;
}

}  // namespace muster::broker
