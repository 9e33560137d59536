// Handles the variables of a shell that a batch script takes along from where it was submitted: the
// file that has them, and what each kind of cluster does with them.
#ifndef MUSTER_PROTO_CONTRACT_SHELL_ENVIRONMENT_H_
#define MUSTER_PROTO_CONTRACT_SHELL_ENVIRONMENT_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// A file has at most this many bytes: a program gets some 2 MiB of variables and arguments
// together, and the largest module systems set a few 10 KiB.
inline constexpr size_t kMaxShellBytes = 256 << 10;
// Most variables that --export names.
inline constexpr int kMaxNamedVariables = 1000;

// This variable says where the user was who submitted the script, if it starts elsewhere. An agent
// of Slurm sets it for the script.
inline constexpr std::string_view kSubmitDirectory = "SLURM_SUBMIT_DIR";

// Values by name.
using ShellVariables = std::map<std::string, std::string>;

std::string FormatShellFile(const ShellVariables& variables);
// INVALID_ARGUMENT: the text is too long, or a part of it is no "NAME=value" with a NUL behind it.
absl::StatusOr<ShellVariables> ParseShellFile(std::string_view text);

// Returns the name of the function that bash has exported as this variable; empty if it is none.
std::string_view ShellFunctionOf(std::string_view variable, std::string_view value);
// Returns whether a shell can set the variable.
bool MayBeSet(std::string_view variable, std::string_view value);
// Returns whether each run has a value of its own, which a value of the submitter's shell must not
// replace: Muster's variables, those of the account and the node, and those that a shell makes for
// itself.
bool IsOfTheRun(std::string_view variable);
// Returns whether the value means nothing on a machine that does not share the submitter's
// software: search paths, the module system, the session, Slurm's own variables, functions.
bool IsOfTheSubmitHost(std::string_view variable);

// The job has such variables.
bool HasShellEnvironment(const v1::JobSpec& spec);
void CheckShellEnvironment(const v1::SlurmBatchScript& script, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SHELL_ENVIRONMENT_H_
