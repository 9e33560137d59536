// The output of squeue, sacct, scontrol and sinfo, and the record that a batch script leaves.
#include "agents/slurm/checks.h"
#include "agents/slurm/details.h"
#include "agents/slurm/exit_record.h"
#include "agents/slurm/history.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/job_id.h"
#include "agents/slurm/plan.h"
#include "agents/slurm/queue.h"
#include "agents/slurm/states.h"
#include "agents/slurm/usage.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::slurm;
  const std::string_view text = muster::fuzz::TextOf(data, size);
  static_cast<void>(ParseQueue(text));
  static_cast<void>(ParseWholeQueue(text));
  static_cast<void>(ParseHistory(text));
  static_cast<void>(ParseShowJob(text));
  static_cast<void>(ParseUsage(text));
  static_cast<void>(ParseCpuTime(text));
  static_cast<void>(ParseNodes(text));
  static_cast<void>(ParsePartitions(text));
  static_cast<void>(ParseSettings(text));
  static_cast<void>(ParsePools(text));
  static_cast<void>(ParseAssociations(text));
  static_cast<void>(ParseExitRecord(text));
  static_cast<void>(ParseEstimate(text));
  static_cast<void>(ParseJobId(text));
  static_cast<void>(ParseState(text));
  muster::fuzz::Require(ExpandNodeList(text).size() <= kMaxNodes, "a list of nodes is bounded");
  return 0;
}
