// The result of reading a file of jobs, whatever its dialect.
#ifndef MUSTER_CLIENTS_CPP_JOB_FILE_RESULT_H_
#define MUSTER_CLIENTS_CPP_JOB_FILE_RESULT_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {

// SubmitJobs takes as many.
inline constexpr size_t kMaxJobsInFile = 1000;

// The language of a file of jobs.
enum class Dialect { kMuster, kSkyPilot };

// Knows the places of the fields of the jobs of a file, so that an error of the broker about a
// field can name its place.
class FieldPlaces {
 public:
  // "FILE:LINE:COLUMN" of a field, named as the API has it, of one of the jobs, from 0; empty if
  // the file does not give it.
  std::string Find(size_t job, std::string_view api_path) const;

  // One job's fields, by the API's names.
  using OfJob = std::map<std::string, std::string, std::less<>>;
  void Add(OfJob fields) { jobs_.push_back(std::move(fields)); }
  // Puts the jobs of another file behind these.
  void Append(FieldPlaces more) {
    for (OfJob& fields : more.jobs_) jobs_.push_back(std::move(fields));
  }

 private:
  std::vector<OfJob> jobs_;
};

struct JobFileOptions {
  // True if what a SkyPilot task says without effect here is refused, rather than noted.
  bool strict = false;
  // The language in which it is written, whatever its fields are; none: its fields tell.
  std::optional<Dialect> dialect = {};
  // The command line sets these variables: they win over the file's, and give a SkyPilot task those
  // that it leaves open.
  std::map<std::string, std::string> env;
  // Secrets that the command line sets, likewise.
  std::map<std::string, std::string> secrets = {};
  // Reads a variable of the caller's; null if they are not looked at.
  char* (*own_variable)(const char* name) = nullptr;
};

// Names a directory or a file of this machine that a job brings along. Its spec has an entry for it
// in uploads, with kUnreadTree for the tree (local_uploads.h reads it).
struct LocalUpload {
  size_t job = 0;      // whose spec
  int upload = 0;      // which of its uploads
  std::string source;  // "~" and "~/..." are in the user's home
  std::string target;  // relative to the run's working directory; empty: the directory itself
};

// A secret whose value the file has, or the command line. Its spec has an entry for it in secrets,
// with kUnsetSecret for the name: the value is set as a secret for that one job.
struct LocalSecret {
  size_t job = 0;  // whose spec
  int secret = 0;  // which of its secrets
  std::string value;
};

// Names a cluster that a job names, and the kind that its file takes it to be of. Only the broker
// knows whether it is.
struct ExpectedKind {
  size_t job = 0;  // whose spec
  std::string cluster;
  v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;
};

// The name of a tree that has not been read yet.
inline constexpr std::string_view kUnreadTree =
    "0000000000000000000000000000000000000000000000000000000000000000";

// The name of a secret that has not been set yet.
inline constexpr std::string_view kUnsetSecret = "for-one-job";

struct JobFile {
  std::vector<v1::JobSpec> specs;  // as written, without defaults; at least one
  FieldPlaces places;
  // The specs that may be submitted in place of a job's spec, which is the first of them, in the
  // order in which its user wants them. They are by job, and only for jobs that have several.
  std::map<size_t, std::vector<v1::JobSpec>> alternatives;
  std::vector<LocalUpload> local_uploads;
  std::vector<LocalSecret> local_secrets;
  // Files that the specs name by these digests, with what is in them.
  std::map<std::string, std::string> contents;
  std::vector<ExpectedKind> expected_kinds;
  std::vector<std::string> notes;  // what the user should know of it, a sentence each
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOB_FILE_RESULT_H_
