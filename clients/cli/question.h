// Asks before many jobs change at once.
#ifndef MUSTER_CLIENTS_CLI_QUESTION_H_
#define MUSTER_CLIENTS_CLI_QUESTION_H_

#include <cstdint>
#include <string_view>

#include "clients/cli/verbs.h"

namespace muster::cli {

// The jobs that may change without a question. One call of the API changes as many.
inline constexpr uint64_t kMaxUnasked = 1000;

// Returns whether there is somebody who can answer: a terminal for the question and for the answer.
bool CanAsk(const Session& session);

// "cancel 12345 jobs? [y/N]". Anything but y or yes is no, which is said.
bool IsWanted(Session& session, std::string_view verb, uint64_t jobs);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_QUESTION_H_
