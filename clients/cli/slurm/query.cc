#include "clients/cli/slurm/query.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "clients/cli/known_clusters.h"
#include "contract/characters.h"
#include "contract/parts.h"

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

// If there are several words, one that matches is enough.
template <typename Words>
bool TakesAnyOf(const std::vector<std::string>& list, const Words& words) {
  return list.empty() || std::any_of(words.begin(), words.end(),
                                     [&](const auto& word) { return TakesWord(list, word); });
}

// The jobs that the filter takes, each with its spec and its latest run.
absl::Status AddListed(client::Client& client, const std::string& filter,
                       std::vector<v1::Job>* jobs) {
  v1::ListJobsRequest request;
  request.set_filter(filter);
  request.set_include_spec(true);
  request.set_include_latest_run(true);
  request.set_page_size(kPageSize);
  do {
    auto page = client.ListJobs(request);
    if (!page.ok()) return page.status();
    std::move(page->mutable_jobs()->begin(), page->mutable_jobs()->end(),
              std::back_inserter(*jobs));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

// Several are asked for together if they are in a row, as those of an array are.
absl::StatusOr<std::vector<v1::Job>> ByIds(client::Client& client,
                                           const std::vector<JobName>& names) {
  const auto numbers = NumbersOf(client, names);
  if (!numbers.ok()) return numbers.status();
  const std::set<uint64_t> ids(numbers->begin(), numbers->end());
  std::vector<v1::Job> jobs;
  if (ids.size() == 1) {
    v1::GetJobRequest request;
    request.set_job_id(*ids.begin());
    auto response = client.GetJob(request);
    if (!response.ok()) return response.status();
    jobs.push_back(std::move(*response->mutable_job()));
    return jobs;
  }
  for (auto at = ids.begin(); at != ids.end();) {
    const uint64_t first = *at;
    uint64_t last = first;
    for (++at; at != ids.end() && *at == last + 1; ++at) last = *at;
    const std::string filter = fmt::format("id >= {} AND id <= {}", first, last);
    if (absl::Status status = AddListed(client, filter, &jobs); !status.ok()) return status;
  }
  return jobs;
}

}  // namespace

bool JobQuery::Takes(const JobRecord& record) const {
  const v1::Job& job = record.job;
  const bool is_on_node =
      nodes.empty() || (record.run() != nullptr && TakesAnyOf(nodes, record.run()->nodes()));
  return is_on_node && TakesWord(users, job.user()) && TakesWord(names, job.name()) &&
         TakesAnyOf(partitions, contract::Split(record.partition, ',')) &&
         TakesWord(accounts, job.spec().slurm().account()) &&
         TakesWord(qos, job.spec().slurm().qos()) && TakesWord(clusters, job.cluster()) &&
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

absl::Status CheckNamedNodes(std::string_view option, const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    if (node.find('[') == std::string::npos) continue;
    return absl::InvalidArgumentError(fmt::format(
        "--{}: {} has brackets; name the nodes one by one", option, contract::Quoted(node)));
  }
  return absl::OkStatus();
}

absl::Status ReadSelection(const client::slurm::Settings& given, JobQuery* query) {
  AddList(given, "user", &query->users);
  AddList(given, "name", &query->names);
  AddList(given, "partition", &query->partitions);
  AddList(given, "account", &query->accounts);
  AddList(given, "qos", &query->qos);
  AddList(given, "nodelist", &query->nodes);
  AddList(given, "reservation", &query->reservations);
  AddListUnlessAll(given, "clusters", &query->clusters);
  if (absl::Status status = CheckNamedNodes("nodelist", query->nodes); !status.ok()) return status;
  if (given.Find("me") == nullptr) return absl::OkStatus();
  const absl::StatusOr<std::string> own = OwnUser();
  if (own.ok()) query->users.push_back(*own);
  return own.status();
}

absl::Status ReadIds(std::string_view list, std::vector<JobName>* ids) {
  for (std::string_view word : WordsOf(list)) {
    const std::vector<JobName> named = ParseJobNames(word);
    if (named.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("Invalid job id specified: {}; write the number that muster gave it, or "
                      "ARRAY_TASK or ARRAY_[TASKS], without a step",
                      contract::Quoted(word)));
    }
    ids->insert(ids->end(), named.begin(), named.end());
  }
  return absl::OkStatus();
}

absl::Status ReadStates(std::string_view list, std::vector<std::string>* states) {
  for (std::string_view word : contract::Split(list, ',')) {
    if (word == "all" || word == "ALL") continue;
    const std::string_view state = FindState(word);
    if (state.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("Invalid job state specified: {}; there are PENDING, CONFIGURING, RUNNING, "
                      "SUSPENDED, COMPLETING, COMPLETED, FAILED, CANCELLED, TIMEOUT, "
                      "OUT_OF_MEMORY, NODE_FAIL and PREEMPTED",
                      contract::Quoted(word)));
    }
    states->emplace_back(state);
  }
  return absl::OkStatus();
}

bool IsKnownUser(const std::string& name) { return getpwnam(name.c_str()) != nullptr; }

absl::StatusOr<std::string> OwnUser() {
  const passwd* entry = getpwuid(geteuid());
  if (entry != nullptr) return std::string(entry->pw_name);
  return absl::InvalidArgumentError(fmt::format(
      "this machine knows no name for your user id {}; name the user with --user", geteuid()));
}

absl::Status CheckRefused(const client::slurm::Settings& given, Refused refused) {
  for (const Setting& setting : given.settings) {
    const auto found = std::find_if(refused.begin(), refused.end(), [&](const auto& one) {
      return one.first == setting.option->name;
    });
    if (found == refused.end()) continue;
    return absl::InvalidArgumentError(
        fmt::format("--{} is not taken; {}", setting.option->name, found->second));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobRecord>> FindJobs(client::Client& client, const JobQuery& query) {
  const auto clusters = AllClusters(client);
  if (!clusters.ok()) return clusters.status();
  absl::StatusOr<std::vector<v1::Job>> jobs = std::vector<v1::Job>();
  if (query.ids.empty()) {
    const absl::Status status = AddListed(client, query.filter, &*jobs);
    if (!status.ok()) return status;
  } else {
    jobs = ByIds(client, query.ids);
    if (!jobs.ok()) return jobs.status();
  }
  std::vector<JobRecord> records;
  for (v1::Job& job : *jobs) {
    const auto cluster = clusters->find(job.cluster());
    JobRecord record =
        MakeRecord(std::move(job), cluster == clusters->end() ? nullptr : &cluster->second);
    if (query.Takes(record)) records.push_back(std::move(record));
  }
  std::sort(records.begin(), records.end(),
            [](const JobRecord& a, const JobRecord& b) { return a.job.id() < b.job.id(); });
  return records;
}

}  // namespace muster::cli
