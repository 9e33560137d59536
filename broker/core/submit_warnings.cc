#include "broker/core/submit_warnings.h"

#include <optional>
#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/fit.h"
#include "contract/admission.h"
#include "contract/sentences.h"

namespace muster::core {

void Warner::Warn(const v1::JobSpec& spec, const Requirements& requirements,
                  v1::SubmitJobResponse* response) {
  const std::optional<contract::AdmissionNeeds> needs = contract::AdmissionNeedsOf(spec);
  if (!needs.has_value()) return;
  std::string bytes = contract::BytesOf(*needs);
  if (bytes != last_ || !(requirements == last_requirements_)) {
    last_warnings_ = Find(*needs, requirements);
    last_ = std::move(bytes);
    last_requirements_ = requirements;
  }
  for (const v1::SubmitWarning& warning : last_warnings_) {
    bytes_ += warning.ByteSizeLong();
    if (bytes_ > kMaxWarningsBytes) return;
    *response->add_warnings() = warning;
  }
}

std::vector<v1::SubmitWarning> Warner::Find(const contract::AdmissionNeeds& needs,
                                            const Requirements& requirements) const {
  std::vector<v1::SubmitWarning> found;
  for (const auto& [name, cluster] : clusters_) {
    const v1::Inventory& inventory = cluster->saved.inventory;
    if (!inventory.has_admission() || !CheckFit(requirements, cluster->saved, limits_).now())
      continue;
    for (v1::SubmitWarning& warning :
         contract::JudgeAdmission(needs, inventory.admission(), name).warnings) {
      if (found.size() == kMaxWarnings) return found;
      contract::SetCluster(name, &warning);
      for (std::string* text :
           {warning.mutable_message(), warning.mutable_remedy(), warning.mutable_subject()}) {
        Truncate(kMaxIssueBytes, text);
      }
      found.push_back(std::move(warning));
    }
  }
  return found;
}

}  // namespace muster::core
