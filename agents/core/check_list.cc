#include "agents/core/check_list.h"

#include <utility>

#include "contract/checks.h"
#include "contract/sentences.h"

namespace muster::agents {

void CheckList::Ok(v1::CheckCode code, std::string subject, std::string seen, std::string remedy) {
  Add(code, v1::CHECK_RESULT_OK, std::move(subject), std::move(seen), std::move(remedy));
}

void CheckList::Warn(v1::CheckCode code, std::string subject, std::string seen, std::string remedy,
                     v1::SubmitWarningCode warning) {
  Add(code, v1::CHECK_RESULT_WARN, std::move(subject), std::move(seen), std::move(remedy));
  warnings_.push_back(contract::MakeWarning(warning, *checks_.checks().rbegin()));
}

void CheckList::Fail(v1::CheckCode code, std::string subject, std::string seen,
                     std::string remedy) {
  Add(code, v1::CHECK_RESULT_FAIL, std::move(subject), std::move(seen), std::move(remedy));
}

void CheckList::Skip(v1::CheckCode code, std::string subject, std::string why) {
  Add(code, v1::CHECK_RESULT_SKIPPED, std::move(subject), std::move(why), "");
}

void CheckList::Add(v1::CheckCode code, v1::CheckResult result, std::string subject,
                    std::string seen, std::string remedy) {
  *checks_.add_checks() =
      contract::MakeCheck(code, result, std::move(subject), std::move(seen), std::move(remedy));
}

}  // namespace muster::agents
