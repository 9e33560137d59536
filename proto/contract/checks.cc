#include "contract/checks.h"

#include <utility>

#include "contract/sentences.h"
#include "fmt/format.h"
#include "muster/v1/facts.pb.h"

namespace muster::contract {

v1::ClusterCheck MakeCheck(v1::CheckCode code, v1::CheckResult result, std::string subject,
                           std::string seen, std::string remedy) {
  v1::ClusterCheck check;
  check.set_code(code);
  check.set_result(result);
  check.set_subject(std::move(subject));
  check.set_seen(std::move(seen));
  check.set_remedy(std::move(remedy));
  return check;
}

v1::ClusterCheck NoAnswerCheck(const std::string& cluster, std::string_view why) {
  return MakeCheck(
      v1::CHECK_CODE_SCHEDULER, v1::CHECK_RESULT_FAIL, "the agent's answer", std::string(why),
      fmt::format("check cluster {}: its agent then looks at all that jobs need", cluster));
}

v1::ClusterCheck PoolCheck(const Lack& lack, const std::string& cluster,
                           const v1::ClusterIssue* issue) {
  constexpr char kWaits[] = "until then the job waits in Muster's queue";
  return MakeCheck(
      v1::CHECK_CODE_POOL, v1::CHECK_RESULT_WARN, "pool", SentenceOf(lack),
      issue == nullptr
          ? fmt::format(
                "Nothing, if that will pass: {}; the pools and issues of cluster {} tell more.",
                kWaits, cluster)
          : fmt::format("{}; {}", issue->remedy(), kWaits));
}

v1::ClusterCheck FullCheck(const v1::Cluster& cluster) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_CLUSTER_FULL);
  reason.set_cluster(cluster.name());
  reason.set_active_runs(cluster.active_runs());
  reason.set_max_active_runs(cluster.max_active_runs());
  PutSentence(&reason);
  return MakeCheck(
      v1::CHECK_CODE_LIMITS, v1::CHECK_RESULT_WARN, "max_active_runs", reason.message(),
      "Nothing: the job waits in Muster's queue until one of them ends; held ones do so only if "
      "they are released or canceled.");
}

v1::ClusterCheck CordonCheck(const v1::Cluster& cluster) {
  return MakeCheck(
      v1::CHECK_CODE_OTHER, v1::CHECK_RESULT_WARN, "cordon",
      "the cluster is " + CordonText(cluster.cordon()),
      fmt::format("Nothing, if another cluster takes it: the job waits in Muster's queue until "
                  "then, or until an operator ends the cordon (muster clusters uncordon {}).",
                  cluster.name()));
}

}  // namespace muster::contract
