// Verbs that show again and again how things stand: list --watch, top.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/filter.h"
#include "clients/cli/screen.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/counted.h"
#include "contract/states.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// The broker gives as many at once.
constexpr uint64_t kJobsAtOnce = 1000;

// Shows `text` until it is an error. On a terminal that is again and again, else once.
int ShowAgain(Session& session, const std::function<absl::StatusOr<std::string>()>& text) {
  bool is_first = true;
  while (true) {
    const absl::StatusOr<std::string> now = text();
    if (!now.ok()) return Fail(session, now.status());
    if (!session.terminal.out_is_terminal()) {
      session.terminal.Out(*now);
      return kOk;
    }
    session.terminal.Out(Picture(*now, session.terminal.height(), std::exchange(is_first, false)));
    absl::SleepFor(kBetweenPictures);
  }
}

// The jobs that the command line asks for.
absl::StatusOr<v1::ListJobsResponse> ListedJobs(Session& session) {
  const Invocation& call = session.call;
  v1::ListJobsResponse all;
  v1::ListJobsRequest request;
  request.set_filter(FilterOf(call));
  request.set_order_by(call.order_by);
  do {
    const uint64_t rest =
        call.limit == 0 ? kJobsAtOnce : call.limit - static_cast<uint64_t>(all.jobs_size());
    request.set_page_size(static_cast<int32_t>(std::min(rest, kJobsAtOnce)));
    const auto page = session.client.ListJobs(request);
    if (!page.ok()) return page.status();
    all.mutable_jobs()->MergeFrom(page->jobs());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() &&
           (call.limit == 0 || static_cast<uint64_t>(all.jobs_size()) < call.limit));
  return all;
}

std::string JobTable(const Session& session, const v1::ListJobsResponse& jobs) {
  if (jobs.jobs().empty()) return "no jobs\n";
  Table table(JobColumns(session.style()), session.style().look());
  for (const v1::Job& job : jobs.jobs()) table.Add(JobRow(job, session.style(), absl::Now()));
  return table.Take();
}

// Writes jobs that have changed so that one sees it.
class ChangePrinter {
 public:
  explicit ChangePrinter(Session* session)
      : session_(*session), table_(JobColumns(session->style()), session->style().look()) {}

  void Print(const v1::Job& job) {
    const auto seen = std::tuple(job.state(), job.cluster(), job.held(), job.priority(),
                                 job.state_reason().message());
    const auto [last, is_new] = last_.try_emplace(job.id(), seen);
    if (!is_new && last->second == seen) return;
    last->second = seen;
    // Nothing more comes of a job that has ended.
    if (contract::IsTerminal(job.state())) last_.erase(job.id());
    if (session_.ids_only()) {
      session_.terminal.Out(fmt::format("{}\n", job.id()));
    } else if (session_.for_people()) {
      table_.Add(JobRow(job, session_.style(), absl::Now()));
      session_.terminal.Out(table_.Take());
    } else if (session_.format == Format::kJson) {
      // A stream has no end to close a bracket at.
      session_.terminal.Out(ToJsonLine(job));
    } else {
      PrintMessage(session_, job);
    }
  }

 private:
  Session& session_;
  Table table_;
  std::map<uint64_t, std::tuple<v1::JobState, std::string, bool, int32_t, std::string>> last_;
};

// Prints the list, and then each job that changes.
int PrintChanges(Session& session) {
  ChangePrinter printer(&session);
  v1::WatchJobsRequest request;
  request.set_filter(FilterOf(session.call));
  request.mutable_now();
  // The list is asked for when the feed has begun, so that no change between the two is lost.
  bool is_listed = false;
  absl::Status listed;
  const auto list = [&] {
    if (std::exchange(is_listed, true)) return;
    const absl::StatusOr<v1::ListJobsResponse> jobs = ListedJobs(session);
    listed = jobs.status();
    if (!jobs.ok()) return;
    for (const v1::Job& job : jobs->jobs()) printer.Print(job);
  };
  const auto reader = session.client.WatchJobs(request, absl::InfiniteFuture(), list);
  while (true) {
    const auto change = reader->Next();
    if (!change.ok()) return Fail(session, change.status());
    if (!change->has_value()) return kOk;
    list();
    if (!listed.ok()) return Fail(session, listed);
    printer.Print((*change)->job());
  }
}

