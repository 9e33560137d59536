// The words of sky exec, as they are written.
#ifndef MUSTER_CLIENTS_CLI_SKY_EXEC_WORDS_H_
#define MUSTER_CLIENTS_CLI_SKY_EXEC_WORDS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::cli::sky {

struct ExecWords {
  std::string cluster;
  std::vector<std::string> entry;          // a task's file, or the words of a command; not empty
  std::map<std::string, std::string> env;  // of --env and --env-file
  std::map<std::string, std::string> secrets = {};  // of --secret and --secret-file
  std::optional<std::string> name, gpus, cpus, memory, image, workdir, nodes;
  bool detach = false;
  bool dry_run = false;

  // Writes what was given over the spec, except for the working directory. INVALID_ARGUMENT names
  // the option, the value and what would work.
  absl::Status ApplyTo(v1::JobSpec* spec) const;
};

// INVALID_ARGUMENT: they are wrong, or name what Muster does not take; the files of --env-file and
// --secret-file are read, with their errors.
absl::StatusOr<ExecWords> ReadExecWords(const std::vector<std::string>& words);

}  // namespace muster::cli::sky

#endif  // MUSTER_CLIENTS_CLI_SKY_EXEC_WORDS_H_
