#include "agents/core/clean_text.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::agents {
namespace {

// The length of the UTF-8 character at the front of `text` as RFC 3629 has it; 0 if there is none.
size_t CharacterLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_large = first == 0xF4 && byte(1) > 0x8F;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

void CleanInPlace(std::string* text, size_t max_bytes) { *text = CleanText(*text, max_bytes); }

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void CleanTextField(Message* message, const FieldDescriptor* field, size_t max_bytes) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (!field->is_repeated()) {
    reflection.SetString(message, field,
                         CleanText(reflection.GetString(*message, field), max_bytes));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    reflection.SetRepeatedString(
        message, field, i, CleanText(reflection.GetRepeatedString(*message, field, i), max_bytes));
  }
}

void CleanMessageField(Message* message, const FieldDescriptor* field, size_t max_bytes) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (!field->is_repeated()) {
    return CleanAllTexts(reflection.MutableMessage(message, field), max_bytes);
  }
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    CleanAllTexts(reflection.MutableRepeatedMessage(message, field, i), max_bytes);
  }
}

}  // namespace

std::string CleanText(std::string_view text, size_t max_bytes) {
  std::string clean;
  clean.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (clean.size() + std::max<size_t>(length, 1) > max_bytes) break;
    if (length == 0) {
      clean += '?';
      text.remove_prefix(1);
    } else {
      clean += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return clean;
}

void CleanTexts(agent::v1::RunEvent* event) {
  CleanInPlace(event->mutable_external_id(), kMaxNameBytes);
  for (std::string& node : *event->mutable_nodes()) CleanInPlace(&node, kMaxNameBytes);
  CleanInPlace(event->mutable_results_directory(), kMaxPathBytes);
  if (event->has_evidence()) {
    CleanInPlace(event->mutable_evidence()->mutable_detail(), kMaxDetailBytes);
  }
  for (v1::Replica& replica : *event->mutable_replicas()) CleanAllTexts(&replica, kMaxNameBytes);
  if (event->has_slurm_allocation())
    CleanAllTexts(event->mutable_slurm_allocation(), kMaxNameBytes);
  if (event->has_state_reason()) CleanAllTexts(event->mutable_state_reason(), kMaxDetailBytes);
  if (event->has_failure()) {
    v1::Failure& failure = *event->mutable_failure();
    CleanInPlace(failure.mutable_node(), kMaxNameBytes);
    CleanInPlace(failure.mutable_role(), kMaxNameBytes);
    CleanInPlace(failure.mutable_object(), kMaxNameBytes);
    CleanInPlace(failure.mutable_log_sign(), kMaxNameBytes);
    for (std::string* text :
         {failure.mutable_message(), failure.mutable_remedy(), failure.mutable_detail(),
          failure.mutable_subject(), failure.mutable_meaning()})
      CleanInPlace(text, kMaxDetailBytes);
    for (v1::FailureQuote& quote : *failure.mutable_quotes()) {
      CleanInPlace(quote.mutable_source(), kMaxNameBytes);
      CleanInPlace(quote.mutable_text(), kMaxDetailBytes);
    }
  }
}

void CleanTexts(v1::Inventory* inventory) {
  CleanInPlace(inventory->mutable_identity(), kMaxNameBytes);
  CleanInPlace(inventory->mutable_scheduler_version(), kMaxNameBytes);
  if (inventory->has_admission() && inventory->admission().has_results_root())
    CleanInPlace(inventory->mutable_admission()->mutable_results_root(), kMaxPathBytes);
  for (v1::ClusterIssue& issue : *inventory->mutable_issues())
    CleanAllTexts(&issue, kMaxDetailBytes);
  for (v1::Pool& pool : *inventory->mutable_pools()) {
    CleanInPlace(pool.mutable_name(), kMaxNameBytes);
    for (v1::NodeGroup& group : *pool.mutable_node_groups()) {
      google::protobuf::Map<std::string, uint32_t> gpus;
      for (const auto& [type, count] : group.gpus()) gpus[CleanText(type, kMaxNameBytes)] += count;
      group.mutable_gpus()->swap(gpus);
    }
  }
}

void CleanAllTexts(Message* message, size_t max_bytes) {
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      CleanTextField(message, field, max_bytes);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CleanMessageField(message, field, max_bytes);
    }
  }
}

}  // namespace muster::agents