// ---- top

using GpuMillis = std::map<std::string, uint64_t>;  // thousandths by type

std::string GpuMillisText(const GpuMillis& gpus) {
  std::vector<std::string> parts;
  for (const auto& [type, millis] : gpus) {
    if (millis == 0) continue;
    parts.push_back(fmt::format("{:g} {}", static_cast<double>(millis) / 1000,
                                type.empty() ? "of any type" : Harmless(type)));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

// All of a default pool, and what is free there where the cluster tells.
std::pair<GpuMillis, GpuMillis> AllAndFreeGpus(const v1::Cluster& cluster) {
  GpuMillis all;
  GpuMillis free;
  for (const v1::Pool& pool : cluster.inventory().pools()) {
    // Pools of Slurm overlap.
    if (!pool.is_default() && cluster.inventory().pools_size() > 1) continue;
    for (const v1::NodeGroup& group : pool.node_groups()) {
      for (const auto& [type, count] : group.gpus())
        all[type] += uint64_t{group.count()} * count * 1000;
    }
    for (const auto& [type, part] : pool.free_gpus()) {
      free[type] += uint64_t{part.whole()} * 1000;
      for (const uint32_t millis : part.parts_millis()) free[type] += millis;
    }
  }
  return {all, free};
}

// The jobs of each cluster, by whether they run or wait there.
absl::StatusOr<std::map<std::string, std::pair<uint64_t, uint64_t>>> JobsByCluster(
    Session& session) {
  v1::CountJobsRequest request;
  request.set_filter("state = RUNNING OR state = PENDING");
  request.add_group_by(v1::JOB_GROUPING_CLUSTER);
  request.add_group_by(v1::JOB_GROUPING_STATE);
  const auto response = session.client.CountJobs(request);
  if (!response.ok()) return response.status();
  std::map<std::string, std::pair<uint64_t, uint64_t>> jobs;
  for (const v1::JobCount& count : response->counts()) {
    auto& [running, pending] = jobs[count.cluster()];
    (count.state() == v1::JOB_STATE_RUNNING ? running : pending) += count.count();
  }
  return jobs;
}

absl::StatusOr<std::string> ClusterPart(Session& session) {
  const auto jobs = JobsByCluster(session);
  if (!jobs.ok()) return jobs.status();
  Table table({{"CLUSTER", 8},
               {"STATE", 12},
               {"RUNNING", 7, true},
               {"PENDING", 7, true},
               {"GPUS", 12},
               {"FREE"}},
              session.style().look());
  v1::ListClustersRequest request;
  do {
    const auto page = session.client.ListClusters(request);
    if (!page.ok()) return page.status();
    for (const v1::Cluster& cluster : page->clusters()) {
      const auto [all, free] = AllAndFreeGpus(cluster);
      const auto found = jobs->find(cluster.name());
      const auto [running, pending] =
          found == jobs->end() ? std::pair<uint64_t, uint64_t>() : found->second;
      const Table::Row known = ClusterRow(cluster, session.style(), absl::Now());
      table.Add({known[0],
                 known[2],
                 {fmt::format("{}", running)},
                 {fmt::format("{}", pending)},
                 {GpuMillisText(all)},
                 {GpuMillisText(free)}});
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return table.Take();
}

absl::StatusOr<std::string> ProjectPart(Session& session) {
  Table table({{"PROJECT", 8},
               {"RUNS", 4, true},
               {"QUEUED", 6, true},
               {"USED", 5, true},
               {"FAIR", 5, true},
               {"GPUS IN USE"}},
              session.style().look());
  v1::ListProjectsRequest request;
  std::vector<v1::Project> projects;
  do {
    const auto page = session.client.ListProjects(request);
    if (!page.ok()) return page.status();
    projects.insert(projects.end(), page->projects().begin(), page->projects().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  std::stable_sort(projects.begin(), projects.end(), [](const auto& a, const auto& b) {
    return a.use().dominant_share() > b.use().dominant_share();
  });
  for (const v1::Project& project : projects) {
    const v1::ProjectUse& use = project.use();
    const auto percent = [](double share) { return fmt::format("{:.0f}%", share * 100); };
    table.Add({{Harmless(project.name())},
               {fmt::format("{}", use.active_runs())},
               {fmt::format("{}", use.queued_jobs())},
               {percent(use.dominant_share())},
               {percent(use.fair_share())},
               {GpuMillisText({use.gpu_millis().begin(), use.gpu_millis().end()})}});
  }
  return table.Take();
}

// The resources of a job on all its nodes together.
struct Share {
  GpuMillis gpus;
  uint64_t all_gpus = 0;
  uint64_t cpus = 0;  // thousandths
};
Share ShareOf(const v1::JobSpec& spec) {
  const uint64_t nodes = std::max(1u, spec.nodes());
  Share share;
  for (const v1::GpuRequest& request : spec.resources().gpus()) {
    share.gpus[request.type()] += nodes * request.count_millis();
    share.all_gpus += nodes * request.count_millis();
  }
  share.cpus = nodes * spec.resources().cpu_millis();
  return share;
}

absl::StatusOr<std::string> JobPart(Session& session) {
  // As many as fit beside the rest on most terminals.
  constexpr size_t kMaxShown = 20;
  v1::ListJobsRequest request;
  request.set_filter("state = RUNNING");
  request.set_page_size(static_cast<int32_t>(kJobsAtOnce));
  request.mutable_spec_mask()->add_paths("nodes");
  request.mutable_spec_mask()->add_paths("resources");
  const auto page = session.client.ListJobs(request);
  if (!page.ok()) return page.status();
  std::vector<std::pair<Share, const v1::Job*>> jobs;
  for (const v1::Job& job : page->jobs()) jobs.emplace_back(ShareOf(job.spec()), &job);
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.all_gpus, a.first.cpus) > std::pair(b.first.all_gpus, b.first.cpus);
  });
  Table table({{"JOB", 4, true},
               {"NAME", 12},
               {"PROJECT", 8},
               {"USER", 6},
               {"CLUSTER", 8},
               {"CPUS", 4, true},
               {"GPUS"}},
              session.style().look());
  for (size_t i = 0; i < std::min(jobs.size(), kMaxShown); ++i) {
    const auto& [share, job] = jobs[i];
    table.Add({{fmt::format("{}", job->id())},
               {Harmless(job->name())},
               {Harmless(job->project())},
               {Harmless(job->user())},
               {Harmless(job->cluster())},
               {share.cpus == 0 ? "-" : contract::FormatCpus(share.cpus)},
               {GpuMillisText(share.gpus)}});
  }
  if (!page->next_page_token().empty()) {
    return table.Take() + fmt::format("of the {} jobs that were submitted last\n", kJobsAtOnce);
  }
  return table.Take();
}

}  // namespace

int WatchList(Session& session) {
  if (!session.terminal.out_is_terminal() || !session.for_people() || session.ids_only())
    return PrintChanges(session);
  return ShowAgain(session, [&session]() -> absl::StatusOr<std::string> {
    const auto jobs = ListedJobs(session);
    if (!jobs.ok()) return jobs.status();
    return JobTable(session, *jobs);
  });
}

int Top(Session& session) {
  return ShowAgain(session, [&session]() -> absl::StatusOr<std::string> {
    std::string all;
    for (const auto part : {ClusterPart, ProjectPart, JobPart}) {
      const absl::StatusOr<std::string> text = part(session);
      if (!text.ok()) return text.status();
      all += (all.empty() ? "" : "\n") + *text;
    }
    return all;
  });
}

}  // namespace muster::cli
