// Knows the user that a run's programs run as, if not the agent's, and acts as that user by
// muster-run-as (agents/run_as), which runs a program as another user and does nothing else.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_RUN_USER_H_
#define MUSTER_AGENTS_MACHINES_RUN_USER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/tree_removal.h"

namespace muster::machines {

// The record of it in the run's directory, which stays for as long as the user has files of it.
inline constexpr char kUserFile[] = "user";

// The mark beside it of a run that has files of secrets in the user's directory.
inline constexpr char kUserSecretsFile[] = "user-secrets";

// The exit code of a muster-run-as that runs nothing, and the beginning of what it says then.
inline constexpr int kRunAsRefused = 125;
inline constexpr std::string_view kRunAsWords = "muster-run-as: ";

struct RunUser {
  std::string name = {};        // of the machine's user; empty: the agent's own
  std::string directory = {};   // the run's directory that is the user's, where work/ is
  std::string helper = {};      // the path of muster-run-as
  std::string supervisor = {};  // the path of muster-supervisor

  bool IsOther() const { return !name.empty(); }
  // Returns the words that run a program as the user.
  std::vector<std::string> Words(std::vector<std::string> program,
                                 const std::string& directory = "/") const;

  std::string Encode() const;
  static std::optional<RunUser> Decode(std::string_view bytes);
};

// Returns what the run's directory says; nothing: its programs are the agent's.
std::optional<RunUser> ReadRunUser(const std::string& directory);

// A command has this time, since it handles few files. A user who stops processes that run as them
// holds up their machine for no longer.
inline constexpr int kUserCommandMs = 10'000;

// Runs a command of muster-supervisor as the user to its end. Returns its exit code; -1: it could
// not be started, or was killed, also because it has not closed its standard output within the
// limit. `output` is the beginning of what it writes there. `input` is the descriptor that is its
// standard input; -1: empty.
int RunAsUser(const RunUser& user, const std::vector<std::string>& command,
              std::string* output = nullptr, int input = -1, int limit_ms = kUserCommandMs);

// Writes a file of mode 0600 that is the user's, in the run's directory that is the user's. Returns
// 0, or errno. The content gets on no disk but there.
int WriteUserSecret(const RunUser& user, const std::string& name, std::string_view content);
// Removes all files of secrets there, and then their mark in the run's directory. Returns whether
// none is left; without the mark there is none.
bool RemoveUserSecrets(const std::string& directory, const RunUser& user);

// Removes what the run's directory says of the user, whose directory is gone.
void ForgetUser(const std::string& directory);
// The files of a run that never began have this time; keep_work gets what is left then.
inline constexpr int kUserRemovalMs = 2000;

// Removes the user's directory of a run, and then what the run's directory says of it.
TreeRemoval RemoveUserDirectory(const std::string& directory, const RunUser& user, int budget_ms);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_USER_H_
