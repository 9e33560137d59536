#include "broker/app/change_jobs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/choose_jobs.h"
#include "broker/app/limits.h"
#include "broker/app/rights.h"
#include "broker/app/show_jobs.h"
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

// Takes the jobs that this change is possible for.
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
    case JobChange::kMove:
      return contract::And(contract::InStates({v1::JOB_STATE_PENDING}), goes_on);
  }
  return is_held;
}

// Makes the core's request for these jobs.
template <typename Wish>
Wish MakeWish(const Principal& principal, const ChangeRequest& request) {
  Wish wish;
  wish.reason = request.reason;
  wish.user = principal.user;
  return wish;
}

core::Hold MakeHold(const Principal& principal, const ChangeRequest& request) {
  core::Hold hold = MakeWish<core::Hold>(principal, request);
  hold.held = request.change == JobChange::kHold;
  return hold;
}

// The common part of a change by number and one by filter.
struct Change {
  const Principal principal;
  const Services services;
  const store::Scope scope;
  const ChangeRequest request;
  const ChangeDone done;

  // Answers with what was done, and with as many of the jobs as can be read.
  void Answer(AnswerPlace& place, std::vector<uint64_t> jobs, ChangedJobs result) const {
    place.Use([*this, jobs = std::move(jobs), result = std::move(result)](bool may_read) mutable {
      result.jobs = ShowJobs(services, scope, jobs, may_read);
      done(std::move(result));
    });
  }
};

void ChangeVisible(const Change& change) {
  auto place = AnswerPlace::Take(change.services.readers);
  if (!place) return change.done(change.services.readers->Refusal());
  const ChangeRequest& request = change.request;
  auto answer = [change, place](const absl::Status& changed) {
    if (!changed.ok()) {
      place->GiveBack();
      return change.done(changed);
    }
    ChangedJobs result;
    result.matched_count = static_cast<uint32_t>(change.request.jobs.size());
    change.Answer(*place, change.request.jobs, std::move(result));
  };
  const auto named = [&request](auto wish) {
    wish.jobs = request.jobs;
    wish.validate_only = request.validate_only;
    return wish;
  };
  Engine& engine = *change.services.engine;
  if (request.change == JobChange::kCancel) {
    engine.Cancel(named(MakeWish<core::Cancel>(change.principal, request)), std::move(answer));
  } else if (request.change == JobChange::kMove) {
    engine.Move(named(MakeWish<core::Move>(change.principal, request)), std::move(answer));
  } else {
    engine.Hold(named(MakeHold(change.principal, request)), std::move(answer));
  }
}

// Changes all of the numbered jobs, or none. The core knows no scopes, so that the jobs are looked
// up first.
void ChangeNumbers(const Change& change) {
  if (change.scope.is_all()) return ChangeVisible(change);
  const bool is_taken = change.services.readers->PostCall([change] {
    const auto visible = change.services.store->GetJobs(change.scope, change.request.jobs);
    if (!visible.ok()) return change.done(visible.status());
    ChangeVisible(change);
  });
  if (!is_taken) change.done(change.services.readers->Refusal());
}

// One request by filter, carried out in one batch of jobs after the other.
class Changing : public std::enable_shared_from_this<Changing> {
 public:
  Changing(Change change, const Filter& filter)
      : change_(std::move(change)),
        filter_(contract::And(filter, CanBe(change_.request.change))),
        pages_(change_.services.store, change_.scope, filter_) {}

  void Begin() {
    const bool is_taken =
        change_.services.counters->PostCall([self = shared_from_this()] { self->Count(); });
    if (!is_taken) change_.done(change_.services.counters->Refusal());
  }

 private:
  void Count() {
    const auto counts = change_.services.store->CountJobs(
        change_.scope, {.filter = filter_, .limit = kMaxCountedJobs});
    if (!counts.ok()) return change_.done(counts.status());
    result_.matched_count = static_cast<uint32_t>(counts->total);
    if (counts->total == 0) return change_.done(std::move(result_));
    if (change_.request.validate_only) return ShowSome();
    place_ = AnswerPlace::Take(change_.services.readers);
    if (!place_) return change_.done(change_.services.readers->Refusal());
    ChangeMore();
  }

