#include "clients/cli/change_flags.h"

#include <string>

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"

namespace muster::cli {
namespace {

void AddReason(CLI::App* sub, Invocation* out) {
  AddText(sub, "--reason", "TEXT", "The reason; kept with the job",
          [out](const std::string& reason) { out->reason = reason; });
}

void AddChoiceAndReason(CLI::App* sub, Invocation* out) {
  AddChoice(sub, "QUEUED", "Change nothing; show which jobs would change", out);
  AddReason(sub, out);
}

void AddUpdateAndRerun(CLI::App* app, Invocation* out) {
  CLI::App* update =
      AddVerb(app, out, "update", Verb::kUpdate, "Change the priority or the labels of jobs",
              "update 42 --priority 5 --label a=b --remove-label c");
  AddJobs(update, false, &out->jobs);
  AddNumber(update, "--priority", -1000, 1000, "Higher starts first, -1000 to 1000",
            [out](int64_t priority) { out->spec.priority = static_cast<int32_t>(priority); });
  AddRepeated(update, "--label", "KEY=VALUE", "A label to add or to change", &out->spec.labels);
  AddRepeated(update, "--remove-label", "KEY", "A label to take away", &out->remove_labels);
  AddReason(update, out);
  CLI::App* rerun =
      AddVerb(app, out, "rerun", Verb::kRerun, "Submit ended jobs again, as new jobs",
              "rerun 42 43\n  muster rerun --filter 'state = FAILED AND end_time > -1d'");
  AddChoice(rerun, "FAILED", "Submit nothing; say how many jobs would run again", out);
  rerun->add_flag("--hold", out->hold, "Hold the new jobs, until muster release");
  AddText(rerun, "--request-id", "ID",
          "A name for the request: a repeat with the same name makes no more jobs",
          [out](const std::string& id) { out->request_id = id; });
}

}  // namespace

void AddChangeVerbs(CLI::App* app, Invocation* out) {
  CLI::App* show = AddVerb(app, out, "show", Verb::kShow,
                           "Show jobs and their runs with all details", "show 42");
  show->alias("describe");
  AddJobs(show, true, &out->jobs);
  AddChoiceAndReason(AddVerb(app, out, "cancel", Verb::kCancel, "Cancel jobs",
                             "cancel 42 --reason 'wrong data'\n  muster cancel '43_*'\n  muster "
                             "cancel --filter 'state = QUEUED AND label.team = a' --dry-run"),
                     out);
  AddJobs(AddVerb(app, out, "why", Verb::kWhy, "Say why jobs wait or failed, or how they ended",
                  "why 42"),
          false, &out->jobs);
  AddChoiceAndReason(
      AddVerb(app, out, "hold", Verb::kHold, "Keep waiting jobs from starting", "hold 42"), out);
  AddChoiceAndReason(
      AddVerb(app, out, "release", Verb::kRelease, "Let held jobs start", "release 42"), out);
  AddChoiceAndReason(
      AddVerb(app, out, "move", Verb::kMove, "Take jobs back from clusters' queues", "move 42"),
      out);
  AddUpdateAndRerun(app, out);
}

}  // namespace muster::cli
