#include "broker/app/audit_subject.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "contract/characters.h"

namespace muster::broker {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The fields of requests that are recorded, by their names in any request. All of them name
// something; none may ever hold a secret, a program or an environment.
constexpr const char* kNamingFields[] = {
    "name",   "id",  "user", "role",   "cluster",       "project", "filter",
    "sha256", "run", "rank", "offset", "validate_only", "kind"};
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

// Adds the numbers that the fields job_id, job_ids and, of a job itself, id have.
void AddIds(const Message& message, std::vector<uint64_t>* ids) {
  const auto& descriptor = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  const char* const own = descriptor.name() == "Job" ? "id" : kJobId;
  const FieldDescriptor* one = descriptor.FindFieldByName(own);
  if (one != nullptr && one->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 && !one->is_repeated()) {
    if (const uint64_t id = reflection.GetUInt64(message, one); id != 0) ids->push_back(id);
  }
  const FieldDescriptor* many = descriptor.FindFieldByName(kJobIds);
  if (many == nullptr || many->cpp_type() != FieldDescriptor::CPPTYPE_UINT64) return;
  for (int i = 0; i < reflection.FieldSize(message, many); ++i) {
    ids->push_back(reflection.GetRepeatedUInt64(message, many, i));
  }
}

// Adds those of the messages "job", "jobs" and "responses" in it, too.
std::vector<uint64_t> IdsOf(const Message& message) {
  std::vector<uint64_t> ids;
  AddIds(message, &ids);
  const auto& reflection = *message.GetReflection();
  for (const char* name : {"job", "jobs", "responses"}) {
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
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

// The cluster and the number of the token that an answer gives out. The token of an invitation is
// a text, and a secret.
std::vector<std::string> GivenOut(const Message& answer) {
  const auto& descriptor = *answer.GetDescriptor();
  std::vector<std::string> parts;
  const FieldDescriptor* cluster = descriptor.FindFieldByName("cluster");
  if (cluster != nullptr && cluster->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    parts.push_back("cluster=" + ValueOf(answer, *cluster));
  }
  const FieldDescriptor* token = descriptor.FindFieldByName("token");
  if (token == nullptr || token->is_repeated() ||
      token->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return parts;
  }
  const Message& made = answer.GetReflection()->GetMessage(answer, token);
  const FieldDescriptor* id = made.GetDescriptor()->FindFieldByName("id");
  if (id != nullptr) parts.push_back("token=" + ValueOf(made, *id));
  return parts;
}

// "name=\"ada\"", of each naming field that is set; `prefix` goes before the field's name.
std::vector<std::string> NamesIn(const Message& message, std::string_view prefix) {
  std::vector<std::string> parts;
  for (const char* name : kNamingFields) {
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated()) continue;
    if (!message.GetReflection()->HasField(message, field)) continue;
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
  const FieldDescriptor* member = request.GetDescriptor()->FindFieldByName("member");
  if (member == nullptr || member->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return;
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
