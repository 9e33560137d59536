// The request that a command line makes.
#ifndef MUSTER_CLIENTS_CLI_INVOCATION_H_
#define MUSTER_CLIENTS_CLI_INVOCATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cli/render.h"
#include "clients/cpp/job_file_result.h"
#include "muster/v1/identity_service.pb.h"
#include "muster/v1/job_spec.pb.h"
#include "muster/v1/jobs_service.pb.h"
#include "muster/v1/signal_jobs.pb.h"
#include "muster/v1/usage_service.pb.h"

namespace muster::cli {

class Shape;

// Most jobs that `list` shows unless told otherwise.
inline constexpr uint64_t kDefaultListLimit = 100;

enum class Verb {
  kSubmit,
  kRun,
  kList,
  kCount,
  kShow,
  kLogs,
  kEvents,
  kWait,
  kCancel,
  kSignal,
  kUpdate,
  kRerun,
  kCopy,
  kHold,
  kRelease,
  kMove,
  kWhy,
  kPlan,
  kClusters,
  kCheck,
  kForget,
  kLogin,
  kLogout,
  kWhoAmI,
  kTokenCreate,
  kTokenList,
  kTokenRevoke,
  kSecretSet,
  kSecretList,
  kSecretDelete,
  kProjectList,
  kProjectCreate,
  kProjectShow,
  kProjectSet,
  kProjectAdd,
  kProjectRemove,
  kProjectArchive,
  kAuditList,
  kAuditVerify,
  kUsage,
  kTop,
  // These need no broker.
  kContextList,
  kContextUse,
  kContextSet,
  kContextDelete,
  kContextImport,
  kVersion,
  kCompletion,
  kInit,
  kSchema,
  kComplete,
  // These read their words themselves, as Slurm's programs of these names do.
  kSbatch,
  kSqueue,
  kScancel,
  kSacct,
  kSinfo,
  // This one reads its words itself, too, as SkyPilot's command does.
  kSky,
};

// Flags that describe a job: all of it for `run`, changes to a file for `submit`. The values are as
// the user has written them.
struct SpecFlags {
  std::optional<std::string> name, project, pool, gpus, cpus, memory, time, workdir, image;
  std::optional<std::string> on_cluster_loss;
  std::optional<uint32_t> nodes;
  std::optional<int32_t> priority;
  bool preemptible = false;
  std::vector<std::string> clusters, env, labels, mounts, secrets, secret_files;
  std::vector<std::string> after, after_failed, after_ended;

