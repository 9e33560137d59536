#include "broker/app/cordon_cluster.h"

#include <optional>
#include <string>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/ask_cluster.h"
#include "broker/app/rights.h"
#include "broker/core/cluster_view.h"
#include "broker/engine/engine.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

// Says it to the core, and answers with the cluster as it is then: what the core has decided is
// shown before its answer comes.
template <typename Response, typename Done>
void Ask(const Services& services, core::SetCordon wish, const std::string& user, Done done) {
  auto answer = [engine = services.engine, name = wish.name, is_on = wish.cordon.has_value(), user,
                 done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    LogEvent(spdlog::level::info, is_on ? "cluster_cordoned" : "cluster_uncordoned",
             {{"cluster", name}, {"user", user}});
    std::optional<v1::Cluster> cluster = core::Find(name, *engine->clusters());
    if (!cluster) return done(NoSuchCluster(name));  // forgotten meanwhile
    Response response;
    *response.mutable_cluster() = *std::move(cluster);
    done(std::move(response));
  };
  services.engine->SetCordon(std::move(wish), std::move(answer));
}

}  // namespace

void CordonCluster(const Principal& principal, const Services& services,
                   v1::CordonClusterRequest request, CordonDone done) {
  if (auto scope = Authorize(principal, UseCase::kCordonClusters); !scope.ok())
    return done(scope.status());
  if (request.name().empty()) return done(contract::BadField("name", "is required"));
  if (absl::Status status = CheckReason(request.reason()); !status.ok()) return done(status);
  if (contract::HasControlCharacter(request.reason()))
    return done(contract::BadField("reason", "has a control character; write it in one line"));
  core::SetCordon wish{.name = request.name(), .cordon = v1::ClusterCordon()};
  wish.cordon->set_reason(std::move(*request.mutable_reason()));
  wish.cordon->set_user(principal.user);
  wish.cordon->set_drain(request.drain());
  Ask<v1::CordonClusterResponse>(services, std::move(wish), principal.user, std::move(done));
}

void UncordonCluster(const Principal& principal, const Services& services,
                     v1::UncordonClusterRequest request, UncordonDone done) {
  if (auto scope = Authorize(principal, UseCase::kCordonClusters); !scope.ok())
    return done(scope.status());
  if (request.name().empty()) return done(contract::BadField("name", "is required"));
  core::SetCordon wish{.name = std::move(*request.mutable_name())};
  Ask<v1::UncordonClusterResponse>(services, std::move(wish), principal.user, std::move(done));
}

}  // namespace muster::broker
