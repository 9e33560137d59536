// Errors for people.
#ifndef MUSTER_CLIENTS_CLI_REPORT_H_
#define MUSTER_CLIENTS_CLI_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "clients/cli/render.h"
#include "clients/cli/terminal.h"

namespace muster::cli {

// Lines "muster: ...": the message, or each bad field with what is wrong with it, what a user of
// this command can do about it, and when to try again. If no cluster can run a job, the lines go on
// with what the message leaves out of the clusters' reasons.
std::string ErrorText(const absl::Status& status);

// One line of JSON: {"error": {"code": "NOT_FOUND", "message": ...}}. Besides: the reason under
// which docs/troubleshooting.md explains the error, the bad fields, the remedy, and the seconds
// after which to try again.
std::string ErrorJson(const absl::Status& status);

// Writes the error in the form of the results: -o json and jsonl have it as JSON.
void WriteError(Terminal& terminal, Format format, const absl::Status& status);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_REPORT_H_
