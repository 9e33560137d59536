#include "tests/unit/core/small_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "broker/core/timestamps.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

constexpr absl::Duration kTick = absl::Seconds(10);

v1::JobSpec SpecOf(const WorldJob& job) {
  v1::JobSpec spec = Spec();
  spec.set_nodes(job.nodes);
  spec.set_priority(job.priority);
  spec.set_preemptible(job.is_preemptible);
  spec.mutable_resources()->set_cpu_millis(job.cpus * 1000);
  if (job.limit) spec.mutable_time_limit()->set_seconds(absl::ToInt64Seconds(*job.limit));
  if (!job.cluster.empty()) spec.mutable_placement()->add_clusters(job.cluster);
  return spec;
}

}  // namespace

SmallFleet::SmallFleet(const Options& options, std::vector<WorldCluster> clusters,
                       std::vector<WorldJob> jobs)
    : jobs_(std::move(jobs)) {
  for (WorldCluster& cluster : clusters) places_.push_back({.is = std::move(cluster)});
  std::stable_sort(jobs_.begin(), jobs_.end(),
                   [](const WorldJob& a, const WorldJob& b) { return a.arrival < b.arrival; });
  Options quiet = options;
  quiet.heartbeat_interval = absl::Hours(24 * 365);  // nobody falls silent here
  Restored restored;
  restored.instance = "k7m2";
  core_ = std::make_unique<Core>(quiet, std::move(restored));
}

void SmallFleet::Connect() {
  for (size_t i = 0; i < places_.size(); ++i) {
    agent::v1::AgentHello hello = Hello(places_[i].is.name);
    hello.set_kind(v1::CLUSTER_KIND_MACHINES);
    *hello.mutable_inventory()->mutable_pools(0) =
        PoolOf("default",
               {.count = places_[i].is.nodes, .cpus = static_cast<uint32_t>(places_[i].is.cpus)});
    Tell(AgentConnected{i + 1, std::move(hello)});
  }
}

void SmallFleet::Submit(size_t index) {
  core::Submit submit;
  submit.ticket = index + 1;
  submit.user = "alice";
  submit.items.emplace_back().spec = std::make_shared<const v1::JobSpec>(SpecOf(jobs_[index]));
  Tell(std::move(submit));
}

void SmallFleet::Tell(Input input) {
  Output out;
  core_->Handle(std::move(input), Now(), &out);
  Take(out);
}

void SmallFleet::Take(const Output& out) {
  for (const Effect& effect : out.effects) {
    if (const auto* reply = std::get_if<SubmitReply>(&effect)) {
      const auto* accepted = std::get_if<v1::SubmitJobsResponse>(&reply->result);
      if (accepted == nullptr) return Fail("a job is refused");
      index_.emplace(accepted->responses(0).job_id(), reply->ticket - 1);
    }
    if (const auto* sent = std::get_if<SendAssignments>(&effect)) Assign(*sent);
    if (const auto* told = std::get_if<SendToAgent>(&effect)) {
      const auto& keys = told->message.cancellations().run_keys();
      to_end_.insert(keys.begin(), keys.end());
    }
    if (std::holds_alternative<CloseAgent>(effect)) Fail("an agent is refused");
  }
  for (const Change& change : out.changes) {
    if (const auto* asked = std::get_if<PutWithdrawal>(&change)) NotePreemption(*asked);
    const auto* step = std::get_if<AppendTransition>(&change);
    if (step == nullptr) continue;
    history_.push_back(fmt::format("{} job {} is {}", absl::ToDoubleSeconds(now_), step->job,
                                   static_cast<int>(step->transition.job_state())));
  }
}