  void ShowSome() {
    auto jobs = pages_.Next(kMaxJobsPerCall);
    if (!jobs.ok()) return change_.done(jobs.status());
    result_.jobs = ForAnswer(change_.services, *std::move(jobs));
    result_.more = !pages_.at_end();
    change_.done(std::move(result_));
  }

  void ChangeMore() {
    const bool is_taken =
        change_.services.readers->PostCall([self = shared_from_this()] { self->ChangeSome(); });
    if (!is_taken) EndEarly(change_.services.readers->Refusal());
  }

  // Puts the jobs that the filter chose into the core's request.
  template <typename Wish>
  static Wish Chosen(const std::vector<v1::Job>& jobs, Wish wish) {
    for (const v1::Job& job : jobs) {
      wish.jobs.push_back(job.id());
      wish.chosen_at.push_back(job.job_sequence());
    }
    return wish;
  }

  // Runs on a thread that may read the store.
  void ChangeSome() {
    const auto jobs = pages_.Next(kMaxJobsPerCall - static_cast<int>(changed_.size()));
    if (!jobs.ok()) return EndEarly(jobs.status());
    if (jobs->empty()) return Answer();
    auto done = [self = shared_from_this()](absl::StatusOr<ChosenJobs> chosen) {
      self->Take(std::move(chosen));
    };
    Engine& engine = *change_.services.engine;
    if (change_.request.change == JobChange::kCancel) {
      engine.CancelChosen(Chosen(*jobs, MakeWish<core::Cancel>(change_.principal, change_.request)),
                          std::move(done));
    } else if (change_.request.change == JobChange::kMove) {
      engine.MoveChosen(Chosen(*jobs, MakeWish<core::Move>(change_.principal, change_.request)),
                        std::move(done));
    } else {
      engine.HoldChosen(Chosen(*jobs, MakeHold(change_.principal, change_.request)),
                        std::move(done));
    }
  }

  void Take(absl::StatusOr<ChosenJobs> chosen) {
    if (!chosen.ok()) return EndEarly(chosen.status());
    changed_.insert(changed_.end(), chosen->changed.begin(), chosen->changed.end());
    // The filter may still take the jobs that had changed; a repeat of the request finds out.
    result_.more = result_.more || chosen->is_stale;
    const bool is_full = changed_.size() >= static_cast<size_t>(kMaxJobsPerCall);
    if (is_full && !pages_.at_end()) result_.more = true;
    if (is_full || pages_.at_end()) return Answer();
    // Some jobs could not be changed after all, and others come after them.
    ChangeMore();
  }

  // Ends because the rest cannot be changed now. The answer tells what earlier batches have
  // changed.
  void EndEarly(const absl::Status& status) {
    if (changed_.empty()) {
      place_->GiveBack();
      return change_.done(status);
    }
    result_.more = true;
    Answer();
  }

  void Answer() { change_.Answer(*place_, std::move(changed_), std::move(result_)); }

  const Change change_;
  const Filter filter_;
  ChosenPages pages_;
  std::shared_ptr<AnswerPlace> place_;  // taken before the first batch
  std::vector<uint64_t> changed_;
  ChangedJobs result_;
};

}  // namespace

void ChangeJobs(const Principal& principal, const Services& services, ChangeRequest request,
                ChangeDone done) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kChangeJobs);
  if (!scope.ok()) return done(scope.status());
  absl::Status status = CheckChoice({request.jobs.begin(), request.jobs.end()}, request.filter);
  if (status.ok()) status = CheckReason(request.reason);
  if (!status.ok()) return done(status);
  const absl::StatusOr<Filter> filter = contract::ParseFilter(request.filter, services.now());
  if (!filter.ok()) return done(filter.status());
  Change change{principal, services, *scope, std::move(request), std::move(done)};
  if (!change.request.jobs.empty()) return ChangeNumbers(change);
  std::make_shared<Changing>(std::move(change), *filter)->Begin();
}

}  // namespace muster::broker
