// The state of a node in the words of sinfo. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_NODE_STATE_H_
#define MUSTER_CLIENTS_CLI_SLURM_NODE_STATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::cli {

// A base state and its flags, as scontrol prints them: "IDLE+DRAIN", "down*".
class NodeState {
 public:
  // Reads Slurm's words and sinfo's own, in any case: "drained" is idle+drain.
  static NodeState Parse(std::string_view text);

  // sinfo's words, long and short, with the mark of one flag: "drained*", "drain*".
  std::string Long() const;
  std::string Short() const;
  // The base state and all flags: "allocated+drain".
  std::string Complete() const;

  // Tell whether jobs use it, and whether it takes no more, as sinfo counts nodes.
  bool IsBusy() const;
  bool IsOut() const;
  // Tells whether sinfo -R lists it: down, drained, draining, failing.
  bool NeedsReason() const;
  bool Answers() const;
  // Tells whether --states takes it: "drain", "mix", several with '&' between. INVALID_ARGUMENT: a
  // word that is no state of a node.
  absl::StatusOr<bool> IsAskedBy(std::string_view states) const;

  // Returns the rank by which sinfo sorts: the highest first.
  uint32_t rank() const;

 private:
  bool Has(std::string_view flag) const;
  std::string Mark() const;

  std::string base_;
  uint32_t flags_ = 0;  // as in kNodeFlags
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_NODE_STATE_H_
