#include "broker/rpc/broker_metrics.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "absl/time/time.h"
#include "muster/v1/cluster.pb.h"

namespace muster::broker {
namespace {

using prometheus::MetricType;
using Labels = std::vector<prometheus::ClientMetric::Label>;

class Families {
 public:
  void Begin(MetricType type, std::string_view name, std::string_view help) {
    families_.push_back({std::string(name), std::string(help), type, {}});
  }
  // Adds a value to the family that was begun last.
  void Add(double value, Labels labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    metric.counter.value = value;
    families_.back().metric.push_back(std::move(metric));
  }
  void Gauge(std::string_view name, std::string_view help, double value) {
    Begin(MetricType::Gauge, name, help);
    Add(value);
  }
  void Counter(std::string_view name, std::string_view help, double value) {
    Begin(MetricType::Counter, name, help);
    Add(value);
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

void AddTotals(const Stats::Totals& totals, Families* out) {
  out->Gauge("muster_jobs_queued", "Jobs that wait, with held ones.",
             static_cast<double>(totals.queued_jobs));
  out->Gauge("muster_runs_active", "Runs that have not ended.",
             static_cast<double>(totals.active_runs));
  out->Counter("muster_retries_total", "Jobs that went back to the queue for another run.",
               static_cast<double>(totals.retries));
  out->Counter("muster_agent_events_dropped_total",
               "Events of agents that fitted no active run, or no state.",
               static_cast<double>(totals.dropped_events));
  out->Counter("muster_agent_messages_stale_total",
               "Messages of agents whose connection was superseded.",
               static_cast<double>(totals.stale_messages));
  out->Counter("muster_requests_refused_total",
               "Requests that were refused because a queue of the core was full.",
               static_cast<double>(totals.refused_requests));
  out->Counter("muster_commits_total", "Transactions on disk.",
               static_cast<double>(totals.commits));
  out->Counter("muster_committed_rows_total", "Rows in them.",
               static_cast<double>(totals.committed_rows));
}

void AddQueues(const std::vector<Gauge>& queues, Families* out) {
  out->Begin(MetricType::Gauge, "muster_queue_fill", "What is in each bounded queue.");
  for (const Gauge& queue : queues) {
    out->Add(static_cast<double>(queue.fill), {{"queue", std::string(queue.queue)}});
  }
  out->Begin(MetricType::Gauge, "muster_queue_bound", "The most that fits into it.");
  for (const Gauge& queue : queues) {
    out->Add(static_cast<double>(queue.bound), {{"queue", std::string(queue.queue)}});
  }
}

void AddStores(const BrokerMetrics& metrics, Families* out) {
  out->Gauge("muster_calls_in_flight", "Calls and streams of users under way.",
             static_cast<double>(metrics.calls_in_flight));
  out->Gauge("muster_files_bytes", "Input files of jobs on disk.",
             static_cast<double>(metrics.file_bytes));
  out->Gauge("muster_files_bound_bytes", "The most that fits (files.max_total_bytes).",
             static_cast<double>(metrics.file_bytes_bound));
  out->Gauge("muster_logs_bytes", "Logs of jobs on disk.", static_cast<double>(metrics.log_bytes));
}

std::string KindName(v1::ClusterKind kind) {
  constexpr std::string_view kPrefix = "CLUSTER_KIND_";
  return v1::ClusterKind_Name(kind).substr(kPrefix.size());
}

void AddClusters(const core::ClusterViews& clusters, Families* out) {
  struct Row {
    const char* name;
    const char* help;
    double (*value)(const core::ClusterView&);
  };
  static constexpr Row kRows[] = {
      {"muster_cluster_connected", "Whether its agent is connected.",
       [](const core::ClusterView& c) { return c.is_connected ? 1.0 : 0.0; }},
      {"muster_cluster_cordoned", "Whether operators keep new runs from it.",
       [](const core::ClusterView& c) { return c.saved->cordon ? 1.0 : 0.0; }},
      {"muster_cluster_runs_active", "Runs there that have not ended.",
       [](const core::ClusterView& c) { return static_cast<double>(c.active); }},
      {"muster_cluster_runs_bound", "The most that it takes.",
       [](const core::ClusterView& c) { return static_cast<double>(c.saved->max_active_runs); }},
      {"muster_cluster_last_heard_seconds", "The time of its agent's last word.",
       [](const core::ClusterView& c) {
         return static_cast<double>(absl::ToUnixMillis(c.last_heard)) / 1000;
       }},
  };
  for (const Row& row : kRows) {
    out->Begin(MetricType::Gauge, row.name, row.help);
    size_t count = 0;
    for (const auto& cluster : clusters) {
      if (++count > kMaxClustersInMetrics) break;
      out->Add(row.value(*cluster),
               {{"cluster", cluster->name()}, {"kind", KindName(cluster->saved->kind)}});
    }
  }
}

void AddHttp(const http::Counts& counts, Families* out) {
  out->Counter("muster_http_connections_refused_total",
               "Connections that were closed at once, because there were too many.",
               static_cast<double>(counts.refused_connections));
  out->Gauge("muster_http_requests_in_flight", "Requests over HTTP that are being answered.",
             static_cast<double>(counts.requests));
  out->Begin(MetricType::Counter, "muster_http_answers_total",
             "Answers over HTTP by the first digit of the status.");
  for (size_t digit = 2; digit < counts.answers.size(); ++digit) {
    out->Add(static_cast<double>(counts.answers[digit]), {{"status", fmt::format("{}xx", digit)}});
  }
}

void AddWebhooks(const std::vector<notify::WebhookCounts>& webhooks, Families* out) {
  struct Row {
    MetricType type;
    const char* name;
    const char* help;
    uint64_t notify::WebhookCounts::*count;
  };
  static constexpr Row kRows[] = {
      {MetricType::Gauge, "muster_webhook_backlog_changes",
       "Changes of jobs that the webhook has yet to look at.", &notify::WebhookCounts::backlog},
      {MetricType::Counter, "muster_webhook_delivered_total", "Events that the receiver took.",
       &notify::WebhookCounts::delivered},
      {MetricType::Counter, "muster_webhook_failed_tries_total",
       "Tries to deliver an event that the receiver did not take.",
       &notify::WebhookCounts::failed_tries},
      {MetricType::Counter, "muster_webhook_given_up_total", "Events that the receiver never took.",
       &notify::WebhookCounts::given_up},
  };
  for (const Row& row : kRows) {
    out->Begin(row.type, row.name, row.help);
    for (const notify::WebhookCounts& webhook : webhooks) {
      out->Add(static_cast<double>(webhook.*row.count), {{"webhook", webhook.name}});
    }
  }
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// The names that Prometheus gives to what every program has.
void AddProcess(Families* out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  out->Counter("process_cpu_seconds_total", "Processor time.",
               Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  if (statm >> all >> resident) {
    out->Gauge("process_resident_memory_bytes", "Memory.",
               static_cast<double>(resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))));
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  out->Gauge("process_max_fds", "The most open descriptors.", static_cast<double>(limit.rlim_cur));
}

}  // namespace

std::string MetricsText(const BrokerMetrics& metrics) {
  Families families;
  families.Begin(MetricType::Gauge, "muster_build_info", "The broker's version.");
  families.Add(1, {{"version", MUSTER_VERSION}});
  AddTotals(metrics.totals, &families);
  AddQueues(metrics.queues, &families);
  AddStores(metrics, &families);
  if (metrics.clusters != nullptr) AddClusters(*metrics.clusters, &families);
  if (metrics.http != nullptr) AddHttp(*metrics.http, &families);
  if (!metrics.webhooks.empty()) AddWebhooks(metrics.webhooks, &families);
  AddProcess(&families);
  return families.Text();
}

}  // namespace muster::broker
