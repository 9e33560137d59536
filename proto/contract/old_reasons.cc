#include "contract/old_reasons.h"

#include <google/protobuf/unknown_field_set.h>

#include <optional>
#include <string>

#include "contract/sentences.h"

namespace muster::contract {
namespace {

// The numbers of the fields that the messages had.
constexpr int kReasonOfRun = 7;
constexpr int kReasonSinceOfRun = 17;
constexpr int kReasonOfEvent = 6;

// Returns the bytes of a field that the message no longer has, which it loses.
std::optional<std::string> Take(int number, google::protobuf::Message* message) {
  google::protobuf::UnknownFieldSet* fields =
      message->GetReflection()->MutableUnknownFields(message);
  std::optional<std::string> bytes;
  for (int i = 0; i < fields->field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields->field(i);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      bytes = field.length_delimited();
  }
  fields->DeleteByNumber(number);
  return bytes;
}

v1::StateReason ReasonOf(const std::string& sentence) {
  return MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = sentence});
}

}  // namespace

bool TakeOverReason(v1::Run* run) {
  const std::optional<std::string> sentence = Take(kReasonOfRun, run);
  const std::optional<std::string> since = Take(kReasonSinceOfRun, run);
  if (!sentence.has_value()) return false;
  *run->mutable_state_reason() = ReasonOf(*sentence);
  google::protobuf::Timestamp time;
  if (since.has_value() && time.ParseFromString(*since))
    *run->mutable_state_reason()->mutable_since() = time;
  return true;
}

bool TakeOverReason(agent::v1::RunEvent* event) {
  const std::optional<std::string> sentence = Take(kReasonOfEvent, event);
  if (!sentence.has_value()) return false;
  *event->mutable_state_reason() = ReasonOf(*sentence);
  return true;
}

}  // namespace muster::contract