void SmallFleet::Assign(const SendAssignments& sent) {
  Place& place = places_[sent.session - 1];
  for (const agent::v1::Assignment& assignment : sent.assignments) {
    const uint64_t id = assignment.job_id();
    if (!placed_.insert(id).second) Fail(fmt::format("job {} is placed twice", id));
    if (ended_.contains(id)) Fail(fmt::format("job {} is placed after its end", id));
    // It comes before those of a lower priority, which may start later for that.
    for (const Run& other : place.runs) {
      if (JobOf(other.job).priority < JobOf(id).priority) start_by_.erase(other.job);
    }
    place.runs.push_back({.job = id, .key = assignment.run_key(), .cluster = sent.session - 1});
    const WorldJob& job = JobOf(id);
    history_.push_back(fmt::format("{}: {} to {}, with {} cores and a limit of {}",
                                   absl::ToDoubleSeconds(now_), assignment.run_key(), place.is.name,
                                   CoresOf(job),
                                   job.limit ? absl::FormatDuration(*job.limit) : "none"));
  }
}

void SmallFleet::Report(Place* place, const Run& run, v1::RunState state) {
  agent::v1::RunEvent event = Event(++place->sequence, run.key, state);
  SetTimestamp(Now(), event.mutable_evidence()->mutable_observed_at());
  if (state == v1::RUN_STATE_PENDING)
    event.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
  if (state == v1::RUN_STATE_RUNNING) {
    SetTimestamp(Now(), event.mutable_start_time());
    // Clusters of several nodes do not say where their runs are, so that none is preempted there.
    if (place->is.nodes == 1) event.add_nodes("n0");
  }
  if (state == v1::RUN_STATE_SUCCEEDED || state == v1::RUN_STATE_CANCELED) {
    SetTimestamp(Now(), event.mutable_end_time());
    event.set_logs_complete(true);
  }
  AgentReported report;
  report.session = run.cluster + 1;
  *report.events.add_events() = std::move(event);
  Tell(std::move(report));
}

void SmallFleet::EndRuns() {
  for (Place& place : places_) {
    for (size_t i = 0; i < place.runs.size();) {
      if (!place.runs[i].is_running || place.runs[i].end > now_) {
        ++i;
        continue;
      }
      const Run run = place.runs[i];
      place.runs.erase(place.runs.begin() + static_cast<ptrdiff_t>(i));
      place.taken -= CoresOf(JobOf(run.job));
      placed_.erase(run.job);
      ended_.insert(run.job);
      Report(&place, run, v1::RUN_STATE_SUCCEEDED);
    }
  }
}

void SmallFleet::NotePreemption(const PutWithdrawal& change) {
  if (!change.withdrawal || change.withdrawal->cause() != v1::WITHDRAWAL_CAUSE_PREEMPTION) return;
  const WorldJob& job = JobOf(change.job);
  const WorldJob& other = JobOf(change.withdrawal->for_job());
  ++preempted_;
  if (!job.is_preemptible) Fail(fmt::format("job {} is not preemptible", change.job));
  if (other.priority <= job.priority || other.is_preemptible)
    Fail(fmt::format("job {} ends for one that does not come first", change.job));
  if (++preemptions_[change.job] > 5) Fail(fmt::format("job {} ends for ever", change.job));
}

bool SmallFleet::EndAsked() {
  bool any = false;
  for (Place& place : places_) {
    for (size_t i = 0; i < place.runs.size();) {
      if (!to_end_.contains(place.runs[i].key)) {
        ++i;
        continue;
      }
      const Run run = place.runs[i];
      place.runs.erase(place.runs.begin() + static_cast<ptrdiff_t>(i));
      if (run.is_running) place.taken -= CoresOf(JobOf(run.job));
      placed_.erase(run.job);
      Report(&place, run, v1::RUN_STATE_CANCELED);
      any = true;
    }
  }
  to_end_.clear();
  return any;
}

