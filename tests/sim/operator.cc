#include "tests/sim/operator.h"

#include <memory>
#include <utility>

namespace muster::sim {
namespace {

constexpr absl::Duration kRepeatAfter = absl::Seconds(10);  // until a request is repeated

}  // namespace

void SimOperator::Start(absl::Duration period) {
  // A cluster has one cordon at a time, because the end of one would be the end of all.
  for (const std::string& cluster : clusters_) {
    if (!world_.random.Chance(0.4)) continue;
    ++open_;
    world_.loop.After(world_.random.Between(absl::ZeroDuration(), period),
                      [this, cluster] { Ask(cluster, /*is_on=*/true, std::make_shared<bool>()); });
  }
}

void SimOperator::Ask(const std::string& cluster, bool is_on,
                      const std::shared_ptr<bool>& is_answered) {
  world_.loop.After(kRepeatAfter, [this, cluster, is_on, is_answered] {
    if (!*is_answered) Ask(cluster, is_on, is_answered);
  });
  if (!is_on) auditor_.UncordonAsked(cluster);
  if (!broker_.is_up()) return;
  core::SetCordon request{.name = cluster};
  if (is_on) {
    request.cordon.emplace().set_user("operator");
    request.cordon->set_drain(world_.random.Chance(0.5));
  }
  broker_.Cordon(std::move(request), [this, cluster, is_on,
                                      is_answered](const absl::Status& status) {
    // The connection may break while the answer travels. A cluster may not have connected yet.
    if (!status.ok() || world_.Strikes(0.1)) return;
    if (std::exchange(*is_answered, true)) return;
    if (!is_on) {
      --open_;
      return;
    }
    world_.Count("cluster cordoned");
    auditor_.CordonAcknowledged(cluster);
    world_.loop.After(world_.random.Between(absl::Milliseconds(1), absl::Minutes(2)),
                      [this, cluster] { Ask(cluster, /*is_on=*/false, std::make_shared<bool>()); });
  });
}

}  // namespace muster::sim
