#include "tests/sim/broker.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "broker/engine/carrier.h"
#include "contract/place_limits.h"
#include "contract/project_shares.h"
#include "contract/refusals.h"
#include "contract/text.h"

namespace muster::sim {
namespace {

constexpr absl::Duration kTickInterval = absl::Seconds(1);
// Commits whose effects are not all carried out: as many wait, those of one more are being carried
// out, and with yet another one the store thread waits in Carrier::Post.
constexpr size_t kMaxCommitted = broker::Carrier::kMaxWaiting + 2;

// Three heartbeats, the least that a broker takes.
constexpr absl::Duration kLease = absl::Seconds(15);

core::Options CoreOptions() {
  core::Options options;
  // Rounds that end early are a path of their own.
  options.max_assignments_per_round = 3;
  options.max_fit_checks_per_round = 2;
  options.lease = kLease;
  options.keep_room_after = absl::Seconds(20);
  return options;
}

}  // namespace

SimBroker::SimBroker(World* world, Auditor* auditor)
    : world_(*world), auditor_(*auditor), store_("s1m0") {}

// ---- the process

void SimBroker::Start() {
  auto restored = store_.Restore(now());
  if (world_.Has(Mutation::kForgetRequestIds)) restored->requests.clear();
  for (core::LiveJob& job : restored->jobs) {
    if (world_.Has(Mutation::kForgetRetryTimes)) job.retry_time.reset();
    if (world_.Has(Mutation::kForgetFailOvers)) job.fail_overs = 0;
    if (world_.Has(Mutation::kForgetHolds)) job.hold = core::HoldState::kNone;
    if (world_.Has(Mutation::kForgetWithdrawals)) job.withdrawal.reset();
  }
  for (core::PutCluster& cluster : restored->clusters) {
    if (world_.Has(Mutation::kForgetCordons)) cluster.cordon.reset();
  }
  if (!world_.Has(Mutation::kForgetLimits)) {
    contract::PlaceLimits limits;
    limits[std::string(kPickyProject)].clusters.emplace_back(kPickyCluster);
    restored->limits = std::make_shared<const contract::PlaceLimits>(std::move(limits));
  }
  contract::ProjectShares shares;
  shares.are_on = true;
  if (!world_.Has(Mutation::kForgetQuotas))
    shares.projects[std::string(kPickyProject)].quota.max_active_runs = kPickyRuns;
  restored->shares = std::make_shared<const contract::ProjectShares>(std::move(shares));
  if (world_.Has(Mutation::kForgetBudgets)) {
    for (core::Requirements& requirements : restored->requirements) requirements.retry = {};
  }
  if (world_.Has(Mutation::kAllPreemptible)) {
    for (core::Requirements& requirements : restored->requirements) requirements.preemptible = true;
  }
  loop_.emplace(std::make_unique<core::Core>(CoreOptions(), *std::move(restored)), kTickInterval,
                Now());
  assignments_.emplace();
  world_.history.Note(world_.loop, "broker: starts");
  CheckInvariants();
  TurnAfter(loop_->Patience(Now()));
}

void SimBroker::Crash(std::string_view why) {
  if (!is_up()) return;
  world_.Count(why);
  world_.history.Note(world_.loop, "{}", why);
  ++process_;
  loop_.reset();
  assignments_.reset();
  inbox_.clear();
  waiting_ = {};
  committed_.clear();
  commit_is_due_ = false;
  for (auto& [session, link] : links_) {
    link->broker = {};
    link->Cut();
  }
  links_.clear();
  submits_.clear();
  wishes_.clear();
  greeting_.clear();
  current_.clear();
  world_.loop.After(world_.random.Skewed(absl::Milliseconds(100), absl::Seconds(30)),
                    [this] { Start(); });
}

void SimBroker::Later(absl::Duration delay, std::function<void()> action) {
  world_.loop.After(delay, [this, process = process_, action = std::move(action)] {
    if (process == process_ && is_up()) action();
  });
}

broker::Instant SimBroker::Now() const {
  const absl::Duration passed = world_.loop.now() - absl::UnixEpoch();
  return {now(), std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(passed))};
}

void SimBroker::JumpClock(absl::Duration by) {
  clock_offset_ += by;
  auditor_.ClockJumped(by);
}

void SimBroker::CheckInvariants() {
  if (auto status = loop_->CheckInvariants(); !status.ok()) {
    auditor_.Fail("broker's own check", std::string(ToStd(status.message())));
  }
}

void SimBroker::Take(core::Input input) {
  inbox_.push_back(std::move(input));
  if (inbox_.size() > 1) return;
  TurnAfter(world_.random.Skewed(absl::Microseconds(10), absl::Milliseconds(50)));
}

void SimBroker::TurnAfter(absl::Duration delay) {
  Later(std::max(delay, absl::ZeroDuration()), [this, turn = ++next_turn_] {
    if (turn == next_turn_) Turn();
  });
}

