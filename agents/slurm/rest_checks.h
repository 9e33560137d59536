// Judges the answers that a preflight gets from slurmrestd. Pure; each Judge adds lines, and says
// whether the checks that depend on it can be made.
#ifndef MUSTER_AGENTS_SLURM_REST_CHECKS_H_
#define MUSTER_AGENTS_SLURM_REST_CHECKS_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/check_list.h"
#include "agents/slurm/checks.h"
#include "agents/slurm/rest_client.h"

namespace muster::slurm {

// A token in a file that ends sooner is told: its owner has to renew it, and nobody may be there.
inline constexpr absl::Duration kTokenRestToTell = absl::Hours(1);
// `user` says whom it is to be for. `file`: where it is from; empty: scontrol, which renews it.
bool JudgeToken(const absl::StatusOr<std::string>& token, const std::string& user,
                const std::string& file, absl::Time now, agents::CheckList* checks);

// Returns whether it was reached, and in which versions it can be spoken to.
bool JudgeServes(const std::string& url, const absl::StatusOr<RestServes>& serves,
                 agents::CheckList* checks);

// Tells by the answer to /ping whether a slurmctld is up; an answer that tells of none is no proof.
bool AnyIsUp(const nlohmann::json& answer);
// Judges slurmctld, by the answer to /ping.
bool JudgePing(const absl::StatusOr<RestAnswer>& ping, agents::CheckList* checks);

// Returns the time in the answer to /diag.
std::optional<absl::Time> RestControllerTime(const nlohmann::json& answer);

// Returns the user's, on the cluster of this name, or on any if that is empty. INTERNAL: the answer
// has no such list.
absl::StatusOr<std::vector<Association>> RestAssociations(const nlohmann::json& answer,
                                                          const std::string& cluster,
                                                          const std::string& user);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_CHECKS_H_
