#include "clients/cli/slurm/query.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "clients/cli/known_clusters.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/one_job.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/states.h"
#include "google/protobuf/arena.h"

namespace muster::cli {
namespace {

using client::slurm::Setting;

constexpr int kPageSize = 1000;  // as many as the broker gives at once

// The words between the commas of a list, of which "42_[1,3]" is one.
std::vector<std::string_view> WordsOf(std::string_view list) {
  std::vector<std::string_view> words;
  bool is_inside = false;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size()) is_inside = list[i] == '[' || (is_inside && list[i] != ']');
    if (i < list.size() && (is_inside || list[i] != ',')) continue;
    words.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

bool TakesWord(const std::vector<std::string>& list, std::string_view word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

// One word that matches is enough if there are several.
template <typename Words>
bool TakesAnyOf(const std::vector<std::string>& list, const Words& words) {
  return list.empty() || std::any_of(words.begin(), words.end(),
                                     [&](const auto& word) { return TakesWord(list, word); });
}

// "0", "batch", "extern": the part of a step's name behind the point.
bool IsStep(std::string_view text) {
  return text == "batch" || text == "extern" || contract::ParseNumber<uint32_t>(text).has_value();
}

// The cluster that has the job or, while none has it, the only one of Slurm that may get it. Null:
// it is not known.
const v1::Cluster* LikelyCluster(const std::map<std::string, v1::Cluster>& clusters,
                                 const v1::Job& job) {
  if (!job.cluster().empty()) {
    const auto cluster = clusters.find(job.cluster());
    return cluster == clusters.end() ? nullptr : &cluster->second;
  }
  if (job.spec().has_kubernetes()) return nullptr;
  const auto& named = job.spec().placement().clusters();
  const v1::Cluster* only = nullptr;
  for (const auto& [name, cluster] : clusters) {
    const bool is_named =
        named.empty() || std::find(named.begin(), named.end(), name) != named.end();
    if (!is_named || cluster.kind() != v1::CLUSTER_KIND_SLURM) continue;
    if (only != nullptr) return nullptr;
    only = &cluster;
  }
  return only;
}

// The parts of a spec that a record is made of, and that tell a task of an array.
constexpr std::string_view kLeanSpec[] = {"env.SLURM_ARRAY_TASK_ID",
                                          "env.SLURM_ARRAY_TASK_COUNT",
                                          "env.MUSTER_ARRAY_PLACE",
                                          "env.MUSTER_ARRAY_LIMIT",
                                          "nodes",
                                          "time_limit",
                                          "placement",
                                          "kubernetes",
                                          "slurm.partition",
                                          "slurm.account",
                                          "slurm.qos",
                                          "slurm.reservation",
                                          "slurm.extra_options",
                                          "slurm.tasks_per_node",
                                          "slurm.batch_script.append"};

using Jobs = std::vector<std::shared_ptr<const v1::Job>>;

// The memory of a page, which its jobs share.
struct PageMemory {
  google::protobuf::Arena arena{[] {
    google::protobuf::ArenaOptions options;
    // A page of kPageSize jobs needs some of the largest ones, and a page of one the smallest.
    options.start_block_size = size_t{16} << 10;
    options.max_block_size = size_t{1} << 20;
    return options;
  }()};
};

// The jobs that the filter takes, each with its spec and its latest run.
absl::Status AddListed(client::Client& client, const std::string& filter, bool is_lean,
                       Jobs* jobs) {
  v1::ListJobsRequest request;
  request.set_filter(filter);
  request.set_include_spec(!is_lean);
  if (is_lean) {
    for (const std::string_view path : kLeanSpec)
      request.mutable_spec_mask()->add_paths(std::string(path));
  }
  request.set_include_latest_run(true);
  request.set_page_size(kPageSize);
  do {
    const auto memory = std::make_shared<PageMemory>();
    auto* const page = google::protobuf::Arena::CreateMessage<v1::ListJobsResponse>(&memory->arena);
    if (absl::Status status = client.ReadJobs(request, page); !status.ok()) return status;
    // A broker of an earlier release does not know the mask.
    if (is_lean && !page->jobs().empty() && !page->jobs(0).has_spec())
      return AddListed(client, filter, /*is_lean=*/false, jobs);
    jobs->reserve(jobs->size() + static_cast<size_t>(page->jobs_size()));
    for (const v1::Job& job : page->jobs()) jobs->emplace_back(memory, &job);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

// Several are asked for together if they are in a row, as those of an array are.
absl::StatusOr<Jobs> ByIds(client::Client& client, const std::vector<JobName>& names,
                           bool is_lean) {
  std::set<uint64_t> ids;
  absl::Status missing;
  for (const JobName& name : names) {
    const auto numbers = NumbersOf(client, {name});
    if (numbers.ok()) ids.insert(numbers->begin(), numbers->end());
    if (!numbers.ok() && !absl::IsNotFound(numbers.status())) return numbers.status();
    if (!numbers.ok()) missing = numbers.status();
  }
  if (ids.empty()) return missing;
  Jobs jobs;
  if (ids.size() == 1) {
    absl::StatusOr<v1::Job> job = GetOneJob(client, *ids.begin());
    if (!job.ok()) return job.status();
    jobs.push_back(std::make_shared<const v1::Job>(*std::move(job)));
    return jobs;
  }
  for (auto at = ids.begin(); at != ids.end();) {
    const uint64_t first = *at;
    uint64_t last = first;
    for (++at; at != ids.end() && *at == last + 1; ++at) last = *at;
    const std::string filter = fmt::format("id >= {} AND id <= {}", first, last);
    if (absl::Status status = AddListed(client, filter, is_lean, &jobs); !status.ok())
      return status;
  }
  return jobs;
}

bool IsKnownUser(const std::string& name) { return getpwnam(name.c_str()) != nullptr; }

}  // namespace

bool JobQuery::Takes(const JobRecord& record) const {
  const v1::Job& job = record.job();
  const bool is_late = job.has_end_time() && contract::IsTerminal(job.state()) &&
                       ToTime(job.end_time()) < ended_since;
  const bool is_on_node =
      nodes.empty() || (record.run() != nullptr && TakesAnyOf(nodes, record.run()->nodes()));
  return !is_late && is_on_node && TakesWord(users, job.user()) && TakesWord(names, job.name()) &&
         TakesAnyOf(partitions, contract::Split(record.partition, ',')) &&
         TakesWord(accounts, record.account) && TakesWord(qos, record.qos) &&
         TakesWord(clusters, job.cluster()) &&
         TakesWord(reservations, job.spec().slurm().reservation()) &&
         TakesWord(states, StateWord(record));
}

void AddList(const client::slurm::Settings& given, std::string_view option,
             std::vector<std::string>* list) {
  const Setting* setting = given.Find(option);
  if (setting == nullptr) return;
  for (std::string_view one : contract::Split(setting->value, ',')) {
    if (!one.empty()) list->emplace_back(one);
  }
}

void AddListUnlessAll(const client::slurm::Settings& given, std::string_view option,
                      std::vector<std::string>* list) {
  const Setting* setting = given.Find(option);
  if (setting != nullptr && setting->value != "all") AddList(given, option, list);
}

absl::Status AddNodes(const client::slurm::Settings& given, std::string_view option,
                      std::vector<std::string>* nodes) {
  const Setting* setting = given.Find(option);
  if (setting == nullptr) return absl::OkStatus();
  auto hosts = HostsOf(setting->value);
  if (!hosts.has_value()) {
    return absl::InvalidArgumentError(fmt::format("--{}: {} is no list of nodes, such as n[1-3],n7",
                                                  option, contract::Quoted(setting->value)));
  }
  nodes->insert(nodes->end(), std::make_move_iterator(hosts->begin()),
                std::make_move_iterator(hosts->end()));
  return absl::OkStatus();
}

absl::Status ReadSelection(const client::slurm::Settings& given, JobQuery* query) {
  AddList(given, "name", &query->names);
  AddList(given, "partition", &query->partitions);
  AddList(given, "account", &query->accounts);
  AddList(given, "qos", &query->qos);
  AddList(given, "reservation", &query->reservations);
  AddListUnlessAll(given, "clusters", &query->clusters);
  if (absl::Status status = AddNodes(given, "nodelist", &query->nodes); !status.ok()) return status;
  // The last one counts.
  for (auto one = given.settings.rbegin(); one != given.settings.rend(); ++one) {
    if (one->option->name == "user") {
      AddUsers(one->value, &query->users);
      query->is_none = query->users.empty();
      return absl::OkStatus();
    }
    if (one->option->name != "me") continue;
    const absl::StatusOr<std::string> own = OwnUser();
    if (own.ok()) query->users.push_back(*own);
    return own.status();
  }
  return absl::OkStatus();
}

void AddUsers(std::string_view list, std::vector<std::string>* users) {
  for (std::string_view word : contract::Split(list, ',')) {
    if (word.empty()) continue;
    const std::string user(word);
    const auto number = contract::ParseNumber<uid_t>(word);
    const passwd* entry = number.has_value() && !IsKnownUser(user) ? getpwuid(*number) : nullptr;
    users->push_back(entry == nullptr ? user : entry->pw_name);
  }
}

absl::Status ReadIds(std::string_view list, Steps steps, std::vector<JobName>* ids) {
  for (std::string_view word : WordsOf(list)) {
    if (word.empty()) continue;
    const size_t point = std::min(word.find('.'), word.size());
    const bool is_step = point < word.size() && IsStep(word.substr(point + 1));
    const bool may = is_step && steps != Steps::kRefused;
    const std::vector<JobName> named = ParseJobNames(may ? word.substr(0, point) : word);
    if (named.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("Invalid job id specified: {}; write the number that muster gave it, or "
                      "ARRAY_TASK or ARRAY_[TASKS], without a step",
                      contract::Quoted(word)));
    }
    if (is_step && steps == Steps::kAsNone) continue;
    ids->insert(ids->end(), named.begin(), named.end());
  }
  return absl::OkStatus();
}

absl::Status ReadJobs(const client::slurm::Settings& given, Steps steps, JobQuery* query) {
  bool is_given = false;
  for (const Setting& setting : given.settings) {
    if (setting.option->name != "jobs") continue;
    is_given = true;
    if (absl::Status status = ReadIds(setting.value, steps, &query->ids); !status.ok())
      return status;
  }
  query->is_none = query->is_none || (is_given && query->ids.empty());
  return absl::OkStatus();
}

absl::Status ReadStates(std::string_view list, std::vector<std::string>* states) {
  for (std::string_view word : contract::Split(list, ',')) {
    if (word == "all" || word == "ALL") continue;
    if (word.empty()) continue;
    const std::string_view state = FindState(word);
    if (state.empty()) {
      return absl::InvalidArgumentError(fmt::format("Invalid job state specified: {}; there are {}",
                                                    contract::Quoted(word), StateWords()));
    }
    states->emplace_back(state);
  }
  return absl::OkStatus();
}

std::vector<std::string> UnknownUsers(const JobQuery& query,
                                      const std::vector<JobRecord>& records) {
  std::vector<std::string> unknown;
  for (const std::string& user : query.users) {
    const bool has_jobs = std::any_of(records.begin(), records.end(), [&](const JobRecord& record) {
      return record.job().user() == user;
    });
    if (!has_jobs && !IsKnownUser(user)) unknown.push_back(user);
  }
  return unknown;
}

absl::StatusOr<std::string> OwnUser() {
  const passwd* entry = getpwuid(geteuid());
  if (entry != nullptr) return std::string(entry->pw_name);
  return absl::InvalidArgumentError(fmt::format(
      "this machine knows no name for your user id {}; name the user with --user", geteuid()));
}

absl::StatusOr<std::vector<JobRecord>> FindJobs(client::Client& client, const JobQuery& query) {
  if (query.is_none) return std::vector<JobRecord>();
  // Both are asked for at the same time: somebody waits for the answer.
  auto asked = std::async(std::launch::async, [&client] { return AllClusters(client); });
  absl::StatusOr<Jobs> jobs = Jobs();
  if (query.ids.empty()) {
    const absl::Status status = AddListed(client, query.filter, query.is_lean, &*jobs);
    if (!status.ok()) jobs = status;
  } else {
    jobs = ByIds(client, query.ids, query.is_lean);
  }
  const auto clusters = asked.get();
  if (!clusters.ok()) return clusters.status();
  if (!jobs.ok()) return jobs.status();
  std::vector<JobRecord> records;
  records.reserve(jobs->size());
  for (std::shared_ptr<const v1::Job>& job : *jobs) {
    const v1::Cluster* cluster = LikelyCluster(*clusters, *job);
    JobRecord record = MakeRecord(std::move(job), cluster);
    if (query.Takes(record)) records.push_back(std::move(record));
  }
  std::sort(records.begin(), records.end(),
            [](const JobRecord& a, const JobRecord& b) { return a.job().id() < b.job().id(); });
  return records;
}

}  // namespace muster::cli