void SimBroker::Turn() {
  const std::vector<core::Input> inputs = std::exchange(inbox_, {});
  core::Output out =
      loop_->Turn(inputs, Now(), [this, &inputs](const broker::CoreLoop::Handled& handled) {
        OnHandled(inputs[handled.input], handled);
      });
  CheckInvariants();
  TurnAfter(loop_->Patience(Now()));
  if (world_.Strikes(0.0005)) return Crash("broker dies before a commit");
  if (world_.Has(Mutation::kReplyBeforeCommit)) {
    core::Output early;
    early.effects = std::exchange(out.effects, {});
    CarryOut(std::move(early));
    if (!is_up()) return;
  }
  waiting_.Add(std::move(out));
  CommitLater();
}

void SimBroker::OnHandled(const core::Input& input, const broker::CoreLoop::Handled& handled) {
  if (IsStale(input)) {
    world_.Count("report over an old connection");
    auditor_.HandledStale("a report", handled.out.changes.size() - handled.changes_before);
  }
  Track(input, handled.out, handled.effects_before);
}

bool SimBroker::IsStale(const core::Input& input) const {
  core::SessionId session = 0;
  if (const auto* report = std::get_if<core::AgentReported>(&input)) session = report->session;
  if (const auto* beat = std::get_if<core::AgentBeat>(&input)) session = beat->session;
  if (session == 0) return false;
  const auto greeted = greeting_.find(session);
  if (greeted == greeting_.end()) return true;
  const auto current = current_.find(greeted->second);
  return current == current_.end() || current->second != session;
}

void SimBroker::Track(const core::Input& input, const core::Output& out, size_t effects_before) {
  if (const auto* hello = std::get_if<core::AgentConnected>(&input)) {
    greeting_[hello->session] = hello->hello.cluster();
  }
  const auto end = [this](core::SessionId session) {
    std::erase_if(current_, [session](const auto& entry) { return entry.second == session; });
  };
  for (size_t i = effects_before; i < out.effects.size(); ++i) {
    if (const auto* close = std::get_if<core::CloseAgent>(&out.effects[i])) end(close->session);
    const auto* send = std::get_if<core::SendToAgent>(&out.effects[i]);
    if (send != nullptr && send->message.has_welcome()) {
      current_[greeting_[send->session]] = send->session;
    }
  }
  if (const auto* gone = std::get_if<core::AgentGone>(&input)) end(gone->session);
}

// ---- the disk

void SimBroker::CommitLater() {
  if (waiting_.empty() || commit_is_due_ || committed_.size() == kMaxCommitted) return;
  commit_is_due_ = true;
  Later(world_.random.Skewed(absl::Microseconds(100), absl::Milliseconds(300)),
        [this] { CommitWaiting(); });
}

void SimBroker::CommitWaiting() {
  commit_is_due_ = false;
  const absl::Status status = broker::CommitThenCarryOut(
      waiting_.Take(), [this](const core::Changes& changes) { return Commit(changes); },
      [this](core::Output output) { Post(std::move(output)); });
  if (status.ok()) CommitLater();
}

absl::Status SimBroker::Commit(core::Changes changes) {
  const auto die = [this](std::string_view why) {
    Crash(why);
    return absl::AbortedError("the process has died");
  };
  if (world_.Strikes(0.0005)) return die("broker dies in a commit that does not take place");
  if (world_.Has(Mutation::kTornCommit) && changes.size() > 3 && world_.Strikes(0.05)) {
    changes.resize(changes.size() / 2);
    Store(changes);
    return die("broker dies in half a commit");
  }
  Store(changes);
  if (world_.Strikes(0.0005)) return die("broker dies after a commit");
  return absl::OkStatus();
}

void SimBroker::Store(const core::Changes& changes) {
  core::Changes stored;
  for (const core::Change& change : changes) {
    const bool is_position = std::holds_alternative<core::AdvanceCluster>(change);
    if (world_.Has(Mutation::kForgetEventPosition) && is_position) continue;
    stored.push_back(change);
  }
  auditor_.Committed(stored);
  if (auto status = store_.Commit(stored); !status.ok()) {
    auditor_.Fail("broker's own check", std::string(ToStd(status.message())));
  }
}

void SimBroker::Post(core::Output committed) {
  committed_.push_back(std::move(committed));
  if (committed_.size() > 1) return;
  // Effects may be faster than whatever the store thread does next.
  if (world_.random.Chance(0.5)) return CarryOutNext();
  CarryOutLater();
}

void SimBroker::CarryOutLater() {
  Later(world_.random.Skewed(absl::Microseconds(10), absl::Milliseconds(300)),
        [this] { CarryOutNext(); });
}

void SimBroker::CarryOutNext() {
  CarryOut(std::move(committed_.front()));
  if (!is_up()) return;
  committed_.pop_front();
  if (!committed_.empty()) CarryOutLater();
  CommitLater();
}

void SimBroker::CarryOut(core::Output output) {
  assignments_->Remember(output.changes);
  for (core::Effect& effect : output.effects) {
    if (world_.Strikes(0.0002)) return Crash("broker dies between effects");
    std::visit([this](auto& typed) { Do(typed); }, effect);
  }
}

// ---- clients

