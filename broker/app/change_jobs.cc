#include "broker/app/change_jobs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/choose_jobs.h"
#include "broker/app/limits.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/filter.h"

namespace muster::broker {
namespace {

using contract::Filter;

Filter Flag(Filter::Kind kind, bool value) {
  Filter filter;
  filter.kind = kind;
  filter.number = value;
  return filter;
}

// The jobs that can be changed so.
Filter CanBe(JobChange change) {
  const Filter is_held = Flag(Filter::Kind::kHeld, true);
  const Filter is_not_held = Flag(Filter::Kind::kHeld, false);
  const Filter goes_on = Flag(Filter::Kind::kCancelRequested, false);
  switch (change) {
    case JobChange::kCancel:
      return contract::And(contract::InStates({v1::JOB_STATE_QUEUED, v1::JOB_STATE_PENDING,
                                               v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUSPENDED}),
                           goes_on);
    case JobChange::kHold:
      return contract::And(contract::InStates({v1::JOB_STATE_QUEUED, v1::JOB_STATE_PENDING}),
                           contract::And(is_not_held, goes_on));
    case JobChange::kRelease:
      return is_held;
  }
  return is_held;
}

// One request, from one lot of jobs to the next.
class Changing : public std::enable_shared_from_this<Changing> {
 public:
  Changing(const Principal& principal, const Services& services, ChangeRequest request,
           const Filter& filter, ChangeDone done)
      : principal_(principal),
        services_(services),
        request_(std::move(request)),
        filter_(contract::And(filter, CanBe(request_.change))),
        pages_(services.store, filter_),
        done_(std::move(done)) {}

  void Begin() {
    if (!services_.count([self = shared_from_this()] { self->Count(); })) done_(ReadersBusy());
  }

 private:
  void Count() {
    const auto counts = services_.store->CountJobs({.filter = filter_, .limit = kMaxCountedJobs});
    if (!counts.ok()) return done_(counts.status());
    result_.matched_count = static_cast<uint32_t>(counts->total);
    if (counts->total == 0) return done_(std::move(result_));
    if (!request_.validate_only) return Later(&Changing::ChangeSome);
    auto jobs = pages_.Next(kMaxJobsPerCall);
    if (!jobs.ok()) return done_(jobs.status());
    result_.jobs = *std::move(jobs);
    result_.more = !pages_.at_end();
    done_(std::move(result_));
  }

  void Later(void (Changing::*step)()) {
    if (!services_.read([self = shared_from_this(), step] { (*self.*step)(); }))
      done_(ReadersBusy());
  }

  // What the jobs that are chosen here are to the core.
  template <typename Wish>
  Wish Choose(const std::vector<v1::Job>& jobs) const {
    Wish wish;
    for (const v1::Job& job : jobs) {
      wish.jobs.push_back(job.id());
      wish.chosen_at.push_back(job.job_sequence());
    }
    wish.reason = request_.reason;
    wish.user = principal_.user;
    return wish;
  }

  void ChangeSome() {
    const auto jobs = pages_.Next(kMaxJobsPerCall - static_cast<int>(changed_.size()));
    if (!jobs.ok()) return done_(jobs.status());
    if (jobs->empty()) return Answer();
    auto done = [self = shared_from_this()](absl::StatusOr<ChosenJobs> chosen) {
      self->Take(std::move(chosen));
    };
    if (request_.change == JobChange::kCancel) {
      services_.engine->CancelChosen(Choose<core::Cancel>(*jobs), std::move(done));
      return;
    }
    core::Hold hold = Choose<core::Hold>(*jobs);
    hold.held = request_.change == JobChange::kHold;
    services_.engine->HoldChosen(std::move(hold), std::move(done));
  }

  void Take(absl::StatusOr<ChosenJobs> chosen) {
    if (!chosen.ok()) return done_(chosen.status());
    changed_.insert(changed_.end(), chosen->changed.begin(), chosen->changed.end());
    // The filter may take those still; a repeat tells.
    result_.more = result_.more || chosen->is_stale;
    const bool is_full = changed_.size() >= static_cast<size_t>(kMaxJobsPerCall);
    if (is_full && !pages_.at_end()) result_.more = true;
    // Some cannot be changed after all, and others come after them.
    Later(is_full || pages_.at_end() ? &Changing::Answer : &Changing::ChangeSome);
  }

  void Answer() {
    auto jobs = services_.store->GetJobs(changed_);
    if (!jobs.ok()) return done_(jobs.status());
    result_.jobs = *std::move(jobs);
    done_(std::move(result_));
  }

  const Principal principal_;
  const Services services_;
  const ChangeRequest request_;
  const Filter filter_;
  ChosenPages pages_;
  const ChangeDone done_;
  std::vector<uint64_t> changed_;
  ChangedJobs result_;
};

// Asks the core whether the jobs could be changed so, all of them.
void ValidateNumbers(const Services& services, const ChangeRequest& request, ChangeDone done) {
  auto answer = [services, jobs = request.jobs, done = std::move(done)](const absl::Status& valid) {
    if (!valid.ok()) return done(valid);
    const bool is_taken = services.read([services, jobs, done] {
      auto found = services.store->GetJobs(jobs);
      if (!found.ok()) return done(found.status());
      done(ChangedJobs{*std::move(found), static_cast<uint32_t>(jobs.size()), false});
    });
    if (!is_taken) done(ReadersBusy());
  };
  if (request.change == JobChange::kCancel) {
    core::Cancel cancel;
    cancel.jobs = request.jobs;
    cancel.validate_only = true;
    return services.engine->Cancel(std::move(cancel), std::move(answer));
  }
  core::Hold hold;
  hold.jobs = request.jobs;
  hold.held = request.change == JobChange::kHold;
  hold.validate_only = true;
  services.engine->Hold(std::move(hold), std::move(answer));
}

}  // namespace

void ChangeJobs(const Principal& principal, const Services& services, ChangeRequest request,
                ChangeDone done) {
  absl::Status status = CheckChoice({request.jobs.begin(), request.jobs.end()}, request.filter);
  if (status.ok()) status = CheckReason(request.reason);
  if (!status.ok()) return done(status);
  if (!request.jobs.empty()) return ValidateNumbers(services, request, std::move(done));
  absl::StatusOr<Filter> filter = contract::ParseFilter(request.filter, services.now());
  if (!filter.ok()) return done(filter.status());
  std::make_shared<Changing>(principal, services, std::move(request), *filter, std::move(done))
      ->Begin();
}

}  // namespace muster::broker
