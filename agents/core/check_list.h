// The lines of a preflight as they come.
#ifndef MUSTER_AGENTS_CORE_CHECK_LIST_H_
#define MUSTER_AGENTS_CORE_CHECK_LIST_H_

#include <string>
#include <utility>
#include <vector>

#include "muster/v1/check_code.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

class CheckList {
 public:
  // `code` says what was looked at.
  void Ok(v1::CheckCode code, std::string subject, std::string seen, std::string remedy = "");
  // `warning` is that of a submit of the job, if the lines are those of a plan.
  void Warn(v1::CheckCode code, std::string subject, std::string seen, std::string remedy = "",
            v1::SubmitWarningCode warning = v1::SUBMIT_WARNING_CODE_CHECK);
  void Fail(v1::CheckCode code, std::string subject, std::string seen, std::string remedy);
  // `why` says what it depends on.
  void Skip(v1::CheckCode code, std::string subject, std::string why);

  void Add(v1::ClusterCheck line) { *checks_.add_checks() = std::move(line); }

  const v1::ClusterChecks& checks() const { return checks_; }
  // Returns the warnings of a submit.
  const std::vector<v1::SubmitWarning>& warnings() const { return warnings_; }
  v1::ClusterChecks Take() && { return std::move(checks_); }

 private:
  void Add(v1::CheckCode code, v1::CheckResult result, std::string subject, std::string seen,
           std::string remedy);

  v1::ClusterChecks checks_;
  std::vector<v1::SubmitWarning> warnings_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_CHECK_LIST_H_
