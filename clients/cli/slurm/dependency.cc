#include "clients/cli/slurm/dependency.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/muster_waits.h"
#include "clients/cli/slurm/one_job.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/text.h"
#include "contract/parts.h"
#include "contract/slurm_options.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

absl::Status BadDependency(uint64_t id, std::string_view problem) {
  return absl::FailedPreconditionError(fmt::format("job {} {}", id, problem));
}

absl::Status NamingTheOption(const absl::Status& status) {
  return absl::Status(status.code(), fmt::format("--dependency: {}", ToStd(status.message())));
}

// The job once it is as wanted, or as it is at the deadline, or when its steps cannot be followed.
template <typename IsEnough>
absl::StatusOr<v1::Job> Await(client::Client& client, uint64_t id, absl::Time deadline,
                              IsEnough is_enough) {
  absl::StatusOr<v1::Job> job = GetOneJob(client, id);
  if (!job.ok() || is_enough(*job)) return job;
  const auto steps = WatchOneJob(client, id, deadline);
  while (true) {
    const auto step = steps->Next();
    job = GetOneJob(client, id);
    if (!job.ok() || is_enough(*job) || !step.ok() || !step->has_value()) return job;
  }
}

bool HasEnded(const v1::Job& job) { return contract::IsTerminal(job.state()); }

// Returns whether a cluster has it.
bool IsPlaced(const v1::Job& job) {
  return job.state() != v1::JOB_STATE_QUEUED && !job.runs().empty();
}

// Returns whether Slurm can tell how the job ends: a run that has ended is followed by another, of
// another number, unless the job has ended with it.
bool HasNumber(const v1::Job& job) {
  if (!IsPlaced(job)) return false;
  const v1::Run& run = *job.runs().rbegin();
  return !run.external_id().empty() && !contract::IsTerminal(run.state());
}

// The meaning of a job's end for a job that depends on it.
enum class Verdict { kFulfilled, kNever };

Verdict Judge(std::string_view type, v1::JobState end) {
  const bool has_succeeded = end == v1::JOB_STATE_SUCCEEDED;
  const bool is_good = type == "afternotok"                       ? !has_succeeded
                       : type == "afterok" || type == "aftercorr" ? has_succeeded
                                                                  : true;
  return is_good ? Verdict::kFulfilled : Verdict::kNever;
}

// Slurm refuses such a dependency on a job that it does not know; any other one is fulfilled then.
bool AsksHowItEnds(std::string_view type) { return type == "afterok" || type == "afternotok"; }

// Returns a command that does the same without Slurm: "muster wait 42 43 && muster sbatch ...".
// `jobs`: all of the clause.
std::string WithoutSlurm(std::string_view type, const std::string& jobs) {
  if (type == "after") {
    const bool is_one = jobs.find(' ') == std::string::npos;
    return fmt::format("submit this one once {} {} {} RUNNING", is_one ? "job" : "jobs", jobs,
                       is_one ? "is" : "are");
  }
  const std::string_view then = type == "afterok" || type == "aftercorr" ? " &&"
                                : type == "afternotok"                   ? " ||"
                                                                         : ";";
  return fmt::format("have Muster wait: muster wait {}{} muster sbatch ...", jobs, then);
}

