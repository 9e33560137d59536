// Readers for slurmrestd's JSON. They know the shapes of API v0.0.38 and v0.0.37, and those that
// v0.0.40 to v0.0.42 have put in their place: states as lists, numbers as {"set", "infinite",
// "number"}.
#ifndef MUSTER_AGENTS_SLURM_REST_JSON_H_
#define MUSTER_AGENTS_SLURM_REST_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/json_members.h"

namespace muster::slurm {

// Returns nothing if the text is no JSON object. Only members with the names that this agent reads
// are kept, since one job has more than a hundred.
std::optional<nlohmann::json> ParseRestJson(std::string_view text);

using agents::Member;
using agents::TextOf;

// Returns a list in the answer; null if it has no such list.
const nlohmann::json* ListIn(const nlohmann::json& answer, std::string_view name);
// INTERNAL: what of slurmrestd's answer cannot be read.
absl::Status UnreadableAnswer(std::string_view what);
// Reads a number, or one that is set; nothing if it is infinite, not set, or none.
std::optional<int64_t> NumberOf(const nlohmann::json& value);
// Seconds since 1970; nothing for 0.
std::optional<absl::Time> TimeOf(const nlohmann::json& value);
// Returns the words of a list of texts, or the one text.
std::vector<std::string> WordsOf(const nlohmann::json& value);

// One of an answer's errors.
struct RestError {
  int64_t number = 0;       // Slurm's own; 0 or -1: none
  std::string error;        // Slurm's words for the number
  std::string description;  // what was tried; may be empty
};
std::vector<RestError> ErrorsOf(const nlohmann::json& answer);
// Returns all in one line; empty if there is none.
std::string WordsOf(const std::vector<RestError>& errors);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_JSON_H_
