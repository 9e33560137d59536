#include "broker/app/forget_cluster.h"

#include <string>
#include <utility>

#include "broker/app/rights.h"
#include "broker/engine/engine.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {

void ForgetCluster(const Principal& principal, const Services& services,
                   v1::ForgetClusterRequest request, ForgetDone done) {
  if (auto scope = Authorize(principal, UseCase::kForgetClusters); !scope.ok()) {
    return done(scope.status());
  }
  if (request.name().empty()) return done(contract::BadField("name", "is required"));
  auto answer = [user = principal.user, name = request.name(),
                 done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    LogEvent(spdlog::level::info, "cluster_forgotten", {{"cluster", name}, {"user", user}});
    done(v1::ForgetClusterResponse());
  };
  services.engine->ForgetCluster(std::move(*request.mutable_name()), std::move(answer));
}

}  // namespace muster::broker