// Writes the names in the form that the verbs take; arrays whole.
std::string NamesOf(const std::vector<std::string_view>& parts,
                    const std::vector<std::vector<uint64_t>>& numbers) {
  std::vector<std::string> names;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view word = parts[i].substr(0, parts[i].find('+'));
    const bool is_array = numbers[i].size() > 1;
    names.push_back(is_array ? fmt::format("'{}_*'", word.substr(0, word.find('_')))
                             : fmt::format("{}", numbers[i].front()));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

// "+5": so many minutes after the job's start, or its end if it never began, have to be over.
absl::Status CheckDelay(const v1::Job& job, std::string_view delay) {
  int64_t minutes = 0;
  if (delay.empty() || !absl::SimpleAtoi(ToAbsl(delay.substr(1)), &minutes))
    return absl::OkStatus();
  const auto& from = job.has_start_time() ? job.start_time() : job.end_time();
  const absl::Time due = ToTime(from) + absl::Minutes(minutes);
  if (absl::Now() >= due) return absl::OkStatus();
  return BadDependency(
      job.id(),
      fmt::format("has ended, and the {} minutes after it that \"{}\" asks for are over at "
                  "{} only; submit this one then",
                  minutes, delay,
                  absl::FormatTime("%Y-%m-%d %H:%M:%S", due, absl::LocalTimeZone())));
}

class Translator {
 public:
  // `is_any`: one of the conditions is enough. `notes`: remarks for the user.
  Translator(client::Client* client, v1::JobSpec* spec, bool is_any,
             std::vector<std::string>* notes)
      : client_(*client),
        spec_(*spec),
        is_any_(is_any),
        notes_(*notes),
        deadline_(absl::Now() + kMaxNumberWait) {}

  // "afterok:42:43+5" with Slurm's numbers; empty if nothing is left to wait for.
  absl::StatusOr<std::string> Clause(std::string_view clause) {
    is_never_ = false;
    const auto parts = contract::Split(clause, ':');
    const std::string_view type = parts.front();
    std::vector<std::vector<uint64_t>> jobs(parts.size());
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::optional<JobName> name = ParseJobName(parts[i].substr(0, parts[i].find('+')));
      // A name that cannot be read was reported by the check of the whole spec.
      if (!name.has_value()) return std::string(clause);
      auto numbers = NumbersOf(client_, {*name});
      if (!numbers.ok()) return numbers.status();
      if (numbers->size() > 1 && is_any_) {
        return BadDependency(name->number,
                             "is an array, all of whose tasks count; between '?' name its tasks");
      }
      jobs[i] = *std::move(numbers);
    }
    const std::string instead =
        parts.size() < 2 ? "" : WithoutSlurm(type, NamesOf({parts.begin(), parts.end()}, jobs));
    std::string translated;
    bool is_fulfilled = false;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string_view delay = parts[i].substr(std::min(parts[i].find('+'), parts[i].size()));
      if (jobs[i].size() > 1) {
        const auto array = WholeArray(type, jobs[i], instead);
        if (!array.ok()) return array.status();
        if (!array->empty()) {
          translated += fmt::format(":{}{}", *array, delay);
          continue;
        }
      }
      for (uint64_t id : jobs[i]) {
        const absl::StatusOr<std::string> known = Number(type, delay, id, instead);
        if (!known.ok()) return known.status();
        is_fulfilled = is_fulfilled || known->empty();
        if (!known->empty()) translated += fmt::format(":{}{}", *known, delay);
      }
    }
    if (translated.empty() && is_fulfilled) return std::string();
    return fmt::format("{}{}", type, translated);
  }

  // Returns whether the last clause was refused because it can never be fulfilled.
  bool is_never() const { return is_never_; }

 private:
  // Slurm's number of a job; empty if it has ended as it should. `instead`: what does without.
  absl::StatusOr<std::string> Number(std::string_view type, std::string_view delay, uint64_t id,
                                     const std::string& instead) {
    absl::StatusOr<v1::Job> job = AwaitPlace(id);
    if (absl::IsNotFound(job.status()) && !AsksHowItEnds(type)) {
      notes_.push_back(fmt::format(
          "--dependency: there is no job {} (any more), so {}:{} waits for nothing", id, type, id));
      return std::string();
    }
    if (!job.ok()) return job.status();
    if (!HasEnded(*job)) {
      if (!IsPlaced(*job)) return NotPlaced(*job, instead);
      // Comes before the wait for its number: on no other kind of cluster it will ever have one.
      if (absl::Status status = TieTo(*job, instead); !status.ok()) return status;
      job = Await(client_, id, deadline_,
                  [](const v1::Job& now) { return HasEnded(now) || HasNumber(now); });
      if (!job.ok()) return job.status();
    }
    if (HasEnded(*job)) {
      if (Judge(type, job->state()) == Verdict::kFulfilled) {
        if (absl::Status s = CheckDelay(*job, delay); !s.ok()) return s;
        return std::string();
      }
      is_never_ = true;
      return BadDependency(id,
                           fmt::format("has ended as {}, so that {} would never let this one start",
                                       contract::Name(job->state()), type));
    }
    if (!HasNumber(*job)) {
      return BadDependency(
          id,
          "has no number of Slurm's yet, so that Slurm cannot wait for it; submit this one "
          "when it is PENDING on its cluster");
    }
    // Its run may be another one by now.
    if (absl::Status status = TieTo(*job, instead); !status.ok()) return status;
    return job->runs().rbegin()->external_id();
  }

  // Slurm's number of an array, for which it counts all tasks as one; empty: they have to be named
  // one by one, because Slurm does not know all of them as tasks of one array of its own, or
  // because some that have ended decide.
  absl::StatusOr<std::string> WholeArray(std::string_view type, const std::vector<uint64_t>& ids,
                                         const std::string& instead) {
    // The last one that Slurm gets a number for, as a rule.
    absl::StatusOr<v1::Job> last = AwaitPlace(ids.back());
    if (!last.ok()) return last.status();
    if (!HasEnded(*last) && IsPlaced(*last)) {
      if (absl::Status status = TieTo(*last, instead); !status.ok()) return status;
      last = Await(client_, ids.back(), deadline_,
                   [](const v1::Job& now) { return HasEnded(now) || HasNumber(now); });
      if (!last.ok()) return last.status();
    }
    JobQuery query;
    query.filter = fmt::format("id >= {} AND id <= {}", ids.front(), ids.back());
    const auto records = FindJobs(client_, query);
    if (!records.ok()) return records.status();
    std::string number;
    bool has_ended = records->size() == ids.size();
    bool is_one = has_ended;
    for (const JobRecord& record : *records) {
      const v1::Run* run = record.run();
      const std::string_view id = run == nullptr ? "" : std::string_view(run->external_id());
      const size_t bar = std::min(id.find('_'), id.size());
      if (number.empty()) number = id.substr(0, bar);
      // Slurm waits for its own tasks, and knows nothing of another attempt at one.
      is_one = is_one && bar < id.size() && id.substr(0, bar) == number && run->number() == 1;
      has_ended = has_ended && HasEnded(record.job());
      if (HasEnded(record.job()) && type != "aftercorr" &&
          Judge(type, record.job().state()) == Verdict::kNever) {
        is_one = false;
      }
    }
    if (is_one && !has_ended) return number;
    if (type != "aftercorr") return std::string();
    return BadDependency(ids.front(),
                         has_ended ? "is an array that has ended, and Slurm may have forgotten its "
                                     "tasks; name the one that this waits for, as in afterok:42_3"
                                   : "is an array that is not one array of Slurm's, so that Slurm "
                                     "cannot tell which task waits for which; use afterok");
  }

  absl::StatusOr<v1::Job> AwaitPlace(uint64_t id) {
    const absl::Time deadline = std::min(deadline_, absl::Now() + kMaxPlaceWait);
    return Await(client_, id, deadline,
                 [](const v1::Job& job) { return HasEnded(job) || IsPlaced(job) || job.held(); });
  }

  static absl::Status NotPlaced(const v1::Job& job, const std::string& instead) {
    const uint64_t id = job.id();
    if (job.held()) {
      return BadDependency(
          id, fmt::format("is held, and no cluster has it, so that Slurm cannot wait for it; "
                          "let it go first (muster release {}), or {}",
                          id, instead));
    }
    const std::string why = OneLine(job.state_reason().message());
    return BadDependency(
        id, fmt::format("is QUEUED, and no cluster has it, so that Slurm cannot wait for it"
                        "{}{}{}; submit this one when it is PENDING on a Slurm cluster, or {}",
                        why.empty() ? "" : " (", why, why.empty() ? "" : ")", instead));
  }

  // The job can only run where the other one is.
  absl::Status TieTo(const v1::Job& job, const std::string& instead) {
    const uint64_t id = job.id();
    const std::string& name = job.runs().rbegin()->cluster();
    if (name == tied_to_) return absl::OkStatus();
    v1::GetClusterRequest request;
    request.set_name(name);
    const auto cluster = client_.GetCluster(request);
    if (!cluster.ok()) return cluster.status();
    if (cluster->cluster().kind() != v1::CLUSTER_KIND_SLURM) {
      return BadDependency(
          id, fmt::format("is on cluster {}, which is of kind {}, and only Slurm lets jobs "
                          "wait for each other; {}",
                          name, contract::Name(cluster->cluster().kind()), instead));
    }
    auto& named = *spec_.mutable_placement()->mutable_clusters();
    const bool fits = named.empty() || std::find(named.begin(), named.end(), name) != named.end();
    if (!fits) {
      return BadDependency(
          id, fmt::format("is on cluster {}, and this one is for {}", name, fmt::join(named, ",")));
    }
    named.Clear();
    named.Add(std::string(name));
    tied_to_ = name;
    return absl::OkStatus();
  }

  client::Client& client_;
  v1::JobSpec& spec_;
  const bool is_any_;
  std::vector<std::string>& notes_;
  const absl::Time deadline_;
  bool is_never_ = false;
  std::string tied_to_;  // empty: to none yet
};

