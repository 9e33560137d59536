// The lines of a preflight as they come.
#ifndef MUSTER_AGENTS_CORE_CHECK_LIST_H_
#define MUSTER_AGENTS_CORE_CHECK_LIST_H_

#include <string>
#include <utility>

#include "muster/v1/cluster.pb.h"

namespace muster::agent {

class CheckList {
 public:
  void Ok(std::string subject, std::string seen, std::string remedy = "");
  void Warn(std::string subject, std::string seen, std::string remedy = "");
  void Fail(std::string subject, std::string seen, std::string remedy);
  // `why`: what it depends on.
  void Skip(std::string subject, std::string why);

  void Add(v1::ClusterCheck line) { *checks_.add_checks() = std::move(line); }

  const v1::ClusterChecks& checks() const { return checks_; }
  v1::ClusterChecks Take() && { return std::move(checks_); }

 private:
  void Add(v1::CheckResult result, std::string subject, std::string seen, std::string remedy);

  v1::ClusterChecks checks_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_CHECK_LIST_H_