bool SmallFleet::StartRuns(Place* place) {
  std::sort(place->runs.begin(), place->runs.end(), [this](const Run& a, const Run& b) {
    return std::tuple(-JobOf(a.job).priority, a.job) < std::tuple(-JobOf(b.job).priority, b.job);
  });
  bool any = false;
  bool is_blocked = false;
  // Telling the core changes nothing of the runs here, because rounds are made in Settle alone.
  for (Run& run : place->runs) {
    if (run.is_running) continue;
    const WorldJob& job = JobOf(run.job);
    const bool fits = place->taken + CoresOf(job) <= place->is.nodes * place->is.cpus;
    // Runs that wait keep to the order; one that has just come may start at once.
    if (!fits || (is_blocked && run.is_told)) {
      is_blocked = true;
      if (!run.is_told) {
        Report(place, run, v1::RUN_STATE_LAUNCHING);
        Report(place, run, v1::RUN_STATE_PENDING);
        any = run.is_told = true;
      }
      continue;
    }
    place->taken += CoresOf(job);
    run.is_running = any = true;
    run.end = now_ + job.run_time;
    if (!run.is_told) Report(place, run, v1::RUN_STATE_LAUNCHING);
    Report(place, run, v1::RUN_STATE_RUNNING);
    const auto start_by = start_by_.find(run.job);
    if (start_by != start_by_.end() && Now() > start_by->second) {
      Fail(fmt::format("job {} starts {} later than it was to", run.job,
                       absl::FormatDuration(Now() - start_by->second)));
    }
    start_by_.erase(run.job);
    if (CoresOf(job) > largest_) {
      largest_ = CoresOf(job);
      wait_of_largest_ = now_ - job.arrival;
    }
  }
  return any;
}

void SmallFleet::Settle() {
  for (bool more = true; more && wrong_.empty();) {
    Output out;
    more = core_->PlaceJobs(Now(), &out);
    Take(out);
    LookAtKept();
    more |= EndAsked();
    for (Place& place : places_) more |= StartRuns(&place);
    if (const absl::Status status = core_->CheckInvariants(); !status.ok())
      Fail(std::string(status.message()));
  }
}

void SmallFleet::LookAtKept() {
  for (const ShownCluster& shown : core_->TakeShownClusters(Now())) {
    // Room that is kept no longer is promised no longer, as for one of a higher priority.
    for (const uint64_t job : std::exchange(kept_on_[shown.name], {})) {
      const auto& all = shown.view->load.kept;
      if (std::none_of(all.begin(), all.end(), [job](const auto& one) { return one.job == job; }))
        start_by_.erase(job);
    }
    for (const placement::KeptRoom& kept : shown.view->load.kept) {
      kept_jobs_.insert(kept.job);
      kept_on_[shown.name].insert(kept.job);
      if (kept.start == absl::InfiniteFuture()) continue;
      const auto [at, is_new] = start_by_.emplace(kept.job, kept.start);
      history_.push_back(fmt::format("{}: room of {} is kept for job {}, by {}",
                                     absl::ToDoubleSeconds(now_), shown.name, kept.job,
                                     absl::ToDoubleSeconds(kept.start - Now() + now_)));
      at->second = std::min(at->second, kept.start);
    }
  }
}

absl::Duration SmallFleet::NextTime() const {
  absl::Duration next = now_ + kTick;
  if (next_arrival_ < jobs_.size()) next = std::min(next, jobs_[next_arrival_].arrival);
  for (const Place& place : places_) {
    for (const Run& run : place.runs) {
      if (run.is_running) next = std::min(next, run.end);
    }
  }
  return next;
}

std::string SmallFleet::RunAll(absl::Duration at_most) {
  Connect();
  while (wrong_.empty() && ended_.size() < jobs_.size()) {
    if (now_ > at_most)
      return fmt::format("only {} of {} jobs have ended", ended_.size(), jobs_.size());
    EndRuns();
    while (next_arrival_ < jobs_.size() && jobs_[next_arrival_].arrival <= now_)
      Submit(next_arrival_++);
    Settle();
    now_ = NextTime();
  }
  return wrong_;
}

}  // namespace muster::core