// Splits a dependency at ',' or '?'; where one condition is enough, each is on one job.
std::vector<std::string> Conditions(std::string_view written, bool is_any) {
  std::vector<std::string> conditions;
  for (std::string_view clause : contract::Split(written, is_any ? contract::kAnyOf : ',')) {
    const auto parts = contract::Split(clause, ':');
    if (!is_any || parts.size() < 3) {
      conditions.emplace_back(clause);
      continue;
    }
    for (size_t i = 1; i < parts.size(); ++i)
      conditions.push_back(fmt::format("{}:{}", parts[0], parts[i]));
  }
  return conditions;
}

bool IsAnyOf(std::string_view dependency) {
  return dependency.find(contract::kAnyOf) != dependency.npos;
}

std::string Joined(const std::vector<std::string>& conditions, bool is_any) {
  return fmt::format("{}", fmt::join(conditions, is_any ? std::string(1, contract::kAnyOf) : ","));
}

}  // namespace

absl::Status ExpandSingleton(client::Client& client, v1::JobSpec* spec) {
  constexpr std::string_view kSingleton = "singleton";
  const std::string written = spec->slurm().dependency();
  const bool is_any = IsAnyOf(written);
  std::vector<std::string> conditions = Conditions(written, is_any);
  const auto found = std::find(conditions.begin(), conditions.end(), kSingleton);
  if (found == conditions.end()) return absl::OkStatus();
  const absl::StatusOr<std::string> own = OwnUser();
  if (!own.ok()) return own.status();
  JobQuery query;
  query.users = {*own};
  query.names = {spec->name()};
  query.filter = "(state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED)";
  const auto before = FindJobs(client, query);
  if (!before.ok()) return before.status();
  if (is_any && before->size() > 1) {
    return absl::FailedPreconditionError(
        fmt::format("--dependency: {} jobs are called {}, and all of them would have to end; leave "
                    "singleton or the '?' out",
                    before->size(), Harmless(spec->name())));
  }
  *found = before->empty() ? "" : "afterany";
  for (const JobRecord& record : *before) *found += fmt::format(":{}", record.job().id());
  if (is_any && found->empty()) conditions.clear();
  std::erase(conditions, "");
  spec->mutable_slurm()->set_dependency(Joined(conditions, is_any));
  return absl::OkStatus();
}

