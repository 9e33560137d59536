// The environment of a run's programs, on every kind of cluster alike.
//
// These are pure functions, for any thread.
#ifndef MUSTER_AGENTS_CORE_RUN_PROGRAM_H_
#define MUSTER_AGENTS_CORE_RUN_PROGRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/agent/v1/agent_link.pb.h"

namespace muster::agents {

// Returns the variables that are known before the launch and the same on every node, by name. It
// leaves out what a node learns when it starts (MASTER_ADDR, ranks, addresses), and the user's own,
// which win over these.
std::map<std::string, std::string> RunVariables(const agent::v1::Assignment& assignment,
                                                std::string_view cluster,
                                                std::string_view run_directory);

// Returns the variables of the job's secrets, which win over all others: for a secret in a file the
// file's path, in `directory`, and for the others the value.
std::map<std::string, std::string> SecretVariables(const agent::v1::Assignment& assignment,
                                                   std::string_view directory);
// Names the file of a secret, by its variable; all begin with kSecretFilePrefix.
inline constexpr std::string_view kSecretFilePrefix = "secret.";
std::string SecretFileName(std::string_view variable);

// Returns the variables of one role alone: its sizes, and a port that no other role on its nodes
// has; they win over RunVariables.
std::map<std::string, std::string> RoleVariables(const agent::v1::Assignment& assignment, int role);
// MUSTER_ROLE_<NAME>_NODES: which nodes a role has, with commas between them.
std::string RoleNodesVariable(const v1::Role& role);

// MASTER_PORT of a job, and of its roles: another one for each.
std::string MasterPort(uint64_t job_id, int role);

// The words that run a script file: its #! line's, as the kernel reads it, else /bin/sh; then the
// file and `arguments`. The kernel itself would refuse a script on a file system that is mounted
// noexec, and one that another process has just open.
std::vector<std::string> WordsForScript(std::string_view text, const std::string& path,
                                        const std::vector<std::string>& arguments = {});
// Returns the words of a command whose script, if it has one, is in a file.
std::vector<std::string> WordsForCommand(const v1::Command& command,
                                         const std::string& script_path);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RUN_PROGRAM_H_
