#include "agents/core/agent.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agents/core/boot_time.h"
#include "agents/core/broker_link.h"
#include "agents/core/inbox.h"
#include "agents/core/launch_log.h"
#include "agents/core/lease_lane.h"
#include "agents/core/link_refusal.h"
#include "agents/core/observer.h"
#include "agents/core/questions.h"
#include "agents/core/run_calls.h"
#include "agents/core/worker_lane.h"
#include "contract/scheduler_calls.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "rpc/backoff.h"
#include "rpc/status_message.h"

namespace muster::agents {
namespace {

// The pause between two tries of a commit on a full disk; each try tells the broker of it.
constexpr absl::Duration kFullDiskRetry = absl::Seconds(1);

// Intents committed while earlier launches are under way: disk and cluster work at the same time.
constexpr int kLaunchesAhead = 3;

// At most this many batches with committed intents wait, for backends that launch many at once; one
// is under way.
constexpr int kBatchesInFlight = 2;

int LaunchesInFlight(const AgentOptions& options, const Capabilities& abilities) {
  const int one_by_one = options.launch_parallelism + kLaunchesAhead;
  const size_t batch = abilities.max_launch_batch;
  return batch == 1 ? one_by_one : std::max(one_by_one, kBatchesInFlight * static_cast<int>(batch));
}

// One at a time is in the order of arrival, whatever runs bring along.
int FileLaunches(const AgentOptions& options, const Capabilities& abilities) {
  const int all = options.launch_parallelism;
  return all == 1 ? 0 : std::min(all, abilities.max_launches_with_files);
}

Options CoreOptions(const AgentOptions& options, const Capabilities& abilities) {
  Options core = options.core;
  core.max_launches_in_flight = LaunchesInFlight(options, abilities);
  core.max_file_launches_in_flight = FileLaunches(options, abilities);
  core.gathers_arrays = abilities.goes_along != nullptr;
  core.asks_usage = abilities.usage_of != nullptr;
  core.lookup_grace = abilities.lookup_grace;
  core.fence_delay = abilities.fence_delay;
  return core;
}

}  // namespace

class Agent::Impl {
 public:
  Impl(AgentOptions options, Backend* backend, std::unique_ptr<Journal> journal)
      : options_(std::move(options)),
        backend_(*backend),
        abilities_(backend->capabilities()),
        journal_(std::move(journal)),
        content_(journal_->TakeContent()),
        journal_id_(content_.meta.journal_id),
        core_(CoreOptions(options_, abilities_), std::move(content_)),
        dialer_(options_.broker),
        backoff_(options_.min_redial, options_.max_redial),
        shipper_(
            options_.logs,
            {.dial = [this](auto callbacks) { return dialer_.DialPush(std::move(callbacks)); },
             .sources = [this](const RunHandle& run) { return backend_.OpenLogs(run).logs; },
             .shipped = [this](const std::string& key) { inbox_.Post(CallDone{LogsShipped{key}}); },
             .host = abilities_.output_host}),
        leases_(abilities_.renew_leases, [this] { return Now(); }),
        calls_(
            options_.launch_parallelism, FileLaunches(options_, abilities_), &backend_,
            [this](const std::string& run_key) {
              return dialer_.FetchSecrets(options_.core.cluster, journal_id_, run_key);
            },
            [this](Input input) { inbox_.Post(CallDone{std::move(input)}); },
            [this] { return leases_.AreLive(); }),
        observer_(&backend_, options_.observe_patience,
                  [this](Message message) { inbox_.Post(std::move(message)); }),
        inventories_(1),
        questions_(backend, options_.users),
        file_sender_({.dial = [this] { return dialer_.DialFiles(); },
                      .open = options_.open_run_files,
                      .open_results = options_.open_run_results,
                      .relay = options_.relay_run_files},
                     options_.core.cluster, journal_id_) {}

  absl::Status Run() {
    if (absl::Status status = backend_.Probe(); !status.ok()) return status;
    if (absl::Status status = backend_.Adopt(core_.AllRuns()); !status.ok()) return status;
    backend_.SetWaker([this] { inbox_.Wake(); });
    while (result_.ok()) {
      Inbox::Content content = inbox_.Take(NextTime() - Now());
      if (content.stopping && !drain_until_) BeginDrain();
      if (content.woken) observer_.Want();
      wants_inventory_ |= content.woken && backend_.TakeInventoryNews();
      Handle(content.messages);
      if (drain_until_ && (calls_in_flight_ == 0 || Now() >= *drain_until_)) break;
      Tend();
    }
    backend_.SetWaker([] {});
    HangUp();
    return result_;
  }

  void Stop() { inbox_.Stop(); }

 private:
  absl::Time Now() const { return time_.Now(); }

  // ---- one turn of the core thread

