// Says of jobs whose cluster's agent is not connected, or whose scheduler does not answer its
// agent, that what is known of them is old. States stay as they were last seen; only what people
// read tells it.
#ifndef MUSTER_CLIENTS_CLI_SILENT_CLUSTERS_H_
#define MUSTER_CLIENTS_CLI_SILENT_CLUSTERS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

class SilentClusters {
 public:
  // The client outlives this. Asks for the clusters once, when the first job needs it.
  explicit SilentClusters(client::Client* client) : client_(*client) {}

  // The job; its reason says since when there is no word from its cluster, if that is so and it has
  // not ended. Without `now` the text does not change while the silence lasts. If the broker cannot
  // be asked for its clusters, the job is as it was.
  v1::Job Explained(const v1::Job& job, std::optional<absl::Time> now = std::nullopt);
  // The next job asks anew.
  void Refresh() { silent_.reset(); }

 private:
  void Ask();

  client::Client& client_;
  // The clusters that have sent no word, by name.
  std::optional<std::map<std::string, v1::Cluster>> silent_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SILENT_CLUSTERS_H_
