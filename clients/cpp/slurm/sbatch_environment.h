// Takes along a part of its submitter's environment for a batch script: --export, --export-file,
// --get-user-env and --propagate, as sbatch reads them. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_ENVIRONMENT_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_ENVIRONMENT_H_

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/slurm/credentials.h"
#include "clients/cpp/slurm/options.h"
#include "contract/errors.h"
#include "contract/shell_environment.h"

namespace muster::client::slurm {

// The time that a node may look for a login environment if --get-user-env does not say: sbatch's
// own.
inline constexpr int64_t kLoginSeconds = 8;

// The umask and the limits that a shell hands on to its programs.
struct ShellLimits {
  std::optional<uint32_t> umask;
  // The soft ones by the names of sbatch, as NOFILE; kNoLimit if there is none.
  std::map<std::string, uint64_t> soft;
};
inline constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
// The limits that sbatch takes along.
inline constexpr std::array<std::string_view, 10> kLimits = {
    "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"};

// The environment in which a script was submitted, and the user's choice of what goes along.
struct SubmitEnvironment {
  std::map<std::string, std::string> variables;
  ShellLimits limits = {};
  // Names, or beginnings of names with a '*' behind, that go along only if --export names them.
  std::vector<std::string> leave_behind = DefaultLeaveBehind();
  // The variables of the file that --export-file names.
  std::optional<std::map<std::string, std::string>> file = {};
};

struct TakenEnvironment {
  contract::ShellVariables variables;
  std::set<std::string> named;        // those that the user asked for by name
  std::vector<std::string> stay;      // listed ones and credentials, in the order of their names
  std::vector<std::string> nameless;  // variables whose names no shell can set, likewise
  int64_t login_seconds = 0;          // 0: no login environment
};

// Names in `errors` what cannot be read, and an environment that is too large.
TakenEnvironment TakeEnvironment(const Settings& options, const SubmitEnvironment& from,
                                 contract::FieldErrors* errors);

// The variables of a file for --export-file: "NAME=value", each ended by a NUL byte.
// INVALID_ARGUMENT: it is none.
absl::StatusOr<std::map<std::string, std::string>> ReadExportFile(std::string_view text);

// A sentence about what stays behind, and how to take it along; empty if nothing does.
std::string StaysBehind(const TakenEnvironment& taken, const Settings& options);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_ENVIRONMENT_H_