  void Handle(std::vector<Message>& messages) {
    Output out;
    TellJournal(&out);
    for (Message& message : messages) {
      std::visit([&](auto& what) { On(what, &out); }, message);
    }
    if (Now() >= next_tick_) {
      next_tick_ = Now() + options_.tick;
      TellHang(&out);
      Tell(Tick{}, &out);
    }
    CarryOut(std::move(out));
  }

  void Tell(Input input, Output* out) {
    core_.Handle(std::move(input), Now(), options_.wall_clock(), out);
  }

  // Comes before the handling of the broker's messages, so that runs are held back in time: one
  // turn takes little room beside the room that is kept free.
  void TellJournal(Output* out) {
    const double share = journal_->FilledShare();
    if (share == journal_share_) return;
    journal_share_ = share;
    const bool held_back = core_.holds_back_runs();
    Tell(JournalFilled{share}, out);
    if (held_back == core_.holds_back_runs()) return;
    LogEvent(held_back ? spdlog::level::info : spdlog::level::warn,
             held_back ? "journal_takes_runs" : "journal_holds_back_runs",
             {{"filled_percent", fmt::format("{:.0f}", share * 100)}});
  }

  void On(FromBroker& from, Output* out) {
    if (from.link != link_number_ || link_ == nullptr) return;
    link_->Handled();
    if (from.message.has_question()) return Ask(std::move(*from.message.mutable_question()));
    if (from.message.has_welcome()) {
      backoff_.Reset();
      shipper_.Connect(options_.core.cluster, journal_id_);
      LogEvent(spdlog::level::info, "connected",
               {{"broker", options_.broker.target},
                {"instance", from.message.welcome().instance()},
                {"agent_epoch", fmt::format("{}", from.message.welcome().agent_epoch())}});
    }
    Tell(BrokerSaid{std::move(from.message)}, out);
  }

  void On(QuestionAnswered& answered, Output*) {
    if (answered.link != link_number_) return;  // nobody waits for it any more
    SendToBroker send;
    *send.message.mutable_answer() = std::move(answered.answer);
    Do(send);
  }

  void On(ControlLinkEnded& ended, Output* out) {
    if (ended.link != link_number_ || link_ == nullptr) return;
    HangUp();
    Tell(LinkDown{}, out);
    if (IsFinal(ended.status)) {
      result_ = ended.status;
      return;
    }
    const bool refused = IsRefusal(ended.status);
    const absl::Duration wait =
        refused ? backoff_.Jitter(options_.refused_redial) : backoff_.Next();
    DialAfter(wait, refused ? "refused" : "disconnected", ended.status);
  }

  void On(ObserveDone& done, Output* out) {
    observer_.Ended(Now());
    const absl::Status& status = done.observed.outcome.scheduler;
    const std::string error(ToStd(status.message()));
    if (!status.ok() && error != scheduler_error_) {
      LogEvent(spdlog::level::warn, "scheduler_silent", {{"error", error}});
    } else if (status.ok() && !scheduler_error_.empty()) {
      LogEvent(spdlog::level::info, "scheduler_answers");
      wants_inventory_ = true;  // the one that is known may be of before
    }
    scheduler_error_ = status.ok() ? "" : error;
    CountLaunches(&done.observed.scheduler_calls);
    Tell(std::move(done.observed), out);
  }

  void On(EndsDone& done, Output* out) { Tell(std::move(done.read), out); }

  void TellHang(Output* out) {
    if (auto ends = observer_.TakeEndsHang()) Tell(EndsHang{*std::move(ends)}, out);
    const std::string hang = observer_.TakeHang(Now());
    if (hang.empty()) return;
    scheduler_error_ = hang;
    LogEvent(spdlog::level::warn, "observation_hangs", {{"error", hang}});
    Observed observed;
    observed.outcome.scheduler = absl::UnavailableError(hang);
    Tell(std::move(observed), out);
  }

  // Counts launches beside the calls, so that people see how many calls a run takes.
  void CountLaunches(std::map<std::string, uint64_t>* calls) const {
    if (!calls->empty()) (*calls)[std::string(contract::kLaunchedRuns)] = launched_runs_;
  }

  void On(InventoryDone& done, Output* out) {
    is_reading_inventory_ = false;
    if (done.inventory.ok()) {
      next_inventory_ = Now() + options_.inventory_interval;
      done.inventory->set_sends_files(file_sender_.can_send());
      done.inventory->set_sends_signals(abilities_.send_signal != nullptr);
      inventory_ = *done.inventory;
      InventoryRead read{*std::move(done.inventory), backend_.SchedulerCalls()};
      CountLaunches(&read.scheduler_calls);
      Tell(std::move(read), out);
      observer_.TellHangAgain();
      TellHang(out);
      return;
    }
    if (IsFinal(done.inventory.status())) {
      result_ = done.inventory.status();
      return;
    }
    next_inventory_ = Now() + (inventory_ ? options_.inventory_interval : options_.inventory_retry);
    LogEvent(spdlog::level::warn, "inventory_unreadable",
             {{"error", std::string(ToStd(done.inventory.status().message()))}});
    Observed observed;
    observed.outcome.scheduler = done.inventory.status();
    Tell(std::move(observed), out);
  }