  // Writes what was given over the spec, except for the working directory, which may be one of this
  // machine. INVALID_ARGUMENT names the flag, the value and what would work.
  absl::Status ApplyTo(v1::JobSpec* spec) const;
};

// A job, or one run of it: "42", "42.2". An array's task, or all of its tasks: "42_5", "42_*";
// before the verb begins, ResolveTasks puts their jobs in their place.
struct JobRef {
  uint64_t job = 0;
  uint32_t run = 0;                // 0: the latest
  std::optional<uint32_t> task{};  // `job` is its array
  bool is_every_task = false;      // likewise
};

// Describes one column of a count.
struct CountBy {
  v1::JobGrouping grouping = v1::JOB_GROUPING_UNSPECIFIED;
  std::string label;  // with JOB_GROUPING_LABEL
};

// Begins the user's name of a service account.
inline constexpr std::string_view kServiceAccountPrefix = "sa:";

// Flags of the verbs about tokens and contexts.
struct IdentityFlags {
  std::string name;  // of a token or a context; to revoke a token also its number
  std::string user;  // empty: not given
  v1::AccessRole role = v1::ACCESS_ROLE_UNSPECIFIED;
  std::optional<absl::Duration> lifetime;
  std::string file;     // where a new token goes, or a bundle comes from; empty: standard streams
  bool bundle = false;  // a new token with all that another machine needs beside it
  std::string fingerprint;        // of a context's CA; empty: not given
  bool all = false;               // also tokens that have ended
  bool service_accounts = false;  // only tokens of these
};

// Flags of the verbs about secrets.
struct SecretFlags {
  std::string name;
  std::string project;    // empty: the caller's own
  std::string from_file;  // empty: standard input, or a question
};

// A signal to jobs.
struct SignalFlags {
  std::string name;
  v1::SignalTarget target = v1::SIGNAL_TARGET_COMMAND;
};

// Flags of the verbs about projects. A list that was given as "any" is empty.
struct ProjectFlags {
  std::string name;
  std::optional<std::string> description;
  std::optional<std::vector<std::string>> clusters, pools, accounts, images;
  std::optional<uint32_t> weight;
  std::optional<std::string> parent;             // empty: none
  std::optional<std::string> quota, user_quota;  // in a form that ParseQuota takes
  std::string member;
  bool is_group = false;
  v1::AccessRole role = v1::ACCESS_ROLE_UNSPECIFIED;
  bool all = false;      // also archived ones
  bool restore = false;  // an archived one takes jobs again
};

// Flags of the verb audit. Empty, 0 and the ends of time: not given.
struct AuditFlags {
  std::string user;
  std::string action;
  std::string result;
  uint64_t job = 0;
  absl::Time since = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();
  std::string known;  // SEQ:HASH
};

// Flags of the verb usage. Empty and the ends of time: not given.
struct UsageFlags {
  std::vector<v1::UsageGrouping> by;
  std::string project, user, cluster;
  absl::Time since = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();
};

// A word that may complete an unfinished one.
struct Candidate {
  std::string value;
  std::string description;  // empty: none
};

// The words that may come in place of the last one of an unfinished command line.
struct Completion {
  // The place that has further values.
  enum class Source { kNone, kFiles, kDirectories, kJobs, kClusters, kProjects, kContexts };
  std::vector<Candidate> candidates;
  Source source = Source::kNone;
  std::string filter;  // of jobs
  std::string before;  // the part of the word that stays: "--state=running,"
  std::string begun;   // the part that is completed
  std::string after;   // stands behind each job
};

struct Invocation {
  Verb verb = Verb::kVersion;
  // of every verb
  std::string broker;                  // empty: not given
  std::string context;                 // likewise
  std::string token_file;              // likewise
  std::string ca_file;                 // likewise
  std::optional<Format> format;        // none: not given
  std::shared_ptr<const Shape> shape;  // of -o jsonpath and -o template
  bool quiet = false;
  // submit, run, plan
  SpecFlags spec;
  std::vector<std::string> files;  // of jobs, or directories of them; empty: a command
  bool strict = false;
  std::optional<client::Dialect> dialect;  // none: the file's fields tell
  bool manifest = false;                   // of a plan: all that would be submitted
  std::vector<std::string> command;
  bool wait = false;
  bool hold = false;
  bool validate_only = false;
  std::string request_id;  // empty: not given
  // show, logs, events, wait, cancel, hold, release, update, rerun, signal, why
  std::vector<JobRef> jobs;
  // list, count, events; and those that change jobs, in place of numbers
  std::vector<std::string> states;
  std::string filter;
  bool only_active = false;            // list: only those that have not ended
  bool also_ended = false;             // ps
  bool watch = false;                  // list, ps
  std::string order_by;                // list; empty: not given
  std::vector<CountBy> count_by;       // count
  uint64_t limit = kDefaultListLimit;  // 0: all
  // logs, events
  bool follow = false;
  uint32_t run = 0;  // logs; 0: not given
  uint32_t rank = 0;
  bool all_ranks = false;
  bool no_prefix = false;    // logs
  bool only_output = false;  // standard output, of the two
  bool only_error = false;
  uint32_t tail_lines = 0;  // 0: all
  uint64_t since_offset = 0;
  bool raw = false;
  int64_t since = 0;
  // cp; jobs and rank, too
  std::string path;    // relative to the run's working directory; empty: that itself
  std::string target;  // a path here; "-" is standard output
  // wait
  absl::Duration timeout = absl::InfiniteDuration();
  // cancel, hold, release, update, clusters cordon
  std::string reason;
  bool yes = false;                        // also rerun: no question before many jobs change
  std::vector<std::string> remove_labels;  // update
  // clusters, check
  std::vector<std::string> cluster_words;  // of `clusters`: a name, or a word and a name
  std::string cluster;
  IdentityFlags identity;
  SecretFlags secret;
  SignalFlags signal;
  ProjectFlags project;
  AuditFlags audit;
  UsageFlags usage;
  std::string shell;   // completion
  std::string kind;    // init: of the cluster for which the file is; empty: any
  bool force = false;  // init: replaces a file
  Completion completion;
  // sbatch and the like, sky: what is behind the verb
  std::vector<std::string> words;
};

// Reads the command line. Otherwise the exit code, after help or the error has been printed.
std::variant<Invocation, int> ParseCommandLine(int argc, char** argv);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_INVOCATION_H_
