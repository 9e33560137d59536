#include "broker/engine/engine.h"

#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

// Two clocks are not read at the same instant; agents are given far more than this.
constexpr absl::Duration kClockTolerance = absl::Milliseconds(500);

constexpr size_t kUnbounded = std::numeric_limits<size_t>::max() / 2;

bool Assigns(const core::Output& output, size_t from) {
  for (size_t i = from; i < output.effects.size(); ++i) {
    if (std::holds_alternative<core::SendAssignments>(output.effects[i])) return true;
  }
  return false;
}

}  // namespace

Instant Now() { return {absl::Now(), std::chrono::steady_clock::now()}; }

Engine::Engine(EngineOptions options, std::unique_ptr<core::Core> core, store::Store* store,
               JobsChanged jobs_changed, Committer::OnFailure on_failure)
    : options_(options),
      core_(std::move(core)),
      inbox_({Inbox::Cost{kUnbounded, kUnbounded},
              Inbox::Cost{options.max_waiting_requests, kUnbounded},
              Inbox::Cost{options.max_waiting_jobs, options.max_waiting_job_bytes}},
             options.batch_items),
      effects_(store, std::move(jobs_changed)),
      carrier_([this](core::Output committed) { effects_.CarryOut(std::move(committed)); }),
      committer_(
          options.committer, store,
          [this](bool begins) { begins ? inbox_.Hold() : inbox_.Release(); },
          [this](core::Output committed) { carrier_.Post(std::move(committed)); },
          std::move(on_failure)) {}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  carrier_.Start();
  committer_.Start();
  thread_ = std::thread([this] { Run(); });
}

void Engine::Stop() {
  inbox_.Close();
  if (thread_.joinable()) thread_.join();
  committer_.Stop();
  carrier_.Stop();
  effects_.Abandon();
}

void Engine::Submit(core::Submit request, SubmitDone done) {
  Inbox::Cost cost{request.items.size(), 0};
  for (const core::SubmitItem& item : request.items) cost.bytes += item.spec->ByteSizeLong();
  request.ticket = effects_.Expect(done);
  const core::Ticket ticket = request.ticket;
  if (inbox_.Push(Inbox::Lane::kSubmits, {std::move(request), nullptr, cost})) return;
  effects_.Forget(ticket);
  done(Refusal());
}

void Engine::Cancel(core::Cancel request, StatusDone done) {
  request.ticket = effects_.Expect(done);
  const core::Ticket ticket = request.ticket;
  if (inbox_.Push(Inbox::Lane::kRequests, {std::move(request), nullptr, {}})) return;
  effects_.Forget(ticket);
  done(Refusal());
}

void Engine::Hold(core::Hold request, StatusDone done) {
  request.ticket = effects_.Expect(done);
  const core::Ticket ticket = request.ticket;
  if (inbox_.Push(Inbox::Lane::kRequests, {std::move(request), nullptr, {}})) return;
  effects_.Forget(ticket);
  done(Refusal());
}

void Engine::Explain(std::vector<uint64_t> jobs, ExplainDone done) {
  const core::Ticket ticket = effects_.Expect(done);
  if (inbox_.Push(Inbox::Lane::kRequests, {core::Explain{ticket, std::move(jobs)}, nullptr, {}}))
    return;
  effects_.Forget(ticket);
  done({});
}

void Engine::ListClusters(core::ListClusters which, ClustersDone done) {
  const core::Ticket ticket = which.ticket = effects_.Expect(done);
  if (inbox_.Push(Inbox::Lane::kRequests, {std::move(which), nullptr, {}})) return;
  effects_.Forget(ticket);
  done(Refusal());
}

core::SessionId Engine::Connect(v1::AgentHello hello, std::shared_ptr<AgentPeer> peer) {
  const core::SessionId session = effects_.Open(peer);
  const Inbox::Cost cost{1 + static_cast<size_t>(hello.runs_size()), 0};
  inbox_.Push(Inbox::Lane::kAgents,
              {core::AgentConnected{session, std::move(hello)}, std::move(peer), cost});
  return session;
}

