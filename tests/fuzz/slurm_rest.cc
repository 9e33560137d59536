// The answers of slurmrestd.
#include "agents/slurm/job_id.h"
#include "agents/slurm/rest_client.h"
#include "agents/slurm/rest_json.h"
#include "agents/slurm/rest_nodes.h"
#include "agents/slurm/rest_rows.h"
#include "agents/slurm/rest_token.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::slurm;
  const std::string_view text = muster::fuzz::TextOf(data, size);
  static_cast<void>(ParseToken(text));
  const auto answer = ParseRestJson(text);
  if (!answer) return 0;
  static_cast<void>(RestQueue(*answer, "ada", "k7m2-1-1"));
  static_cast<void>(RestWholeQueue(*answer));
  static_cast<void>(RestJob(*answer, *ParseJobId("3")));
  static_cast<void>(RestHistory(*answer, "ada"));
  static_cast<void>(RestUsage(*answer, "ada"));
  static_cast<void>(RestPools(*answer, *answer));
  static_cast<void>(RestKnownNodes(*answer, {"n1"}));
  static_cast<void>(RestNodes(*answer));
  static_cast<void>(RestPartitions(*answer));
  static_cast<void>(WordsOf(ErrorsOf(*answer)));
  static_cast<void>(ReadRestServes(*answer));
  return 0;
}
