// The text of /metrics: the broker in the form of Prometheus. Any thread; it waits for
// nothing.
//
// Names and labels are part of the interface: dashboards and alerts are made of them.
#ifndef MUSTER_BROKER_RPC_BROKER_METRICS_H_
#define MUSTER_BROKER_RPC_BROKER_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/cluster_view.h"
#include "broker/engine/gauge.h"
#include "broker/engine/stats.h"
#include "broker/http/service.h"
#include "broker/notify/courier.h"

namespace muster::broker {

// Clusters of which there are gauges: the first by name.
inline constexpr size_t kMaxClustersInMetrics = 1000;

struct BrokerMetrics {
  Stats::Totals totals;
  std::vector<Gauge> queues;
  uint64_t calls_in_flight = 0;
  uint64_t file_bytes = 0;
  uint64_t file_bytes_bound = 0;
  uint64_t log_bytes = 0;
  std::shared_ptr<const core::ClusterViews> clusters;
  const http::Counts* http = nullptr;  // null: HTTP is not served yet
  std::vector<notify::WebhookCounts> webhooks;
};

std::string MetricsText(const BrokerMetrics& metrics);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_BROKER_METRICS_H_
