#include "broker/notify/payload.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::notify {
namespace {

// It keeps the fields in the order in which they are given.
using Json = nlohmann::ordered_json;

Json ToJson(const google::protobuf::Message& message) {
  std::string text;
  // A message that was read can be written.
  static_cast<void>(google::protobuf::util::MessageToJsonString(message, &text));
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string ToText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Says why the job is in the state; empty: there is nothing to say.
std::string ReasonOf(const v1::JobChange& change) {
  const v1::Job& job = change.job();
  const v1::Transition& step = change.transition();
  if (step.job_state() == v1::JOB_STATE_FAILED && job.has_failure())
    return contract::WithRemedy(job.failure().message(), job.failure().remedy());
  if (step.job_state() != v1::JOB_STATE_CANCELED) return "";
  if (step.evidence().source() == v1::EVIDENCE_SOURCE_USER) return step.evidence().detail();
  return job.state_reason().message();
}

// https://docs.slack.dev/messaging/formatting-message-text: these three are all that Slack reads as
// its own, so that no name of a job calls a channel.
std::string ForSlack(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

}  // namespace

std::string SentenceOf(const v1::JobChange& change) {
  const v1::Job& job = change.job();
  std::string text = fmt::format("Job {}", job.id());
  if (!job.name().empty()) text += fmt::format(" ({})", job.name());
  text += fmt::format(" of {} in project {}", job.user(), job.project());
  text += fmt::format(" {}", contract::Name(change.transition().job_state()));
  if (!job.cluster().empty()) text += fmt::format(" on {}", job.cluster());
  const std::string reason = ReasonOf(change);
  return reason.empty() ? text : fmt::format("{}: {}", text, reason);
}

std::string BodyOf(Webhook::Format format, std::string_view broker, const v1::JobChange& change) {
  const std::string sentence = SentenceOf(change);
  if (format == Webhook::Format::kSlack) return ToText(Json{{"text", ForSlack(sentence)}});
  const v1::Transition& step = change.transition();
  const std::string state = absl::AsciiStrToLower(ToAbsl(contract::Name(step.job_state())));
  return ToText(Json{{"id", fmt::format("{}", step.sequence())},
                     {"type", fmt::format("job.{}", state)},
                     {"broker", broker},
                     {"message", sentence},
                     {"job", ToJson(JobAtStep(change))},
                     {"transition", ToJson(step)}});
}

}  // namespace muster::notify
