#include "agents/core/broker_session.h"

#include <fmt/core.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agents/core/clean_text.h"
#include "agents/core/proto_time.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

using google::protobuf::util::MessageDifferencer;

// A broker that asks for more would be flooded, one that asks for less would not notice for hours.
constexpr absl::Duration kMinHeartbeat = absl::Milliseconds(100);
constexpr absl::Duration kMaxHeartbeat = absl::Minutes(5);

// A broker that leaves more of them unanswered has been given up long before; an older one never
// answers with a renewal.
constexpr size_t kMaxUnansweredBeats = 100;
// The longest lease, as LeaseRenewal says.
constexpr absl::Duration kMaxLease = absl::Hours(24);

bool SameExceptTime(v1::Inventory a, v1::Inventory b) {
  a.clear_observed_at();
  b.clear_observed_at();
  return MessageDifferencer::Equals(a, b);
}

}  // namespace

void BrokerSession::Up(agent::v1::AgentHello hello, const JournalMeta& meta, absl::Time now,
                       std::vector<Effect>* effects) {
  phase_ = Phase::kHello;
  last_ack_ = now;
  inventory_is_news_ = false;
  beats_ = 0;
  unanswered_.clear();
  hello.set_protocol_version(kProtocolVersion);
  hello.set_cluster(options_.cluster);
  hello.set_kind(options_.kind);
  hello.set_agent_version(MUSTER_VERSION);
  hello.set_journal_id(meta.journal_id);
  hello.set_instance(meta.instance);
  hello.set_broker_epoch(meta.broker_epoch);
  hello.set_max_active_runs(options_.max_active_runs);
  hello.set_process(options_.process);
  hello.set_shared_user(options_.shared_user);
  if (options_.fence_delay > absl::ZeroDuration())
    *hello.mutable_fence_delay() = ToProto(options_.fence_delay);
  *hello.mutable_inventory() = inventory_;
  agent::v1::ConnectRequest message;
  *message.mutable_hello() = std::move(hello);
  effects->push_back(SendToBroker{std::move(message)});
}

absl::Status BrokerSession::OnWelcome(const agent::v1::BrokerWelcome& welcome, absl::Time now,
                                      JournalMeta* meta) {
  if (!meta->instance.empty() && welcome.instance() != meta->instance) {
    return absl::FailedPreconditionError(
        fmt::format("this agent has worked for the broker instance '{}', and the broker is '{}': "
                    "its runs belong to another "
                    "database. Give --broker the address of the former, or a new --state-dir",
                    meta->instance, welcome.instance()));
  }
  if (welcome.broker_epoch() < meta->broker_epoch) {
    return absl::FailedPreconditionError(
        fmt::format("the broker is at epoch {}, and this agent has seen epoch {}: the broker's "
                    "database is older than what it has "
                    "ordered, probably restored from a copy. Bring its latest database back, or "
                    "give the agent a new --state-dir",
                    welcome.broker_epoch(), meta->broker_epoch));
  }
  meta->instance = welcome.instance();
  meta->broker_epoch = welcome.broker_epoch();
  phase_ = Phase::kWelcome;
  heartbeat_interval_ =
      std::clamp(FromProto(welcome.heartbeat_interval()), kMinHeartbeat, kMaxHeartbeat);
  next_heartbeat_ = now + heartbeat_interval_;
  last_ack_ = now;
  return absl::OkStatus();
}

void BrokerSession::OnInventory(v1::Inventory inventory,
                                std::map<std::string, uint64_t> scheduler_calls, absl::Time wall) {
  CleanTexts(&inventory);
  if (!SameExceptTime(inventory, inventory_)) inventory_is_news_ = true;
  inventory_ = std::move(inventory);
  OnScheduler(absl::OkStatus(), std::move(scheduler_calls), wall);
}

void BrokerSession::OnScheduler(const absl::Status& status,
                                std::map<std::string, uint64_t> scheduler_calls, absl::Time wall) {
  if (status.ok()) {
    scheduler_observed_at_ = wall;
    scheduler_error_.clear();
  } else {
    scheduler_error_ = CleanText(ToStd(status.message()), kMaxDetailBytes);
    // An error without words is an error all the same.
    if (scheduler_error_.empty()) scheduler_error_ = status.ToString();
  }
  if (!scheduler_calls.empty()) scheduler_calls_ = std::move(scheduler_calls);
}

void BrokerSession::OnTime(absl::Time now, std::vector<Effect>* effects) {
  if (phase_ == Phase::kDown) return;
  const absl::Duration silence = now - last_ack_;
  if (phase_ == Phase::kHello) {
    if (silence >= options_.handshake_timeout) {
      Redial(absl::DeadlineExceededError(
                 fmt::format("no welcome from the broker for {} s", absl::ToInt64Seconds(silence))),
             absl::ZeroDuration(), effects);
    }
    return;
  }
  if (silence >= options_.silent_intervals * heartbeat_interval_) {
    Redial(absl::DeadlineExceededError(fmt::format("the broker has acknowledged nothing for {} ms",
                                                   absl::ToInt64Milliseconds(silence))),
           absl::ZeroDuration(), effects);
    return;
  }
  if (now >= next_heartbeat_) Beat(now, effects);
}

void BrokerSession::Beat(absl::Time now, std::vector<Effect>* effects) {
  next_heartbeat_ = now + heartbeat_interval_;
  agent::v1::ConnectRequest message;
  *message.mutable_heartbeat() = Heartbeat();
  message.mutable_heartbeat()->set_number(++beats_);
  if (options_.fence_delay > absl::ZeroDuration()) {
    unanswered_[beats_] = now;
    if (unanswered_.size() > kMaxUnansweredBeats) unanswered_.erase(unanswered_.begin());
  }
  effects->push_back(SendToBroker{std::move(message)});
}

void BrokerSession::OnLeaseRenewal(const agent::v1::LeaseRenewal& renewal, absl::Time now,
                                   std::vector<Effect>* effects) {
  const auto beat = unanswered_.find(renewal.heartbeat_number());
  if (beat == unanswered_.end()) return;
  const absl::Time end = beat->second + std::min(FromProto(renewal.duration()), kMaxLease);
  unanswered_.erase(unanswered_.begin(), std::next(beat));
  if (end > now) effects->push_back(DoRenewLeases{end});
}

agent::v1::AgentHeartbeat BrokerSession::Heartbeat() {
  agent::v1::AgentHeartbeat heartbeat;
  if (inventory_is_news_) *heartbeat.mutable_inventory() = inventory_;
  inventory_is_news_ = false;
  if (scheduler_observed_at_ != absl::InfinitePast()) {
    *heartbeat.mutable_scheduler_observed_at() = ToProto(scheduler_observed_at_);
  }
  for (const std::string& error : {scheduler_error_, journal_error_, ends_error_}) {
    if (heartbeat.scheduler_error().empty()) heartbeat.set_scheduler_error(error);
  }
  for (const auto& [command, calls] : scheduler_calls_) {
    (*heartbeat.mutable_scheduler_calls())[command] = calls;
  }
  return heartbeat;
}

void BrokerSession::Redial(absl::Status status, absl::Duration after,
                           std::vector<Effect>* effects) {
  phase_ = Phase::kDown;
  effects->push_back(agents::Redial{std::move(status), after});
}

}  // namespace muster::agents
