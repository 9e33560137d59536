#include "clients/cli/alternatives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cli/plan_outlook.h"
#include "clients/cli/text.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "contract/units.h"
#include "google/protobuf/util/message_differencer.h"

namespace muster::cli {
namespace {

// The time for the plans of all jobs of a file: each asks the clusters' agents, and somebody waits.
constexpr absl::Duration kPatience = absl::Seconds(30);
// The time of an answer after which the user is told what is waited for.
constexpr absl::Duration kSilence = absl::Seconds(2);

// The later the better.
enum class Outlook { kNowhere, kUnknown, kSometime, kAtOnce };

struct Alternative {
  v1::JobSpec written;    // as the file has it
  v1::JobSpec completed;  // as it would be submitted
  Outlook outlook = Outlook::kUnknown;
  std::string why = {};  // it can run nowhere, or nobody knows
};

Outlook OutlookOf(const v1::PlanJobResponse& response) {
  const auto& plans = response.plans();
  const auto starts = [now = absl::Now()](const auto& plan) { return StartsAtOnce(plan, now); };
  if (std::any_of(plans.begin(), plans.end(), starts)) return Outlook::kAtOnce;
  return std::all_of(plans.begin(), plans.end(), HasFailed) ? Outlook::kNowhere
                                                            : Outlook::kSometime;
}

// The first obstacle.
std::string FirstFailure(const v1::PlanJobResponse& response) {
  for (const v1::JobPlan& plan : response.plans()) {
    for (const v1::ClusterCheck& check : plan.checks()) {
      if (check.result() != v1::CHECK_RESULT_FAIL) continue;
      return fmt::format("{}: {}", Harmless(plan.cluster()), OneLine(check.seen()));
    }
  }
  return "no cluster says why";
}

// Names the fields in which alternatives differ most often.
std::string WordsFor(const v1::JobSpec& spec) {
  std::vector<std::string> words;
  for (const v1::GpuRequest& gpus : spec.resources().gpus())
    words.push_back(contract::FormatGpus(gpus));
  if (words.empty() && spec.resources().cpu_millis() > 0)
    words.push_back(contract::FormatCpus(spec.resources().cpu_millis()) + " CPUs");
  if (!spec.placement().clusters().empty())
    words.push_back(fmt::format("on {}", fmt::join(spec.placement().clusters(), " or ")));
  return words.empty() ? "" : fmt::format(" ({})", fmt::join(words, ", "));
}

bool AreAlike(const Alternative& one, const Alternative& other) {
  return google::protobuf::util::MessageDifferencer::Equals(one.completed, other.completed);
}

// Alternatives that the command line makes the same are one: nobody is asked twice about it.
std::vector<Alternative> Complete(const std::vector<v1::JobSpec>& specs,
                                  const std::function<absl::Status(v1::JobSpec*)>& complete) {
  std::vector<Alternative> all;
  for (const v1::JobSpec& spec : specs) {
    Alternative one{.written = spec, .completed = spec};
    const absl::Status status = complete(&one.completed);
    if (!status.ok()) {
      one.outlook = Outlook::kNowhere;
      one.why = OneLine(ToStd(status.message()));
    }
    const bool is_new = std::none_of(
        all.begin(), all.end(), [&](const Alternative& other) { return AreAlike(one, other); });
    if (is_new) all.push_back(std::move(one));
  }
  return all;
}

class Chooser {
 public:
  explicit Chooser(Session* session) : session_(*session), deadline_(absl::Now() + kPatience) {}

  // Alternatives behind one that would start at once are not asked for. False: nobody answers,
  // which the submission tells.
  bool Judge(std::vector<Alternative>* all) {
    for (Alternative& one : *all) {
      if (one.outlook == Outlook::kNowhere) continue;
      if (absl::Now() > deadline_) {
        one.why = "there was no time left to ask";
      } else if (!Ask(&one)) {
        return false;
      }
      if (one.outlook == Outlook::kAtOnce) break;
    }
    return true;
  }

 private:
  // False: there is nobody to ask, or the fault has nothing to do with alternatives.
  bool Ask(Alternative* one) {
    v1::PlanJobRequest request;
    *request.mutable_spec() = one->completed;
    // The uploads are the same with each alternative, and have not been read yet.
    request.mutable_spec()->clear_uploads();
    const absl::Time asked = absl::Now();
    const auto response = session_.client.PlanJob(request);
    if (absl::Now() - asked > kSilence && !std::exchange(was_slow_, true))
      session_.terminal.Note("asking which of the alternatives can run; a cluster is slow to say");
    if (response.ok()) {
      one->outlook = OutlookOf(*response);
      if (one->outlook == Outlook::kNowhere) one->why = FirstFailure(*response);
      return true;
    }
    const absl::Status& status = response.status();
    one->why = OneLine(ToStd(status.message()));
    if (absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status)) {
      one->outlook = Outlook::kNowhere;
      return true;
    }
    // The broker says so of the clusters; of a broker that is away nobody does.
    return absl::IsUnavailable(status) && contract::GetErrorInfo(status).has_value();
  }

  Session& session_;
  const absl::Time deadline_;
  bool was_slow_ = false;
};

std::string_view Because(Outlook outlook) {
  switch (outlook) {
    case Outlook::kAtOnce:
      return "it is the first that would start at once";
    case Outlook::kSometime:
      return "it is the first that a cluster can run; of none it is known that it would start at "
             "once";
    case Outlook::kUnknown:
      return "no cluster that can be asked now could run any of them";
    default:
      return "no cluster that is connected can run any of them";
  }
}

// `place`: of the job in its file.
void Tell(Session& session, const std::string& place, const std::vector<Alternative>& all,
          size_t taken) {
  const std::string begin = place.empty() ? "" : place + ": ";
  const Alternative& one = all[taken];
  session.terminal.Note(fmt::format("{}of {} alternatives number {}{} is taken: {}", begin,
                                    all.size(), taken + 1, Harmless(WordsFor(one.completed)),
                                    Because(one.outlook)));
  if (one.outlook >= Outlook::kSometime) return;
  for (size_t i = 0; i < all.size(); ++i) {
    session.terminal.Note(fmt::format("{}number {}{}: {}", begin, i + 1,
                                      Harmless(WordsFor(all[i].completed)), all[i].why));
  }
}

}  // namespace

void ChooseAlternatives(Session& session, const std::function<absl::Status(v1::JobSpec*)>& complete,
                        client::JobFile* jobs) {
  Chooser chooser(&session);
  for (const auto& [job, specs] : jobs->alternatives) {
    std::vector<Alternative> all = Complete(specs, complete);
    if (all.size() == 1) continue;
    if (!chooser.Judge(&all)) return;
    const auto best = std::max_element(
        all.begin(), all.end(),
        [](const Alternative& a, const Alternative& b) { return a.outlook < b.outlook; });
    jobs->specs[job] = best->written;
    Tell(session, jobs->places.Find(job, "resources"), all,
         static_cast<size_t>(best - all.begin()));
  }
}

}  // namespace muster::cli
