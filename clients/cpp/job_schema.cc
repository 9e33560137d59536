#include "clients/cpp/job_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/cpp/job_file_fields.h"
#include "clients/cpp/message_reader.h"
#include "contract/parts.h"
#include "google/protobuf/descriptor.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// A text may be written without quotes where YAML takes it for a number.
Json TextSchema() { return {{"type", {"string", "number", "boolean"}}}; }
Json ListOf(const Json& item) { return {{"type", "array"}, {"items", item}}; }
Json MapOf(const Json& value) { return {{"type", "object"}, {"additionalProperties", value}}; }
Json AnyOf(const std::vector<Json>& forms) {
  Json any;
  any["anyOf"] = Json::array();
  for (const Json& form : forms) any["anyOf"].push_back(form);
  return any;
}
Json Reference(const Descriptor& type) {
  return {{"$ref", fmt::format("#/definitions/{}", type.name())}};
}

// Writes the messages that are needed under "definitions", each once.
class SchemaWriter {
 public:
  Json Message(const Descriptor& type) {
    if (!definitions_.contains(type.name())) {
      definitions_[type.name()] = Json::object();  // so that one that holds itself ends
      definitions_[type.name()] = Definition(type);
    }
    return Reference(type);
  }

  Json Take() { return std::move(definitions_); }

 private:
  Json Definition(const Descriptor& type) {
    Json properties = Json::object();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const WrittenField* written = FindWritten(field.full_name());
      if (written == nullptr || written->form == WrittenForm::kAsApi) {
        properties[field.name()] = OfApi(field);
      } else {
        AddWritten(*written, field.message_type(), &properties);
      }
    }
    // The fields that the API lacks.
    const std::string prefix = type.full_name() + ".";
    for (const WrittenField& written : kWrittenFields) {
      const bool is_of_type = written.api.starts_with(prefix);
      if (is_of_type &&
          type.FindFieldByName(std::string(written.api.substr(prefix.size()))) == nullptr) {
        AddWritten(written, nullptr, &properties);
      }
    }
    return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  }

  // `type`: the API's message for it; null: it has none.
  void AddWritten(const WrittenField& written, const Descriptor* type, Json* properties) {
    for (const std::string_view name : contract::Split(written.names, '|'))
      (*properties)[std::string(name)] = Written(written.form, name, type);
  }

  Json Written(WrittenForm form, std::string_view name, const Descriptor* type) {
    switch (form) {
      case WrittenForm::kTexts:
        return ListOf(TextSchema());
      case WrittenForm::kTextMap:
        return MapOf(TextSchema());
      case WrittenForm::kCommand:
        if (name == "run") return TextSchema();
        return AnyOf({ListOf(TextSchema()), Message(*type)});
      case WrittenForm::kGpus: {
        const Json one = AnyOf({TextSchema(), Message(*type)});
        return AnyOf({one, ListOf(one)});
      }
      case WrittenForm::kDependsOn: {
        Json by_name = Message(*type);
        const Json short_form = {{"type", "object"},
                                 {"properties", {{"job", TextSchema()}, {"outcome", TextSchema()}}},
                                 {"additionalProperties", false}};
        const Json one = AnyOf({TextSchema(), short_form, std::move(by_name)});
        return AnyOf({one, ListOf(one)});
      }
      case WrittenForm::kSecrets: {
        const Json file = {{"type", "object"},
                           {"properties", {{"file", TextSchema()}}},
                           {"additionalProperties", false}};
        return AnyOf({MapOf(AnyOf({TextSchema(), file})), ListOf(Message(*type))});
      }
      default:
        return TextSchema();
    }
  }

  Json OfApi(const FieldDescriptor& field) {
    if (field.is_map()) return MapOf(TextSchema());
    const Json one = OneOfApi(field);
    return field.is_repeated() ? ListOf(one) : one;
  }

  Json OneOfApi(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_ENUM: {
        Json names = Json::array();
        for (const std::string& name : WrittenEnumNames(*field.enum_type())) names.push_back(name);
        return {{"enum", names}};
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (field.message_type()->full_name() != "google.protobuf.Duration")
          return Message(*field.message_type());
        return TextSchema();
      case FieldDescriptor::CPPTYPE_STRING:
        return TextSchema();
      default:
        // JSON has numbers of 64 bits as texts, and sizes have units.
        return {{"type", {"integer", "string"}}};
    }
  }

  Json definitions_ = Json::object();
};

}  // namespace

std::string JobFileSchema() {
  SchemaWriter writer;
  const Json job = writer.Message(*v1::JobSpec::descriptor());
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "A job of Muster"},
                 {"allOf", Json::array({job})}};
  schema["definitions"] = writer.Take();
  return schema.dump(2) + "\n";
}

}  // namespace muster::client
