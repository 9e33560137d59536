#include "broker/core/core.h"

#include <utility>

#include "broker/core/impl.h"

namespace muster::core {

Core::Core(Options options, Restored restored)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(restored))) {}
Core::~Core() = default;

void Core::Handle(Input input, absl::Time now, Output* out) {
  impl_->Handle(std::move(input), now, out);
}
bool Core::PlaceJobs(absl::Time now, Output* out) { return impl_->PlaceJobs(now, out); }
Counters Core::counters() const { return impl_->counters(); }
std::vector<ShownCluster> Core::TakeShownClusters(absl::Time now) {
  return impl_->TakeShownClusters(now);
}
std::vector<ShownUse> Core::TakeShownUses() { return impl_->TakeShownUses(); }
uint64_t Core::last_sequence() const { return impl_->last_sequence(); }
absl::Status Core::CheckInvariants() const { return impl_->CheckInvariants(); }

void Core::Impl::Handle(Input input, absl::Time now, Output* out) {
  Step step = Begin(now, out);
  std::visit([&](auto& in) { On(in, step); }, input);
  Finish(step);
}

Counters Core::Impl::counters() const {
  Counters counters = counted_;
  counters.queued = queued_;
  counters.groups = groups_.size();
  for (const auto& [name, cluster] : clusters_by_name_) counters.active_runs += cluster->active;
  return counters;
}

bool Core::Impl::IsReady(uint64_t id, const Job& job) const {
  return !job.held() && !retries_.TimeOf(id) && !dependencies_.Waits(id);
}

void Core::Impl::LineUp(uint64_t id, const Job& job) {
  Group* group = groups_.at(job.group);
  group->line.Push({job.priority, id});
  waiting_.Refresh(group);
}

void Core::Impl::StepAside(uint64_t id, const Job& job) {
  Group* group = groups_.at(job.group);
  group->line.Remove({job.priority, id});
  waiting_.Refresh(group);
}

}  // namespace muster::core
