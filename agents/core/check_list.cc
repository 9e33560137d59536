#include "agents/core/check_list.h"

#include <utility>

#include "contract/sentences.h"

namespace muster::agents {

void CheckList::Ok(std::string subject, std::string seen, std::string remedy) {
  Add(v1::CHECK_RESULT_OK, std::move(subject), std::move(seen), std::move(remedy));
}

void CheckList::Warn(std::string subject, std::string seen, std::string remedy,
                     v1::SubmitWarningCode code) {
  Add(v1::CHECK_RESULT_WARN, std::move(subject), std::move(seen), std::move(remedy));
  warnings_.push_back(contract::MakeWarning(code, *checks_.checks().rbegin()));
}

void CheckList::Fail(std::string subject, std::string seen, std::string remedy) {
  Add(v1::CHECK_RESULT_FAIL, std::move(subject), std::move(seen), std::move(remedy));
}

void CheckList::Skip(std::string subject, std::string why) {
  Add(v1::CHECK_RESULT_SKIPPED, std::move(subject), std::move(why), "");
}

void CheckList::Add(v1::CheckResult result, std::string subject, std::string seen,
                    std::string remedy) {
  v1::ClusterCheck* check = checks_.add_checks();
  check->set_subject(std::move(subject));
  check->set_result(result);
  check->set_seen(std::move(seen));
  check->set_remedy(std::move(remedy));
}

}  // namespace muster::agents
