// Is one connection between an agent and the broker: two ordered streams of messages, each with
// delays of its own.
//
// A link can be cut at any moment. Messages under way are then lost, or still arrive; each end
// learns of the cut some time later, or never, and has to notice the silence.
#ifndef MUSTER_TESTS_SIM_LINK_H_
#define MUSTER_TESTS_SIM_LINK_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "broker/core/core.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "tests/sim/world.h"

namespace muster::sim {

class Link : public std::enable_shared_from_this<Link> {
 public:
  // The handlers of an end for arriving messages. An end that is gone has none. Called as a copy,
  // because an end may hang up in it.
  struct BrokerEnd {
    std::function<void(agent::v1::ConnectRequest)> on_message;
    std::function<void()> on_broken;
  };
  struct AgentEnd {
    std::function<void(agent::v1::ConnectResponse)> on_message;
    std::function<void()> on_broken;
  };

  explicit Link(World* world) : world_(*world) {}

  core::SessionId session = 0;  // the broker's name for it
  BrokerEnd broker;
  AgentEnd agent;

  void ToBroker(agent::v1::ConnectRequest message) {
    Send(&to_broker_, [self = shared_from_this(), message = std::move(message)]() mutable {
      if (auto take = self->broker.on_message) take(std::move(message));
    });
  }
  void ToAgent(agent::v1::ConnectResponse message) {
    Send(&to_agent_, [self = shared_from_this(), message = std::move(message)]() mutable {
      if (auto take = self->agent.on_message) take(std::move(message));
    });
  }

  void Cut() {
    if (is_cut_) return;
    is_cut_ = true;
    for (Direction* direction : {&to_broker_, &to_agent_}) {
      if (world_.random.Chance(0.5)) {
        direction->late_by = world_.random.Skewed(absl::ZeroDuration(), absl::Seconds(60));
      }
    }
    Tell([self = shared_from_this()] {
      if (auto tell = self->broker.on_broken) tell();
    });
    Tell([self = shared_from_this()] {
      if (auto tell = self->agent.on_broken) tell();
    });
  }

 private:
  struct Direction {
    absl::Time last = absl::InfinitePast();
    std::optional<absl::Duration>
        late_by;  // once cut: what was under way comes so much later, if at all
  };

  void Send(Direction* direction, std::function<void()> deliver) {
    if (is_cut_) return;
    // The order stays: nothing overtakes.
    direction->last = std::max(
        direction->last,
        world_.loop.now() + world_.random.Skewed(absl::Microseconds(50), absl::Seconds(1)));
    world_.loop.After(direction->last - world_.loop.now(),
                      [self = shared_from_this(), direction, deliver = std::move(deliver)] {
                        if (!self->is_cut_) return deliver();
                        if (direction->late_by) {
                          self->world_.loop.After(*direction->late_by, deliver);
                        }
                      });
  }

  void Tell(std::function<void()> news) {
    constexpr double kHalfOpen = 0.25;  // nobody tells: only silence does
    if (world_.Strikes(kHalfOpen)) return world_.Count("half-open connection");
    world_.loop.After(world_.random.Skewed(absl::Milliseconds(1), absl::Seconds(20)),
                      std::move(news));
  }

  World& world_;
  Direction to_broker_;
  Direction to_agent_;
  bool is_cut_ = false;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_LINK_H_