void SimBroker::Submit(core::Submit request, SubmitDone done) {
  request.ticket = ++last_ticket_;
  submits_[request.ticket] = std::move(done);
  Take(std::move(request));
}

void SimBroker::Cancel(core::Cancel request, StatusDone done) {
  request.ticket = ++last_ticket_;
  wishes_[request.ticket] = std::move(done);
  Take(std::move(request));
}

void SimBroker::Hold(core::Hold request, StatusDone done) {
  request.ticket = ++last_ticket_;
  wishes_[request.ticket] = std::move(done);
  Take(std::move(request));
}

void SimBroker::Move(core::Move request, StatusDone done) {
  request.ticket = ++last_ticket_;
  wishes_[request.ticket] = std::move(done);
  Take(std::move(request));
}

void SimBroker::Cordon(core::SetCordon request, StatusDone done) {
  request.ticket = ++last_ticket_;
  wishes_[request.ticket] = std::move(done);
  Take(std::move(request));
}

void SimBroker::Do(core::SubmitReply& effect) {
  auto done = submits_.extract(effect.ticket);
  if (done.empty()) return;
  if (const auto* refusal = std::get_if<contract::Refusal>(&effect.result))
    return done.mapped()(contract::ToStatus(*refusal));
  done.mapped()(std::get<v1::SubmitJobsResponse>(std::move(effect.result)));
}

void SimBroker::Do(core::StatusReply& effect) {
  auto done = wishes_.extract(effect.ticket);
  if (!done.empty()) done.mapped()(contract::ToStatus(effect.refusal));
}

// ---- agents

std::shared_ptr<Link> SimBroker::Dial() {
  if (!is_up()) return nullptr;
  auto link = std::make_shared<Link>(&world_);
  link->session = ++last_session_;
  links_[link->session] = link;
  link->broker.on_message = [this, process = process_,
                             session = link->session](agent::v1::ConnectRequest message) {
    if (process == process_) OnMessage(session, std::move(message));
  };
  link->broker.on_broken = [this, process = process_, session = link->session] {
    if (process != process_) return;
    links_.erase(session);
    Take(core::AgentGone{session});
  };
  return link;
}

void SimBroker::OnMessage(core::SessionId session, agent::v1::ConnectRequest message) {
  switch (message.message_case()) {
    case agent::v1::ConnectRequest::kHello:
      return Take(core::AgentConnected{session, std::move(*message.mutable_hello())});
    case agent::v1::ConnectRequest::kEvents: {
      // The same bytes come twice: a stream does not do this, but a reconnection has the same
      // effect.
      if (world_.Strikes(0.02)) {
        world_.Count("events delivered twice");
        Take(core::AgentReported{session, message.events()});
      }
      return Take(core::AgentReported{session, std::move(*message.mutable_events())});
    }
    case agent::v1::ConnectRequest::kHeartbeat:
      return Take(core::AgentBeat{session, std::move(*message.mutable_heartbeat())});
    case agent::v1::ConnectRequest::kAnswer:
    case agent::v1::ConnectRequest::MESSAGE_NOT_SET:
      return;
  }
}

void SimBroker::Do(core::SendToAgent& effect) {
  if (effect.message.has_lease_renewal() && world_.Has(Mutation::kLongerLeases))
    effect.message.mutable_lease_renewal()->mutable_duration()->set_seconds(45);
  const auto link = links_.find(effect.session);
  if (link != links_.end()) link->second->ToAgent(std::move(effect.message));
}

void SimBroker::Do(core::SendAssignments& effect) {
  const auto link = links_.find(effect.session);
  if (link == links_.end()) return;
  std::vector<agent::v1::Assignment> assignments = std::move(effect.assignments);
  if (world_.Has(Mutation::kDropResentAssignments)) {
    std::erase_if(assignments, [](const auto& one) { return one.may_have_been_launched(); });
  }
  if (world_.Has(Mutation::kForgetLaunchedBefore)) {
    for (agent::v1::Assignment& one : assignments) one.set_may_have_been_launched(false);
  }
  assignments_->FillFromMemory(assignments);
  if (!broker::AssignmentMessages::FillFromStore(store_, assignments).ok())
    return auditor_.Fail("durable", "an assignment is sent whose job is not stored");
  for (agent::v1::ConnectResponse& message :
       broker::AssignmentMessages::Pack(std::move(assignments))) {
    link->second->ToAgent(std::move(message));
  }
}

void SimBroker::Do(core::CloseAgent& effect) {
  const auto node = links_.extract(effect.session);
  if (node.empty()) return;
  world_.history.Note(world_.loop, "broker: closes session {}: {}", effect.session,
                      contract::ToStatus(effect.why).ToString());
  // Messages under way may still come in.
  node.mapped()->Cut();
}

void SimBroker::CutSomeLink() {
  if (links_.empty()) return;
  auto link = std::next(links_.begin(), static_cast<long>(world_.random.Below(links_.size())));
  world_.Count("connection cut");
  world_.history.Note(world_.loop, "network: cuts session {}", link->first);
  link->second->Cut();
}

}  // namespace muster::sim
