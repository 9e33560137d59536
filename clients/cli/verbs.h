// Carries out the verbs. Every function returns the exit code, after results and errors have been
// written.
#ifndef MUSTER_CLIENTS_CLI_VERBS_H_
#define MUSTER_CLIENTS_CLI_VERBS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/config.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/invocation.h"
#include "clients/cli/render.h"
#include "clients/cli/terminal.h"
#include "clients/cli/views.h"
#include "clients/cpp/client.h"

namespace muster::cli {

// The objects that a verb works with. Belongs to the main thread; other threads use the client and
// the terminal only.
struct Session {
  const Invocation& call;
  Format format;
  client::Client& client;
  Terminal& terminal;
  OnInterrupt* interrupt;                        // with --wait, else null
  bool is_local;                                 // whether the broker's address is a Unix socket
  const std::vector<std::string>& leave_behind;  // of Config

  Style style() const {
    const bool is_csv = format == Format::kCsv;
    return {.wide = format == Format::kWide || is_csv,
            .colours = terminal.colours() && !is_csv,
            .width = format == Format::kTable ? terminal.width() : 0,
            .csv = is_csv};
  }
  // Returns whether the result is text, as people read it, rather than messages.
  bool for_people() const {
    return format == Format::kTable || format == Format::kWide || format == Format::kCsv;
  }
  // Returns whether each object of a list is written by itself, by LineOf.
  bool by_line() const { return format == Format::kJsonLines || format == Format::kTemplate; }
  bool ids_only() const { return format == Format::kName || (call.quiet && for_people()); }
};

// Notes the other tasks of the array if the verb named one task by number, and how to name all of
// them: only the verbs for Slurm's users take such a number for the whole array.
void NoteOtherTasks(Session& session, std::string_view verb);

int Submit(Session& session);
int Run(Session& session);
int List(Session& session);
int Count(Session& session);
// list --watch.
int WatchList(Session& session);
int Top(Session& session);
int Show(Session& session);
int Logs(Session& session);
int Events(Session& session);
int Wait(Session& session);
int Cancel(Session& session);
int Signal(Session& session);
int Update(Session& session);
int Rerun(Session& session);
int CopyFiles(Session& session);
int Clusters(Session& session);
int Check(Session& session);
int Forget(Session& session);
int Hold(Session& session);
int Release(Session& session);
int Move(Session& session);
int Why(Session& session);
int Plan(Session& session);
// These two need the context that the broker comes from. The session of Login has no credential.
int Login(Session& session, const Config& config);
int Logout(Session& session, const Config& config);
int WhoAmI(Session& session);
int CreateToken(Session& session);
int ListTokens(Session& session);
int RevokeToken(Session& session);
int SetSecret(Session& session);
int ListSecrets(Session& session);
int DeleteSecret(Session& session);
// The verb projects, and those of `muster project`.
int Projects(Session& session);
int ListAudit(Session& session);
int VerifyAudit(Session& session);
int Usage(Session& session);

// The verbs of `muster context`, which need no broker.
bool IsContextVerb(Verb verb);
int Context(const Invocation& call, Terminal& terminal, const Environment& environment);

// ---- what several verbs share

// "submitter"; a role that is newer than this program is "unknown".
std::string RoleText(v1::AccessRole role);

// Writes an error and returns its exit code.
int Fail(Session& session, const absl::Status& status);
// Writes jobs as rows, or their ids.
void PrintJobs(Session& session, const v1::ListJobsResponse& jobs);
// The message as -o jsonl or -o template has it.
std::string LineOf(const Session& session, const google::protobuf::Message& message);
// Writes a message in one of the formats for programs.
void PrintMessage(Session& session, const google::protobuf::Message& message);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_VERBS_H_
