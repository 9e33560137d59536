// Finds the jobs that a user of squeue, scancel or sacct means, and asks the broker for them.
#ifndef MUSTER_CLIENTS_CLI_SLURM_QUERY_H_
#define MUSTER_CLIENTS_CLI_SLURM_QUERY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/job_record.h"
#include "clients/cpp/client.h"
#include "clients/cpp/slurm/options.h"

namespace muster::cli {

// Every list that is empty takes all.
struct JobQuery {
  std::vector<JobName> ids;  // an array's stands for all its tasks
  std::vector<std::string> users, names, partitions, accounts, qos, clusters, nodes, reservations;
  std::vector<std::string> states;  // words of Slurm's
  bool is_none = false;             // it names jobs or users, but none at all: "-j ''"
  // Jobs that ended before are left out.
  absl::Time ended_since = absl::InfinitePast();
  // A part of a filter in the broker's language: the conditions that the broker can judge by
  // itself.
  std::string filter;
  // True: of the specs, only what tells which job it is and where it runs is needed (kLeanSpec).
  bool is_lean = false;

  // Tells whether the query takes the job, apart from its ids, which are asked for in the first
  // place.
  bool Takes(const JobRecord& record) const;
};

// Adds the words of "a,b,c", as the option has them.
void AddList(const client::slurm::Settings& given, std::string_view option,
             std::vector<std::string>* list);
// The same, where "all" means that none is left out.
void AddListUnlessAll(const client::slurm::Settings& given, std::string_view option,
                      std::vector<std::string>* list);
// Adds the nodes of "n[1-3],n7". INVALID_ARGUMENT: it is no such list.
absl::Status AddNodes(const client::slurm::Settings& given, std::string_view option,
                      std::vector<std::string>* nodes);

// Reads -u, --me, --name, -p, -A, -q, -M, -w and -R, by the options' names, into the query; others
// are left alone. INVALID_ARGUMENT: this machine does not know its own user's name.
absl::Status ReadSelection(const client::slurm::Settings& given, JobQuery* query);
// Adds users by their names. A user id of this machine stands for its name.
void AddUsers(std::string_view list, std::vector<std::string>* users);
// The way to take "1.batch" and "1.0": not at all, as the job 1, or as no job.
enum class Steps { kRefused, kAsJob, kAsNone };
// "1,2_3" as --jobs and operands have it; empty words are nothing. INVALID_ARGUMENT: a word that is
// no job's number.
absl::Status ReadIds(std::string_view list, Steps steps, std::vector<JobName>* ids);
// All the --jobs that were given. Without any number the query names no job.
absl::Status ReadJobs(const client::slurm::Settings& given, Steps steps, JobQuery* query);
// "PD,RUNNING", "all" (none is added). INVALID_ARGUMENT: no state of Slurm's.
absl::Status ReadStates(std::string_view list, std::vector<std::string>* states);
// Returns the users of the query whom this machine does not know and who have none of the records:
// users of other machines may have jobs, too.
std::vector<std::string> UnknownUsers(const JobQuery& query, const std::vector<JobRecord>& records);
// The name of the user who runs this.
absl::StatusOr<std::string> OwnUser();

// The jobs that the query takes, by their numbers, each with its latest run. Ids that are not there
// are left out, unless there is only one: NOT_FOUND then.
absl::StatusOr<std::vector<JobRecord>> FindJobs(client::Client& client, const JobQuery& query);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_QUERY_H_
