#include "clients/cpp/message_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>

#include "contract/characters.h"
#include "contract/retry.h"
#include "contract/slurm_options.h"
#include "contract/units.h"
#include "contract/validate.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"

namespace muster::client {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// "wait" for ON_CLUSTER_LOSS_WAIT.
std::string ShortName(const EnumDescriptor& type, int index) {
  // All values begin with the name of the first one, less its UNSPECIFIED.
  const std::string& first = type.value(0)->name();
  const size_t prefix = first.size() - std::string_view("UNSPECIFIED").size();
  std::string name = type.value(index)->name().substr(prefix);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// Recognises a length of time, which people write as "90s" or "15m".
bool IsDuration(const FieldDescriptor& field) {
  return field.message_type()->full_name() == google::protobuf::Duration::descriptor()->full_name();
}

// Recognises a size, which people write as "16Gi".
bool IsSize(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 && field.name().ends_with("_bytes");
}

struct Range {
  int64_t min = 0;
  int64_t max = std::numeric_limits<uint32_t>::max();
};

// A 0 that is written is no number of these, and the API would take it for what is left out.
Range RangeOf(const FieldDescriptor& field) {
  static constexpr struct {
    std::string_view name;
    Range range;
  } kFromOne[] = {
      {"muster.v1.JobSpec.nodes", {1, contract::kMaxNodes}},
      {"muster.v1.Role.nodes", {1, contract::kMaxNodes}},
      {"muster.v1.RetryPolicy.max_runs", {1, contract::kMaxRuns}},
      {"muster.v1.SlurmOptions.tasks_per_node", {1, contract::kMaxTasksPerNode}},
  };
  for (const auto& [name, range] : kFromOne) {
    if (field.full_name() == name) return range;
  }
  return {};
}

void SetDuration(absl::Duration duration, Message* message) {
  auto* out = google::protobuf::DynamicCastToGenerated<google::protobuf::Duration>(message);
  const int64_t seconds = absl::ToInt64Seconds(duration);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

}  // namespace

std::vector<std::string> WrittenEnumNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) {
    names.push_back(ShortName(type, i));
    names.push_back(type.value(i)->name());
  }
  return names;
}

void MessageReader::Read(const YamlValue& value, Message* message,
                         const std::vector<YamlReader::Field>& extra,
                         const std::map<std::string_view, std::string_view>& hints) const {
  std::vector<YamlReader::Field> fields;
  const auto& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const Field* field = type.field(i);
    if (const auto it = friendly_.find(field->full_name()); it != friendly_.end()) {
      fields.push_back(it->second);
    } else {
      fields.push_back(
          {field->name(), [=, this](const YamlValue& inner) { ReadField(inner, message, field); }});
    }
    fields.back().json_name = field->json_name();
  }
  fields.insert(fields.end(), extra.begin(), extra.end());
  in_.Mapping(value, fields, hints);
}

void MessageReader::ReadField(const YamlValue& value, Message* message, const Field* field) const {
  if (field->is_map()) return ReadMap(value, message, field);
  if (field->is_repeated()) return ReadRepeated(value, message, field);
  const auto& set = *message->GetReflection();
  if (const auto* form = field->real_containing_oneof();
      form != nullptr && set.HasOneof(*message, form)) {
    return in_.Problem(value, fmt::format("{} is given too; keep one of them",
                                          set.GetOneofFieldDescriptor(*message, form)->name()));
  }
  std::string text;
  int64_t number = 0;
  bool truth = false;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (in_.Text(value, &text)) set.SetString(message, field, text);
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      if (const Range range = RangeOf(*field); !in_.Integer(value, range.min, range.max, &number))
        return;
      set.SetUInt32(message, field, static_cast<uint32_t>(number));
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      if (IsSize(*field)) {
        return in_.Parsed(value, contract::ParseBytes,
                          [&](uint64_t bytes) { set.SetUInt64(message, field, bytes); });
      }
      if (!in_.Integer(value, 0, std::numeric_limits<int64_t>::max(), &number)) return;
      set.SetUInt64(message, field, static_cast<uint64_t>(number));
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      if (!in_.Integer(value, std::numeric_limits<int32_t>::min(),
                       std::numeric_limits<int32_t>::max(), &number)) {
        return;
      }
      set.SetInt32(message, field, static_cast<int32_t>(number));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      if (!in_.Integer(value, std::numeric_limits<int64_t>::min(),
                       std::numeric_limits<int64_t>::max(), &number)) {
        return;
      }
      set.SetInt64(message, field, number);
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (in_.Bool(value, &truth)) set.SetBool(message, field, truth);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      return ReadEnum(value, message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (IsDuration(*field)) {
        return in_.Parsed(value, contract::ParseDuration, [&](absl::Duration duration) {
          SetDuration(duration, set.MutableMessage(message, field));
        });
      }
      return Read(value, set.MutableMessage(message, field));
    default:
      in_.Problem(value, "cannot be written in a job file yet; use the API");
  }
}

void MessageReader::ReadRepeated(const YamlValue& value, Message* message,
                                 const Field* field) const {
  const auto& set = *message->GetReflection();
  in_.List(value, [&](const YamlValue& item) {
    std::string text;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Read(item, set.AddMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      int64_t number = 0;
      if (in_.Integer(item, std::numeric_limits<int32_t>::min(),
                      std::numeric_limits<int32_t>::max(), &number)) {
        set.AddInt32(message, field, static_cast<int32_t>(number));
      }
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      in_.Problem(item, "cannot be written in a job file yet; use the API");
    } else if (in_.Text(item, &text)) {
      set.AddString(message, field, text);
    }
  });
}

// The maps of the API go from text to text.
void MessageReader::ReadMap(const YamlValue& value, Message* message, const Field* field) const {
  const auto& entry_type = *field->message_type();
  in_.Entries(value, [&](const std::string& key, const YamlValue& inner) {
    std::string text;
    if (!in_.Text(inner, &text)) return;
    Message* entry = message->GetReflection()->AddMessage(message, field);
    entry->GetReflection()->SetString(entry, entry_type.map_key(), key);
    entry->GetReflection()->SetString(entry, entry_type.map_value(), text);
  });
}

void MessageReader::ReadEnum(const YamlValue& value, Message* message, const Field* field) const {
  const EnumDescriptor& type = *field->enum_type();
  std::string text;
  if (!in_.Text(value, &text)) return;
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) {
    const std::string name = ShortName(type, i);
    names.push_back(name);
    if (text != name && text != type.value(i)->name()) continue;
    message->GetReflection()->SetEnum(message, field, type.value(i));
    return;
  }
  in_.Problem(value,
              fmt::format("{} is not one of {}", contract::Quoted(text), fmt::join(names, ", ")));
}

}  // namespace muster::client