void Engine::Report(core::SessionId session, v1::RunEvents events,
                    std::shared_ptr<AgentPeer> peer) {
  const Inbox::Cost cost{1 + static_cast<size_t>(events.events_size()), 0};
  inbox_.Push(Inbox::Lane::kAgents,
              {core::AgentReported{session, std::move(events)}, std::move(peer), cost});
}

void Engine::Beat(core::SessionId session, v1::AgentHeartbeat heartbeat,
                  std::shared_ptr<AgentPeer> peer) {
  // No heartbeat is urgent, and one wake-up for many saves most of what an idle agent costs.
  inbox_.PushLazily(Inbox::Lane::kAgents,
                    {core::AgentBeat{session, std::move(heartbeat)}, std::move(peer), {}});
}

void Engine::Gone(core::SessionId session) {
  effects_.Forsake(session);
  inbox_.Push(Inbox::Lane::kAgents, {core::AgentGone{session}, nullptr, {}});
}

void Engine::Run() {
  last_ = options_.clock();
  next_tick_ = last_.steady;
  next_stats_ = last_.steady + absl::ToChronoNanoseconds(options_.stats_interval);
  bool more_to_place = false;
  while (!inbox_.drained()) {
    const absl::Duration patience = more_to_place
                                        ? absl::ZeroDuration()
                                        : absl::FromChrono(next_tick_ - options_.clock().steady);
    more_to_place = HandleBatch(inbox_.Take(patience));
  }
}

bool Engine::HandleBatch(std::vector<Inbox::Entry> batch) {
  const Instant now = options_.clock();
  core::Output output;
  const absl::Duration clock_set_by = ClockSetBy(now);
  if (now.steady >= next_tick_ || clock_set_by != absl::ZeroDuration()) {
    core_->Handle(core::Tick{clock_set_by}, now.wall, &output);
    next_tick_ = now.steady + absl::ToChronoNanoseconds(options_.tick_interval);
  }
  if (now.steady >= next_stats_) {
    ReportStats();
    next_stats_ = now.steady + absl::ToChronoNanoseconds(options_.stats_interval);
  }
  for (Inbox::Entry& entry : batch) {
    core_->Handle(std::move(entry.input), now.wall, &output);
    if (entry.peer) entry.peer->Handled();
  }
  const size_t before = output.effects.size();
  core_->PlaceJobs(now.wall, &output);
  const bool placed = Assigns(output, before);
  committer_.Offer(std::move(output));
  return placed;
}

absl::Duration Engine::ClockSetBy(Instant now) {
  const absl::Duration set_by =
      (now.wall - last_.wall) - absl::FromChrono(now.steady - last_.steady);
  last_ = now;
  return absl::AbsDuration(set_by) < kClockTolerance ? absl::ZeroDuration() : set_by;
}

void Engine::ReportStats() {
  const core::Counters counters = core_->counters();
  const Inbox::Marks marks = inbox_.TakeMarks();
  const Committer::Counts committed = committer_.TakeCounts();
  const auto most = [&](Inbox::Lane lane) { return marks.most[static_cast<size_t>(lane)]; };
  const Stats stats{.totals = {.queued_jobs = counters.queued,
                               .active_runs = counters.active_runs,
                               .retries = counters.retries,
                               .dropped_events = counters.illegal_transitions,
                               .stale_messages = counters.stale_messages,
                               .refused_requests = marks.refused,
                               .commits = committed.commits,
                               .committed_rows = committed.rows},
                    .peaks = {.waiting_agents = most(Inbox::Lane::kAgents),
                              .waiting_requests = most(Inbox::Lane::kRequests),
                              .waiting_submits = most(Inbox::Lane::kSubmits),
                              .rows_of_commit = committed.most_rows}};
  if (stats.totals == reported_) return;
  options_.report_stats(stats, reported_);
  reported_ = stats.totals;
}

absl::Status Engine::Refusal() const {
  if (inbox_.closed()) {
    return contract::RetryableError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                                    "the broker is shutting down; try again", absl::Seconds(1));
  }
  return contract::RetryableError(
      absl::StatusCode::kResourceExhausted, "BROKER_BUSY",
      "the broker has more waiting requests than it may hold; try again", options_.retry_after);
}

}  // namespace muster::broker
