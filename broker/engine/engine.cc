#include "broker/engine/engine.h"

#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

constexpr size_t kUnbounded = std::numeric_limits<size_t>::max() / 2;

}  // namespace

Instant Now() { return {absl::Now(), std::chrono::steady_clock::now()}; }

Engine::Engine(EngineOptions options, std::unique_ptr<core::Core> core, store::Store* store,
               JobsChanged jobs_changed, Committer::OnFailure on_failure)
    : options_(options),
      loop_(std::move(core), options_.tick_interval, options_.clock()),
      changes_(options.changes, loop_.last_sequence()),
      feed_({}, store, &clusters_, &changes_),
      inbox_({Inbox::Cost{kUnbounded, kUnbounded},
              Inbox::Cost{options.max_waiting_requests, kUnbounded},
              Inbox::Cost{options.max_waiting_jobs, options.max_waiting_job_bytes}},
             options.batch_items),
      effects_(store, &feed_, &clusters_, &uses_, &agents_, std::move(jobs_changed)),
      carrier_([this](core::Output committed) { effects_.CarryOut(std::move(committed)); }),
      committer_(
          options.committer, store,
          [this](bool begins) { begins ? inbox_.Hold() : inbox_.Release(); },
          [this](core::Output committed) { carrier_.Post(std::move(committed)); },
          std::move(on_failure)) {
  clusters_.Show(loop_.TakeShownClusters(options_.clock()));
  uses_.Show(loop_.TakeShownUses());
}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  effects_.Start();
  carrier_.Start();
  committer_.Start();
  thread_ = std::thread([this] { Run(); });
}

