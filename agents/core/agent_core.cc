#include "agents/core/agent_core.h"

#include <fmt/core.h>

#include <utility>

#include "agents/core/broker_session.h"
#include "agents/core/event_log.h"
#include "agents/core/proto_time.h"
#include "agents/core/run_table.h"

namespace muster::agents {
namespace {

constexpr char kHoldsBack[] =
    "the agent's journal is nearly full, so that no new run is taken: it empties as the broker "
    "acknowledges events and gets the logs of the runs that ended";

}  // namespace

class AgentCore::Impl {
 public:
  Impl(Options options, JournalContent content)
      : options_(std::move(options)),
        meta_(std::move(content.meta)),
        written_meta_(meta_),
        recovered_events_(content.events),
        events_(meta_.next_event_sequence, std::move(content.events)),
        runs_(options_, &events_, std::move(content.runs)),
        session_(options_) {}

  void Handle(Input input, absl::Time now, absl::Time wall, Output* out) {
    if (stopped_) return;
    const Step step{now, wall, out};
    if (!recovered_) {
      recovered_ = true;
      runs_.Recover(recovered_events_, step);
      recovered_events_ = {};
    }
    std::visit([&](auto& what) { On(what, step); }, input);
    runs_.Finish(step);
    meta_.next_event_sequence = events_.next_sequence();
    if (meta_ != written_meta_) {
      out->changes.push_back(PutMeta{meta_});
      written_meta_ = meta_;
    }
    if (session_.is_welcome()) {
      events_.Send(options_.max_unacked_events, options_.max_unacked_event_bytes, &out->effects);
    }
  }

  const RunTable& runs() const { return runs_; }
  bool holds_back_runs() const { return holds_back_runs_; }

  absl::Status CheckInvariants() const {
    if (absl::Status status = events_.CheckInvariants(); !status.ok()) return status;
    return runs_.CheckInvariants();
  }

 private:
  void On(LinkUp& up, const Step& step) {
    missed_runs_ = false;  // the broker sends what the hello does not list
    session_.OnInventory(std::move(up.inventory), {}, step.wall);
    agent::v1::AgentHello hello;
    runs_.AddTo(&hello);
    session_.Up(std::move(hello), meta_, step.now, &step.out->effects);
  }

  void On(LinkDown&, const Step&) { session_.Down(); }

  void On(BrokerSaid& said, const Step& step) {
    if (session_.is_down()) return;  // the last words of a connection that was given up
    const agent::v1::ConnectResponse& message = said.message;
    if (message.has_welcome() == session_.is_welcome()) {
      session_.Redial(
          absl::InternalError(message.has_welcome() ? "the broker sent a second welcome"
                                                    : "the broker's first message is no welcome"),
          absl::ZeroDuration(), &step.out->effects);
      return;
    }
    switch (message.message_case()) {
      case agent::v1::ConnectResponse::kWelcome:
        return OnWelcome(message.welcome(), step);
      case agent::v1::ConnectResponse::kAssignments:
        return OnAssignments(message.assignments(), step);
      case agent::v1::ConnectResponse::kCancellations:
        for (const std::string& key : message.cancellations().run_keys()) {
          runs_.WantCancel(key, step);
        }
        return;
      case agent::v1::ConnectResponse::kEventAck:
        session_.OnAck(step.now);
        // This answers something behind the hello, and the wishes that answer the hello came before
        // it.
        runs_.BrokerHasSpoken();
        return Acknowledge(message.event_ack().sequence(), step);
      case agent::v1::ConnectResponse::kReleases:
        for (const std::string& key : message.releases().run_keys()) runs_.Release(key, step);
        return;
      case agent::v1::ConnectResponse::kReconnect:
        return session_.Redial(absl::UnavailableError("the broker is going away"),
                               FromProto(message.reconnect().after()), &step.out->effects);
      case agent::v1::ConnectResponse::kHolds:
        for (const std::string& key : message.holds().run_keys()) {
          runs_.WantHeld(key, message.holds().held(), step);
        }
        return;
      case agent::v1::ConnectResponse::kLeaseRenewal:
        // The broker may have given up a run that still waits for its start on the cluster.
        if (runs_.MayReleasedBegin()) return;
        return session_.OnLeaseRenewal(message.lease_renewal(), step.now, &step.out->effects);
      case agent::v1::ConnectResponse::kQuestion:  // the agent around the core answers it
      case agent::v1::ConnectResponse::MESSAGE_NOT_SET:
        return;  // a kind of message that a later minor version knows
    }
  }

  void On(Launched& launched, const Step& step) { runs_.OnLaunched(std::move(launched), step); }
  void On(LookedUp& looked_up, const Step& step) { runs_.OnLookedUp(std::move(looked_up), step); }
  void On(Fenced& fenced, const Step& step) { runs_.OnFenced(std::move(fenced), step); }
  void On(CancelAsked& asked, const Step& step) { runs_.OnCancelAsked(asked, step); }
  void On(HoldAsked& asked, const Step& step) { runs_.OnHoldAsked(asked, step); }
  void On(LogsShipped& shipped, const Step& step) { runs_.OnLogsShipped(shipped.run_key, step); }
  void On(UsageRead& read, const Step& step) { runs_.OnUsageRead(read, step); }
  void On(Forgotten& forgotten, const Step& step) { runs_.OnForgotten(forgotten, step); }

