#include "broker/notify/notifier.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "broker/app/get_job.h"
#include "broker/app/list_transitions.h"
#include "broker/app/principal.h"
#include "broker/app/watch_jobs.h"
#include "broker/core/cluster_view.h"
#include "broker/disk/files.h"
#include "broker/engine/change_tail.h"
#include "broker/engine/engine.h"
#include "broker/store/job_past.h"
#include "broker/store/store.h"

namespace muster::notify {
namespace {

constexpr mode_t kDirectoryMode = 0700;

absl::Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), kDirectoryMode) == 0 || errno == EEXIST) return absl::OkStatus();
  return disk::SystemError(errno, fmt::format("make {}", path));
}

// The operator who names a webhook sees all jobs, and chooses what the receiver hears of.
broker::Principal Reader() {
  return {
      .user = "muster-broker", .known_by = broker::KnownBy::kNobody, .role = broker::Role::kViewer};
}

// A trace has at most this many steps, one page of them; more are counted.
constexpr int kMaxSteps = 1000;

absl::StatusOr<History> ReadHistory(const broker::Services& services, uint64_t id) {
  v1::GetJobRequest job;
  job.set_job_id(id);
  auto found = broker::GetJob(Reader(), services, job);
  if (!found.ok()) return found.status();
  v1::ListTransitionsRequest steps;
  steps.set_job_id(id);
  steps.set_page_size(kMaxSteps);
  const auto listed = broker::ListTransitions(Reader(), services, steps);
  if (!listed.ok()) return listed.status();
  return History{std::move(*found->mutable_job()),
                 {listed->transitions().begin(), listed->transitions().end()}};
}

absl::StatusOr<std::optional<v1::Job>> ReadPast(const broker::Services& services, uint64_t id,
                                                uint64_t sequence) {
  // The job is read first: edits from before that are among the steps then.
  const auto jobs = services.store->GetJobsAndRuns(store::Scope::All(), {id});
  if (absl::IsNotFound(jobs.status())) return std::nullopt;
  if (!jobs.ok()) return jobs.status();
  const auto past = store::ReadPast(*services.store, store::Scope::All(), id, sequence);
  if (absl::IsNotFound(past.status())) return std::nullopt;
  if (!past.ok()) return past.status();
  if (past->steps.sequence() != sequence) return std::nullopt;
  return past->steps.Then(jobs->front(), past->edited_later,
                          [engine = services.engine](const std::string& cluster) {
                            return core::KindOf(cluster, *engine->clusters());
                          });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Notifier>> Notifier::Make(const NotifierOptions& options,
                                                         const broker::Services& services,
                                                         absl::Duration job_retention) {
  std::vector<std::unique_ptr<Courier>> couriers;
  if (!options.webhooks.empty()) {
    if (absl::Status status = MakeDirectory(options.directory); !status.ok()) return status;
  }
  for (const Webhook& webhook : options.webhooks) {
    auto courier = Courier::Make(
        {.webhook = webhook,
         .broker = services.instance,
         .cursor_file = fmt::format("{}/{}.cursor", options.directory, webhook.name),
         .job_retention = job_retention,
         .open_feed =
             [services](uint64_t after) {
               v1::WatchJobsRequest request;
               request.set_after(after);
               return broker::WatchJobs(Reader(), services, request);
             },
         .last_change = [changes = services.changes] { return changes->last(); },
         .last_stored = [store = services.store] { return store->LastSequence(); },
         .read_history = [services](uint64_t job) { return ReadHistory(services, job); },
         .read_past = [services](uint64_t job,
                                 uint64_t sequence) { return ReadPast(services, job, sequence); }});
    if (!courier.ok()) return courier.status();
    couriers.push_back(*std::move(courier));
  }
  return std::unique_ptr<Notifier>(new Notifier(std::move(couriers)));
}

void Notifier::Start() {
  for (const auto& courier : couriers_) courier->Start();
}

void Notifier::Stop() {
  for (const auto& courier : couriers_) courier->RingOut();
  for (const auto& courier : couriers_) courier->Stop();
}

std::vector<WebhookCounts> Notifier::counts() const {
  std::vector<WebhookCounts> counts;
  for (const auto& courier : couriers_) counts.push_back(courier->counts());
  return counts;
}

}  // namespace muster::notify