void Engine::Stop() {
  inbox_.Close();
  if (thread_.joinable()) thread_.join();
  committer_.Stop();
  carrier_.Stop();
  effects_.Stop();
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

template <typename Request, typename Done>
void Engine::Ask(Request request, Done done, Inbox::Lane lane) {
  const core::Ticket ticket = request.ticket = effects_.Expect(done);
  if (inbox_.Push(lane, {std::move(request), nullptr, {}})) return;
  effects_.Forget(ticket);
  done(Refusal());
}

void Engine::Cancel(core::Cancel request, StatusDone done) {
  Ask(std::move(request), std::move(done));
}

void Engine::Hold(core::Hold request, StatusDone done) { Ask(std::move(request), std::move(done)); }

void Engine::Move(core::Move request, StatusDone done) { Ask(std::move(request), std::move(done)); }

void Engine::CancelChosen(core::Cancel request, ChosenDone done) {
  Ask(std::move(request), std::move(done));
}

void Engine::HoldChosen(core::Hold request, ChosenDone done) {
  Ask(std::move(request), std::move(done));
}

void Engine::MoveChosen(core::Move request, ChosenDone done) {
  Ask(std::move(request), std::move(done));
}

void Engine::Edit(core::Edit request, StatusDone done) { Ask(std::move(request), std::move(done)); }

void Engine::ForgetCluster(std::string name, StatusDone done) {
  Ask(core::ForgetCluster{.name = std::move(name)}, std::move(done));
}

void Engine::SetCordon(core::SetCordon request, StatusDone done) {
  Ask(std::move(request), std::move(done));
}

void Engine::SetPlaceLimits(std::shared_ptr<const contract::PlaceLimits> limits, StatusDone done) {
  // This lane refuses nothing, because the file of the projects has the limits already. They are
  // few, because each waits for the disk before.
  Ask(core::SetPlaceLimits{.limits = std::move(limits)}, std::move(done), Inbox::Lane::kAgents);
}

void Engine::SetShares(std::shared_ptr<const contract::ProjectShares> shares, StatusDone done) {
  // The same lane, for the same reason.
  Ask(core::SetShares{.shares = std::move(shares)}, std::move(done), Inbox::Lane::kAgents);
}

void Engine::DeleteJobs(std::vector<uint64_t> jobs, StatusDone done) {
  Ask(core::DeleteJobs{.jobs = std::move(jobs)}, std::move(done));
}

core::SessionId Engine::Connect(agent::v1::AgentHello hello, std::shared_ptr<AgentPeer> peer) {
  const core::SessionId session = agents_.Open(hello.cluster(), hello.journal_id(), peer);
  const Inbox::Cost cost{1 + static_cast<size_t>(hello.runs_size()), 0};
  inbox_.Push(Inbox::Lane::kAgents,
              {core::AgentConnected{session, std::move(hello)}, std::move(peer), cost});
  return session;
}

void Engine::Report(core::SessionId session, agent::v1::RunEvents events,
                    std::shared_ptr<AgentPeer> peer) {
  const Inbox::Cost cost{1 + static_cast<size_t>(events.events_size()), 0};
  inbox_.Push(Inbox::Lane::kAgents,
              {core::AgentReported{session, std::move(events)}, std::move(peer), cost});
}

void Engine::Beat(core::SessionId session, agent::v1::AgentHeartbeat heartbeat,
                  std::shared_ptr<AgentPeer> peer) {
  // Heartbeats are not urgent, and one wake-up for many saves most of what an idle agent costs.
  inbox_.PushLazily(Inbox::Lane::kAgents,
                    {core::AgentBeat{session, std::move(heartbeat)}, std::move(peer), {}});
}

void Engine::Gone(core::SessionId session) {
  agents_.Remove(session);
  inbox_.Push(Inbox::Lane::kAgents, {core::AgentGone{session}, nullptr, {}});
}

void Engine::Run() {
  next_stats_ = options_.clock().steady + absl::ToChronoNanoseconds(options_.stats_interval);
  while (!inbox_.drained()) HandleBatch(inbox_.Take(loop_.Patience(options_.clock())));
  committer_.Offer(loop_.LastTurn(options_.clock()));
}

void Engine::HandleBatch(std::vector<Inbox::Entry> batch) {
  const Instant now = options_.clock();
  if (now.steady >= next_stats_) {
    ReportStats();
    next_stats_ = now.steady + absl::ToChronoNanoseconds(options_.stats_interval);
  }
  std::vector<core::Input> inputs;
  inputs.reserve(batch.size());
  for (Inbox::Entry& entry : batch) inputs.push_back(std::move(entry.input));
  committer_.Offer(loop_.Turn(std::move(inputs), now, [&batch](const CoreLoop::Handled& handled) {
    if (const auto& peer = batch[handled.input].peer) peer->Handled();
  }));
  ShowCounters();
}

void Engine::ShowCounters() {
  const core::Counters counters = loop_.counters();
  const MutexLock lock(shown_mutex_);
  shown_ = counters;
}

std::vector<Gauge> Engine::gauges() const {
  const Inbox::Cost submits = inbox_.fill(Inbox::Lane::kSubmits);
  return {
      {"core_requests", inbox_.fill(Inbox::Lane::kRequests).items, options_.max_waiting_requests},
      {"core_submitted_jobs", submits.items, options_.max_waiting_jobs},
      {"core_submitted_bytes", submits.bytes, options_.max_waiting_job_bytes},
      {"commit_rows", committer_.waiting_rows(), options_.committer.max_waiting_rows},
      {"change_tail_bytes", changes_.bytes(), options_.changes.max_bytes},
  };
}

Stats::Totals Engine::totals() const {
  const Committer::Counts committed = committer_.counts();
  const uint64_t refused = inbox_.refused();
  const MutexLock lock(shown_mutex_);
  return {.queued_jobs = shown_.queued,
          .active_runs = shown_.active_runs,
          .succeeded_jobs = shown_.succeeded,
          .failed_jobs = shown_.failed,
          .canceled_jobs = shown_.canceled,
          .retries = shown_.retries,
          .dropped_events = shown_.illegal_transitions,
          .stale_messages = shown_.stale_messages,
          .refused_requests = refused,
          .commits = committed.commits,
          .committed_rows = committed.rows};
}

void Engine::ReportStats() {
  const core::Counters counters = loop_.counters();
  const Inbox::Marks marks = inbox_.TakeMarks();
  const Committer::Counts committed = committer_.TakeCounts();
  const auto most = [&](Inbox::Lane lane) { return marks.most[static_cast<size_t>(lane)]; };
  const Stats stats{.totals = {.queued_jobs = counters.queued,
                               .active_runs = counters.active_runs,
                               .succeeded_jobs = counters.succeeded,
                               .failed_jobs = counters.failed,
                               .canceled_jobs = counters.canceled,
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
  if (inbox_.closed()) return contract::ShuttingDown();
  return contract::RetryableError(
      absl::StatusCode::kResourceExhausted, "BROKER_BUSY",
      "the broker has more waiting requests than it may hold; try again", options_.retry_after);
}

}  // namespace muster::broker