  void On(CallDone& done, Output* out) {
    if (!std::holds_alternative<LogsShipped>(done.input)) --calls_in_flight_;
    if (const auto* launched = std::get_if<Launched>(&done.input)) {
      LogLaunch(*launched);
      if (launched->outcome.kind == LaunchOutcome::Kind::kLaunched) ++launched_runs_;
    }
    Tell(std::move(done.input), out);
  }

  // Does the work that is due by time, each kind on its own thread.
  void Tend() {
    if (!result_.ok() || drain_until_) return;
    const absl::Time now = Now();
    if (!is_reading_inventory_ && now >= NextInventory()) {
      is_reading_inventory_ = true;
      wants_inventory_ = false;
      last_inventory_ = now;
      inventories_.Post([this] { inbox_.Post(InventoryDone{backend_.Inventory()}); });
    }
    observer_.LookIfDue(now, [this] { return core_.RunsToObserve(); });
    if (link_ == nullptr && inventory_ && now >= next_dial_) Dial();
  }

  // News come soon, but one after the other.
  absl::Time NextInventory() const {
    if (!wants_inventory_) return next_inventory_;
    return std::min(next_inventory_, last_inventory_ + options_.inventory_pause);
  }

  absl::Time NextTime() const {
    absl::Time next = next_tick_;
    if (drain_until_) return next;  // nothing else is begun
    if (!is_reading_inventory_) next = std::min(next, NextInventory());
    return std::min(next, observer_.next());
  }

  // ---- the broker

  void Dial() {
    const uint64_t number = ++link_number_;
    link_ = dialer_.DialControl({.on_message =
                                     [this, number](agent::v1::ConnectResponse message) {
                                       inbox_.Post(FromBroker{number, std::move(message)});
                                     },
                                 .on_end =
                                     [this, number](absl::Status status) {
                                       inbox_.Post(ControlLinkEnded{number, std::move(status)});
                                     }});
    Output out;
    Tell(LinkUp{*inventory_}, &out);
    CarryOut(std::move(out));
  }

  void HangUp() {
    shipper_.Disconnect();
    link_.reset();
  }

  void DialAfter(absl::Duration wait, std::string_view event, const absl::Status& status) {
    next_dial_ = Now() + wait;
    LogEvent(spdlog::level::warn, event,
             {{"broker", options_.broker.target},
              {"code", absl::StatusCodeToString(status.code())},
              {"reason", ReasonOf(status)},
              {"error", std::string(ToStd(status.message()))},
              {"retry_in", absl::FormatDuration(absl::Trunc(wait, absl::Milliseconds(1)))}});
  }

  void Ask(agent::v1::AgentQuestion question) {
    if (drain_until_) return;  // the connection's end is the answer
    if (question.has_send_files()) return SendFilesOf(question);
    auto run = core_.FindRun(question.signal().run_key());
    auto answered = [this, number = link_number_](auto answer) {
      inbox_.Post(QuestionAnswered{number, std::move(answer)});
    };
    questions_.Ask(std::move(question), std::move(answered), std::move(run));
  }

  // The answer says that it has been taken on; what becomes of it is told in its own stream.
  void SendFilesOf(const agent::v1::AgentQuestion& question) {
    const absl::Status status = file_sender_.Send(question.send_files());
    agent::v1::AgentAnswer answer;
    answer.set_id(question.id());
    answer.mutable_send_files();
    if (!status.ok()) *answer.mutable_error() = rpc::ToMessage(status);
    inbox_.Post(QuestionAnswered{link_number_, std::move(answer)});
  }

  // ---- effects

  // The changes are on disk before anything is done.
  void CarryOut(Output out) {
    if (!out.changes.empty()) {
      if (absl::Status status = Commit(out.changes); !status.ok()) {
        result_ = std::move(status);
        return;
      }
    }
    for (Effect& effect : out.effects) {
      std::visit([this](auto& what) { Do(what); }, effect);
    }
    // Starts only now: calls that wait at the same time go together.
    calls_.Start();
  }

