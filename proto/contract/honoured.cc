#include "contract/honoured.h"

#include <string>
#include <vector>

#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"

namespace muster::contract {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Enough to see what is wrong; the list travels in a gRPC status.
constexpr size_t kMaxListedFields = 20;

void FindUnknownFields(const Message& message, const std::string& prefix,
                       std::vector<std::string>* found) {
  const auto& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count() && found->size() < kMaxListedFields; ++i) {
    found->push_back(fmt::format("{}{}", prefix, unknown.field(i).number()));
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const std::string inner = prefix + field->name() + ".";
    if (!field->is_repeated()) {
      FindUnknownFields(reflection.GetMessage(message, field), inner, found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      FindUnknownFields(reflection.GetRepeatedMessage(message, field, i), inner, found);
    }
  }
}

std::vector<std::string> FindUnhonoured(const v1::JobSpec& spec) {
  std::vector<std::string> found;
  const auto check = [&found](bool is_set, const char* field) {
    if (is_set) found.emplace_back(field);
  };
  check(!spec.secrets().empty(), "secrets");
  check(!spec.outputs().empty(), "outputs");
  check(!spec.dependencies().empty(), "dependencies");
  check(spec.has_array(), "array");
  check(spec.has_machines(), "machines");
  check(!spec.placement().node_labels().empty(), "placement.node_labels");
  check(spec.on_cluster_loss() != v1::ON_CLUSTER_LOSS_UNSPECIFIED &&
            spec.on_cluster_loss() != v1::ON_CLUSTER_LOSS_WAIT,
        "on_cluster_loss");
  check(spec.resources().gpus_size() > 1, "resources.gpus[1]");
  return found;
}

}  // namespace

absl::Status CheckHonoured(const v1::JobSpec& spec) {
  std::vector<std::string> fields = FindUnhonoured(spec);
  const size_t known = fields.size();
  FindUnknownFields(spec, "", &fields);
  if (fields.empty()) return absl::OkStatus();
  const std::string names = fmt::format("{}", fmt::join(fields, ","));
  const std::string message =
      known == 0 ? fmt::format(
                       "this broker does not know the fields with the numbers {}; your client is "
                       "newer than it is: upgrade the broker or leave them out",
                       names)
                 : fmt::format(
                       "no cluster kind honours these values yet: {}; leave them out (GPUs are "
                       "of one type, on_cluster_loss is WAIT)",
                       names);
  return Error(absl::StatusCode::kUnimplemented, "FIELD_NOT_HONOURED", message, {{"field", names}});
}

}  // namespace muster::contract
