#include "broker/app/audit_subject.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "contract/characters.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// These fields of requests are recorded, by their names in any request. All of them name something;
// none may ever hold a secret, a program or an environment.
constexpr const char* kNamingFields[] = {
    "name", "id",   "user",   "role",          "cluster", "project", "filter", "sha256",
    "run",  "rank", "offset", "validate_only", "kind",    "signal",  "target", "drain"};
constexpr char kJobId[] = "job_id";
constexpr char kJobIds[] = "job_ids";

std::string ValueOf(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return contract::Quoted(reflection.GetString(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(message, &field)->name();
    case FieldDescriptor::CPPTYPE_UINT32:
      return fmt::format("{}", reflection.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return fmt::format("{}", reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    default:
      return "";
  }
}

// The fields of a message that are set. There are few, and a look at each costs less than one into
// the descriptor's tables: every call passes here.
class SetFields {
 public:
  explicit SetFields(const Message& message) {
    message.GetReflection()->ListFields(message, &fields_);
  }

  // Null: it is not set, or there is no such field.
  const FieldDescriptor* Find(std::string_view name) const {
    for (const FieldDescriptor* field : fields_) {
      if (field->name() == name) return field;
    }
    return nullptr;
  }
  const FieldDescriptor* FindMessage(std::string_view name) const {
    const FieldDescriptor* field = Find(name);
    const bool is_message =
        field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    return is_message ? field : nullptr;
  }

 private:
  std::vector<const FieldDescriptor*> fields_;
};

// Adds the numbers that the fields job_id and job_ids have.
void AddNamedIds(const Message& message, const SetFields& fields, std::vector<uint64_t>* ids) {
  const auto& reflection = *message.GetReflection();
  const FieldDescriptor* one = fields.Find(kJobId);
  if (one != nullptr && one->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 && !one->is_repeated()) {
    ids->push_back(reflection.GetUInt64(message, one));
  }
  const FieldDescriptor* many = fields.Find(kJobIds);
  if (many == nullptr || many->cpp_type() != FieldDescriptor::CPPTYPE_UINT64) return;
  for (int i = 0; i < reflection.FieldSize(message, many); ++i) {
    ids->push_back(reflection.GetRepeatedUInt64(message, many, i));
  }
}

// Adds those of a part of a message. A job has many fields, and each answer to a submit has one.
void AddIds(const Message& part, std::vector<uint64_t>* ids) {
  if (const auto* job = google::protobuf::DynamicCastToGenerated<v1::Job>(&part)) {
    ids->push_back(job->id());
  } else {
    AddNamedIds(part, SetFields(part), ids);
  }
}

// Adds those of the messages "job", "jobs" and "responses" in it, too.
std::vector<uint64_t> IdsOf(const Message& message) {
  std::vector<uint64_t> ids;
  const SetFields fields(message);
  AddNamedIds(message, fields, &ids);
  const auto& reflection = *message.GetReflection();
  for (const char* name : {"job", "jobs", "responses"}) {
    const FieldDescriptor* field = fields.FindMessage(name);
    if (field == nullptr) continue;
    if (!field->is_repeated()) {
      AddIds(reflection.GetMessage(message, field), &ids);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      AddIds(reflection.GetRepeatedMessage(message, field, i), &ids);
    }
  }
  return ids;
}

// Returns the cluster and the number of the token that an answer gives out. The token of an
// invitation is a text, and a secret.
std::vector<std::string> GivenOut(const Message& answer) {
  const SetFields fields(answer);
  std::vector<std::string> parts;
  const FieldDescriptor* cluster = fields.Find("cluster");
  if (cluster != nullptr && cluster->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    parts.push_back("cluster=" + ValueOf(answer, *cluster));
  }
  const FieldDescriptor* token = fields.FindMessage("token");
  if (token == nullptr || token->is_repeated()) return parts;
  const Message& made = answer.GetReflection()->GetMessage(answer, token);
  const FieldDescriptor* id = SetFields(made).Find("id");
  if (id != nullptr) parts.push_back("token=" + ValueOf(made, *id));
  return parts;
}

// Returns "name=\"ada\"" for each naming field that is set; `prefix` goes before the field's name.
std::vector<std::string> NamesIn(const Message& message, std::string_view prefix) {
  const SetFields fields(message);
  std::vector<std::string> parts;
  for (const char* name : kNamingFields) {
    const FieldDescriptor* field = fields.Find(name);
    if (field == nullptr || field->is_repeated()) continue;
    parts.push_back(fmt::format("{}{}={}", prefix, name, ValueOf(message, *field)));
  }
  return parts;
}

}  // namespace

void AuditSubject::AddTarget(const std::string& part) {
  const size_t separator = target_.empty() ? 0 : 1;
  if (target_.size() + separator + part.size() > kMaxAuditedTargetBytes) return;
  target_.append(separator, ' ').append(part);
}

void AuditSubject::AddRequest(const Message& request) {
  jobs_ = IdsOf(request);
  for (const std::string& part : NamesIn(request, "")) AddTarget(part);
  // A project's member that is set.
  const FieldDescriptor* member = SetFields(request).FindMessage("member");
  if (member == nullptr || member->is_repeated()) return;
  const Message& named = request.GetReflection()->GetMessage(request, member);
  for (const std::string& part : NamesIn(named, "member.")) AddTarget(part);
}

void AuditSubject::AddAnswer(const Message& answer) {
  std::vector<uint64_t> ids = IdsOf(answer);
  if (!ids.empty()) jobs_ = std::move(ids);
  for (const std::string& part : GivenOut(answer)) AddTarget(part);
}

std::string AuditSubject::Jobs() const {
  std::vector<uint64_t> jobs = jobs_;
  std::sort(jobs.begin(), jobs.end());
  std::string text;
  for (size_t i = 0; i < jobs.size();) {
    size_t next = i + 1;
    while (next < jobs.size() && jobs[next] - jobs[next - 1] <= 1) ++next;
    const bool is_one = jobs[next - 1] == jobs[i];
    const std::string part = fmt::format("{}{}", text.empty() ? "" : ",", jobs[i]) +
                             (is_one ? "" : fmt::format("-{}", jobs[next - 1]));
    if (text.size() + part.size() + 4 > kMaxAuditedJobsBytes) return text + ",...";
    text += part;
    i = next;
  }
  return text;
}

}  // namespace muster::broker
