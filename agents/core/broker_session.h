// Holds one agent's side of the conversation with its broker: the handshake, heartbeats, silence,
// and whose orders count.
//
// Owner: the agent's core thread.
#ifndef MUSTER_AGENTS_CORE_BROKER_SESSION_H_
#define MUSTER_AGENTS_CORE_BROKER_SESSION_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/agent_core.h"

namespace muster::agents {

// The protocol that agent_link.proto describes.
inline constexpr uint32_t kProtocolVersion = 1;

class BrokerSession {
 public:
  explicit BrokerSession(const Options& options) : options_(options) {}

  // Sends the hello, whose runs the caller has filled in.
  void Up(agent::v1::AgentHello hello, const JournalMeta& meta, absl::Time now,
          std::vector<Effect>* effects);
  void Down() { phase_ = Phase::kDown; }
  bool is_down() const { return phase_ == Phase::kDown; }
  bool is_welcome() const { return phase_ == Phase::kWelcome; }

  // Checks the broker against the journal and takes its identity over into `meta`.
  // FAILED_PRECONDITION: the agent must not work for this broker.
  absl::Status OnWelcome(const agent::v1::BrokerWelcome& welcome, absl::Time now,
                         JournalMeta* meta);
  void OnAck(absl::Time now) { last_ack_ = now; }

  // Takes the length of the leases, which counts from the sending of the heartbeat that it answers.
  void OnLeaseRenewal(const agent::v1::LeaseRenewal& renewal, absl::Time now,
                      std::vector<Effect>* effects);

  // `wall` is the time of day.
  void OnInventory(v1::Inventory inventory, std::map<std::string, uint64_t> scheduler_calls,
                   absl::Time wall);
  void OnScheduler(const absl::Status& status, std::map<std::string, uint64_t> scheduler_calls,
                   absl::Time wall);

  // Takes the reason that the journal takes no new runs; empty if it does. Heartbeats tell it while
  // the scheduler has no error of its own.
  void OnJournal(std::string_view error) { journal_error_ = error; }

  // Takes the reason that the files of ended runs cannot be read; empty if they can. Heartbeats
  // tell it after the journal's error.
  void OnEnds(std::string_view error) { ends_error_ = error; }

  // Sends a heartbeat at once.
  void Beat(absl::Time now, std::vector<Effect>* effects);

  // Sends heartbeats that are due, and gives up a connection whose broker is silent.
  void OnTime(absl::Time now, std::vector<Effect>* effects);

  // Ends this connection; the next one starts afresh.
  void Redial(absl::Status status, absl::Duration after, std::vector<Effect>* effects);

 private:
  enum class Phase { kDown, kHello, kWelcome };

  agent::v1::AgentHeartbeat Heartbeat();

  const Options& options_;
  Phase phase_ = Phase::kDown;
  absl::Duration heartbeat_interval_;
  absl::Time next_heartbeat_;
  uint64_t beats_ = 0;  // of this connection
  // The times at which the heartbeats were sent that no renewal has answered, by number; at most
  // kMaxUnansweredBeats. Empty if no leases are kept.
  std::map<uint64_t, absl::Time> unanswered_;
  absl::Time last_ack_;  // or, before the first one, when the hello was sent

  v1::Inventory inventory_;
  bool inventory_is_news_ = false;
  absl::Time scheduler_observed_at_ = absl::InfinitePast();
  std::string scheduler_error_;
  std::string journal_error_;
  std::string ends_error_;
  std::map<std::string, uint64_t> scheduler_calls_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BROKER_SESSION_H_