namespace {

// Puts Slurm's numbers in place of Muster's. `is_never`: it can never be fulfilled.
absl::Status GiveToSlurm(client::Client& client, v1::JobSpec* spec, std::vector<std::string>* notes,
                         bool* is_never) {
  const std::string written = spec->slurm().dependency();
  const bool is_any = IsAnyOf(written);
  Translator translator(&client, spec, is_any, notes);
  std::vector<std::string> translated;
  absl::Status never;
  for (const std::string& condition : Conditions(written, is_any)) {
    absl::StatusOr<std::string> one = translator.Clause(condition);
    if (is_any && !one.ok() && translator.is_never()) {
      never = one.status();
      continue;
    }
    *is_never = translator.is_never();
    if (!one.ok()) return NamingTheOption(one.status());
    if (!one->empty()) {
      translated.push_back(*std::move(one));
    } else if (is_any) {
      spec->mutable_slurm()->clear_dependency();
      return absl::OkStatus();
    }
  }
  if (is_any && translated.empty()) return NamingTheOption(never);
  spec->mutable_slurm()->set_dependency(Joined(translated, is_any));
  return absl::OkStatus();
}

}  // namespace

absl::Status TranslateDependency(client::Client& client, v1::JobSpec* spec,
                                 std::vector<std::string>* notes) {
  if (spec->slurm().dependency().empty()) return absl::OkStatus();
  v1::JobSpec of_slurm = *spec;
  bool is_never = false;
  const absl::Status given = GiveToSlurm(client, &of_slurm, notes, &is_never);
  if (given.ok()) {
    *spec = std::move(of_slurm);
    return given;
  }
  if (!absl::IsFailedPrecondition(given) || is_never) return given;
  const absl::StatusOr<bool> waits = LetMusterWait(client, spec);
  if (!waits.ok()) return NamingTheOption(waits.status());
  return *waits ? absl::OkStatus() : given;
}

}  // namespace muster::cli