  void On(Observed& observed, const Step& step) {
    session_.OnScheduler(observed.outcome.scheduler, std::move(observed.scheduler_calls),
                         step.wall);
    runs_.OnObserved(observed.outcome.observations, observed.began, step);
  }

  void On(EndsRead& read, const Step& step) {
    runs_.OnObserved(read.observations, read.began, step);
  }

  void On(EndsHang& hang, const Step&) { session_.OnEnds(hang.why); }

  void On(InventoryRead& read, const Step& step) {
    session_.OnInventory(std::move(read.inventory), std::move(read.scheduler_calls), step.wall);
  }

  void On(JournalFilled& filled, const Step& step) {
    const bool held_back = holds_back_runs_;
    holds_back_runs_ = filled.share >= options_.hold_back_above ||
                       (holds_back_runs_ && filled.share >= options_.take_again_below);
    session_.OnJournal(holds_back_runs_ ? kHoldsBack : "");
    // Ended runs that wait for their usage alone are not worth the room.
    if (holds_back_runs_ && !held_back) runs_.GiveUpUsage(step);
    if (holds_back_runs_ || !missed_runs_ || !session_.is_welcome()) return;
    missed_runs_ = false;
    session_.Redial(absl::UnavailableError("the journal has room again for the runs that were "
                                           "held back; the broker sends them again"),
                    absl::ZeroDuration(), &step.out->effects);
  }

  void On(Drain&, const Step&) { runs_.Drain(); }

  void On(Tick&, const Step& step) {
    runs_.OnTime(step);
    session_.OnTime(step.now, &step.out->effects);
  }

  void OnWelcome(const agent::v1::BrokerWelcome& welcome, const Step& step) {
    if (absl::Status status = session_.OnWelcome(welcome, step.now, &meta_); !status.ok()) {
      return DoStop(std::move(status), step);
    }
    const uint64_t has = welcome.acked_event_sequence();
    if (has < events_.acknowledged()) {
      return DoStop(absl::DataLossError(fmt::format(
                        "the broker has acknowledged event {} of this agent and now has only {}: "
                        "its database has lost commits. "
                        "Bring its latest database back, or give the agent a new --state-dir",
                        events_.acknowledged(), has)),
                    step);
    }
    Acknowledge(has, step);
    events_.Rewind();
    // Its answer says that the broker's wishes for the runs of an earlier process are all here.
    // Runs with a lease may start only once leases are renewed.
    if (!runs_.has_broker_spoken() || options_.fence_delay > absl::ZeroDuration())
      session_.Beat(step.now, &step.out->effects);
  }

  void OnAssignments(const agent::v1::Assignments& assignments, const Step& step) {
    for (const agent::v1::Assignment& assignment : assignments.assignments()) {
      // The run counts as an assignment that was lost on its way: the next connection carries it
      // again.
      if (holds_back_runs_ && !runs_.Holds(assignment.run_key())) {
        missed_runs_ = true;
        continue;
      }
      if (absl::Status status = runs_.Take(assignment, step); !status.ok()) {
        return session_.Redial(std::move(status), absl::ZeroDuration(), &step.out->effects);
      }
    }
  }

  void Acknowledge(uint64_t sequence, const Step& step) {
    if (absl::Status status = events_.Acknowledge(sequence, &step.out->changes); !status.ok()) {
      return DoStop(std::move(status), step);
    }
    runs_.Acknowledged(sequence, step);
  }

  void DoStop(absl::Status status, const Step& step) {
    stopped_ = true;
    session_.Down();
    step.out->effects.push_back(Stop{std::move(status)});
  }

  const Options options_;
  JournalMeta meta_;
  JournalMeta written_meta_;  // as the journal has it
  std::vector<agent::v1::RunEvent> recovered_events_;
  EventLog events_;
  RunTable runs_;
  BrokerSession session_;
  bool recovered_ = false;
  bool stopped_ = false;
  bool holds_back_runs_ = false;
  bool missed_runs_ = false;  // on this connection
};

AgentCore::AgentCore(Options options, JournalContent content)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(content))) {}
AgentCore::~AgentCore() = default;

void AgentCore::Handle(Input input, absl::Time now, absl::Time wall, Output* out) {
  impl_->Handle(std::move(input), now, wall, out);
}
std::vector<RunHandle> AgentCore::RunsToObserve() const { return impl_->runs().RunsToObserve(); }
std::vector<RunHandle> AgentCore::AllRuns() const { return impl_->runs().AllRuns(); }
std::optional<RunHandle> AgentCore::FindRun(const std::string& run_key) const {
  return impl_->runs().FindRun(run_key);
}
bool AgentCore::holds_back_runs() const { return impl_->holds_back_runs(); }
absl::Status AgentCore::CheckInvariants() const { return impl_->CheckInvariants(); }

}  // namespace muster::agents
