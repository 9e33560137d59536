#include "contract/honoured.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Enough to see what is wrong; the list travels in a gRPC status.
constexpr size_t kMaxListedFields = 20;

// A message within another one. Every job that is submitted is searched, so the name is made only
// once a field is found.
struct Place {
  const Place* outer = nullptr;
  const FieldDescriptor* field = nullptr;

  std::string Prefix() const {
    return field == nullptr ? "" : fmt::format("{}{}.", outer->Prefix(), field->name());
  }
};

// The fields of a type of message that are messages themselves, and no maps.
using MessageFields = std::vector<const FieldDescriptor*>;

// This covers JobSpec and the messages in it, because asking a descriptor for each field of each
// job costs more than looking into the job.
const MessageFields& MessageFieldsOf(const Descriptor* descriptor) {
  using Table = std::unordered_map<const Descriptor*, MessageFields>;
  static const Table table = [] {
    Table made;
    std::vector<const Descriptor*> left = {v1::JobSpec::descriptor()};
    while (!left.empty()) {
      const Descriptor* const one = left.back();
      left.pop_back();
      const auto [entry, is_new] = made.try_emplace(one);
      if (!is_new) continue;
      for (int f = 0; f < one->field_count(); ++f) {
        const FieldDescriptor* const field = one->field(f);
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
        entry->second.push_back(field);
        left.push_back(field->message_type());
      }
    }
    return made;
  }();
  return table.at(descriptor);
}

void FindUnknownFields(const Message& message, const Place& place,
                       std::vector<std::string>* found) {
  const auto& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count() && found->size() < kMaxListedFields; ++i) {
    found->push_back(fmt::format("{}{}", place.Prefix(), unknown.field(i).number()));
  }
  for (const FieldDescriptor* field : MessageFieldsOf(message.GetDescriptor())) {
    if (!field->is_repeated()) {
      if (!reflection.HasField(message, field)) continue;
      FindUnknownFields(reflection.GetMessage(message, field), Place{&place, field}, found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      FindUnknownFields(reflection.GetRepeatedMessage(message, field, i), Place{&place, field},
                        found);
    }
  }
}

}  // namespace

absl::Status CheckHonoured(const v1::JobSpec& spec) {
  std::vector<std::string> fields;
  FindUnknownFields(spec, Place{}, &fields);
  if (fields.empty()) return absl::OkStatus();
  const std::string names = fmt::format("{}", fmt::join(fields, ","));
  return Error(
      absl::StatusCode::kUnimplemented, "FIELD_NOT_HONOURED",
      fmt::format("this broker does not know the fields with the numbers {}; your client is "
                  "newer than it is: upgrade the broker or leave them out",
                  names),
      {{"field", names}});
}

}  // namespace muster::contract