  // A full disk is waited out: nothing new is taken meanwhile, and nothing is lost.
  absl::Status Commit(const std::vector<JournalChange>& changes) {
    bool told = false;
    while (true) {
      absl::Status status = journal_->Commit(changes);
      if (!absl::IsResourceExhausted(status)) {
        if (told && status.ok()) LogEvent(spdlog::level::info, "journal_writable");
        return status;
      }
      const std::string error(ToStd(status.message()));
      if (!told) LogEvent(spdlog::level::err, "journal_full", {{"error", error}});
      told = true;
      if (link_ != nullptr) {
        agent::v1::ConnectRequest message;
        message.mutable_heartbeat()->set_scheduler_error(error);
        link_->Send(std::move(message));
      }
      if (inbox_.SleepUnlessStopped(kFullDiskRetry)) return status;
    }
  }

  void Do(DoLaunch& launch) {
    ++calls_in_flight_;
    calls_.Launch(std::move(launch.run));
  }
  void Do(DoLookup& lookup) {
    ++calls_in_flight_;
    calls_.Lookup(std::move(lookup.run));
  }
  void Do(DoFence& fence) {
    ++calls_in_flight_;
    calls_.Fence(std::move(fence.run));
  }
  void Do(DoCancel& cancel) {
    ++calls_in_flight_;
    calls_.End(std::move(cancel.run));
  }
  void Do(DoHold& hold) {
    ++calls_in_flight_;
    calls_.Hold(std::move(hold.run), hold.held);
  }
  void Do(DoNoteHold& note) {
    if (abilities_.note_hold != nullptr) abilities_.note_hold(note.run_key, note.held);
  }
  void Do(ShipLogs& ship) { shipper_.Ship(ship.run, ship.ended); }
  void Do(DoReadUsage& read) {
    ++calls_in_flight_;
    calls_.ReadUsage(std::move(read.runs));
  }
  void Do(DoForget& forget) {
    ++calls_in_flight_;
    shipper_.Drop(forget.run.run_key);
    calls_.Forget(std::move(forget.run));
  }
  void Do(DoAllowStarts&) {
    if (abilities_.allow_starts != nullptr) abilities_.allow_starts();
  }
  void Do(DoRenewLeases& renew) { leases_.Renew(renew.end); }
  void Do(SendToBroker& send) {
    if (link_ == nullptr) return;
    // If the link is over, its ControlLinkEnded has the reason: it comes, or waits in the inbox.
    if (link_->Send(std::move(send.message)) != ControlLink::Sent::kFull) return;
    HangUp();
    DialAfter(backoff_.Next(), "disconnected",
              absl::UnavailableError("the broker does not read what the agent sends"));
    Output out;
    Tell(LinkDown{}, &out);
    CarryOut(std::move(out));
  }
  void Do(Redial& redial) {
    HangUp();
    DialAfter(std::max(redial.after, backoff_.Next()), "disconnected", redial.status);
  }
  void Do(agents::Stop& stop) { result_ = stop.status; }

  void BeginDrain() {
    drain_until_ = Now() + options_.drain_timeout;
    Output out;
    Tell(Drain{}, &out);
    CarryOut(std::move(out));
    LogEvent(spdlog::level::info, "stopping",
             {{"calls_under_way", fmt::format("{}", calls_in_flight_)}});
  }

  const AgentOptions options_;
  Backend& backend_;
  const Capabilities abilities_;
  const BootTime time_;
  Inbox inbox_;  // any thread's; all others from here to the lanes are the core thread's

  const std::unique_ptr<Journal> journal_;
  JournalContent content_;  // until the core has it
  const std::string journal_id_;
  AgentCore core_;
  absl::Status result_;
  double journal_share_ = 0;  // as the core knows it

  Dialer dialer_;  // the shipper's thread dials, too: it has no state
  std::unique_ptr<ControlLink> link_;
  uint64_t link_number_ = 0;
  rpc::Backoff backoff_;
  absl::Time next_dial_ = absl::InfinitePast();

  std::optional<v1::Inventory> inventory_;
  bool is_reading_inventory_ = false;
  absl::Time next_inventory_ = absl::InfinitePast();
  bool wants_inventory_ = false;                      // before its time
  absl::Time last_inventory_ = absl::InfinitePast();  // when its reading began
  std::string scheduler_error_;
  absl::Time next_tick_ = absl::InfinitePast();
  int calls_in_flight_ = 0;
  uint64_t launched_runs_ = 0;  // since the start
  std::optional<absl::Time> drain_until_;

  LogShipper shipper_;
  LeaseLane leases_;
  RunCalls calls_;
  Observer observer_;
  WorkerLane inventories_;
  Questions questions_;
  FileSender file_sender_;
};

Agent::Agent(AgentOptions options, Backend* backend, std::unique_ptr<Journal> journal)
    : impl_(std::make_unique<Impl>(std::move(options), backend, std::move(journal))) {}
Agent::~Agent() = default;

absl::Status Agent::Run() { return impl_->Run(); }
void Agent::Stop() { impl_->Stop(); }

}  // namespace muster::agents
